"""Run what is missing of a sweep, keep every row as it comes, and write the table."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from optgap.comparing.comparison import ACCEPTED
from optgap.comparing.fairness import in_common
from optgap.extras import require
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import finite, write_bytes
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.models.tables import guarded
from optgap.render import Answer, Table, percent
from optgap.sweeping.cells import COLUMNS, Row
from optgap.sweeping.engines import Engine
from optgap.sweeping.spec import Spec

if TYPE_CHECKING:
    import pandas as pd

try:
    import fcntl
except ImportError:  # Windows: two sweeps into one file are the user's own look-out
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Done(Answer):
    """A sweep as far as it has come.

    Parameters
    ----------
    path: the table.
    rows: those of the spec that are done, in the order of its cells.
    total: how many comparisons the spec has.
    skipped: how many were done before.
    ran: how many ran now.
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
        """One line per run, metrics as columns of their own."""
        import pandas as pd

        lines = [{**row, **json.loads(row["metrics"] or "{}")} for row in self.rows]
        return pd.DataFrame(lines).drop(columns="metrics", errors="ignore")

    def to_json(self) -> dict[str, Any]:
        """JSON form, ``optgap.sweep/1``: the counts, not the rows."""
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

    def table(self) -> Table:
        """Per family and method: runs, failures, mean and worst gap over the runs that all have."""
        head = ("family", "method", "runs", "failed", "mean gap to bound", "worst", "to best known")
        lines = []
        for family, groups in self._groups().items():
            gaps, best = (_common(groups, key)[0] for key in ("gap_to_bound", "gap_to_best"))
            for method, rows in groups.items():
                bad, own, known = sum(map(went_wrong, rows)), gaps[method], best[method]
                means = [percent(sum(own) / len(own)), percent(max(own))] if own else ["", ""]
                means.append(percent(sum(known) / len(known)) if known else "")
                lines.append((family, method, str(len(rows)), str(bad or ""), *means))
        return head, [*lines], (2, 3, 4, 5, 6)

    def notes(self) -> list[str]:
        """What means are over, where that is not every run."""
        return [
            f"{family}: {note}"
            for family, groups in self._groups().items()
            for note in _common(groups, "gap_to_bound")[1]
        ]

    def _groups(self) -> dict[str, dict[str, list[Row]]]:
        """Rows by family and method."""
        groups: dict[str, dict[str, list[Row]]] = {}
        for row in self.rows:
            if row["method"]:
                groups.setdefault(row["family"], {}).setdefault(row["method"], []).append(row)
        return groups


def _common(
    groups: Mapping[str, Sequence[Row]], column: str
) -> tuple[dict[str, list[float]], list[str]]:
    """The values that means are over, and what to say of them.

    A gap to a bound for an accepted part is another matter; and `auto` makes a method for some
    instances alone, which is no reason to leave out the others' runs.
    """
    total = len({row["key"] for rows in groups.values() for row in rows})
    values, few, part, told = {}, {}, [], []
    for method, rows in groups.items():
        fair = [row for row in rows if row["bound_scope"] != ACCEPTED]
        if len(fair) < len(rows):
            part.append(f"{len(rows) - len(fair)} of {method}")
        found = {row["key"]: row[column] for row in fair if row[column] is not None}
        made = len({row["key"] for row in rows})
        if made == total:
            values[method] = found
        else:
            few[method] = list(found.values())
            told += [f"{method}: over its own {made} of {total} runs"] * bool(found)
    used, differ = in_common(values)
    left = f"left out of all means, as they accepted only a part: {', '.join(part)}"
    return {**used, **few}, [*filter(None, [differ]), *told, *([left] if part else [])]


def went_wrong(row: Row) -> bool:
    """Whether a row is one of a run that failed."""
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
    path: the table, as it ends: CSV, or Parquet.

    Raises
    ------
    InputError: for a table with another ending, or that no sweep has written; another sweep that
        is writing there; a missing package; or a scheduler that does not answer.
    """
    limits, engine, target = limits or Limits(), engine or Engine(), Path(path)
    require_table(target)
    with _journal(target) as (before, add):
        known = {key: rows for key, rows in before.items() if not any(map(went_wrong, rows))}
        todo = [cell for key, cell in spec.cells.items() if key not in known]
        skipped, ran = len(spec.cells) - len(todo), 0
        limits.progress(f"{skipped} of {len(spec.cells)} comparisons", None, None)
        for cell, rows in engine.run(todo, lambda: limits.stop is not None):
            known[cell.key] = [finite(row) for row in rows]
            add(known[cell.key])
            ran += 1
            limits.progress(f"{skipped + ran} of {len(spec.cells)} comparisons", None, None)
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


@contextmanager
def _journal(
    target: Path,
) -> Iterator[tuple[dict[str, list[Row]], Callable[[list[Row]], None]]]:
    """The rows that are there by key, later ones first, and a function that appends some."""
    path = _journal_of(target)
    try:
        file: IO[bytes] = open(path, "a+b")  # noqa: SIM115  # closed below
    except OSError as error:
        found = NoQuote(error.strerror or error)
        raise InputError(str(path), "", found, "a place that can be written to") from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                found = NoQuote("another sweep that is writing there")
                raise InputError(str(path), "", found, "one at a time") from None
        file.seek(0)
        *lines, rest = file.read().split(b"\n")
        file.truncate(file.tell() - len(rest))  # cut off in the middle: as if never begun

        def add(rows: list[Row]) -> None:
            file.write(json.dumps(rows, separators=(",", ":")).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

        yield {rows[0]["key"]: rows for rows in map(_read, lines) if rows}, add


def _read(line: bytes) -> list[Row]:
    """The rows in a line; none where a machine that went down has left something else."""
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
