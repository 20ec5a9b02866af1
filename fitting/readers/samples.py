"""Logs of samples: nvidia-smi, NVML loggers, dcgmi, tegrastats and the like; runs come out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile, Trace
from optgap.fitting.readers.naming import quantity_of
from optgap.fitting.readers.runs import IDLE, Cut, cut_device, spread, timed, together
from optgap.fitting.readers.shape import measured
from optgap.fitting.readers.text import WRITES, RawTable, stem
from optgap.models.columns import Wanted
from optgap.models.errors import InputError, NoQuote
from optgap.models.units import parsed, units_of

Floats = NDArray[np.float64]
Texts = NDArray[Any]

FIELDS: Mapping[str, tuple[str, int]] = {
    "power_draw_instant": ("power_w", -3),
    "power_draw": ("power_w", -2),
    "power_draw_average": ("power_w", -1),
    "board_power_draw": ("power_w", -1),
    "power_consumption": ("power_w", 2),
    "average_graphics_package_power": ("power_w", -1),
    "current_socket_graphics_package_power": ("power_w", -1),
    "clocks_current_sm": ("frequency_mhz", -3),
    "clocks_sm": ("frequency_mhz", -3),
    "clocks_current_graphics": ("frequency_mhz", -2),
    "clocks_gr": ("frequency_mhz", -2),
    "sclk_clock_speed": ("frequency_mhz", -1),
    "clocks_current_memory": ("memory_mhz", -1),
    "clocks_mem": ("memory_mhz", -1),
    "utilization_gpu": ("util_percent", -1),
    "gpu_use": ("util_percent", -1),
    "gpu_load": ("util_percent", -1),
    "enforced_power_limit": ("power_limit_w", 2),
    "total_energy_consumption": ("energy_j", -1),
    "name": ("gpu_model", 2),
}
"""What loggers call quantities, in words, with a rank: the lowest that holds numbers is taken."""
SURE = {"power_draw", "power_draw_instant", "power_draw_average", "sclk_clock_speed"}
"""Names that only logs of samples have."""
DEVICES = (
    "uuid", "gpu_uuid", "index", "gpu_index", "pci_bus_id", "gpu_bus_id", "serial", "gpu_serial",
    "gpu", "gpu_id", "device_id", "deviceid", "card", "device",
)  # fmt: skip
"""Columns that tell devices apart, the best first; a product's name does not."""
HOSTS = ("hostname", "host")
KEYS = ("application", "workload")
"""Columns whose values belong to series of their own."""
SWEPT = ("frequency_mhz", "local_batch", "global_batch", "gpus", "nodes", "power_limit_w")
_STAMP = re.compile(r"(.*_)?(timestamp|time_?stamp|date_?time|date|time|elapsed|ts)(_utc|_local)?")
_OF_DEVICE = re.compile(r"(?i)(?<![a-z])gpu[\W_]?(\d+)(?!\d)")

ROWS, ROWS_UNTIMED, STEP_S, EVEN, BACK, DISTINCT = 20, 50, 60.0, 0.8, 0.05, 0.25
"""What makes a table one of samples: rows of a device, seconds between them, the share of even
steps, of steps back, and of distinct clocks."""
UNREADABLE = 0.01
"""The largest share of lines that do not fit."""
DAY_S = 86_400.0


@dataclass(frozen=True)
class Samples:
    """Samples of one or several devices, in the order of the file.

    Parameters
    ----------
    series: measured columns by our names, one value a sample; ``counter_j`` counts energy.
    device: whose each sample is.
    texts: what a run has one of, by column: ``application``, ``gpu_model``.
    keys: those of them that, beside the device, tell one series from another.
    times: in s, where known; `interval_s` apart without.
    """

    source: str
    kind: str
    series: dict[str, Floats]
    device: Texts
    texts: Mapping[str, Texts] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    times: Floats | None = None
    interval_s: float = 1.0
    lines: Sequence[int] = ()
    notes: tuple[str, ...] = ()


