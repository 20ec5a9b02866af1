"""Reader of logs of samples (nvidia-smi, NVML loggers, dcgmi, tegrastats) into runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile, Trace
from optgap.fitting.readers.naming import NEVER, quantity_of
from optgap.fitting.readers.runs import IDLE, Cut, cut_device
from optgap.fitting.readers.text import WRITES, Floats, RawTable, Texts, measured, stem
from optgap.models.columns import Wanted
from optgap.models.errors import InputError, NoQuote
from optgap.models.units import parsed, units_of

_FIRST: Mapping[str, tuple[str, ...]] = {
    "power_w": (
        "power_draw_instant", "power_draw", "power_draw_average", "board_power_draw",
        "average_graphics_package_power", "current_socket_graphics_package_power",
    ),
    "frequency_mhz": (
        "clocks_current_sm", "clocks_sm", "clocks_current_graphics", "clocks_gr",
        "sclk_clock_speed",
    ),
    "memory_mhz": ("clocks_current_memory", "clocks_mem"),
    "util_percent": ("utilization_gpu", "gpu_use", "gpu_load"),
    "energy_j": ("total_energy_consumption",),
}  # fmt: skip
"""Loggers' names of quantities, in words; the first one with numbers is read."""
_LAST = {"power_consumption": "power_w", "enforced_power_limit": "power_limit_w",
         "name": "gpu_model"}  # fmt: skip
"""Names that are read only if there is no other."""
FIELDS = {words: (ours, k - 8) for ours, names in _FIRST.items() for k, words in enumerate(names)}
FIELDS |= {words: (ours, 2) for words, ours in _LAST.items()}
SURE = {"power_draw", "power_draw_instant", "power_draw_average", "sclk_clock_speed"}
"""Names that only logs of samples have."""
DEVICES = (
    "uuid", "gpu_uuid", "index", "gpu_index", "pci_bus_id", "gpu_bus_id", "serial", "gpu_serial",
    "gpu", "gpu_id", "device_id", "deviceid", "card", "device",
)  # fmt: skip
"""Columns that separate devices, the best first; a product's name does not."""
HOSTS = ("hostname", "host")
KEYS = ("application", "workload")
"""Columns whose values belong to series of their own."""
TEXTS = ("application", "gpu_model", "workload")
NO_SERIES = ("time_s", "samples", "idle_w", "gpu")
SWEPT = ("frequency_mhz", "local_batch", "global_batch", "gpus", "nodes", "power_limit_w")
_STAMP = re.compile(r"(.*_)?(timestamp|time_?stamp|date_?time|date|time|elapsed|ts)(_utc|_local)?")
_OF_DEVICE = re.compile(r"(?i)(?<![a-z])gpu[\W_]?(\d+)(?!\d)")

ROWS, ROWS_UNTIMED, STEP_S, EVEN, BACK, DISTINCT = 20, 50, 60.0, 0.8, 0.05, 0.25
"""Thresholds for a table of samples: rows of a device, seconds between these, and the shares of
even steps, of steps back and of distinct clocks."""
UNREADABLE = 0.01
"""Largest share of lines that do not fit the header."""
DAY_S = 86_400.0


