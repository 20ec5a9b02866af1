"""Reader of a plain tidy CSV with canonical or common column names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import reduce
from typing import Any

import numpy as np

from optgap.fitting.profile import TEXTS, Profile, as_column
from optgap.fitting.readers.naming import BATCH, CANONICAL, FORMULA, RATE, Seen, recognised
from optgap.fitting.readers.text import MISSING, RawTable, measured
from optgap.models.columns import Wanted, renamed, said
from optgap.models.errors import InputError, NoQuote
from optgap.models.units import TABLE

AGREE = 0.05
"""Relative difference within which a time and a rate in one table agree."""
FROM = {"local_batch": ("global_batch", BATCH), "time_s": (RATE,), "gpus_on_node": ("nodes",)}
"""Columns from which a missing column follows."""


def read_tidy(
    raw: RawTable,
    named: Mapping[str, Wanted],
    units: Mapping[str, str],
    reads: Collection[str] | None = None,
) -> Profile:
    """Read canonical columns as checked numbers, and carry all other columns along.

    Parameters
    ----------
    named: columns that the user names.
    units: units that the user states.
    reads: columns that matter. Default: the canonical ones. An error in another column is kept
        until the column is used.

    Raises
    ------
    InputError: if a column that matters has no numbers, if the column or its unit is ambiguous,
        or if no column has a known name.
    """
    firsts = {n: next((c for c in v if c.lower() not in MISSING), "") for n, v in raw.cells.items()}
    dated = re.compile(r"(?![-+.]?\d).|\d+[-:/]\d")  # texts and dates
    texts = [name for name, cell in firsts.items() if dated.match(cell)]
    seen, refused = recognised(list(raw.cells), raw.source, named, units, texts=texts)
    if not named and not refused and all(want.name in TEXTS for want in seen.values()):
        expected = "columns of a known profiler, or canonical ones (frequency_mhz, power_w, …)"
        more = "; columns= (--column theirs=ours) names them"
        shown = NoQuote(", ".join(raw.cells))
        raise InputError(raw.source, f"row {raw.top}", shown, expected + more)
    matters = reads if reads is not None else [name for name in raw.cells if name in refused]
    held: dict[str, Any] = {}
    published: dict[str, Any] = {}
    taken: dict[str, Seen] = {}
    for theirs, want in seen.items():
        try:
            if want.name in TEXTS:
                own = held[want.name] = raw.text(theirs)
            else:
                own, held[want.name] = measured(raw, theirs, want.name, want.unit)
        except InputError as error:
            if reads is None and want.name in CANONICAL:
                raise
            refused[want.name] = error
            continue
        if want.name in CANONICAL:
            published[theirs], taken[theirs] = own, want
    with np.errstate(all="ignore"):
        notes = _derive(held, seen, refused, raw.source)
    for ours, sources in FROM.items():
        why = next((refused[name] for name in sources if name in refused), None)
        if why is not None and ours not in held:
            refused.setdefault(ours, why)
    for name in matters:
        if name in refused:
            raise refused[name]
    columns = {n: v for n, v in held.items() if n in CANONICAL and n not in refused}
    taken = {theirs: want for theirs, want in taken.items() if want.name in columns}
    called = {want.name: theirs for theirs, want in taken.items() if want.name != theirs}
    names = zip(renamed(list(raw.cells), taken), raw.cells, strict=True)
    rest = {n: as_column(raw.text(t)) for n, t in names if n and n not in columns}
    columns |= {name: values for name, values in rest.items() if name not in refused}
    unread = {name: values for name, values in rest.items() if name in refused}
    unread |= {name: published[name] for name in taken if name not in columns}
    new = {t: want for t, want in taken.items() if t != want.name or want.factor != 1}
    said_so = tuple(filter(None, (*raw.notes, *notes, said(new))))
    return Profile(columns, raw.source, "tidy", raw.lines, said_so, unread, called, refused)


def _derive(
    held: dict[str, Any], seen: Mapping[str, Seen], refused: dict[str, InputError], source: str
) -> list[str]:
    """Add columns that follow from others, and return notes."""
    theirs = {want.name: name for name, want in seen.items()}
    gpus, notes = held.get("gpus"), []

    def refuse(ours: str, of: str, found: str, expected: str) -> None:
        error = InputError(source, f"column {theirs[of]}", NoQuote(found), expected)
        refused.setdefault(ours, error)

    for name in ("energy_j", "power_w", "frequency_mhz", "fp_active"):
        scope, whose = ("each", "each GPU") if name == "energy_j" else ("total", "all GPUs")
        if name not in held or seen[theirs[name]].scope != scope:
            continue
        if gpus is None:
            expected = f"a column gpus, or --column '{theirs[name]}={name}' where it is of one GPU"
            refuse(name, name, f"that of {whose}", expected)
        else:
            held[name] = held[name] * (gpus if scope == "each" else 1 / gpus)
            notes.append(f"{theirs[name]} {'times' if scope == 'each' else 'divided by'} gpus")
    if BATCH in held and not {"local_batch", "global_batch"} & held.keys():
        if gpus is not None and np.all(gpus == 1):
            held["local_batch"] = held[BATCH]
        else:
            both = [f"--column '{theirs[BATCH]}={n}'" for n in ("local_batch", "global_batch")]
            found = "a batch, of each GPU or of all of them"
            refuse("local_batch", BATCH, found, " or ".join(both))
    if gpus is not None and "global_batch" in held:
        held.setdefault("local_batch", held["global_batch"] / gpus)
    if gpus is not None and "nodes" in held:
        held.setdefault("gpus_on_node", np.ceil(gpus / held["nodes"]))
    if RATE not in held:
        return notes
    # the time of an iteration by a rate
    want = seen[theirs[RATE]]
    needed = ["local_batch", *["gpus"] * (want.scope != "each")]
    needed += [name for name in ("accumulation",) if name in held]
    if "global_batch" in held and want.scope != "each":
        needed = ["global_batch"]
    needed = [] if want.rate == "steps" else needed + ["seq_len"] * (want.rate == "tokens")
    lacks = [name for name in needed if name not in held]
    if not lacks:
        per_s = np.where(held[RATE] > 0, held[RATE], np.nan) / TABLE["time"][want.unit]
        time = reduce(np.multiply, [held[name] for name in needed], 1 / per_s)
        if "time_s" not in held:
            held["time_s"] = time
            refused.pop("time_s", None)
            return [*notes, f"time_s from {theirs[RATE]}: {FORMULA}"]
        off = int(np.sum(np.abs(held["time_s"] / time - 1) > AGREE))
        if off:
            notes.append(f"time_s is not that of {theirs[RATE]} in {off} of {len(time)} rows")
    elif "time_s" not in held and lacks[0] in refused:
        refused.setdefault("time_s", refused[lacks[0]])
    elif "time_s" not in held:
        refuse("time_s", RATE, f"{want.rate} per s without {' and '.join(lacks)}", FORMULA)
    return notes