def of_table(
    raw: RawTable,
    named: Mapping[str, Wanted],
    units: Mapping[str, str],
    interval_s: float | None = None,
) -> Samples | None:
    """Return a table's samples; None for a table that is none of samples.

    Parameters
    ----------
    named: what the user says that columns are.
    units: what the user says that quantities are measured in.
    interval_s: time between samples; with it a table without times is one of samples.

    Raises
    ------
    InputError: for a log without power or readable times, or with many lines that do not fit.
    """
    words = {name: parsed(name).words for name in raw.header}
    sure = interval_s is not None or bool(SURE & set(words.values()))
    if not sure and len(raw.rows) < ROWS:
        return None
    raw, left = _fitting(raw, sure)
    stamp, times = _times(raw, words, named, sure)
    if not (sure or stamp or any("util" in name for name in words.values())):
        return None
    if stamp and np.isnan(times).any():
        kept = np.flatnonzero(np.isfinite(times))
        raw, times = _rows(raw, kept), times[kept]
    columns = _columns(raw, words, named, stamp, units)
    wide = any(device for device, *_ in columns)
    who = next((name for ours in DEVICES for name in raw.header if words[name] == ours), "")
    texts = {
        ours: raw.text(name)
        for _, ours, name, _ in columns
        if ours in ("application", "gpu_model", "workload")
    }
    hosts = [raw.text(name) for name in raw.header if words[name] in HOSTS]
    devices = list(dict.fromkeys(device for device, *_ in columns if device)) if wide else [""]
    parts: list[Samples] = []
    empty: list[str] = []
    for number in devices:
        series: dict[str, Floats] = {}
        for device, ours, name, unit in columns:
            if device not in ("", number) or ours in series or ours in texts:
                continue
            _, values = measured(raw, name, ours, unit)
            if not np.isfinite(values).any():
                empty.append(
                    f"{name} is {raw.rows[0][raw.index(name)].strip() or 'empty'} in every row"
                )
            elif ours == "energy_j":
                if np.all(np.diff(values[np.isfinite(values)]) >= 0):
                    series["counter_j"] = values
            else:
                series[ours] = values
                if ours == "power_w" and sum(o == ours for _, o, *_ in columns) > 1 and not wide:
                    left.append(f"power is {name}")
        plain = raw.text(who) if who else np.full(len(raw.rows), number or "0", dtype=object)
        parts.append(
            Samples(
                raw.source, "samples", series, _labels([*hosts, plain], "/"), texts,
                tuple(name for name in KEYS if name in texts), times if stamp else None, 1.0,
                raw.lines,
            )
        )  # fmt: skip
    whole = _joined(parts)
    if "power_w" not in whole.series and "counter_j" not in whole.series:
        if not sure:
            return None
        lost = next((text for text in empty if "power" in text.lower()), "")
        found = NoQuote(lost or ", ".join(raw.header))
        expected = (
            f"power in some sample, as {WRITES} writes"
            if lost
            else "a power column, such as power.draw"
        )
        raise InputError(raw.source, "" if lost else "row 1", found, expected)
    durations = [name for device, ours, name, _ in columns if ours == "time_s"]
    if not sure and not _sampled(whole, stamp, durations, columns):
        return None
    if not sure:
        left.append("taken for samples; sampled=False (--set samples=false) takes rows as they are")
    if whole.times is None:
        left.append(
            f"samples taken to be {interval_s or 1.0:g} s apart (interval_s=, --set interval=)"
        )
    series = {n: v for n, v in whole.series.items() if n not in ("time_s", "samples", "idle_w")}
    kind = "nvidia-smi" if SURE & set(words.values()) else "samples"
    return replace(
        whole, kind=kind, series=series, interval_s=interval_s or 1.0, notes=(*left, *empty)
    )


