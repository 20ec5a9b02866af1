"""Small helpers that the readers share."""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.fitting.profile import Profile, as_column
from optgap.fitting.readers.text import RawTable


def profile_from(raw: RawTable, kind: str, columns: dict[str, Any], *notes: str) -> Profile:
    """A profile with the lines of `raw`, and its columns under their own names beside ours."""
    lines = np.array(raw.lines, dtype=np.int64)
    named = [name for name in raw.header if name and name not in columns]
    published = {name: as_column(raw.text(name)) for name in named}
    return Profile(columns, raw.source, kind, lines, tuple(notes), published, raw.called)


def constant(raw: RawTable, value: str) -> Any:
    """A text column holding `value` in every row."""
    return np.full(len(raw.rows), value, dtype=object)


def joined(*columns: Any) -> Any:
    """Text columns joined by a slash, row by row; empty parts are left out."""
    rows = zip(*columns, strict=True)
    return np.array(
        ["/".join(part for part in (str(cell) for cell in row) if part) for row in rows],
        dtype=object,
    )


def others(raw: RawTable, used: set[str]) -> dict[str, Any]:
    """The remaining columns: numeric where every cell is a number, else text."""
    return {name: as_column(raw.text(name)) for name in raw.header if name and name not in used}
