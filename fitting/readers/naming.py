"""Recognition of canonical quantities and units in the column names of a profile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from optgap.fitting.profile import QUANTITIES, TEXTS
from optgap.models.columns import Wanted
from optgap.models.errors import InputError, NoQuote
from optgap.models.units import SCOPES, STATISTICS, Header, is_statistic, parsed, units_of

NAMES: Mapping[str, tuple[str, ...]] = {
    "power_w": (
        "power", "gpu_power", "board_power", "power_usage", "power_consumption", "watts",
    ),
    "frequency_mhz": (
        "frequency", "freq", "clock", "core", "sm_clock", "core_clock", "gpu_clock",
        "graphics_clock", "core_frequency", "sm_frequency", "gpu_frequency", "core_freq",
        "sm_freq", "gpu_freq", "clock_speed", "app_clock", "application_clock", "sm_app_clock",
    ),
    "memory_mhz": ("memory_clock", "mem_clock", "memory_frequency", "mem_freq"),
    "time_s": (
        "time", "runtime", "run_time", "duration", "elapsed", "elapsed_time", "exec_time",
        "execution_time", "step_time", "iteration_time", "iter_time", "latency", "kernel_time",
        "wall_time", "walltime", "wall_clock_time",
    ),
    "sync_s": ("sync_time",),
    "energy_j": ("energy", "energy_consumption", "joules"),
    "gpus": (
        "gpu_count", "num_gpus", "num_gpu", "n_gpus", "n_gpu", "ngpus", "gpu_num",
        "number_of_gpus", "world_size",
    ),
    "local_batch": ("micro_batch_size", "micro_batch", "local_bsz"),
    "nodes": ("num_nodes", "n_nodes", "node_count"),
    "batch": (
        "batch_size", "bs", "bsz", "minibatch", "mini_batch", "mini_batch_size",
        "train_batch_size",
    ),
    "accumulation": (
        "accumulation_steps", "gradient_accumulation", "gradient_accumulation_steps",
        "grad_accumulation", "grad_accum", "grad_accum_steps", "accum_steps",
    ),
    "seq_len": ("seq_length", "sequence_length", "sequence_len", "context_length"),
    "util_percent": (
        "util", "utilization", "utilisation", "gpu_util", "gpu_utilization", "gpu_utilisation",
    ),
    "dram_sum": ("dram_util_sum", "dram_active_sum"),
    "power_limit_w": ("power_limit", "power_cap", "enforced_power_limit"),
    "idle_w": ("idle", "idle_power"),
    "application": (
        "app", "job", "benchmark", "kernel", "program", "app_name", "application_name",
    ),
    "gpu_model": ("gpu_name", "gpu_type", "device", "device_name", "platform"),
    "rate": ("throughput", "training_throughput", "train_throughput"),
}  # fmt: skip
"""Recognised names, as words joined by underscores, without unit and statistic."""

_LOGGED: Mapping[str, tuple[str, ...]] = {
    "power_w": ("power_draw_instant", "power_draw", "power_draw_average", "board_power_draw"),
    "frequency_mhz": (
        "clocks_current_sm", "clocks_sm", "clocks_current_graphics", "clocks_gr",
    ),
    "memory_mhz": ("clocks_current_memory", "clocks_mem"),
    "util_percent": ("utilization_gpu", "gpu_load"),
}  # fmt: skip
"""Loggers' names of quantities, in words, the preferred one first."""
CANONICAL = (*QUANTITIES, *TEXTS)
RATE, BATCH = "rate", "batch"
_OURS = {name: ours for ours, names in NAMES.items() for name in (*names, ours)}
_OURS |= {name: name for name in CANONICAL}
_RANKED = {n: (ours, 0.1 * k) for ours, names in _LOGGED.items() for k, n in enumerate(names, 1)}
_STEMS = {name.rpartition("_")[0]: name for name in CANONICAL}
_STEMS |= {"p": "power_w", "f": "frequency_mhz", "t": "time_s", "e": "energy_j"}
"""Names that need a unit for recognition: memory_ghz is a clock, memory_mib is not."""
_SCOPED = ("power_w", "energy_j", "frequency_mhz", "fp_active", "gpus", "time_s", BATCH)
"""Quantities that may be called total, or per GPU."""
NEVER, ASKED = 9, 3
_KINDS = ("steps", "samples", "tokens", "others")
"""Rates; the first need the fewest further columns for a time."""
FORMULA = "time_s = local_batch x gpus / (samples/s), global_batch / (samples/s) or 1 / (steps/s)"


@dataclass(frozen=True, slots=True)
class Seen(Wanted):
    """Column of the user's table, as far as its name or the user describes it.

    Parameters
    ----------
    rate: things counted per unit of time (see `Header`); the name is then `RATE`.
    scope: ``total`` over all GPUs, ``each`` of them, or "" if unknown.
    either: units that an ambiguous name may mean.
    """

    rate: str = ""
    scope: str = ""
    either: tuple[str, ...] = ()


def quantity_of(words: str) -> tuple[str, float, str]:
    """Return the canonical name for a column's words ("" for none), its rank and its scope.

    >>> quantity_of("avg_power_per_gpu"), quantity_of("power_std"), quantity_of("colour")
    (('power_w', 0, 'each'), ('power_w', 9, ''), ('', 1, ''))
    """
    if words in _OURS or words in _RANKED:
        return *_RANKED.get(words, (_OURS.get(words, ""), 1)), ""
    parts = words.replace("per_gpu", "each").replace("per_device", "each").split("_")
    rank = max((STATISTICS.get(part, NEVER) for part in parts if is_statistic(part)), default=1)
    parts = [part for part in parts if not is_statistic(part)]
    if "_".join(parts) in _OURS:
        return _OURS["_".join(parts)], rank, ""
    scope = next((SCOPES[part] for part in parts if part in SCOPES), "")
    ours = _OURS.get("_".join(part for part in parts if part not in (*SCOPES, "gpus")), "")
    if ours == BATCH and scope:
        return ("global_batch" if scope == "total" else "local_batch"), rank, ""
    if ours not in _SCOPED or (rank == ASKED and ours != "frequency_mhz"):
        ours, scope = "", ""
    return ours, rank, scope