def _fitting(raw: RawTable, sure: bool) -> tuple[RawTable, list[str]]:
    """Pass over lines of another length in a log, and say so: an error message, a cut end."""
    if not sure or not raw.odd:
        return raw, [f"the header again {raw.again} times"] if raw.again else []
    inner = [line for line, _ in raw.odd if line < raw.lines[-1]]
    if len(inner) > max(1.0, UNREADABLE * len(raw.rows)):
        raw.require_regular()
    notes = [f"{len(inner)} lines that are no samples left out (row {inner[0]})"] if inner else []
    if len(inner) < len(raw.odd):
        notes.append(f"the last, cut line (row {raw.odd[-1][0]}) left out")
    if raw.again:
        notes.append(f"the header again {raw.again} times")
    return replace(raw, odd=()), notes


def _rows(raw: RawTable, kept: NDArray[np.int64]) -> RawTable:
    return replace(raw, rows=[raw.rows[k] for k in kept], lines=[raw.lines[k] for k in kept])


def _labels(columns: Sequence[Texts], between: str) -> Texts:
    """Join columns of text, row by row."""
    if len(columns) == 1:
        return columns[0]
    return np.array([between.join(row) for row in zip(*columns, strict=True)], dtype=object)


def _joined(parts: list[Samples]) -> Samples:
    """Columns of several devices one below the other."""
    if len(parts) == 1:
        return parts[0]
    names = dict.fromkeys(name for part in parts for name in part.series)
    series = {
        name: np.concatenate(
            [part.series.get(name, np.full(len(part.device), np.nan)) for part in parts]
        )
        for name in names
    }
    texts = {n: np.concatenate([part.texts[n] for part in parts]) for n in parts[0].texts}
    times = (
        None
        if parts[0].times is None
        else np.concatenate([p.times for p in parts if p.times is not None])
    )
    lines = [line for part in parts for line in part.lines]
    device = np.concatenate([part.device for part in parts])
    return replace(parts[0], series=series, texts=texts, times=times, lines=lines, device=device)


Found = tuple[str, str, str, str]
"""The number of a device in a column's name, our name for the column, its own, and its unit."""


def called(header: Sequence[str]) -> dict[str, str]:
    """What a log calls quantities, by our names."""
    words = {name: parsed(name).words for name in reversed(header)}
    return {(FIELDS.get(w) or quantity_of(w))[0]: name for name, w in words.items()}


def _columns(
    raw: RawTable,
    words: Mapping[str, str],
    named: Mapping[str, Wanted],
    stamp: str,
    units: Mapping[str, str],
) -> list[Found]:
    """What the columns of a log are, those to be preferred first."""
    ranked: list[tuple[int, Found]] = []
    for name in raw.header:
        said, number = named.get(name), _OF_DEVICE.search(name)
        if name == stamp or not name:
            continue
        if said is not None:
            ranked.append((-9, ("", said.name, name, units.get(said.name, said.unit))))
            continue
        header = parsed(_OF_DEVICE.sub("", name) if number else name)
        ours, rank = FIELDS.get(header.words) or quantity_of(header.words)[:2]
        if number and not ours and header.words in ("", "watts", "w"):
            ours = "power_w"
        if number and not ours:
            header = parsed(_OF_DEVICE.sub("gpu", name))
            ours, rank = quantity_of(header.words)[:2]
        shared = ours == "power_w" and quantity_of(header.words)[2] == "total"
        if not ours or rank >= 9 or shared:
            continue
        unit = units.get(ours, header.unit)
        if header.unknown or (unit and unit not in units_of(ours)):
            continue
        ranked.append((rank, (number[1] if number else "", ours, name, unit)))
    taken = {want.name for want in named.values()}
    return [item for rank, item in sorted(ranked, key=lambda pair: pair[0])
            if rank == -9 or item[1] not in taken]  # fmt: skip