@dataclass(frozen=True)
class Samples:
    """Samples of one or several devices, in the order of the file.

    Parameters
    ----------
    series: measured columns by our names, one value a sample; ``counter_j`` counts energy.
    device: device of each sample.
    texts: columns with one text per run: ``application``, ``gpu_model``.
    times: times, s, if known.
    interval_s: step between samples without times, s; 0 if unknown.
    """

    source: str
    kind: str
    series: dict[str, Floats]
    device: Texts
    texts: Mapping[str, Texts]
    times: Floats | None
    interval_s: float
    lines: NDArray[np.int64]
    notes: tuple[str, ...] = field(default=())

    def apart(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield the device and the samples of each series, in order of appearance."""
        labels = zip(self.device, *(self.texts[n] for n in KEYS if n in self.texts), strict=True)
        codes: dict[Any, int] = {}
        code = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)
        for label, k in codes.items():
            yield str(label[0]), np.flatnonzero(code == k)


def of_table(
    raw: RawTable,
    named: Mapping[str, Wanted],
    units: Mapping[str, str],
    interval_s: float | None = None,
    kind: str = "",
) -> Samples | None:
    """Return the samples of a table; None for a table of another kind.

    Parameters
    ----------
    named: columns that the user names.
    units: units that the user states.
    interval_s: time between samples; with it a table without times is one of samples.
    kind: name of the logger, if known.

    Raises
    ------
    InputError: for a log without power or readable times, or with many lines that do not fit.
    """
    raw = _melted(raw)
    words = {name: parsed(name).words for name in raw.cells}
    tool = bool(SURE & set(words.values()))
    sure = interval_s is not None or bool(kind) or tool
    if not sure and len(raw) < ROWS:
        return None
    notes = _fitting(raw) if sure else list(raw.notes)
    stamp, times = _times(raw, words, named, sure)
    if not (sure or stamp or any("util" in name for name in words.values())):
        return None
    kept = np.isfinite(times)
    if stamp and not kept.all():
        lost = int(np.sum(~kept))
        notes.append(f"{_count(lost, 'line')} without a readable time left out")
        raw, times = raw.take(kept), times[kept]
    columns = _columns(raw, words, named, stamp, units)
    series: dict[str, Floats] = {}
    empty: list[str] = []
    for ours, name, unit in columns:
        if ours in (*series, *TEXTS, *NO_SERIES):
            continue
        _, values = measured(raw, name, ours, unit)
        known = values[np.isfinite(values)]
        if not len(known):
            empty.append(f"{name} is {raw.cells[name][0] or 'empty'} in every row")
        elif ours != "energy_j":
            series[ours] = values
        elif sure or np.all(np.diff(known) >= 0):
            series["counter_j"] = values
        if ours == "power_w" and len(known) and sum(o == ours for o, *_ in columns) > 1:
            notes.append(f"power is {name}")
    if not {"power_w", "counter_j"} & series.keys():
        if not sure:
            return None
        lost_ = next((text for text in empty if "power" in text.lower()), ", ".join(raw.cells))
        expected = f"power in some sample, as {WRITES} writes"
        raise InputError(raw.source, "", NoQuote(lost_), expected)
    who = [n for w in DEVICES for n in raw.cells if words[n] == w][:1]
    parts = [raw.text(n) for n in [*(n for n in raw.cells if words[n] in HOSTS), *who]]
    names = ["/".join(filter(None, row)) for row in zip(*parts, strict=True)]
    whole = Samples(
        raw.source,
        kind or ("nvidia-smi" if tool else "samples"),
        series,
        np.array(names or ["0"] * len(raw), dtype=object),
        {ours: raw.text(name) for ours, name, _ in columns if ours in TEXTS},
        times if stamp else None,
        interval_s or 0.0,
        raw.lines,
    )
    if not sure and not _sampled(whole, stamp, any(ours == "time_s" for ours, *_ in columns)):
        return None
    if not sure:
        notes.append("taken for samples (sampled=False, --set samples=false: rows as they are)")
    if not stamp:
        told = f"{interval_s:g} s" if interval_s else "1 s, so that no run time is known,"
        notes.append(f"samples taken to be {told} apart (interval_s=, --set interval=)")
    return replace(whole, notes=(*notes, *empty))


def _melted(raw: RawTable) -> RawTable:
    """Return a table with a column for each GPU (``gpu_1_power``) as rows of single GPUs."""
    own: dict[str, dict[str, str]] = {}
    for name in raw.cells:
        if found := _OF_DEVICE.search(name):
            quantity = _OF_DEVICE.sub("", name).strip(" _.-") or "power"
            own.setdefault(found[1], {})[quantity] = name
    names = dict.fromkeys(name for columns in own.values() for name in columns)
    if not any(_quantity(parsed(name).words)[0] in ("power_w", "energy_j") for name in names):
        return raw
    nothing = np.full(len(raw), "", dtype=object)
    cells = {n: np.tile(column, len(own)) for n, column in raw.cells.items()
             if not _OF_DEVICE.search(n)}  # fmt: skip
    cells["gpu"] = np.repeat(np.array(list(own), dtype=object), len(raw))
    for name in names:
        parts = [raw.cells.get(columns.get(name, ""), nothing) for columns in own.values()]
        cells[name] = np.concatenate(parts)
    return replace(raw, cells=cells, lines=np.tile(raw.lines, len(own)))


def _fitting(raw: RawTable) -> list[str]:
    """Describe lines of another length in a log: an error message, a cut end.

    Raises
    ------
    InputError: if there are many.
    """
    notes = [*raw.notes, *([f"the header again {raw.again} times"] if raw.again else [])]
    inner = [line for line, _ in raw.odd if line < raw.lines[-1]]
    if len(inner) > max(1.0, UNREADABLE * len(raw)):
        raw.require_regular()
    if inner:
        notes.append(f"{_count(len(inner), 'line')} left out, no samples (row {inner[0]})")
    if len(inner) < len(raw.odd):
        notes.append(f"the last, cut line (row {raw.odd[-1][0]}) left out")
    return notes


def called(header: Sequence[str]) -> dict[str, str]:
    """Return a log's names of quantities, by canonical name."""
    return {_quantity(parsed(name).words)[0]: name for name in reversed(header)}


def _quantity(words: str) -> tuple[str, int]:
    """Return the canonical name for a log's words, and its rank."""
    ours, rank, scope = quantity_of(words)
    return FIELDS.get(words) or ("" if (ours, scope) == ("power_w", "total") else ours, rank)


def _columns(
    raw: RawTable,
    words: Mapping[str, str],
    named: Mapping[str, Wanted],
    stamp: str,
    units: Mapping[str, str],
) -> list[tuple[str, str, str]]:
    """Return canonical name, log's name and unit of the columns, the preferred ones first."""
    taken = {want.name for want in named.values()}
    ranked = []
    for name in filter(None, raw.cells):
        said, header = named.get(name), parsed(name)
        ours, rank = (said.name, -9) if said else _quantity(words[name])
        unit = units.get(ours, said.unit if said else header.unit)
        known = not header.unknown and (not unit or unit in units_of(ours))
        if name != stamp and (said or (ours and rank < NEVER and ours not in taken and known)):
            ranked.append((rank, (ours, name, unit)))
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]


