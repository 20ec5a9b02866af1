"""The placement problem: a cluster, arriving tasks, and what to optimise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.performance import saved
from optgap.models.performance.saved import FittedParameters
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.cluster import Cluster, NodeType
from optgap.models.placement.power import PowerModel
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.tasks import TargetWorkload, TaskClass, Tasks
from optgap.models.result import Evaluation, Objective, Violation
from optgap.models.shown import Shown

SCHEMA = "optgap.placement.problem/1"
Goal = Literal["power", "fragmentation", "weighted", "accepted_gpu"]


@dataclass(frozen=True, slots=True)
class PlacementObjective:
    """What to optimise.

    Parameters
    ----------
    goal:
        ``power``: minimise P_datacenter (Eq. 3), W.
        ``fragmentation``: minimise F_datacenter (Eq. 4), milli-GPU.
        ``weighted``: minimise α·P + (1−α)·w·F (Eq. 5), W, with F in GPUs.
        ``accepted_gpu``: maximise the GPU demand of the tasks placed, milli-GPU.
        The first three compare solutions that place the *same* tasks; exact methods and
        bounds take them to mean: place all of them.
    alpha: α of Eq. 5, from 0 to 1.
    watts_per_gpu: w, what one fragmented GPU counts, in W. Eq. 5 adds watts and GPUs without
        saying so; the default, 120 W, is what activating one more GPU of the cluster's most
        common model (G2, 150 − 30 W) costs. ``watts_per_gpu=1`` is the formula as printed.
    """

    goal: Goal = "power"
    alpha: float = 0.5
    watts_per_gpu: float = 120.0

    @property
    def described(self) -> Objective:
        """Name, unit and sense."""
        if self.goal == "power":
            return Objective("power", "W")
        if self.goal == "fragmentation":
            return Objective("fragmentation", "milli-GPU")
        if self.goal == "weighted":
            return Objective("weighted", "W")
        return Objective("accepted_gpu", "milli-GPU", "max")

    @property
    def weights(self) -> tuple[float, float]:
        """(per W of power, per milli-GPU of fragmentation) in the objective's own unit."""
        if self.goal == "power":
            return 1.0, 0.0
        if self.goal == "fragmentation":
            return 0.0, 1.0
        if self.goal == "weighted":
            return self.alpha, (1 - self.alpha) * self.watts_per_gpu / 1000
        return 0.0, 0.0

    def validate(self, source: str) -> None:
        """Raise InputError when a field is out of range."""
        if self.goal not in get_args(Goal):
            raise InputError(source, "field objective.goal", self.goal, one_of(get_args(Goal)))
        if not 0 <= self.alpha <= 1:
            raise InputError(source, "field objective.alpha", self.alpha, "a number from 0 to 1")
        if not 0 <= self.watts_per_gpu < float("inf"):
            raise InputError(
                source, "field objective.watts_per_gpu", self.watts_per_gpu, "a power in W"
            )


