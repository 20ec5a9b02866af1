"""One part of a page, and how values in it read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from optgap.render import number
from optgap.reporting.grid import Grid
from optgap.reporting.pictures import Picture


@dataclass(frozen=True)
class Section:
    """One part of a page.

    Parameters
    ----------
    title: its heading.
    found: what it comes to, in a sentence each.
    source: the file that it is made from, and its `schema`.
    lines: sentences below the heading.
    facts: names and values.
    pictures, grids: what is shown.
    notes: what one must know to read it.
    """

    title: str
    source: str
    schema: str
    found: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    pictures: tuple[Picture, ...] = ()
    grids: tuple[Grid, ...] = ()
    notes: tuple[str, ...] = ()


def new(title: str, **parts: Any) -> Section:
    """A section of the file that is being read; `parts` are sequences."""
    return Section(title, "", "", **{name: tuple(value) for name, value in parts.items()})


def is_number(value: Any) -> bool:
    """Whether a value of a file is a number; yes and no are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def words(value: Any) -> str:
    """A value as it is read."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, (int, float)):
        return number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