def _times(
    raw: RawTable, words: Mapping[str, str], named: Mapping[str, Wanted], sure: bool
) -> tuple[str, Floats]:
    """Find the column of times, and read it."""
    for name in raw.cells:
        said = named[name].name if name in named else ""
        stamp = _STAMP.fullmatch(words[name]) or name in ("sample_s", "t_s")
        if said not in ("", "time_s") or not (said or stamp):
            continue
        times = parse_times(raw.text(name), parsed(name).unit or "")
        bad = np.flatnonzero(~np.isfinite(times))
        if len(bad) > UNREADABLE * len(times):
            if not sure:
                continue
            where = f"row {raw.lines[bad[0]]}, column {name}"
            found = raw.cells[name][bad[0]]
            raise InputError(raw.source, where, found, "a time like 2023/11/21 04:00:00.000")
        stamped = said != "time_s" and quantity_of(words[name])[0] != "time_s"
        if sure or stamped or np.sum(np.diff(times) > 0) > len(times) / 2:
            return name, times
    return "", np.zeros(0)


_SIZES = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Least Unix times in nanoseconds, microseconds and milliseconds."""
_FORMS = ("", "%m-%d-%Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S,%f")


def parse_times(cells: Texts, unit: str = "") -> Floats:
    """Read dates, Unix times or elapsed seconds; NaN for other texts.

    A time of day that steps back by more than half a day has passed midnight.
    """
    first = next((cell for cell in cells if cell), "")
    if re.fullmatch(r"[-+.\deE]+", first):
        values = np.array([_number(cell) for cell in cells])
        middle = float(np.nanmedian(values)) if np.isfinite(values).any() else 0.0
        factor = next((factor for size, factor in _SIZES if middle > size), None)
        return values * (factor or units_of("time_s").get(unit, 1.0))
    of_day = re.match(r"\d{1,2}:\d\d", first) is not None
    values = np.array([_seconds(cell, of_day) for cell in cells])
    if of_day:
        steps = np.diff(np.where(np.isfinite(values), values, 0.0), prepend=values[:1])
        values = values + DAY_S * np.cumsum(steps < -DAY_S / 2)
    return values


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _seconds(cell: str, of_day: bool) -> float:
    text = f"2000-01-01 {cell}" if of_day else cell.replace("/", "-").replace(" UTC", "Z")
    for form in _FORMS:
        try:
            stamp = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError:
            continue
        # a local time is taken as it stands: differences alone count
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    return float("nan")


def _sampled(whole: Samples, stamp: str, durations: bool) -> bool:
    """Tell whether a user's table has samples rather than runs."""
    series, parts = whole.series, [index for _, index in whole.apart()]
    util = series.get("util_percent")
    rows = np.median([len(index) for index in parts])
    for name in series.keys() & {*SWEPT}:
        distinct = len(np.unique(series[name][np.isfinite(series[name])]))
        if distinct > max(1.0, DISTINCT * len(whole.device)):
            return False
    if whole.times is None:
        idle = util is not None and np.mean(util < 5) >= 0.05
        return bool(idle and rows >= ROWS_UNTIMED and not durations)
    held = quantity_of(parsed(stamp).words)[0] == "time_s"
    if durations or rows < ROWS or (held and not {"util_percent", "frequency_mhz"} & series.keys()):
        return False
    for steps in (np.diff(whole.times[index]) for index in parts if len(index) > 1):
        ahead = -steps if not held and np.mean(steps < 0) > 0.5 else steps  # newest first
        middle = float(np.median(ahead))
        even = np.mean(np.abs(ahead - middle) <= 0.5 * middle)
        if np.mean(ahead < 0) > BACK or not 0 < middle <= STEP_S or even < EVEN:
            return False
    return True


