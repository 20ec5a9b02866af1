"""The queueing problem: identical nodes, rigid jobs that arrive over time, one objective."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields, plain
from optgap.models.performance import saved
from optgap.models.performance.saved import FittedParameters
from optgap.models.quantities import Believed
from optgap.models.queueing.arrays import floats
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.result import Evaluation, Objective, Violation
from optgap.models.shortage import WAITING, Asked, Limited
from optgap.models.shown import Shown
from optgap.models.times import LATEST_S

SCHEMA = "optgap.queueing.problem/1"
MOST_NODES = 1_000_000
MOST_GPUS_PER_NODE = 100_000
MOST_GPUS = 10_000_000
"""Most GPUs of a cluster, because tables have a row per number of free GPUs."""
STARVED_S = 1800.0
"""Wait after which a job counts as starved, s: the paper's 30 minutes."""
Goal = Literal["mean_wait", "mean_jct", "makespan"]
Placement = Literal["node", "count"]


@dataclass(frozen=True, slots=True)
class QueueingObjective:
    """Goal that is minimised.

    Parameters
    ----------
    goal: ``mean_wait``, mean of start − arrival; ``mean_jct``, mean of end − arrival; or
        ``makespan``, last end − first arrival; all in s.
    """

    goal: Goal = "mean_wait"

    @property
    def described(self) -> Objective:
        """Name, unit and sense of the objective."""
        return Objective(self.goal, "s")

    def validate(self, source: str) -> None:
        """Raise InputError for an unknown goal."""
        if self.goal not in get_args(Goal):
            expected = one_of(get_args(Goal))
            raise InputError(source, "field objective.goal", self.goal, expected)


