"""Tables and numbers for people, as aligned text and as HTML."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from optgap.models import shown

if TYPE_CHECKING:
    from optgap.models.result import Result

Row = Sequence[str]
Table = tuple[Row, list[Row], tuple[int, ...]]
"""Header, rows as text, and the right-aligned columns; an empty row is a rule."""
RULE: Row = ()
WIDTH = 100
"""Columns of a text without a terminal."""
ROOM = 16
"""Least columns for names; with fewer a table is shown in two parts, one below the other."""
GAP_TO_BOUND, GAP_TO_BEST = "gap to bound (%)", "gap to best known (%)"
SECONDS = "time (s)"
"""Heads of columns: one name for one thing in every table."""


class Answer:
    """Answer of a command: lines, a table and notes, the same as text and in a notebook."""

    def head(self) -> list[str]:
        """Return lines about the subject of the table."""
        return []

    def table(self) -> Table:
        """Return the table itself."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return lines that a reader of the table needs."""
        return []

    def __str__(self) -> str:
        blocks = filled(self.head()), text_table(*self.table()), filled(self.notes())
        return "\n\n".join(filter(None, blocks))

    def _repr_html_(self) -> str:
        header, rows, right = self.table()
        return html_table(header, rows, self.head(), right, notes=self.notes())


def screen_width() -> int:
    """Return the columns of the terminal or of ``$COLUMNS``; `WIDTH` without either."""
    return max(40, shutil.get_terminal_size((WIDTH, 24)).columns)


def filled(lines: Sequence[str], width: int | None = None, indent: str = "  ") -> str:
    """Wrap lines at words, so that none is wider than the screen; words stay whole."""
    room = width or screen_width()
    return "\n".join("\n".join(_wrapped(line, room, indent)) or line for line in lines)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, max(1, width), subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def plural(count: int, noun: str) -> str:
    """Write a number with its noun: ``1 move``, ``4,268 moves``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def text_table(
    header: Row,
    rows: Sequence[Row],
    right: Sequence[int] = (),
    width: int | None = None,
    *,
    line: str = "-",
) -> str:
    """Return an aligned table in plain text that is no wider than the screen.

    Heads are wrapped first, then cells of text. A name in the first column is never cut: one that
    leaves too little room stands in a line of its own. Columns that find no room even then go into
    a second table below the first.

    Parameters
    ----------
    header
        Names of the columns.
    rows
        Cells as text. An empty row draws a rule.
    right
        Indices of right-aligned columns, which are not wrapped.
    width
        Columns of text. Default: those of the screen.
    line
        Character of the rules.
    """
    room = width or screen_width()
    columns = [[row[k] for row in rows if row] for k in range(len(header))]
    widths = _widths(header, columns, right, room)
    over = _total(widths) - room
    if over > 0 and widths[0] - over < min(widths[0], ROOM) and len(header) > 2:
        half = len(header) // 2 + 1
        parts = ([*range(half)], [0, *range(half, len(header))])
        return "\n\n".join(
            text_table([header[k] for k in part], [[r[k] for k in part] if r else r for r in rows],
                       [i for i, k in enumerate(part) if k in right], room, line=line)
            for part in parts
        )  # fmt: skip
    widths[0] = max(1, widths[0] - max(0, over))
    rule = "  ".join(line * size for size in widths)
    lines = [*_lines(header, widths, right, bottom=True), rule]
    for row in rows:
        lines += _lines(row, widths, right) if row else [rule]
    return "\n".join(lines)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _widths(
    header: Row, columns: Sequence[Sequence[str]], right: Sequence[int], room: int
) -> list[int]:
    """Return the width of each column; heads of numbers are wrapped first, then cells of text."""
    widths = [max(map(len, (name, *cells))) for name, cells in zip(header, columns, strict=True)]
    least = [
        max(_longest_word(name), *(len(c) if k in right else _longest_word(c) for c in cells), 1)
        for k, (name, cells) in enumerate(zip(header, columns, strict=True))
    ]
    if _total(widths) > room:  # a long name stands alone: it takes no room from the others
        names = [len(name) for name in (header[0], *columns[0])]
        widths[0] = max(size for size in (1, *names) if size <= max(ROOM, room // 3))
    for group in (right, range(len(header))):
        while _total(widths) > room:
            room_in = {k: widths[k] - least[k] for k in group if k and widths[k] > least[k]}
            if not room_in:
                break
            widths[max(room_in, key=room_in.__getitem__)] -= 1
    return widths


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _lines(
    row: Row, widths: Sequence[int], right: Sequence[int], bottom: bool = False
) -> list[str]:
    """Return a row in as many lines as its cells need."""
    name, *rest = row
    alone = [] if bottom or len(name) <= widths[0] else [name]
    first = _wrapped(name, widths[0]) if bottom else [] if alone else [name]
    parts = [first, *(_wrapped(c, w) for c, w in zip(rest, widths[1:], strict=True))]
    height = max(1, *map(len, parts))
    if bottom:
        parts = [[""] * (height - len(part)) + part for part in parts]
    lines = []
    for n in range(height):
        cells = [part[n] if n < len(part) else "" for part in parts]
        padded = [
            cell.rjust(width) if k in right else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return [*alone, *lines]


def html_table(
    header: Row,
    rows: Sequence[Row],
    lines: Sequence[str] = (),
    right: Sequence[int] = (),
    *,
    notes: Sequence[str] = (),
) -> str:
    """Return an HTML table between lines and notes; a wide table scrolls."""
    above, below = (shown.html_lines([escape(line) for line in part]) for part in (lines, notes))
    return above + shown.html_table(header, rows, right) + below


def number(value: float | int | None, digits: int = 6) -> str:
    """Write a number with thousands separators and `digits` significant digits; "" for None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    magnitude = len(str(int(abs(value))))
    return f"{value:,.{max(0, digits - magnitude)}f}"


def in_column(values: Iterable[float | None]) -> list[str]:
    """Write numbers with one number of decimals, as `number` gives the largest of them."""
    known = list(values)
    largest = max((abs(x) for x in known if x is not None and math.isfinite(x)), default=0.0)
    decimals = max(0, 6 - len(str(int(largest))))
    return ["" if x is None else f"{x:,.{decimals}f}" for x in known]


def percents(shares: Iterable[float | None]) -> list[str]:
    """Write shares as percentages for a column with the unit in its head."""
    return ["" if x is None else f"{100 * x:,.2f}" for x in shares]


def durations(seconds: Sequence[float]) -> list[str]:
    """Write seconds for a column with the unit in its head."""
    decimals = 2 if max(seconds, default=0.0) < 100 else 1
    return [f"{x:,.{decimals}f}" for x in seconds]


def percent(share: float | None, digits: int = 2) -> str:
    """Write a share as a percentage; "" for None."""
    return "" if share is None else f"{100 * share:.{digits}f} %"


def result_facts(result: Result) -> list[tuple[str, str]]:
    """Return names and values of a result: status, objective, bound, gap and time."""
    facts = [("status", f"{result.status} ({result.termination})")]
    if result.objective is not None:
        facts.append(("objective", f"{number(result.objective)} {result.unit}"))
    if result.bound is not None:
        facts.append(("bound", f"{number(result.bound)} {result.unit}, by {result.bound_by}"))
    if result.gap is not None:
        facts.append(("gap", percent(result.gap, 3)))
    return [*facts, ("time", duration(result.seconds))]


def duration(seconds: float) -> str:
    """Write seconds with their unit."""
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"
