"""A user's own table: other column names and units, brought to ours before anything is read."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from optgap.models.errors import InputError, NoQuote, one_of

_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_POWER = {"W": 1.0, "mW": 1e-3, "kW": 1e3}
_CLOCK = {"MHz": 1.0, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6}
_ENERGY = {"J": 1.0, "mJ": 1e-3, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "kWh": 3.6e6}
_BYTES = {
    "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip
_SUFFIXES: Mapping[str, Mapping[str, float]] = {
    "s": _TIME,
    "w": _POWER,
    "mhz": _CLOCK,
    "j": _ENERGY,
    "gb": {unit: size / 1e9 for unit, size in _BYTES.items()},
    "mib": {unit: size / 2.0**20 for unit, size in _BYTES.items()},
    "percent": {"%": 1.0, "fraction": 100.0},
    "milli": {"milli": 1.0, "vCPU": 1000.0, "cores": 1000.0, "GPU": 1000.0, "whole": 1000.0},
}
"""Factors to the unit that a column's name ends in."""


def units_of(name: str) -> Mapping[str, float]:
    """The units that a column may come in, with the factor to its own; {} where it has none.

    >>> units_of("power_w")["kW"]
    1000.0
    """
    return _SUFFIXES.get(name.rpartition("_")[2], {}) if "_" in name else {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a column of a user's table is to be: our name for it, and the unit it comes in."""

    name: str
    unit: str = ""

    @property
    def factor(self) -> float:
        """From its unit to ours."""
        return units_of(self.name)[self.unit] if self.unit else 1.0


def mapped(
    columns: Mapping[str, str], known: Sequence[str] = (), source: str = "columns"
) -> dict[str, Wanted]:
    """``{"watts": "power_w:kW"}`` as what each column is to be.

    Parameters
    ----------
    known: the names that there are; any name will do without.

    Raises
    ------
    InputError: for a name that is not there, two columns for one, or a unit that is none of it.
    """
    if not isinstance(columns, Mapping):
        raise InputError(source, "", columns, "a mapping, such as {'watts': 'power_w:kW'}")
    found: dict[str, Wanted] = {}
    for theirs, text in columns.items():
        if not isinstance(text, str) or not text.strip():
            raise InputError(source, str(theirs), text, "our name for it, or name:unit")
        name, _, unit = (part.strip() for part in text.partition(":"))
        if known and name not in known:
            raise InputError(source, str(theirs), name, one_of(known))
        if unit and unit not in units_of(name):
            units = units_of(name)
            expected = one_of(units) if units else f"no unit: {name} has none"
            raise InputError(source, str(theirs), unit, expected)
        if any(name == other.name for other in found.values()):
            raise InputError(source, str(theirs), NoQuote(f"{name} twice"), "one column for it")
        found[str(theirs)] = Wanted(name, unit)
    return found


def converted_names(
    header: Sequence[str], ours: Sequence[str], taken: Collection[str] = ()
) -> dict[str, Wanted]:
    """Columns that have our name but for the unit: ``duration_h`` where ``duration_s`` is wanted.

    >>> converted_names(["job", "duration_h"], ["job", "duration_s"])
    {'duration_h': Wanted(name='duration_s', unit='h')}
    """
    found: dict[str, Wanted] = {}
    for theirs in header:
        words, unit = split_unit(theirs)
        fits = [n for n in ours if n.rpartition("_")[0] == words and unit in units_of(n)]
        for name in fits:
            if theirs not in ours and name not in (*header, *taken) and units_of(name)[unit] != 1:
                found[theirs] = Wanted(name, unit)
    names = [want.name for want in found.values()]
    return {theirs: want for theirs, want in found.items() if names.count(want.name) == 1}


def said(wanted: Mapping[str, Wanted]) -> str:
    """One line: which columns were taken for which, and what was converted."""
    parts = [
        f"{theirs} → {want.name}" + (f" (from {want.unit})" if want.factor != 1 else "")
        for theirs, want in wanted.items()
    ]
    return f"columns: {', '.join(parts)}" if parts else ""


def converted(cell: str, factor: float) -> str:
    """A cell in our unit; what is no number stays for the reader to complain about."""
    try:
        value = float(cell)
    except ValueError:
        return cell
    scaled = value * factor
    if not math.isfinite(scaled):
        return cell
    whole = round(scaled)
    return str(whole) if abs(scaled - whole) <= 1e-9 * max(1.0, abs(scaled)) else repr(scaled)


def renamed(header: Sequence[str], wanted: Mapping[str, Wanted]) -> list[str]:
    """A header under our names; a column of the user's own that bears one of them steps aside.

    >>> renamed(["watts", "power_w"], {"watts": Wanted("power_w")})
    ['power_w', 'own power_w']
    """
    taken = {wanted[name].name for name in header if name in wanted}
    return [
        wanted[name].name if name in wanted else f"own {name}" if name in taken else name
        for name in header
    ]


def rewritten(text: str, wanted: Mapping[str, Wanted], source: str = "table") -> str:
    """A CSV text with its columns renamed and converted; columns it lacks are passed over.

    Raises
    ------
    InputError: for what is no CSV text.
    """
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise InputError(source, "", NoQuote(error), "comma-separated cells") from None
    if not rows:
        return text
    header = [cell.strip() for cell in rows[0]]
    wants = [wanted.get(name) for name in header]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(renamed(header, wanted))
    for row in rows[1:]:
        known = len(row) == len(header)  # else the reader complains of it
        writer.writerow(
            [
                converted(cell, want.factor) if want and want.factor != 1 else cell
                for cell, want in zip(row, wants, strict=True)
            ]
            if known
            else row
        )
    return out.getvalue()


_BRACKETS = re.compile(r"\s*[\[(]\s*([^\])]+?)\s*[\])]\s*$")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|%")
SAME_UNIT = {
    "w": "W", "watt": "W", "watts": "W", "kw": "kW", "mhz": "MHz", "ghz": "GHz", "khz": "kHz",
    "hz": "Hz", "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "ms": "ms",
    "millis": "ms", "milliseconds": "ms", "us": "us", "min": "min", "mins": "min",
    "minutes": "min", "h": "h", "hours": "h", "hrs": "h", "days": "d", "j": "J", "joule": "J",
    "joules": "J", "kj": "kJ", "wh": "Wh", "kwh": "kWh", "mib": "MiB", "gib": "GiB", "gb": "GB",
    "mb": "MB", "%": "%", "pct": "%", "percent": "%",
}  # fmt: skip
"""How units are spelt in the names of columns; mW and MJ are not guessed."""


def split_unit(name: str) -> tuple[str, str]:
    """A column's name as words joined by underscores, and the unit that it ends in.

    >>> split_unit("Avg Power (kW)"), split_unit("smClock_GHz"), split_unit("gpus")
    (('avg_power', 'kW'), ('sm_clock', 'GHz'), ('gpus', ''))
    """
    unit = ""
    bracket = _BRACKETS.search(name)
    if bracket:
        unit = SAME_UNIT.get(bracket[1].lower(), "")
        name = name[: bracket.start()]
    words = [word.lower() for part in re.split(r"[\W_]+", name) for word in _split(part)]
    if not unit and len(words) > 1 and words[-1] in SAME_UNIT:
        unit = SAME_UNIT[words.pop()]
    return "_".join(words), unit


def _split(part: str) -> list[str]:
    """``smClock`` in two, ``GHz`` and ``MiB`` in one."""
    return [part] if part.lower() in SAME_UNIT else _WORDS.findall(part)