@dataclass(frozen=True, eq=False, repr=False)
class QueueingProblem(Shown, Limited):
    """Queueing problem: jobs for a cluster of N nodes with g GPUs each.

    A job of n ≤ g GPUs holds them on one node. A larger job holds ⌊n/g⌋ whole nodes and the
    remainder on one more. With ``placement="count"`` only the number of GPUs matters.

    Parameters
    ----------
    nodes, gpus_per_node: number N of nodes, and GPUs g of each.
    jobs: the jobs, by arrival.
    placement: ``node`` or ``count``.
    objective: the goal.
    name: name of the problem in tables.
    origin: source of the data, in words.
    notices: changes and omissions of the reader, with counts.
    fits: the fitted models in it, with their use.
    """

    family: ClassVar[str] = "queueing"

    nodes: int
    gpus_per_node: int
    jobs: Jobs
    placement: Placement = "node"
    objective: QueueingObjective = field(default_factory=QueueingObjective)
    name: str = "queueing"
    origin: str = ""
    notices: tuple[str, ...] = ()
    fits: tuple[FittedParameters, ...] = ()

    @classmethod
    def of(
        cls,
        jobs: Jobs,
        *,
        nodes: int = 8,
        gpus_per_node: int = 8,
        placement: Placement = "node",
        goal: Goal = "mean_wait",
        name: str = "queueing",
        origin: str = "",
        notices: tuple[str, ...] = (),
        source: str = "problem",
    ) -> QueueingProblem:
        """Check the parts and make the problem.

        Raises
        ------
        InputError: with the field, for a cluster out of range, a job larger than the cluster,
            or an unknown placement or goal.
        """
        _whole(source, "nodes", nodes, MOST_NODES)
        _whole(source, "gpus_per_node", gpus_per_node, MOST_GPUS_PER_NODE)
        if placement not in get_args(Placement):
            expected = one_of(get_args(Placement))
            raise InputError(source, "field placement", placement, expected)
        objective = QueueingObjective(goal)
        objective.validate(source)
        most = nodes * gpus_per_node
        if most > MOST_GPUS:
            found = NoQuote(f"{most} GPUs")
            raise InputError(source, "field nodes", found, f"at most {MOST_GPUS} in all")
        too_large = np.flatnonzero(jobs.gpus > most)
        if too_large.size:
            k = int(too_large[0])
            where = f"job {jobs.names[k]}, gpus"
            more = f" ({too_large.size} such jobs)" if too_large.size > 1 else ""
            found = NoQuote(f"{jobs.gpus[k]} GPUs{more}")
            raise InputError(source, where, found, f"at most {most}, what the cluster has")
        return cls(nodes, gpus_per_node, jobs, placement, objective, name, origin, notices)

    # -- what methods and policies ask for ------------------------------------------------

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def gpus(self) -> int:
        """Number M of GPUs of the cluster."""
        return self.nodes * self.gpus_per_node

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and GPUs per node for placement: one large node for ``count``."""
        return (self.nodes, self.gpus_per_node) if self.placement == "node" else (1, self.gpus)

    @property
    def load(self) -> float:
        """Offered load ρ: GPU-s of all jobs over those of the cluster while jobs arrive."""
        span = float(self.jobs.arrival_s[-1] - self.jobs.arrival_s[0])
        work = float(self.jobs.gpu_seconds.sum())
        return work / (self.gpus * span) if span > 0 else math.inf

    @property
    def epoch_s(self) -> float:
        """First arrival, s."""
        return float(self.jobs.arrival_s[0])

    @property
    def latest_s(self) -> float:
        """Latest start that the referee accepts, s; no better schedule starts later."""
        jobs = self.jobs
        in_turn = float(jobs.arrival_s[-1]) - self.epoch_s + math.fsum(jobs.duration_s.tolist())
        return self.epoch_s + max(LATEST_S, in_turn)

    def moved(self, by_s: float) -> QueueingProblem:
        """Return the same problem with all times shifted by `by_s`."""
        arrival = floats(self.jobs.arrival_s + by_s)
        return replace(self, jobs=replace(self.jobs, arrival_s=arrival))

    def value(self, start_s: Any, chosen: Any = slice(None)) -> float:
        """Return the objective of start times, s, for the `chosen` jobs (default: all)."""
        jobs = self.jobs
        starts, arrivals = np.asarray(start_s)[chosen], jobs.arrival_s[chosen]
        if self.objective.goal == "mean_wait":
            return math.fsum((starts - arrivals).tolist()) / len(starts)
        ends = starts + jobs.duration_s[chosen]
        if self.objective.goal == "mean_jct":
            return math.fsum((ends - arrivals).tolist()) / len(starts)
        return float(ends.max() - jobs.arrival_s[0])

    def restrict(self, solution: QueueingSolution) -> QueueingProblem:
        """Return the problem with only the jobs that `solution` starts."""
        jobs = self.jobs.take(solution.started)
        return replace(self, jobs=jobs, name=f"{self.name} (jobs started)")

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all tasks or jobs, in order."""
        return self.jobs.names

    def subset(self, indices: Sequence[int]) -> QueueingProblem:
        """Return the problem with only these jobs."""
        jobs = self.jobs.take(np.array(indices, dtype=np.int64))
        return replace(self, jobs=jobs, name=f"{self.name} ({len(jobs)} jobs of it)")

    @property
    def always_possible(self) -> str:
        """Reason why the problem has a solution; "" if it may have none."""
        return "" if np.isfinite(self.jobs.patience_s).any() else WAITING

    def believed(self) -> Iterator[Believed]:
        """Yield run times."""
        jobs = self.jobs
        yield "duration_s", jobs.duration_s, lambda k: f"job {jobs.names[k]}, duration_s"

    def capacities(self, chosen: Sequence[int]) -> Iterator[Asked]:
        """Yield the GPUs at the moment at which the most of them must be running.

        A job certainly runs from its latest start (arrival + patience) until its earliest end.
        """
        jobs, some = self.jobs, np.array(chosen, dtype=np.int64)
        latest = (jobs.arrival_s + jobs.patience_s)[some]
        end = (jobs.arrival_s + jobs.duration_s)[some]
        moments = latest[np.isfinite(latest)].tolist()
        asked = [int(jobs.gpus[some][(latest <= t) & (end > t)].sum()) for t in moments]
        if asked:
            worst = int(np.argmax(asked))
            what = f"GPUs at {moments[worst]:,g} s, by when patience ends"
            yield what, asked[worst], self.gpus, "GPUs"

    # -- the referee ----------------------------------------------------------------------

    def check(self, solution: QueueingSolution) -> list[Violation]:
        """List every violated constraint; `serves_all` says whether every job starts."""
        from optgap.models.queueing.referee import check

        return check(self, solution)

    def evaluate(self, solution: QueueingSolution) -> Evaluation:
        """Recompute the objective and all metrics of a schedule."""
        from optgap.models.queueing.referee import evaluate

        return evaluate(self, solution)

    def serves_all(self, solution: QueueingSolution) -> bool:
        """Return whether every job starts."""
        return bool(np.isfinite(solution.start_s).all())

    # -- plain data -----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """Return one line with sizes, load and the objective."""
        cluster = f"{self.nodes} x {self.gpus_per_node} GPUs"
        if self.placement == "count":
            cluster += " (nodes ignored)"
        load = "all at once" if math.isinf(self.load) else f"load {self.load:.2f}"
        text = f"{len(self)} jobs on {cluster}, {load}; minimise {self.objective.goal} (s)"
        return "; ".join([text, *self.notices])

    def __str__(self) -> str:
        return f"{self.name}: {self.summary}"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.queueing.problem/1``; `null` patience is endless."""
        jobs = self.jobs
        columns: dict[str, Any] = {
            "job": list(jobs.names),
            **plain(jobs, "arrival_s", "duration_s", "gpus"),
            "type": list(jobs.kinds),
            "family": list(jobs.families),
            **plain(jobs, "iterations", *(() if jobs.exact_estimates else ("estimate_s",))),
        }
        if jobs.batches is not None:
            columns["batch"] = jobs.batches.tolist()
        if not jobs.patient:
            columns["patience_s"] = [None if math.isinf(p) else p for p in jobs.patience_s.tolist()]
        return {
            "schema": SCHEMA,
            **plain(self, "family", "name", "origin", "notices"),
            "objective": {"goal": self.objective.goal},
            **plain(self, "nodes", "gpus_per_node", "placement"),
            "jobs": columns,
            **saved.written(self.fits),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> QueueingProblem:
        """Read the JSON form; `job`, `type`, `family`, `iterations`, `estimate_s`, `patience_s`
        may be missing.

        Raises
        ------
        InputError: with the name of a field that is missing or wrong.
        """
        fields.schema(SCHEMA)
        columns = fields.object("jobs")

        def texts(name: str) -> list[str] | None:
            return columns.texts(name) if name in columns.document else None

        def numbers(name: str) -> list[float] | None:
            return columns.numbers(name) if name in columns.document else None

        jobs = Jobs.of(
            columns.numbers("arrival_s"),
            columns.numbers("duration_s"),
            columns.integers("gpus", minimum=1),
            names=texts("job"),
            kinds=texts("type"),
            families=texts("family"),
            iterations=numbers("iterations"),
            patience_s=_patience(columns),
            estimate_s=numbers("estimate_s"),
            batches=columns.integers("batch") if "batch" in columns.document else None,
            source=fields.source,
        )
        problem = cls.of(
            jobs,
            nodes=fields.integer("nodes", minimum=1),
            gpus_per_node=fields.integer("gpus_per_node", minimum=1),
            placement=fields.choice("placement", get_args(Placement), "node"),  # type: ignore[arg-type]  # checked
            goal=fields.object("objective").text("goal"),  # type: ignore[arg-type]  # checked
            name=fields.text("name", "queueing"),
            origin=fields.text("origin", ""),
            notices=tuple(fields.texts("notices")) if "notices" in fields.document else (),
            source=fields.source,
        )
        return replace(problem, fits=saved.restored(fields))


def _patience(columns: Fields) -> list[float] | float:
    if "patience_s" not in columns.document:
        return math.inf
    values = columns.array("patience_s")
    for k, value in enumerate(values):
        if value is not None and type(value) not in (int, float):
            raise columns.fail(f"patience_s[{k}]", value, "a positive number, or null")
    return [math.inf if value is None else float(value) for value in values]


def _whole(source: str, name: str, value: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InputError(source, f"field {name}", value, f"an integer from 1 to {most}")