# --- from samples to a profile ---------------------------------------------------------------


def cut(samples: Samples) -> Profile:
    """Return a profile with a row for every run of every device.

    Raises
    ------
    InputError: if the samples must be of several devices without numbers.
    """
    rows: list[dict[str, Any]] = []
    cuts: list[Cut] = []
    rest: list[str] = []
    marks: list[str] = []
    traces: list[Trace] = []
    stamps = samples.times
    for device, index in samples.apart():
        ticks = np.arange(len(index), dtype=np.float64) * (samples.interval_s or 1.0)
        times: Floats = ticks if stamps is None else stamps[index]
        series = {name: values[index] for name, values in samples.series.items()}
        if "power_w" not in series:
            series["power_w"] = _slope(times, series["counter_j"])
        label = f"GPU {device}" if device.isdigit() else device
        if not np.isfinite(series["power_w"]).any():
            rest.append(f"{label} without power")
            continue
        try:
            own = cut_device(times, series)
        except ValueError:
            found = NoQuote(f"several samples at a time of {label}")
            expected = f"a column that tells GPUs apart (index): {WRITES}"
            raise InputError(samples.source, "", found, expected) from None
        cuts.append(own)
        index, times, spans = index[own.order], times[own.order], [run.span for run in own.runs]
        marks += own.remarks
        for k, step in own.holes:
            row = f" (row {samples.lines[index[k]]})" if samples.lines[index[k]] else ""
            what = "the clock goes back by" if step < 0 else "no sample for"
            marks.append(f"{what} {_long(abs(step))} s{row}: cut there")
        if not spans:
            short = f": {len(own.short_s)} busy stretches, all below 2 s or 5 samples"
            middle = np.nanmedian(series["power_w"])
            rest.append(f"{label}{short if own.short_s else f' {IDLE}'} ({middle:.3g} W)")
        elif spans[0].start == 0:
            marks.append(f"the log begins inside run {len(rows) + 1}")
        rows += _rows(samples, index, device, own, len(rows) + 1)
        if spans and spans[-1].stop == len(index):
            marks.append(f"the log ends inside run {len(rows)}")
        seen = own.seen + (0.0 if stamps is None else float(times[0] - stamps.min()))
        ends = tuple((span.start, span.stop) for span in spans)
        traces.append(Trace(device, seen, series["power_w"][own.order], ends))
    columns: dict[str, Any] = {name: np.zeros(0) for name in ("power_w", "frequency_mhz", "time_s")}
    if rows:
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        columns = {n: v if v.dtype.kind == "f" else v.astype(object) for n, v in columns.items()}
        if np.isnan(columns["time_s"]).all():
            del columns["time_s"]
    notes = _notes(samples, columns.get("time_s", np.zeros(0)), len(rows), cuts, rest, marks)
    return Profile(columns, samples.source, samples.kind, notes=notes, traces=tuple(traces))


