"""Reader of logs of samples (nvidia-smi, NVML loggers, tables of samples) into runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import Profile, Trace
from optgap.fitting.readers.naming import claims, quantity_of
from optgap.fitting.readers.runs import IDLE, Cut, cut_device
from optgap.fitting.readers.text import WRITES, Floats, RawTable, Texts, measured, stem
from optgap.models.columns import Wanted
from optgap.models.errors import InputError, NoQuote
from optgap.models.units import parsed, units_of

SURE = {"power_draw", "power_draw_instant", "power_draw_average"}
"""Names that only logs of samples have."""
DEVICES = (
    "uuid", "gpu_uuid", "index", "gpu_index", "pci_bus_id", "gpu_bus_id", "serial", "gpu_serial",
    "gpu", "gpu_id", "device_id", "deviceid", "card", "device",
)  # fmt: skip
"""Columns that separate devices, the best first; a product's name does not."""
HOSTS = ("hostname", "host")
TEXTS = ("application", "workload", "gpu_model")
"""Columns with one text per run; each value of the first two has series of its own."""
NO_SERIES = (*TEXTS, "time_s", "samples", "idle_w", "gpu", "energy_j")
SWEPT = ("frequency_mhz", "local_batch", "global_batch", "gpus", "nodes", "power_limit_w")
_STAMP = re.compile(r"(.*_)?(timestamp|time_?stamp|date_?time|date|time|elapsed|ts)(_utc|_local)?")
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
    series: measured columns by our names, one value a sample.
    parts: device and samples of each series, in order of appearance.
    times: times, s; empty if unknown.
    """

    raw: RawTable
    series: dict[str, Floats]
    parts: list[tuple[str, NDArray[np.int64]]]
    texts: Mapping[str, Texts]
    times: Floats


def read_log(
    raw: RawTable, named: Mapping[str, Wanted], units: Mapping[str, str]
) -> Profile | None:
    """Return the runs of a table of samples; None for a table of another kind.

    Parameters
    ----------
    named: columns that the user names.
    units: units that the user states.

    Raises
    ------
    InputError: for a log without power or readable times, with many lines that do not fit, or
        of several devices without numbers.
    """
    words = {name: parsed(name).words for name in raw.cells}
    sure = bool(SURE & set(words.values()))
    if not sure and len(raw) < ROWS:
        return None
    notes = _fitting(raw) if sure else list(raw.notes)
    stamp, times = _times(raw, words, named, sure)
    if not (sure or stamp or any("util" in name for name in words.values())):
        return None
    kept = np.isfinite(times)
    if stamp and not kept.all():
        notes.append(f"{_count(int(np.sum(~kept)), 'line')} without a readable time left out")
        raw, times = raw.take(kept), times[kept]
    columns: dict[str, str] = {}
    series: dict[str, Floats] = {}
    empty: list[str] = []
    for _, name, seen in sorted(claims(list(filter(None, raw.cells)), named), key=itemgetter(0)):
        ours, unit = seen.name, units.get(seen.name, seen.unit)
        known = not unit or unit in units_of(ours)
        clear = known and seen.scope != "total" and not parsed(name).unknown
        if name == stamp or not (clear or name in named):
            continue
        columns[name] = ours
        if ours not in (*series, *NO_SERIES):
            values = measured(raw, name, ours, unit)[1]
            if np.isfinite(values).any():
                series[ours] = values
            else:
                empty.append(f"{name} is {raw.cells[name][0] or 'empty'} in every row")
                del columns[name]
    energy = any("energy" in name for name in words.values())  # a counter is no energy of a run
    if not sure and not energy and "power_w" not in series:
        return None
    if sure and "name" in raw.cells:
        columns.setdefault("name", "gpu_model")
    called = {ours: name for name, ours in reversed(columns.items())}
    if list(columns.values()).count("power_w") > 1:
        notes.append(f"power is {called['power_w']}")
    texts = {ours: raw.text(name) for ours, name in called.items() if ours in TEXTS}
    found = Samples(raw, series, _parts(raw, words, texts), texts, times)
    if not sure and not _sampled(found, stamp, "time_s" in called):
        return None
    if "power_w" not in series or not stamp:
        lost = next((text for text in empty if "power" in text.lower()), ", ".join(raw.cells))
        what = "times of the samples" if "power_w" in series else "power in some sample"
        more = "" if stamp else ", or --set samples=false (sampled=False), which takes rows as runs"
        raise InputError(raw.source, "", NoQuote(lost), f"{what}, as {WRITES} writes{more}")
    if not sure:
        notes.append("taken for samples (sampled=False, --set samples=false: rows as they are)")
    profile = _cut(found, "nvidia-smi" if sure else "samples", [*notes, *empty])
    return replace(profile, called=called)


def _parts(
    raw: RawTable, words: Mapping[str, str], texts: Mapping[str, Texts]
) -> list[tuple[str, NDArray[np.int64]]]:
    """Return the device and the samples of each series, in order of appearance."""
    who = [name for word in DEVICES for name in raw.cells if words[name] == word][:1]
    hosts = [name for name in raw.cells if words[name] in HOSTS]
    devices = raw.joined([*hosts, *who]) or ["0"] * len(raw)
    codes: dict[Any, int] = {}
    labels = zip(devices, *(texts[name] for name in TEXTS[:2] if name in texts), strict=True)
    code = np.array([codes.setdefault(label, len(codes)) for label in labels], dtype=np.int64)
    return [(str(label[0]), np.flatnonzero(code == k)) for label, k in codes.items()]


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


def parse_times(cells: Texts, unit: str = "") -> Floats:
    """Read dates, Unix times or elapsed seconds; NaN for other texts.

    A time of day that steps back by more than half a day has passed midnight.
    """
    first = next((cell for cell in cells if cell), "")
    of_day = re.match(r"\d{1,2}:\d\d", first) is not None
    day = "2000-01-01 " if of_day else ""
    try:
        values = cells.astype(np.float64)
    except ValueError:
        values = np.array([_seconds(day + cell.replace("/", "-")) for cell in cells])
    if re.fullmatch(r"[-+.\deE]+", first) and np.isfinite(values).any():
        middle = float(np.nanmedian(values))
        factor = next((factor for size, factor in _SIZES if middle > size), None)
        return values * (factor or units_of("time_s").get(unit, 1.0))
    if of_day:
        steps = np.diff(np.where(np.isfinite(values), values, 0.0), prepend=values[:1])
        values = values + DAY_S * np.cumsum(steps < -DAY_S / 2)
    return values


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        stamp = datetime.fromisoformat(text.replace(" UTC", "Z"))
    except ValueError:
        return float("nan")
    # a local time is taken as it stands: differences alone count
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def _sampled(found: Samples, stamp: str, durations: bool) -> bool:
    """Tell whether a user's table has samples rather than runs."""
    series, parts = found.series, [index for _, index in found.parts]
    util, rows = series.get("util_percent"), np.median([len(index) for index in parts])
    for name in series.keys() & {*SWEPT}:
        distinct = len(np.unique(series[name][np.isfinite(series[name])]))
        if distinct > max(1.0, DISTINCT * len(found.raw)):
            return False
    if durations or not stamp:
        idle = util is not None and np.mean(util < 5) >= 0.05
        return bool(idle and rows >= ROWS_UNTIMED and not durations)
    held = quantity_of(parsed(stamp).words)[0] == "time_s"
    if rows < ROWS or (held and not {"util_percent", "frequency_mhz"} & series.keys()):
        return False
    for steps in (np.diff(found.times[index]) for index in parts if len(index) > 1):
        ahead = -steps if not held and np.mean(steps < 0) > 0.5 else steps  # newest first
        middle = float(np.median(ahead))
        even = np.mean(np.abs(ahead - middle) <= 0.5 * middle)
        if np.mean(ahead < 0) > BACK or not 0 < middle <= STEP_S or even < EVEN:
            return False
    return True


