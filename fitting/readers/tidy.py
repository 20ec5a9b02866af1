"""A plain tidy CSV: canonical column names, or the ones people commonly use for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import TEXTS, Profile, as_column
from optgap.fitting.readers.naming import BATCH, CANONICAL, FORMULA, RATE, Seen, recognised
from optgap.fitting.readers.text import MISSING, RawTable, measured
from optgap.models.columns import Wanted, renamed, said
from optgap.models.errors import InputError, NoQuote
from optgap.models.units import TABLE, units_of

Floats = NDArray[np.float64]

AGREE = 0.05
"""A time and a rate in one table should agree within this."""
FROM = {"local_batch": ("global_batch", BATCH), "time_s": (RATE,), "gpus_on_node": ("nodes",)}
"""What a column that is not there follows from."""


def is_tidy(header: set[str]) -> bool:
    """Whether some column is a quantity by its name."""
    seen, refused = recognised(sorted(header), "")
    return bool(refused) or any(want.name not in TEXTS for want in seen.values())


def read_tidy(
    raw: RawTable,
    named: Mapping[str, Wanted] | None = None,
    units: Mapping[str, str] | None = None,
    reads: Collection[str] | None = None,
) -> Profile:
    """Canonical columns checked as numbers, everything else carried along.

    Parameters
    ----------
    named: what the user says that columns are.
    units: what the user says that quantities are measured in.
    reads: the columns that matter, those under our names without: what is wrong with others is
        kept for whoever asks for them.

    Raises
    ------
    InputError: when a column that matters holds no numbers, or it is not clear which column is
        meant, or in which unit it is.
    """
    first = {name: _first(raw, name) for name in raw.header}
    texts = [name for name, cell in first.items() if cell and not re.match(r"[-+.]?\d", cell)]
    texts += [name for name, cell in first.items() if re.match(r"\d+[-:/]\d", cell)]  # dates
    seen, refused = recognised(raw.header, raw.source, named or {}, units or {}, texts)
    matters = reads if reads is not None else [name for name in raw.header if name in refused]
    held: dict[str, Any] = {}
    published: dict[str, Any] = {}
    taken: dict[str, Seen] = {}
    for theirs, want in seen.items():
        only = {theirs: want}
        part = replace(raw, header=renamed(raw.header, only), called={want.name: theirs})
        try:
            own, held[want.name] = _values(part if theirs != want.name else raw, want)
        except InputError as error:
            if reads is None and want.name in CANONICAL:
                raise
            refused[want.name] = error
            continue
        if want.name in CANONICAL:
            published[theirs], taken[theirs] = own, want
    notes = _derive(held, seen, refused, raw.source)
    for ours, sources in FROM.items():
        why = next((refused[name] for name in sources if name in refused), None)
        if why is not None and ours not in held:
            refused.setdefault(ours, why)
    for name in matters:
        if name in refused:
            raise refused[name]
    columns = {name: held[name] for name in held if name in CANONICAL and name not in refused}
    taken = {theirs: want for theirs, want in taken.items() if want.name in columns}
    called = {want.name: theirs for theirs, want in taken.items() if want.name != theirs}
    raw = replace(raw, header=renamed(raw.header, taken))
    rest = {n: as_column(raw.text(n)) for n in raw.header if n and n not in columns}
    columns |= {name: values for name, values in rest.items() if name not in refused}
    own = {name: values for name, values in rest.items() if name in refused}
    own |= {name: published[name] for name in taken if name not in columns}
    new = {t: want for t, want in taken.items() if t != want.name or want.factor != 1}
    said_so = tuple(filter(None, (*raw.notes, *notes, said(new))))
    lines = np.array(raw.lines, dtype=np.int64)
    return Profile(columns, raw.source, "tidy", lines, said_so, own, called, refused)


def _first(raw: RawTable, name: str) -> str:
    """The first cell of a column that holds something."""
    cells = (row[raw.index(name)].strip() for row in raw.rows)
    return next((cell for cell in cells if cell.lower() not in MISSING), "")


def _values(raw: RawTable, want: Seen) -> tuple[Any, Any]:
    """A column as it stands, and in our unit."""
    if want.name in TEXTS:
        text = raw.text(want.name)
        return text, text
    own, values = measured(raw, want.name, want.name, want.unit)
    return own, own / TABLE["time"][want.unit] if want.name == RATE else values


def _derive(
    held: dict[str, Any], seen: Mapping[str, Seen], refused: dict[str, InputError], source: str
) -> list[str]:
    """Fill in what follows from the other columns, and say what cannot be."""
    notes = []
    gpus = held.get("gpus")
    for theirs, want in seen.items():
        each, total = ("energy_j", "each"), ("power_w", "total")
        if (want.name, want.scope) not in (each, total) or want.name not in held:
            continue
        if gpus is None:
            expected = f"a column gpus, or --column '{theirs}={want.name}' where it is of one GPU"
            found = NoQuote(f"that of {'all GPUs' if want.scope == 'total' else 'each GPU'}")
            refused[want.name] = InputError(source, f"column {theirs}", found, expected)
        else:
            held[want.name] = held[want.name] * (gpus if want.scope == "each" else 1 / gpus)
            notes.append(f"{theirs} {'times' if want.scope == 'each' else 'divided by'} gpus")
    _decide_energy(held, seen, refused)
    if BATCH in held and not {"local_batch", "global_batch"} & held.keys():
        theirs = next(name for name, want in seen.items() if want.name == BATCH)
        if gpus is not None and np.all(gpus == 1):
            held["local_batch"] = held[BATCH]
        else:
            both = " or ".join(
                f"--column '{theirs}={name}'" for name in ("local_batch", "global_batch")
            )
            found = NoQuote("a batch, of each GPU or of all of them")
            refused["local_batch"] = InputError(source, f"column {theirs}", found, both)
    if "global_batch" in held and gpus is not None and "local_batch" not in held:
        held["local_batch"] = held["global_batch"] / gpus
    if gpus is not None and "nodes" in held and "gpus_on_node" not in held:
        with np.errstate(divide="ignore", invalid="ignore"):
            held["gpus_on_node"] = np.ceil(gpus / held["nodes"])
    if RATE in held:
        notes += _time_of_rate(held, seen, refused, source)
    return notes


def _decide_energy(
    held: dict[str, Any], seen: Mapping[str, Seen], refused: dict[str, InputError]
) -> None:
    """Tell mJ from MJ by power and time, where a header does not."""
    want = next((want for want in seen.values() if want.name == "energy_j" and want.either), None)
    if want is None or not {"power_w", "time_s", "energy_j"} <= held.keys():
        return
    product = held["power_w"] * held["time_s"] * held.get("gpus", 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.nanmedian(held["energy_j"] / product))
    for unit in want.either:
        factor = units_of("energy_j")[unit]
        if 0.5 < ratio * factor < 2:
            held["energy_j"] = held["energy_j"] * factor
            refused.pop("energy_j")


def _time_of_rate(
    held: dict[str, Any], seen: Mapping[str, Seen], refused: dict[str, InputError], source: str
) -> list[str]:
    """Time of an iteration by a rate; a note where the table has both and they differ."""
    theirs, want = next((name, want) for name, want in seen.items() if want.name == RATE)
    if want.rate == "steps":
        needed: list[str] = []
    elif "global_batch" in held and want.scope != "each":
        needed = ["global_batch"]
    else:
        needed = ["local_batch", *(["gpus"] if want.scope != "each" else [])]
        needed += [name for name in ("accumulation",) if name in held]
    needed += ["seq_len"] if want.rate == "tokens" else []
    lacks = [name for name in needed if name not in held]
    if lacks:
        found = NoQuote(f"{want.rate} per s without {' and '.join(lacks)}")
        error = refused.get(lacks[0]) or InputError(source, f"column {theirs}", found, FORMULA)
        if "time_s" not in held:
            refused.setdefault("time_s", error)
        return []
    with np.errstate(divide="ignore", invalid="ignore"):
        per_s = np.where(held[RATE] > 0, held[RATE], np.nan)
        time = reduce(np.multiply, [held[name] for name in needed], 1 / per_s)
        off = int(np.sum(np.abs(held.get("time_s", time) / time - 1) > AGREE))
    if "time_s" in held:
        return [f"time_s is not that of {theirs} in {off} of {len(time)} rows"] if off else []
    held["time_s"] = time
    refused.pop("time_s", None)
    return [f"time_s from {theirs}: {FORMULA}"]
