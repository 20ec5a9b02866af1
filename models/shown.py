"""Forms in which objects show themselves: a short repr, and a card in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from optgap.models.errors import shorten

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 600
"""Characters of a repr."""
VIEWS = "optgap.views"
"""Pictures and tables are the face's; they are looked up when they are asked for."""
ROWS = 8
"""Rows of a table that a notebook shows."""
LARGE = 1e6
"""Least number that is shown as a whole number, such as Unix seconds."""
_BOX = "max-width:100%;overflow-x:auto;margin:.3em 0"
_CELL = "padding:.15em .6em;white-space:nowrap"
_RULE = ";border-top:1px solid currentColor"


_NOUNS = ("job", "row", "part", "task", "field", "request", "constraint", "program")
PLURALS = {
    **{noun: f"{noun}s" for noun in _NOUNS},
    **{f"{verb}s": verb for verb in ("hold", "ask", "stand", "say", "run", "tell")},
    "is": "are",
}  # fmt: skip


def counted(count: int, what: str) -> str:
    """Write a count before a phrase in the singular, in the plural if the count asks for it.

    >>> counted(1, "job still runs"), counted(2, "asks for no GPU")
    ('1 job still runs', '2 ask for no GPU')
    """
    words = what.split(" ")
    if count != 1:
        words = [PLURALS.get(word, word) if k < 3 else word for k, word in enumerate(words)]
    return f"{count:,} {' '.join(words)}"


class Brief:
    """A repr of one line: what is long is told by its size."""

    __slots__ = ()

    def __repr__(self) -> str:
        known: Any = self
        parts = (f"{f.name}={brief(getattr(self, f.name))}" for f in fields(known) if f.repr)
        text = f"{type(self).__name__}({', '.join(parts)})"
        return text if len(text) <= MOST else text[: MOST - 2] + "…)"


def brief(value: Any) -> str:
    """Write a value in few characters; a long value is given by its size."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"array{tuple(value.shape)}" if value.size > 6 else str(value.tolist())
    if isinstance(value, (tuple, list, Mapping)) and len(value) > 3:
        return f"{len(value)} of {type(next(iter(value))).__name__}"
    return shorten(value)


class Shown:
    """Base of objects with a name, a summary and fits, which gives repr, table and card."""

    if TYPE_CHECKING:
        family: ClassVar[str]

        @property
        def name(self) -> str: ...
        @property
        def summary(self) -> str: ...
        @property
        def fits(self) -> tuple[Any, ...]: ...
        @property
        def origin(self) -> str: ...

    def __repr__(self) -> str:
        text = shorten(f"{self.name}: {self.summary}", MOST - 60).strip("'\"")
        return f"<{type(self).__name__} {text}>"

    def to_frame(self) -> DataFrame:
        """Return a DataFrame with a row for each task, job or (co-scheduling) mode."""
        frame: DataFrame = import_module(f"{VIEWS}.instances").frame(self)
        return frame

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        lines = [f"<b>{escape(self.name)}</b> ({escape(self.family)})", escape(self.summary)]
        lines += [f"from: {escape(self.origin)}"] if self.origin else []
        lines += [escape(fit.described) for fit in self.fits]
        head = frame.head(ROWS)
        cells = [[_cell(value) for value in row] for row in head.itertuples(index=False)]
        right = [k for k, kind in enumerate(frame.dtypes) if kind.kind in "fiu"]
        more = len(frame) - len(head)
        after = f"<div>… and {more:,} more: <code>to_frame()</code></div>" if more > 0 else ""
        return html_lines(lines) + html_table(list(map(str, frame.columns)), cells, right) + after


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= LARGE else f"{value:.6g}"


def html_lines(lines: Sequence[str]) -> str:
    """Return lines of HTML, one below the other."""
    return "".join(f"<div>{line}</div>" for line in lines)


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    """Return a table that scrolls where it is wide.

    Columns with an index in `right` are right-aligned; an empty row draws a rule.
    """

    def cells(tag: str, row: Sequence[str], more: str = "") -> str:
        sides = ("right" if k in right else "left" for k in range(len(row)))
        return "".join(
            f'<{tag} style="{_CELL};text-align:{side}{more}">{escape(str(cell))}</{tag}>'
            for side, cell in zip(sides, row, strict=True)
        )

    head = f"<thead><tr>{cells('th', header)}</tr></thead>"
    ruled = [(row, bool(k) and not rows[k - 1]) for k, row in enumerate(rows) if row]
    body = "".join(f"<tr>{cells('td', row, _RULE * rule)}</tr>" for row, rule in ruled)
    return f'<div style="{_BOX}"><table>{head}<tbody>{body}</tbody></table></div>'
