"""Run what is missing of a sweep, keep every row as it comes, and write the table."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.comparing.comparison import ACCEPTED
from optgap.comparing.fairness import in_common
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import finite
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.render import Answer, Table, percent
from optgap.sweeping.engines import Engine
from optgap.sweeping.formats import read_rows, require_format, write_rows
from optgap.sweeping.journal import Journal
from optgap.sweeping.spec import Spec
from optgap.sweeping.table import Row, with_gaps

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Done(Answer):
    """A sweep as far as it has come.

    Parameters
    ----------
    path: the table.
    rows: those of the spec that are done, in the order of its cells.
    total: how many cells the spec has.
    skipped: how many were done before.
    ran: how many ran now.
    stale: how many rows of other cells, or of other code, were moved aside, to `stale_path`.
    contradictions: bounds that solutions disprove: one of the two is wrong.
    """

    path: Path
    rows: tuple[Row, ...]
    total: int
    skipped: int
    ran: int
    stale: int = 0
    contradictions: tuple[str, ...] = ()
    termination: Termination = Termination.COMPLETED

    @property
    def aside(self) -> Path:
        """Where rows went that no cell of the spec stands for any more."""
        return stale_path(self.path)

    @property
    def failed(self) -> list[Row]:
        """Rows of runs that went wrong (a method that does not treat an objective did not)."""
        return [row for row in self.rows if row["failure"] in ("input", "fault")]

    def to_frame(self) -> pd.DataFrame:
        """One line per run, metrics as columns of their own."""
        import json

        import pandas as pd

        lines = [
            {
                **{k: v for k, v in row.items() if k != "metrics"},
                **json.loads(row["metrics"] or "{}"),
            }
            for row in self.rows
        ]
        return pd.DataFrame(lines)

    def to_json(self) -> dict[str, Any]:
        """JSON form, ``optgap.sweep/1``: the counts, not the rows."""
        return {
            "schema": "optgap.sweep/1",
            "path": str(self.path),
            "total": self.total,
            "done": len(self.rows),
            "skipped": self.skipped,
            "ran": self.ran,
            "failed": len(self.failed),
            "stale": self.stale,
            "contradictions": list(self.contradictions),
            "termination": str(self.termination),
        }

    def table(self) -> Table:
        """Per family and method: runs, failures, mean and worst gap over the runs that all have."""
        head = ("family", "method", "runs", "failed", "mean gap to bound", "worst", "to best known")
        return head, [line for part in self._parts() for line in part.lines()], (2, 3, 4, 5, 6)

    def notes(self) -> list[str]:
        """What means are over, where that is not every run."""
        return [f"{part.family}: {note}" for part in self._parts() for note in part.notes()]

    def _parts(self) -> list[_Part]:
        families = dict.fromkeys(row["family"] for row in self.rows)
        return [_Part(name, [r for r in self.rows if r["family"] == name]) for name in families]


class _Part:
    """The rows of one family, by method."""

    def __init__(self, family: str, rows: Sequence[Row]) -> None:
        self.family = family
        self.groups: dict[str, list[Row]] = {}
        for row in rows:
            self.groups.setdefault(row["method"], []).append(row)
        made = {method: {_run(row) for row in group} for method, group in self.groups.items()}
        self.runs = len(set().union(*made.values()))
        # `auto` makes a method for some instances alone: no reason to leave out the others' runs
        self.everywhere = {method for method, runs in made.items() if len(runs) == self.runs}
        self.gaps, self.differ = self._means("gap_to_bound")
        self.best, _ = self._means("gap_to_best")

    def _means(self, column: str) -> tuple[dict[str, list[float]], str]:
        """The values that means are over, and a line where these are not all."""
        values = self._values(column)
        if not self.everywhere:
            return in_common(values)
        used, note = in_common({method: values[method] for method in self.everywhere})
        own = {method: list(found.values()) for method, found in values.items()}
        return {**own, **used}, note

    def _values(self, column: str) -> dict[str, dict[Hashable, float]]:
        """By method and run; a gap against a bound for an accepted part is another matter."""
        return {
            method: {
                _run(row): row[column]
                for row in group
                if row[column] is not None and row.get("bound_scope") != ACCEPTED
            }
            for method, group in self.groups.items()
        }

    def lines(self) -> list[tuple[str, ...]]:
        return [(self.family, method, *self._line(method)) for method in self.groups]

    def _line(self, method: str) -> tuple[str, ...]:
        group, gaps, best = self.groups[method], self.gaps[method], self.best[method]
        bad = sum(row["failure"] in ("input", "fault") for row in group)
        return (
            str(len(group)),
            str(bad) if bad else "",
            percent(sum(gaps) / len(gaps)) if gaps else "",
            percent(max(gaps)) if gaps else "",
            percent(sum(best) / len(best)) if best else "",
        )

    def notes(self) -> list[str]:
        partial = {
            method: sum(row.get("bound_scope") == ACCEPTED for row in group)
            for method, group in self.groups.items()
        }
        told = ", ".join(f"{count} of {method}" for method, count in partial.items() if count)
        left = f"left out of all means, as they accepted only a part: {told}" if told else ""
        few = [
            f"{method}: over its own {len(group)} of {self.runs} runs"
            for method, group in self.groups.items()
            if self.everywhere and method not in self.everywhere and self.gaps[method]
        ]
        return [note for note in (self.differ, *few, left) if note]


def _run(row: Row) -> Hashable:
    """Which run a row is of, the same for all methods."""
    return row["instance"], row["instance_seed"], row["seed"]


def run(
    spec: Spec,
    path: str | os.PathLike[str],
    *,
    engine: Engine | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    limits: Limits | None = None,
) -> Done:
    """Run the cells of a sweep, and write one row for each to a table.

    Rows go to a journal beside the file as they come, so that nothing is lost with this
    process; at the end, and when `limits` stop the sweep, the table is written.

    Parameters
    ----------
    path: the table: Parquet, CSV or JSON, as it ends.
    resume: go on with the table and the journal that are there: cells that they have are not
        run again. Without it, neither may be there.
    retry_failed: run those again whose row is an error.

    Raises
    ------
    InputError: for a table with another ending, one that is there without `resume`, one that
        cannot be read, another sweep that is writing there, a missing package, or a scheduler
        that does not answer.
    """
    limits, engine = limits or Limits(), engine or Engine()
    engine.require()
    target = Path(path)
    require_format(target)  # not to be missed after hours of runs
    aside = target.with_name(target.name + ".journal")
    for there in (target, aside):
        if there.exists() and not resume:
            found = NoQuote("results that are there")
            raise InputError(str(there), "", found, "--resume to go on, or another file")
    _require_folder(target)
    journal = Journal(aside)
    try:
        before = _collected(target, journal)
        known = {key: before[key] for key in spec.cells if key in before}
        if retry_failed:
            known = {k: row for k, row in known.items() if row["failure"] not in ("input", "fault")}
        stale = [row for key, row in before.items() if key not in spec.cells]
        ran = _work(spec, engine, known, journal, limits)
        done = _written(spec, target, {**before, **known, **ran}, stale)
        journal.remove()
    finally:
        journal.close()
    rows, contradictions = done
    left = len(spec.cells) - len(known) - len(ran)
    stop = (limits.stop or Termination.INTERRUPTED) if left else Termination.COMPLETED
    return Done(
        target,
        tuple(rows),
        len(spec.cells),
        len(known),
        len(ran),
        len(stale),
        tuple(contradictions),
        stop,
    )


def stale_path(path: str | os.PathLike[str]) -> Path:
    """Where rows go that no cell of the spec stands for any more."""
    return Path(path).with_suffix(f".stale{Path(path).suffix}")


def _require_folder(target: Path) -> None:
    if target.is_dir():
        raise InputError(str(target), "", NoQuote("a directory"), "a file to write to")
    if not target.parent.is_dir():
        expected = "a place that can be written to"
        raise InputError(str(target), "", NoQuote("no such folder"), expected)


def _collected(target: Path, journal: Journal) -> dict[str, Row]:
    """All rows by key; a row in the journal is later than one in the table."""
    rows = read_rows(target) if target.exists() else []
    return {row["key"]: row for row in [*rows, *journal.rows()]}


def _work(
    spec: Spec, engine: Engine, known: Mapping[str, Row], journal: Journal, limits: Limits
) -> dict[str, Row]:
    """Run the cells that are not `known`; every row is in the journal before it counts."""
    todo = [cell for key, cell in spec.cells.items() if key not in known]
    ran: dict[str, Row] = {}
    if not todo:
        return ran
    began = time.monotonic()
    bad = 0
    _tell(limits, len(known), len(spec.cells), 0, bad, began)
    for row in engine.run(todo, lambda: limits.stop is not None):
        line: Row = finite(row)
        journal.add(line)
        ran[line["key"]] = line
        bad += line["failure"] in ("input", "fault")
        _tell(limits, len(known), len(spec.cells), len(ran), bad, began)
    return ran


def _tell(limits: Limits, known: int, total: int, ran: int, bad: int, began: float) -> None:
    text = f"{known + ran} of {total} runs"
    if bad:
        text += f", {bad} failed"
    if ran:
        rest = (time.monotonic() - began) / ran * (total - known - ran)
        text += f", {_clock(rest)} left"
    limits.progress(text, None, None)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _written(
    spec: Spec, target: Path, rows: Mapping[str, Row], stale: Sequence[Row]
) -> tuple[list[Row], list[str]]:
    """Write the table in the order of the cells, and what belongs to none of them aside."""
    mine = [rows[key] for key in spec.cells if key in rows]
    filled, contradictions = with_gaps(mine)
    if stale:
        aside = stale_path(target)
        before = read_rows(aside) if aside.exists() else []
        merged = {row["key"]: row for row in [*before, *stale]}
        write_rows(merged.values(), aside)
    write_rows(filled, target)
    return filled, contradictions