@dataclass(frozen=True, eq=False, repr=False)
class PlacementProblem(Shown):
    """Tasks arriving one after another at a cluster that they never leave.

    Parameters
    ----------
    cluster: the nodes.
    tasks: the arrivals, in order.
    workload: the target workload M that fragmentation is measured against.
    ranks: (N,) the nodes' ranks, a permutation of 0..N−1; the lowest wins ties.
    power: the power model.
    objective: what to optimise.
    name: how tables call it.
    origin: where it comes from, in words ("synthetic" where it is).
    fits: the fitted models in it, with what became of each.
    """

    family: ClassVar[str] = "placement"

    cluster: Cluster
    tasks: Tasks
    workload: TargetWorkload
    ranks: IntArray
    power: PowerModel = field(default_factory=PowerModel)
    objective: PlacementObjective = field(default_factory=PlacementObjective)
    name: str = "placement"
    origin: str = ""
    fits: tuple[FittedParameters, ...] = ()

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        tasks: Tasks,
        workload: TargetWorkload | None = None,
        ranks: Sequence[int] | IntArray | None = None,
        power: PowerModel | None = None,
        objective: PlacementObjective | None = None,
        name: str = "placement",
        origin: str = "",
        source: str = "problem",
    ) -> PlacementProblem:
        """Check everything that spans parts, and make the problem.

        `workload` defaults to that of the tasks themselves, `ranks` to the order of the nodes.

        Raises
        ------
        InputError: for ranks that are no permutation, a GPU model without power figures, a
            `gpu_spec` that names an unknown model, or a task that asks for more of a resource
            than any node has.
        """
        order = np.arange(len(cluster)) if ranks is None else np.asarray(ranks)
        problem = cls(
            cluster,
            tasks,
            TargetWorkload.from_tasks(tasks) if workload is None else workload,
            order.astype(np.int64),
            power or PowerModel(),
            objective or PlacementObjective(),
            name,
            origin,
        )
        problem.ranks.flags.writeable = False
        problem._validate(source)
        return problem

    def _validate(self, source: str) -> None:
        if sorted(self.ranks.tolist()) != list(range(len(self.cluster))):
            raise InputError(
                source,
                "field ranks",
                NoQuote(f"{len(self.ranks)} numbers"),
                f"every rank from 0 to {len(self.cluster) - 1} once",
            )
        self.power.validate(source)
        self.objective.validate(source)
        for k, model in enumerate(self.cluster.models):
            if self.cluster.gpus[k] and model not in self.power.gpu_full_w:
                raise InputError(
                    source, f"field nodes.model[{k}]", model, "a model with power figures"
                )
        known = set(self.power.gpu_full_w) | set(self.cluster.models)
        largest = {
            "cpu_milli": int(self.cluster.cpu_milli.max()),
            "memory_mib": int(self.cluster.memory_mib.max()),
            "num_gpu": int(self.cluster.gpus.max()),
        }
        for c, task_class in enumerate(self.tasks.classes):
            k = int(np.flatnonzero(self.tasks.class_of == c)[0])
            for model in task_class.allowed_models:
                if model not in known:
                    raise InputError(
                        source,
                        f"field tasks.gpu_spec[{k}]",
                        task_class.gpu_spec,
                        "GPU models among " + ", ".join(sorted(known - {""})),
                    )
            for name, most in largest.items():
                if getattr(task_class, name) > most:
                    raise InputError(
                        source,
                        f"field tasks.{name}[{k}]",
                        getattr(task_class, name),
                        f"at most {most}, the most that any node has",
                    )

    # -- what methods and policies ask for ------------------------------------------------

    def fits_empty(self, task: TaskClass, node: NodeType) -> bool:
        """Whether one such task fits an empty node of this type."""
        return (
            task.cpu_milli <= node.cpu_milli
            and task.memory_mib <= node.memory_mib
            and task.num_gpu <= node.gpus
            and (task.num_gpu == 0 or task.accepts(node.model))
        )

    @cached_property
    def never_fits(self) -> tuple[int, ...]:
        """Arrivals that no node could take even when empty."""
        lost = {
            c
            for c, task in enumerate(self.tasks.classes)
            if not any(self.fits_empty(task, node) for node in self.cluster.types)
        }
        return tuple(k for k, c in enumerate(self.tasks.class_of) if int(c) in lost)

    def restrict(self, solution: PlacementSolution) -> PlacementProblem:
        """The same problem with only the tasks that `solution` places, in the same order."""
        chosen = np.flatnonzero(solution.node >= 0)
        return replace(
            self, tasks=self.tasks.take(chosen.tolist()), name=f"{self.name} (accepted tasks)"
        )

    @property
    def subjects(self) -> tuple[str, ...]:
        """What is to be served, by name: the tasks in order of arrival."""
        return tuple(self.tasks.names)

    def subset(self, indices: Sequence[int]) -> PlacementProblem:
        """The same problem with only these tasks, in the order given."""
        tasks = self.tasks.take(list(indices))
        return replace(self, tasks=tasks, name=f"{self.name} ({len(tasks)} tasks of it)")

    def why_not(self, tasks: Sequence[int]) -> str:
        """What is short for these tasks together, in one line; "" where no capacity alone is."""
        from optgap.models.placement.shortage import why_not

        return why_not(self, tasks)

    def prefix(self, load: float) -> PlacementProblem:
        """The same problem cut after the arrival with which GPU demand reaches `load`.

        `load` is a share of the cluster's GPU capacity.

        Raises
        ------
        ValueError: when the arrivals never reach it.
        """
        arrived = np.cumsum(self.tasks.demand_milli)
        wanted = load * self.cluster.gpu_capacity_milli
        reached = np.flatnonzero(arrived >= wanted - 1e-6)
        if not reached.size:
            share = arrived[-1] / self.cluster.gpu_capacity_milli
            raise ValueError(f"the arrivals end at load {share:.4f}, before {load:g}")
        stop = int(reached[0]) + 1
        return replace(self, tasks=self.tasks.take(range(stop)), name=f"{self.name} @ {load:g}")

    # -- the referee ----------------------------------------------------------------------

    def check(self, solution: PlacementSolution) -> list[Violation]:
        """Every broken constraint (Eq. 6); an unplaced task is none, see `Evaluation`."""
        from optgap.models.placement.referee import check

        return check(self, solution)

    def evaluate(self, solution: PlacementSolution) -> Evaluation:
        """Objective and metrics of a solution, recomputed from scratch."""
        from optgap.models.placement.referee import evaluate

        return evaluate(self, solution)

    def serves_all(self, solution: PlacementSolution) -> bool:
        """Whether every task has been placed."""
        return bool((solution.node >= 0).all())

    # -- plain data -----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """One line: how many nodes, GPUs and tasks, and the objective."""
        goal = self.objective.described
        share = int(self.tasks.demand_milli.sum()) / max(1, self.cluster.gpu_capacity_milli)
        return (
            f"{len(self.cluster)} nodes, {int(self.cluster.gpus.sum())} GPUs, "
            f"{len(self.tasks)} tasks asking for {100 * share:.1f} % of the GPUs; "
            f"{goal.sense}imise {goal.name} ({goal.unit})"
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.summary}"

    def to_json(self) -> dict[str, Any]:
        """JSON form, ``optgap.placement.problem/1``."""
        return {
            "schema": SCHEMA,
            "family": self.family,
            "name": self.name,
            "origin": self.origin,
            "objective": {
                "goal": self.objective.goal,
                "alpha": self.objective.alpha,
                "watts_per_gpu": self.objective.watts_per_gpu,
            },
            "power": self.power.to_json(),
            "nodes": self.cluster.to_json(),
            "ranks": self.ranks.tolist(),
            "workload": self.workload.to_json(),
            "tasks": self.tasks.to_json(),
            **saved.written(self.fits),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> PlacementProblem:
        """Read the JSON form.

        Raises
        ------
        InputError: naming the field that is missing or not what it should be.
        """
        fields.schema(SCHEMA)
        goal = fields.object("objective")
        objective = PlacementObjective(
            goal.text("goal"),  # type: ignore[arg-type]  # checked by validate
            goal.number("alpha", maximum=1.0, default=0.5),
            goal.number("watts_per_gpu", default=120.0),
        )
        problem = cls.of(
            Cluster.from_json(fields.object("nodes")),
            Tasks.from_json(fields.object("tasks")),
            TargetWorkload.from_json(fields.object("workload")),
            np.array(fields.integers("ranks"), dtype=np.int64),
            PowerModel.from_json(fields.object("power")),
            objective,
            fields.text("name", "placement"),
            fields.text("origin", ""),
            fields.source,
        )
        return replace(problem, fits=saved.restored(fields))