def _times(
    raw: RawTable, words: Mapping[str, str], named: Mapping[str, Wanted], sure: bool
) -> tuple[str, Floats]:
    """Find the column of times, and read it."""
    for name in raw.header:
        said = named[name].name if name in named else ""
        if said not in ("", "time_s") or not (said or _STAMP.fullmatch(words[name])
                                             or name in ("sample_s", "t_s")):  # fmt: skip
            continue
        times = parse_times(raw.text(name), parsed(name).unit or "")
        bad = np.flatnonzero(~np.isfinite(times))
        if sure and len(bad) > UNREADABLE * len(times):
            where = f"row {raw.lines[bad[0]]}, column {name}"
            found = raw.rows[bad[0]][raw.index(name)]
            raise InputError(raw.source, where, found, "a time like 2023/11/21 04:00:00.000")
        stamped = said != "time_s" and quantity_of(words[name])[0] != "time_s"
        if len(bad) <= UNREADABLE * len(times) and (sure or stamped or _climbs(times)):
            return name, times
    return "", np.zeros(0)


def _climbs(times: Floats) -> bool:
    steps = np.diff(times)
    return len(steps) > 0 and bool(np.mean(steps > 0) > 0.5)


_SIZES = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""From which size on a Unix time is one of nanoseconds, microseconds, milliseconds."""


def parse_times(cells: Texts, unit: str = "") -> Floats:
    """Read dates, Unix times or elapsed seconds; NaN for what is none.

    A time of day that steps back by more than half a day has passed midnight.
    """
    first = next((cell for cell in cells if cell), "")
    if re.fullmatch(r"[-+.\deE]+", first):
        known = {cell: _float(cell) for cell in dict.fromkeys(cells)}
        values = np.array([known[cell] for cell in cells])
        middle = float(np.nanmedian(values)) if np.isfinite(values).any() else 0.0
        factor = next((factor for size, factor in _SIZES if middle > size), 1.0)
        factor = units_of("time_s").get(unit, 1.0) if factor == 1.0 else factor
        return values * factor
    of_day = re.match(r"\d{1,2}:\d\d", first) is not None
    values = np.array([_seconds(cell, of_day) for cell in cells])
    if of_day:
        steps = np.diff(np.where(np.isfinite(values), values, 0.0), prepend=values[:1])
        values = values + DAY_S * np.cumsum(steps < -DAY_S / 2)
    return values


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _seconds(cell: str, of_day: bool) -> float:
    text = f"2000-01-01 {cell}" if of_day else cell.replace("/", "-").replace(" UTC", "Z")
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        for form in ("%m-%d-%Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S,%f"):
            try:
                stamp = datetime.strptime(text, form)
                break
            except ValueError:
                continue
        else:
            return float("nan")
    # a local time is taken as it stands: differences alone count
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def _sampled(whole: Samples, stamp: str, durations: list[str], columns: list[Found]) -> bool:
    """Whether a user's table is one of samples rather than of runs."""
    series = whole.series
    util = series.get("util_percent")
    rows = np.array([len(index) for _, index in _series_of(whole)])
    for name in SWEPT:
        if name in series:
            distinct = len(np.unique(series[name][np.isfinite(series[name])]))
            if distinct > max(1.0, DISTINCT * len(whole.device)):
                return False
    if not stamp or whole.times is None:
        idle = util is not None and np.mean(util < 5) >= 0.05
        return bool(idle and np.median(rows) >= ROWS_UNTIMED and not durations)
    if durations or np.median(rows) < ROWS:
        return False
    held = quantity_of(parsed(stamp).words)[0] == "time_s"
    if held and util is None and "frequency_mhz" not in series:
        return False
    for _, index in _series_of(whole):
        steps = np.diff(whole.times[index])
        if not len(steps):
            continue
        if not held and np.mean(steps < 0) > 0.5:
            steps = -steps  # newest first
        middle = float(np.median(steps))
        even = np.mean(np.abs(steps - middle) <= 0.5 * middle)
        if np.mean(steps < 0) > BACK or not 0 < middle <= STEP_S or even < EVEN:
            return False
    return True


