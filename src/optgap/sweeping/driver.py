"""Run the missing cells of a sweep, keep every row at once, and write the table."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.extras import require
from optgap.models.errors import PLACE, InputError, NoQuote, said
from optgap.models.jsonio import finite, write_bytes
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.models.tables import guarded
from optgap.progress import in_notebook
from optgap.sweeping.cells import COLUMNS, Row
from optgap.sweeping.engines import Engine
from optgap.sweeping.spec import Spec

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Done:
    """State of a sweep: the rows that are done, and the counts.

    Parameters
    ----------
    path: file of the table.
    rows: finished rows, in the order of the spec's cells.
    total: number of comparisons in the spec.
    skipped: number of comparisons that were done before.
    ran: number of comparisons that ran now.
    """

    path: Path
    rows: tuple[Row, ...]
    total: int
    skipped: int
    ran: int
    termination: Termination = Termination.COMPLETED

    @property
    def failed(self) -> list[Row]:
        """Rows of runs that went wrong (a method that does not treat an objective did not)."""
        return [row for row in self.rows if went_wrong(row)]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each run, with metrics as columns."""
        import pandas as pd

        lines = [{**row, **json.loads(row["metrics"] or "{}")} for row in self.rows]
        return pd.DataFrame(lines).drop(columns="metrics", errors="ignore")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.sweep/1``, with the counts but without the rows."""
        return {
            "schema": "optgap.sweep/1",
            "path": str(self.path),
            "total": self.total,
            "done": self.skipped + self.ran,
            "skipped": self.skipped,
            "ran": self.ran,
            "failed": len(self.failed),
            "termination": str(self.termination),
        }


def went_wrong(row: Row) -> bool:
    """Tell whether a row is about a run that failed."""
    return row["failure"] in ("input", "fault")


def run(
    spec: Spec,
    path: str | os.PathLike[str],
    *,
    engine: Engine | None = None,
    limits: Limits | None = None,
) -> Done:
    """Compare on all instances of a sweep that have no rows yet, and write the table of all.

    Rows go to a journal beside the table, ``FILE.jsonl``, as they come, so that nothing is lost
    with this process; at the end, and when `limits` stop the sweep, the table is written. The next
    call goes on with the journal, and runs what has failed again.

    Parameters
    ----------
    path: file of the table, which ends in ``.csv`` or ``.parquet``.

    Raises
    ------
    InputError: for a table with another ending, or that no sweep has written; a missing package;
        or a scheduler that does not answer.
    """
    limits = limits or Limits(progress=in_notebook)
    engine, target = engine or Engine(), Path(path)
    require_table(target)
    journal = _journal_of(target)
    before = _kept(journal)
    known = {key: rows for key, rows in before.items() if not any(map(went_wrong, rows))}
    todo = [cell for key, cell in spec.cells.items() if key not in known]
    skipped, ran = len(spec.cells) - len(todo), 0
    limits.progress(f"{skipped} of {len(spec.cells)} comparisons", None, None)
    try:
        for rows in engine.run(todo, lambda: limits.stop is not None):
            known[rows[0]["key"]] = [finite(row) for row in rows]
            _keep(known[rows[0]["key"]], journal)
            ran += 1
            limits.progress(f"{skipped + ran} of {len(spec.cells)} comparisons", None, None)
    finally:
        table = [row for key in spec.cells for row in known.get(key, ())]
        _write(table, target)
    stop = Termination.COMPLETED
    if ran < len(todo):
        stop = limits.stop or Termination.INTERRUPTED
    return Done(target, tuple(table), len(spec.cells), skipped, ran, stop)


def require_table(target: Path) -> None:
    """Refuse a table that cannot be written, before any work goes into it.

    Raises
    ------
    InputError: for another ending, Parquet without the package for it, and a file of others.
    """
    ending = target.suffix.lower()
    if ending not in (".csv", ".parquet"):
        found = NoQuote(ending or "no ending")
        raise InputError(str(target), "", found, "a file that ends in .csv or .parquet")
    if ending == ".parquet":
        require("pyarrow", "sweep")
    if target.exists() and not _journal_of(target).exists():
        found = NoQuote(f"a file without {_journal_of(target).name} beside it")
        raise InputError(str(target), "", found, "the table of a sweep, or another name")


def _journal_of(target: Path) -> Path:
    return target.with_name(target.name + ".jsonl")


def _kept(journal: Path) -> dict[str, list[Row]]:
    """Return the rows of a journal by key, of which later ones count."""
    try:
        with open(journal, "a+b") as file:
            file.seek(0)
            content = file.read()
            if content and not content.endswith(b"\n"):  # cut off in the middle
                file.write(b"\n")
    except OSError as error:
        raise InputError(str(journal), "", said(error), PLACE) from None
    return {rows[0]["key"]: rows for rows in map(_read, content.split(b"\n")) if rows}


def _keep(rows: list[Row], journal: Path) -> None:
    """Append rows to a journal, so that they outlast this process and the machine's failure."""
    with open(journal, "ab") as file:
        file.write(json.dumps(rows, separators=(",", ":")).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def _read(line: bytes) -> list[Row]:
    """Return the rows in a line; none if a crash left something else there."""
    try:
        rows = json.loads(line)
        return rows if all(set(row) == set(COLUMNS) for row in rows) else []
    except (TypeError, ValueError):
        return []


def _write(rows: Sequence[Row], target: Path) -> None:
    import pandas as pd

    frame, buffer = pd.DataFrame(rows, columns=list(COLUMNS)), io.BytesIO()
    if target.suffix.lower() == ".parquet":
        frame.to_parquet(buffer, index=False)
    else:
        buffer.write(guarded(frame.to_csv(index=False)).encode())
    write_bytes(target, buffer.getvalue())
