"""Tables for people: aligned text, HTML, and rich's where there is a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from optgap.models import shown

if TYPE_CHECKING:
    from optgap.models.result import Result

Row = Sequence[str]
Table = tuple[Row, list[Row], tuple[int, ...]]
"""Header, rows and the columns that are right-aligned, as text."""


class Answer:
    """What a command answers: lines, a table and notes, the same as text and in a notebook."""

    def head(self) -> list[str]:
        """What the table is about."""
        return []

    def table(self) -> Table:
        """The table itself."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """What one must know to read the table."""
        return []

    def __str__(self) -> str:
        blocks = "\n".join(self.head()), text_table(*self.table()), "\n".join(self.notes())
        return "\n\n".join(filter(None, blocks))

    def _repr_html_(self) -> str:
        header, rows, right = self.table()
        return html_table(header, rows, [*self.head(), *self.notes()], right)


def plural(count: int, noun: str) -> str:
    """A number with its noun: ``1 move``, ``4,268 moves``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def text_table(header: Row, rows: Sequence[Row], right: Sequence[int] = ()) -> str:
    """An aligned table in plain text; columns with an index in `right` are right-aligned."""
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]

    def line(cells: Row) -> str:
        padded = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def html_table(
    header: Row, rows: Sequence[Row], lines: Sequence[str] = (), right: Sequence[int] = ()
) -> str:
    """The same as an HTML table that scrolls where it is wide, below lines of text."""
    return shown.html_lines([escape(line) for line in lines]) + shown.html_table(
        header, rows, right
    )


def rich_table(header: Row, rows: Sequence[Row], right: Sequence[int] = ()) -> Any:
    """The same as a rich table."""
    from rich import box
    from rich.markup import escape as plain
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for k, cell in enumerate(header):
        table.add_column(plain(cell), justify="right" if k in right else "left")
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    return table


def number(value: float | int | None, digits: int = 6) -> str:
    """A number with thousands separators and at most `digits` significant ones; "" for None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    magnitude = len(str(int(abs(value))))
    return f"{value:,.{max(0, digits - magnitude)}f}"


def percent(share: float | None, digits: int = 2) -> str:
    """A share as a percentage; "" for None."""
    return "" if share is None else f"{100 * share:.{digits}f} %"


def result_facts(result: Result) -> list[tuple[str, str]]:
    """Names and values: what is in hand, how good it is proven to be, and how long it took."""
    facts = [("status", f"{result.status} ({result.termination})")]
    if result.objective is not None:
        facts.append(("objective", f"{number(result.objective)} {result.unit}"))
    if result.bound is not None:
        facts.append(("bound", f"{number(result.bound)} {result.unit}, by {result.bound_by}"))
    if result.gap is not None:
        facts.append(("gap", percent(result.gap, 3)))
    return [*facts, ("time", duration(result.seconds))]


def duration(seconds: float) -> str:
    """Seconds, short."""
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"
