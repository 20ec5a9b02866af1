"""A user's own table: other column names and units, brought to ours before anything is read."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.units import parsed, spelt, units_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """Meaning of a column of a user's table: our name for it, and the unit of its cells."""

    name: str
    unit: str = ""

    @property
    def factor(self) -> float:
        """Factor from its unit to ours."""
        return units_of(self.name).get(self.unit, 1.0)


def mapped(
    columns: Mapping[str, str], known: Sequence[str] = (), source: str = "columns"
) -> dict[str, Wanted]:
    """Read a mapping such as ``{"watts": "power_w:kW"}`` as the meaning of each column.

    Parameters
    ----------
    known: the known names; without any, every name is accepted.

    Raises
    ------
    InputError: for an unknown name, two columns for one name, or a unit of another quantity.
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
        if unit:
            unit = _unit_of(name, unit, source, str(theirs))
        if any(name == other.name for other in found.values()):
            raise InputError(source, str(theirs), NoQuote(f"{name} twice"), "one column for it")
        found[str(theirs)] = Wanted(name, unit)
    return found


def _unit_of(name: str, text: str, source: str, theirs: str) -> str:
    """Return the unit that `text` means for our column `name`; ``images/s`` may be a time."""
    units = units_of(name)
    found = [unit for unit in spelt(text) if unit in units]
    if name == "time_s" and not found and parsed(f"({text})").rate:
        return text
    if not found:
        expected = one_of(units) if units else f"no unit: {name} has none"
        raise InputError(source, theirs, text, expected)
    return found[0]


def converted_names(
    header: Sequence[str], ours: Sequence[str], taken: Collection[str] = ()
) -> dict[str, Wanted]:
    """Columns that have our name but for the unit: ``duration_h`` where ``duration_s`` is wanted.

    >>> converted_names(["job", "duration_h"], ["job", "duration_s"])
    {'duration_h': Wanted(name='duration_s', unit='h')}
    """
    found: dict[str, Wanted] = {}
    for theirs in header:
        seen = parsed(theirs)
        unit = next(iter(seen.units), "")  # no statistics here: min is minutes
        fits = [n for n in ours if n.rpartition("_")[0] == seen.words and unit in units_of(n)]
        for name in fits:
            if theirs not in ours and name not in (*header, *taken) and units_of(name)[unit] != 1:
                found[theirs] = Wanted(name, unit)
    names = [want.name for want in found.values()]
    return {theirs: want for theirs, want in found.items() if names.count(want.name) == 1}


def said(wanted: Mapping[str, Wanted]) -> str:
    """Say in one line which columns were renamed and converted."""
    parts = [
        f"{theirs} → {want.name}" + (f" (from {want.unit})" if want.factor != 1 else "")
        for theirs, want in wanted.items()
    ]
    return f"columns: {', '.join(parts)}" if parts else ""


def converted(cell: str, factor: float) -> str:
    """Return a cell in our unit; text that is no number stays for the reader's error."""
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
    """Return a header under our names; a user's other column of such a name gets another name.

    >>> renamed(["watts", "power_w"], {"watts": Wanted("power_w")})
    ['power_w', 'own power_w']
    """
    taken = {wanted[name].name for name in header if name in wanted}
    return [
        wanted[name].name if name in wanted else f"own {name}" if name in taken else name
        for name in header
    ]


def rewritten(text: str, wanted: Mapping[str, Wanted], source: str = "table") -> str:
    """Return a CSV text with columns renamed and converted; missing columns are ignored.

    Raises
    ------
    InputError: for text that is no CSV.
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