def _series_of(samples: Samples) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The device and the samples of each series, in the order of their appearance."""
    apart = [samples.texts[name] for name in samples.keys]
    codes: dict[Any, int] = {}
    labels = zip(samples.device, *apart, strict=True) if apart else samples.device
    code = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)
    for label, k in codes.items():
        yield str(label[0] if apart else label), np.flatnonzero(code == k)


# --- from samples to a profile ---------------------------------------------------------------


def cut(samples: Samples) -> Profile:
    """Return a profile with a row for every run of every device.

    Raises
    ------
    InputError: where several devices without a number must be among the samples.
    """
    rows: list[dict[str, Any]] = []
    cuts: list[Cut] = []
    rest: list[str] = []
    trace: list[Trace] = []
    marks: list[str] = []
    ends: list[str] = []
    periods: list[float] = []
    stamps = samples.times
    for device, index in _series_of(samples):
        ticks = np.arange(len(index), dtype=np.float64) * samples.interval_s
        times: Floats = ticks if stamps is None else stamps[index]
        try:
            seen, order, period, holes, spread_out = timed(times)
        except ValueError:
            found = NoQuote(
                "several samples at a time" + (f" of {device}" if samples.lines else "")
            )
            expected = f"a column that tells GPUs apart (index): {WRITES}"
            raise InputError(samples.source, "", found, expected) from None
        index = index[order]
        series = {name: values[index] for name, values in samples.series.items()}
        if "power_w" not in series:
            series["power_w"] = _slope(seen, series["counter_j"])
        if not np.isfinite(series["power_w"]).any():
            rest.append(f"{_name(device)} without power")
            continue
        marks += [_mark(samples, index, k, step) for k, step in holes]
        marks += ["stamps of whole seconds spread evenly"] if spread_out else []
        marks += ["samples sorted by time"] if np.any(np.diff(order) != 1) else []
        own = cut_device(seen, series, period, np.array([k for k, _ in holes], dtype=np.int64))
        periods.append(period)
        cuts.append(own)
        if not own.runs:
            word = (
                IDLE
                if not own.short_s
                else f"{len(own.short_s)} busy stretches, all below 2 s or 5 samples"
            )
            rest.append(f"{_name(device)} {word} ({np.nanmedian(series['power_w']):.3g} W)")
        first = len(rows) + 1
        ends += [f"the log {how} inside run {first + k - 1}" for how, k in own.ends]
        rows += [
            _row(samples, index, device, series, own, run, first + k)
            for k, run in enumerate(own.runs)
        ]
        starts = seen + (times.min() - (0.0 if stamps is None else stamps.min()))
        trace.append(
            Trace(
                str(device),
                starts,
                series["power_w"],
                tuple((r.span.start, r.span.stop) for r in own.runs),
            )
        )
        for k, run in enumerate(own.runs):
            rows[first - 1 + k]["start"] = float(times[order][run.span.start])
    for k in together(
        [(r.pop("start"), r["power_w"], r.get("frequency_mhz", np.nan)) for r in rows]
    ):
        rows[k]["suspect"] = "; ".join(filter(None, [rows[k]["suspect"], TOGETHER]))
    notes = _notes(samples, rows, cuts, rest, [*marks, *ends], periods)
    return Profile(_table(rows), samples.source, samples.kind, notes=notes, traces=tuple(trace))


TOGETHER = "begins within 5 s of another of like power: parts of one job"


def _row(
    samples: Samples,
    index: NDArray[np.int64],
    device: str,
    series: Mapping[str, Floats],
    own: Cut,
    run: Any,
    number: int,
) -> dict[str, Any]:
    texts = {name: str(values[index[run.span.start]]) for name, values in samples.texts.items()}
    means = {}
    for name, values in series.items():
        known = values[run.span][run.mean]
        known = known[np.isfinite(known)]
        means[name] = float(known.mean()) if len(known) else float("nan")
    means.pop("counter_j", None)
    row: dict[str, Any] = {
        "application": stem(samples.source), "gpu": str(device).strip(), **texts,
        "run": float(number), "samples": float(run.span.stop - run.span.start),
        "time_s": run.time_s, **means, "power_w": run.power_w, "idle_w": own.idle_w,
        "power_spread": spread(series["power_w"][run.span][run.mean]),
    }  # fmt: skip
    if "frequency_mhz" in series:
        row["clock_spread"] = spread(series["frequency_mhz"][run.span][run.mean])
    return {**row, "suspect": "; ".join(run.doubts)}


def _table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows as columns; times and suspicions that no row has are left out."""
    if not rows:
        names = ("power_w", "frequency_mhz", "time_s")
        return {name: np.zeros(0) for name in names}
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for name, values in columns.items():
        if values.dtype.kind not in "fiub":
            columns[name] = values.astype(object)
    if not any(columns["suspect"]):
        del columns["suspect"]
    if np.isnan(columns["time_s"]).all():
        del columns["time_s"]
    return columns