# --- from samples to a profile ---------------------------------------------------------------


def _cut(samples: Samples, kind: str, told: list[str]) -> Profile:
    """Return a profile with a row for every run of every device.

    Raises
    ------
    InputError: if the samples must be of several devices without numbers.
    """
    raw, rows, cuts = samples.raw, list[dict[str, Any]](), list[Cut]()
    rest, marks, traces = list[str](), list[str](), list[Trace]()
    for device, index in samples.parts:
        series = {name: values[index] for name, values in samples.series.items()}
        label = f"GPU {device}" if device.isdigit() else device
        if not np.isfinite(series["power_w"]).any():
            rest.append(f"{label} without power")
            continue
        try:
            own = cut_device(samples.times[index], series)
        except ValueError:
            found = NoQuote(f"several samples at a time of {label}")
            expected = f"a column that tells GPUs apart (index), or finer times: {WRITES}"
            raise InputError(raw.source, "", found, expected) from None
        cuts.append(own)
        index, spans = index[own.order], [run.span for run in own.runs]
        if np.any(np.diff(own.order) < 0):
            marks.append("samples sorted by time")
        for k, step in own.holes:
            what = "the clock goes back by" if step < 0 else "no sample for"
            marks.append(f"{what} {_long(abs(step))} s (row {raw.lines[index[k]]}): cut there")
        if not spans:
            short = f": {len(own.short_s)} busy stretches, all below 2 s or 5 samples"
            middle = np.nanmedian(series["power_w"])
            rest.append(f"{label}{short if own.short_s else f' {IDLE}'} ({middle:.3g} W)")
        elif spans[0].start == 0:
            marks.append(f"the log begins inside run {len(rows) + 1}")
        for run in own.runs:
            first = index[run.span.start]
            rows.append({
                "application": stem(raw.source), "gpu": device.strip(),
                **{name: str(values[first]) for name, values in samples.texts.items()},
                "run": float(len(rows) + 1), "samples": float(run.span.stop - run.span.start),
                **run.values, "idle_w": own.idle_w, "suspect": "; ".join(run.doubts),
            })  # fmt: skip
        if spans and spans[-1].stop == len(index):
            marks.append(f"the log ends inside run {len(rows)}")
        seen = own.seen + float(samples.times[index[0]] - samples.times.min())
        ends = tuple((span.start, span.stop) for span in spans)
        traces.append(Trace(device, seen, series["power_w"][own.order], ends))
    columns: dict[str, Any] = {name: np.zeros(0) for name in ("power_w", "frequency_mhz", "time_s")}
    if rows:
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        columns = {n: v if v.dtype.kind == "f" else v.astype(object) for n, v in columns.items()}
        if np.isnan(columns["time_s"]).all():
            del columns["time_s"]
    busy = float(np.nansum(columns.get("time_s", 0.0)))
    devices = len({device for device, _ in samples.parts})
    whole = f"{_count(len(raw), 'sample')} of {_count(devices, 'GPU')}"
    whole += f", {np.median([own.period for own in cuts]):.3g} s apart" if cuts else ""
    whole += f", cut into {_count(len(rows), 'run') if rows else 'no run'}"
    whole += f" ({_long(busy)} s)" if busy else ""
    how = [own.told for own in cuts if own.told not in ("", IDLE)]
    lines = [[whole, *_few(rest), *_left_out(cuts)], _few(marks), [*told, *_few(how)]]
    notes = tuple("; ".join(line) for line in lines if line)
    return Profile(columns, raw.source, kind, notes=notes, traces=tuple(traces))


def _left_out(cuts: list[Cut]) -> list[str]:
    """Describe the samples that are in no run."""
    idle = sum(own.at_rest for own in cuts)
    slips = [float(watts) for own in cuts for watts in own.slips]
    short = [length for own in cuts for length in own.short_s]
    out = [_count(idle, "idle sample")] if idle else []
    out += [f"{_count(len(slips), 'reading')} of {_range(slips)} W"] if slips else []
    if short:
        out.append(f"{_count(len(short), 'short busy stretch', 'es')} of {_range(short)} s")
    return ["left out: " + ", ".join(out)] if out else []


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
