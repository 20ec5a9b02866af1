"""Tables about solutions as CSV text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

Table = tuple[Sequence[str], Iterable[Sequence[object]]]
"""The names of columns, and rows: what a solution's method of a table's name returns."""


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV text, cells quoted where they have to be; lists are joined by ``-``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(
            ["-".join(map(str, cell)) if isinstance(cell, (tuple, list)) else cell for cell in row]
        )
    return text.getvalue()
