"""Findings of an audit, for people, scripts and notebooks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from optgap.contract import Problem
from optgap.models.figures import delivered
from optgap.models.placement.migrations import MigrationProblem, Move
from optgap.models.result import Evaluation, Termination, Violation, relative_gap
from optgap.models.shown import counted
from optgap.render import Answer, Row, Table, number, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from optgap.comparing.comparison import Comparison
    from optgap.solvers.placement.migrations import MigrationCurve

SCHEMA, MOVES = "optgap.audit/1", "optgap.moves/1"
SAID = (
    "kind", "source", "family", "sentence", "best_known", "known_by", "best_bound", "bound_by",
    "gap_to_bound", "gap",
)  # fmt: skip
"""Attributes that the JSON form has under their own names."""
SHOWN = 12
"""Number of violations, and of warnings, that a person is shown."""


@dataclass(frozen=True)
class Covered:
    """Number of records of the file that the audit is about.

    Parameters
    ----------
    records: pods, jobs or rows in the file.
    used: those that are in the problem.
    reasons: number of the others, by the reason why they are left out.
    """

    records: int
    used: int
    reasons: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        share = percent(self.used / self.records, 1) if self.records else "none"
        text = f"{self.used:,} of {self.records:,} ({share})"
        left = [counted(count, reason) for reason, count in self.reasons.items() if count]
        return text + ("; left out: " + ", ".join(left) if left else "")


@dataclass(frozen=True, repr=False)
class MoveList(Answer):
    """Migrations in an order in which each step fits.

    Parameters
    ----------
    migration: the problem whose tasks migrate.
    moves: the steps.
    power_w: the power before the first and after each step, W.
    """

    migration: MigrationProblem
    moves: tuple[Move, ...]
    power_w: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.moves)

    def __repr__(self) -> str:
        return f"<MoveList of {len(self)} moves>"

    def _rows(self) -> list[dict[str, Any]]:
        problem = self.migration.problem
        tasks, nodes = problem.tasks.names, problem.cluster.names
        return [
            {
                "task": tasks[move.task],
                "from_node": nodes[move.from_node],
                "to_node": nodes[move.to_node],
                "gpu_index": [
                    g for g in range(move.gpu_mask.bit_length()) if move.gpu_mask >> g & 1
                ],
                "power_w": power,
            }
            for move, power in zip(self.moves, self.power_w[1:], strict=True)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.moves/1``, with pods as ``namespace/name``."""
        return {"schema": MOVES, "moves": self._rows()}

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each step: task, from_node, to_node, gpu_index, and power_w after it."""
        import pandas as pd

        columns = ["task", "from_node", "to_node", "gpu_index", "power_w"]
        return pd.DataFrame(self._rows(), columns=columns)

    def table(self) -> Table:
        """Return a line for each step."""
        rows: list[Row] = [
            (str(k), *where, ", ".join(map(str, gpus)), number(watts))
            for k, (*where, gpus, watts) in enumerate((row.values() for row in self._rows()), 1)
        ]
        return ("step", "pod", "from", "to", "GPUs", "power (W)"), rows, (0, 5)

    def __str__(self) -> str:
        return super().__str__() if self.moves else "no moves"


@dataclass(frozen=True)
class Audit(Answer):
    """Gap of a cluster or a log to the proven bound.

    Parameters
    ----------
    kind: ``kubernetes``, ``slurm``, ``swf`` or the family.
    source: the file.
    problem: the problem that was read.
    solution: the schedule that really ran, as a solution of `problem`.
    now: the referee's numbers for `solution`.
    violations: constraints that `solution` breaks.
    best_known, known_by: objective of the best solution found, and who found it.
    best_bound, bound_by: the best proven bound, and who proved it.
    covered: number of records of the file that the audit is about.
    sentence: the result in words.
    facts: names and values, for people.
    warnings: lines about odd values in the file.
    termination: whether a limit or an interrupt ended the work.
    curve: for placements the saving by number of moves.
    asked: the number of moves that a plan was asked for, if one was.
    comparison: for logs every policy beside the schedule that ran.

    Examples
    --------
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> log = optgap.run(problem, "marble").solution
    >>> found = optgap.audit("coscheduling", problem, log, policies="marble")
    >>> round(found.gap_to_bound, 3), list(found.to_frame().index)
    (0.281, ['oracle', 'logged', 'marble'])
    """

    kind: str
    source: str
    problem: Problem
    solution: Any
    now: Evaluation
    violations: tuple[Violation, ...]
    best_known: float | None
    known_by: str
    best_bound: float | None
    bound_by: str
    covered: Covered
    sentence: str
    facts: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    termination: Termination = Termination.COMPLETED
    curve: MigrationCurve | None = field(default=None, repr=False)
    comparison: Comparison | None = field(default=None, repr=False)
    asked: int | None = None

    @property
    def family(self) -> str:
        """Family of the problem."""
        return self.problem.family

    @property
    def gap_to_bound(self) -> float | None:
        """Gap |now − bound| / |bound|; None for a log whose schedule breaks a constraint."""
        if self.comparison is not None and self.violations:
            return None
        return relative_gap(self.now.objective, self.best_bound)

    @property
    def gap(self) -> float | None:
        """Gap between the best known solution and the bound: the part that is not proven."""
        return relative_gap(self.best_known, self.best_bound)

    # -- moves ----------------------------------------------------------------------------

    def moves(self, most: int) -> MoveList:
        """Return the best list of at most `most` moves that the audit found.

        Raises
        ------
        ValueError: when the audit is not one of a placement.
        """
        if self.curve is None:
            raise ValueError(f"nothing moves in an audit of {self.family}")
        point = self.curve.at(most)
        return MoveList(self.curve.migration, point.moves, point.path_w)

    def _curve_rows(self) -> list[dict[str, float | int]]:
        points = self.curve.points if self.curve else ()
        return [{"moves": p.most, "power_w": p.power_w, "bound_w": p.bound_w} for p in points]

    # -- forms ----------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.audit/1``, with the plan as ``optgap.moves/1``."""
        goal = self.problem.objective.described
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "problem": {"name": self.problem.name, "summary": self.problem.summary},
            "unit": goal.unit,
            "sense": goal.sense,
            **{name: getattr(self, name) for name in SAID},
            "now": {
                "objective": self.now.objective,
                "metrics": dict(self.now.metrics),
                "violations": [asdict(violation) for violation in self.violations],
            },
            "covered": asdict(self.covered),
            "moves_curve": self._curve_rows(),
            "facts": [{"name": name, "value": value} for name, value in self.facts],
            "warnings": list(self.warnings),
            "termination": str(self.termination),
        }
        if self.asked is not None and self.curve is not None:
            document["moves"] = self.moves(self.asked).to_json()
        if self.comparison is not None:
            document["comparison"] = self.comparison.to_json()
        return document

    def to_frame(self) -> pd.DataFrame:
        """Return the curve of moves of a placement, or every policy's row beside ``logged``."""
        import pandas as pd

        if self.comparison is not None:
            return self.comparison.to_frame()
        columns = ["moves", "power_w", "bound_w"]
        return pd.DataFrame(self._curve_rows(), columns=columns)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the saving by number of moves, or every policy's gap beside ``logged``.

        Parameters
        ----------
        path
            A file that ends in .png, .svg or .pdf. Default: none is written.
        """
        from optgap.plotting import figures
        from optgap.plotting.gaps import gaps_figure

        if self.comparison is not None and self.best_bound is not None:
            return delivered(gaps_figure(self.comparison), path)
        figure = figures.new_figure(8.0, 4.4)
        ax, rows = figure.subplots(), self._curve_rows()
        moves, *watts = zip(*(row.values() for row in rows), strict=True) if rows else ((), (), ())
        labels = "saved by the moves found", "no plan saves more (proven)"
        for values, style, label in zip(watts, ("-o", "--"), labels, strict=True):
            saved = [100 * (1 - watt / (watts[0][0] or 1.0)) for watt in values]
            ax.plot(moves, saved, style, markersize=4, label=label)
        ax.set_xscale("symlog", linthresh=1)
        ax.set_xticks(moves, [f"{most:,}" for most in moves], rotation=45)
        ax.set_ylim(0, max(1.0, ax.get_ylim()[1]))  # what cannot be saved is not blown up
        if not rows:  # a log without a bound: the title says why
            ax.set_axis_off()
        ax.set_xlabel("migrations, at most")
        ax.set_ylabel("power saved (%)")
        figures.plain(ax, "both")
        figures.titled(ax, self.sentence)
        figures.legend_below(ax, 1)
        return delivered(figure, path)

    def head(self) -> list[str]:
        """Return the sentence, the records that it is about, cut bounds, and the facts."""
        return [
            f"{self.problem.name}: {self.problem.summary}",
            self.sentence,
            f"records covered: {self.covered}",
            *(self.comparison.announced() if self.comparison else ()),
            *(f"{name}: {value}" for name, value in self.facts),
        ]

    def table(self) -> Table:
        """Return the saving by number of moves, or every policy beside the schedule that ran."""
        if self.comparison is not None:
            return self.comparison.table()
        now = self.now.objective
        rows: list[Row] = []
        for row in self._curve_rows():
            moves, power, bound = row.values()
            saved, most = ((now - watts) / now if now else None for watts in (power, bound))
            values = (number(power), percent(saved), number(bound), percent(most))
            rows.append((f"{moves:,}", *values, percent(relative_gap(power, bound))))
        header = ("moves", "power (W)", "saved", "bound (W)", "at most saved", "not proven")
        return header, rows, (0, 1, 2, 3, 4, 5)

    def notes(self) -> list[str]:
        """Return the first violations and warnings."""
        lines = list(self.comparison.notes()) if self.comparison else []
        for word, what in (("violated", self.violations), ("note", self.warnings)):
            lines += [f"{word}: {one}" for one in what[:SHOWN]]
            if len(what) > SHOWN:
                lines.append(f"… and {len(what) - SHOWN} more such lines")
        return lines

    def __repr__(self) -> str:
        return f"<Audit of {self.kind} {self.source}: {self.sentence}>"