def claims(
    header: Sequence[str],
    named: Mapping[str, Wanted] = MappingProxyType({}),
    texts: Collection[str] = (),
) -> Iterator[tuple[float, str, Seen]]:
    """Yield the rank, the name and the meaning of each recognised column; the lowest rank is best.

    Parameters
    ----------
    named: columns that the user names; no other column is taken for the same quantity.
    texts: columns without numbers; another column of the same name is preferred.
    """
    told = {theirs: _told(want, parsed(theirs)) for theirs, want in named.items()}
    taken = {seen.name for seen in told.values()}
    for theirs in header:
        seen, rank = (told[theirs], -9.0) if theirs in told else by_name(theirs)
        rank += (theirs in texts and rank >= 0 and seen.name not in TEXTS) * NEVER / 2
        if theirs in told or (seen.name and rank < NEVER and seen.name not in taken):
            yield rank, theirs, seen


def recognised(
    header: Sequence[str],
    source: str,
    named: Mapping[str, Wanted] = MappingProxyType({}),
    units: Mapping[str, str] = MappingProxyType({}),
    *,
    texts: Collection[str] = (),
) -> tuple[dict[str, Seen], dict[str, InputError]]:
    """Return the recognised columns, and errors for quantities that no column surely has.

    Parameters
    ----------
    named, texts: as for `claims`.
    units: units that the user states.
    """
    found: dict[str, list[tuple[float, str, Seen]]] = {}
    for claim in claims(header, named, texts):
        found.setdefault(claim[2].name, []).append(claim)
    refused: dict[str, InputError] = {}
    result: dict[str, Seen] = {}
    for ours, several in found.items():
        rank, theirs, seen = min(several, key=lambda item: item[0])
        own = next(iter(units_of(ours)), None)
        # our own name beside another with our unit: as good a claim
        alike = [name for level, name, other in several
                 if level == rank or (rank < 0 and (level, other.unit) == (1, own))]  # fmt: skip
        seen = replace(seen, unit=units.get(ours, seen.unit))
        error = _unclear(theirs, seen, source)
        if len(alike) > 1:
            expected = f"one column for {ours}; --column '{alike[0]}={ours}' says which"
            error = InputError(source, "columns", NoQuote(" and ".join(alike)), expected)
        if error is None:
            result[theirs] = seen
        else:
            refused[ours] = error
    return result, refused


def by_name(theirs: str) -> tuple[Seen, float]:
    """Recognise a column by its name alone; return it with its rank among equal ones."""
    if theirs in CANONICAL:
        return Seen(theirs), -1
    header = parsed(theirs)
    ours, rank, scope = quantity_of(header.words)
    if header.rate or ours == RATE:  # what it counts may come from the user
        each = "each" if "per_gpu" in header.words else ""
        return Seen(RATE, header.unit, header.rate, each), _KINDS.index(header.rate or "others")
    bare = "_".join(word for word in header.words.split("_") if not is_statistic(word))
    stem = _STEMS.get(bare, "")
    if not ours and header.unit in units_of(stem):
        ours = stem
    if header.units and not units_of(ours):
        ours = ""
    if "minimum" in header.units and ours != "time_s":
        rank = NEVER
    return Seen(ours, header.unit, "", scope, header.units if len(header.units) > 1 else ()), rank


def _told(want: Wanted, header: Header) -> Seen:
    """Return the column as the user names it, by default with the unit in its name."""
    rate = parsed(f"({want.unit})")
    if want.unit and rate.rate:
        return Seen(RATE, rate.unit, rate.rate, "each" if "per_gpu" in rate.words else "")
    asked = not want.unit and not header.rate
    units = tuple(unit for unit in header.units if asked and unit in units_of(want.name))
    unit = header.unit if units else want.unit
    return Seen(want.name, unit, "", "", units if len(units) > 1 else ())


def _unclear(theirs: str, seen: Seen, source: str) -> InputError | None:
    """Return the error for a column whose unit is unknown, ambiguous or of another quantity."""
    header, units, column = parsed(theirs), units_of(seen.name), f"--column '{theirs}="
    if seen.name == RATE and seen.rate not in _KINDS[:-1]:
        found = "a rate of what is not told" if not seen.rate else "no rate of training"
        expected = f"samples, steps or tokens per s: {column}time_s:images/s'; {FORMULA}"
    elif seen.name == "time_s" and not seen.unit and by_name(theirs)[0].name == RATE:
        found = f"{header.rate} per {header.unit}, a rate" if header.rate else "a rate"
        expected = f"a time ({FORMULA} is taken without --column)"
    elif seen.name == RATE or seen.unit in units or not units or theirs == seen.name:
        return None
    elif seen.either:
        both = [f"{column}{seen.name}:{u.replace('minimum', 's')}'" for u in seen.either]
        found, expected = f"a unit that may be {' or '.join(seen.either)}", " or ".join(both)
    elif header.unknown or header.units:
        found = f"unit {header.unknown or header.units[0]!r}"
        says = f"{column}{seen.name}:{next(iter(units))}' says otherwise"
        expected = f"one of {', '.join(units)}; {says}"
    else:
        return None
    return InputError(source, f"column {theirs}", NoQuote(found), expected)