def _rows(
    samples: Samples, index: NDArray[np.int64], device: str, own: Cut, first: int
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a device's runs, numbered from `first`."""
    known = samples.interval_s or samples.times is not None
    for number, run in enumerate(own.runs, start=first):
        inside = {n: v[index[run.span]][run.mean] for n, v in samples.series.items()}
        inside.pop("counter_j", None)
        clock = {"clock_spread": run.spreads[1]} if "frequency_mhz" in inside else {}
        yield {
            "application": stem(samples.source),
            "gpu": device.strip(),
            **{name: str(values[index[run.span.start]]) for name, values in samples.texts.items()},
            "run": float(number),
            "samples": float(run.span.stop - run.span.start),
            "time_s": run.time_s if known else np.nan,
            **{n: float(np.nanmean(v)) if np.isfinite(v).any() else np.nan
               for n, v in inside.items()},
            "power_w": run.power_w,
            "idle_w": own.idle_w,
            "power_spread": run.spreads[0],
            **clock,
            "suspect": "; ".join(run.doubts),
        }  # fmt: skip


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


def _notes(
    samples: Samples, times: Floats, runs: int, cuts: list[Cut], rest: list[str], marks: list[str]
) -> tuple[str, ...]:
    """Describe the use of the samples in at most three lines."""
    devices, busy = len(set(samples.device.tolist())), float(np.nansum(times))
    apart = f", {np.median([own.period for own in cuts]):.3g} s apart" if cuts else ""
    whole = f"{_count(len(samples.device), 'sample')} of {_count(devices, 'GPU')}{apart}, cut into "
    whole += (_count(runs, "run") if runs else "no run") + (f" ({_long(busy)} s)" if busy else "")
    idle = sum(own.at_rest for own in cuts)
    slips = [float(watts) for own in cuts for watts in own.slips]
    short = [length for own in cuts for length in own.short_s]
    bridged = [length for own in cuts for length in own.bridged_s]
    out = [_count(idle, "idle sample")] if idle else []
    out += [f"{_count(len(slips), 'reading')} of {_range(slips)} W"] if slips else []
    if short:
        out.append(f"{_count(len(short), 'short busy stretch', 'es')} of {_range(short)} s")
    first = [whole, *_few(rest), *(["left out: " + ", ".join(out)] if out else [])]
    if bridged:
        first.append(f"{_count(len(bridged), 'pause')} of {_range(bridged)} s bridged")
    how = [own.told for own in cuts if own.told not in ("", IDLE)]
    lines = [first, _few(marks), [*samples.notes, *_few(how)]]
    return tuple("; ".join(line) for line in lines if line)


def _long(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.3g}"


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number:,} {what}{plural if number != 1 else ''}"


def _few(items: list[str], most: int = 3) -> list[str]:
    """Return the first of several remarks, and the number of others."""
    items = list(dict.fromkeys(items))
    more = [f"and {len(items) - most} more of the kind"] if len(items) > most else []
    return items[:most] + more


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"