def _slope(times: Floats, counter: Floats) -> Floats:
    """Return power by an energy counter, W: its slope over at least a second."""
    known = np.flatnonzero(np.isfinite(counter))
    later = np.minimum(np.searchsorted(times[known], times[known] + 1.0 - 1e-9), len(known) - 1)
    power = np.full(len(times), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        took = times[known[later]] - times[known]
        slope = (counter[known[later]] - counter[known]) / took
    power[known] = np.where((took > 0.5) & (slope >= 0), slope, np.nan)
    return power


def _name(device: str) -> str:
    return f"GPU {device}" if device.isdigit() else device


def _mark(samples: Samples, index: NDArray[np.int64], k: int, step: float) -> str:
    row = f" (row {samples.lines[index[k]]})" if len(samples.lines) else ""
    if step < 0:
        return f"the clock goes back by {_long(-step)} s{row}: cut there"
    return f"no sample for {_long(step)} s{row}: cut there"


def _long(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


def _notes(
    samples: Samples,
    rows: list[dict[str, Any]],
    cuts: list[Cut],
    rest: list[str],
    marks: list[str],
    periods: list[float],
) -> tuple[str, ...]:
    """What became of the samples, in three lines at most."""
    devices = len(set(samples.device.tolist()))
    apart = f", {np.median(periods):.3g} s apart" if periods else ""
    runs = _count(len(rows), "run") if rows else "no run"
    busy = sum(row["time_s"] for row in rows if np.isfinite(row["time_s"]))
    first = [
        f"{_count(len(samples.device), 'sample')} of {_count(devices, 'GPU')}{apart}, cut into "
        + runs + (f" ({_long(busy)} s)" if busy else ""),
        *_few(rest),
    ]  # fmt: skip
    out = []
    idle = sum(own.at_rest for own in cuts)
    slips = np.concatenate([own.slips for own in cuts]) if cuts else np.zeros(0)
    short = [length for own in cuts for length in own.short_s]
    bridged = [length for own in cuts for length in own.bridged_s]
    if idle:
        out.append(_count(idle, "idle sample"))
    if len(slips):
        out.append(f"{_count(len(slips), 'reading')} of {_range(slips)} W")
    if short:
        out.append(f"{_count(len(short), 'short busy stretch', 'es')} of {_range(short)} s")
    if out:
        first.append("left out: " + ", ".join(out))
    if bridged:
        first.append(f"{_count(len(bridged), 'pause')} of {_range(bridged)} s bridged")
    how = [own.told for own in cuts if own.told not in ("", IDLE)] + [
        n for own in cuts for n in own.notes
    ]
    lines = [first, [*_few(marks)], [*samples.notes, *_few(how)]]
    return tuple("; ".join(line) for line in lines if line)


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number:,} {what}{plural if number != 1 else ''}"


def _few(items: list[str], most: int = 3) -> list[str]:
    """The first of several remarks, and how many more there are."""
    items = list(dict.fromkeys(items))
    return items[:most] + (
        [f"and {len(items) - most} more of the kind"] if len(items) > most else []
    )


def _range(values: Sequence[float] | Floats) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"
