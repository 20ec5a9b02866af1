"""The placement problem: a cluster, arriving tasks, and what to optimise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, plain
from optgap.models.performance import saved
from optgap.models.performance.saved import FittedParameters
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.cluster import Cluster
from optgap.models.placement.objective import PlacementObjective
from optgap.models.placement.over_time import OverTime
from optgap.models.placement.power import PowerModel
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.tasks import TargetWorkload, Tasks
from optgap.models.quantities import Believed
from optgap.models.result import Evaluation, Violation
from optgap.models.shortage import Asked, Limited
from optgap.models.shown import Shown
from optgap.models.times import span

SCHEMA = "optgap.placement.problem/1"


MOST_SHOWN = 3
"""Types of nodes in one line about a task that none takes."""


@dataclass(frozen=True, eq=False, repr=False)
class PlacementProblem(Shown, Limited):
    """Placement problem: tasks arrive at a cluster one by one, and stay or leave after a while.

    Over time, a task runs from its submission s until s + `lasting_s` on one node and its GPUs,
    without interruption or migration, or is turned away. P(t) is the power of the cluster, P₀ that
    of the empty cluster, F the fragmentation likewise, and H the horizon in s, over which the
    integrals are.

    - ``energy`` is H·P₀ + ∫ (P(t) − P₀) dt.
    - ``mean_fragmentation`` is F₀ + ∫ (F(t) − F₀) dt / H.
    - ``mean_weighted`` is the weighted sum of the means of F and P.
    - ``mean_accepted_gpu`` is the sum of GPU demand times `lasting_s` of the running tasks, over H.

    Parameters
    ----------
    cluster: the nodes.
    tasks: the arrivals, in order; over time, by `submit_s`.
    workload: the target workload M that fragmentation is measured against.
    ranks: (N,) the nodes' ranks, a permutation of 0..N−1; the lowest wins ties.
    power: the power model.
    objective: the goal and its parameters.
    name: name of the problem in tables.
    origin: source of the data, in words ("synthetic" for synthetic data).
    fits: the fitted models in it, with their use.
    over_time: the horizon where tasks leave, None where they stay.
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
    over_time: OverTime | None = None

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
        *,
        over_time: OverTime | None = None,
    ) -> PlacementProblem:
        """Check the parts against one another, and make the problem.

        `workload` defaults to that of the tasks themselves, `ranks` to the order of the nodes,
        `over_time` to `OverTime()` where tasks have times. Over time the goal is ``energy`` unless
        an objective is given, and the tasks are sorted by submission, equal ones as they stand.

        Raises
        ------
        InputError: for ranks that are no permutation, a GPU model without power figures, a
            `gpu_spec` that names an unknown model, a task that asks for more of a resource
            than any node has, or a goal over time without times and the reverse.
        """
        if over_time is None and tasks.timed:
            over_time = OverTime()
        if over_time is not None:
            over_time = over_time.settled(tasks, source)
            if (np.diff(tasks.submit_s) < 0).any():
                tasks = tasks.take(np.argsort(tasks.submit_s, kind="stable").tolist())
            objective = objective or PlacementObjective("energy")
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
            over_time=over_time,
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
        self.objective.validate(source, self.over_time is not None)
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

    # -- time -----------------------------------------------------------------------------

    @property
    def epoch_s(self) -> float:
        """Begin of the horizon, s; 0 if tasks do not leave."""
        return self.over_time.begin_s if self.over_time else 0.0

    def moved(self, by_s: float) -> PlacementProblem:
        """Return the problem with all times shifted by `by_s` (without times: itself)."""
        if self.over_time is None:
            return self
        tasks = self.tasks
        later = replace(tasks, submit_s=tasks.submit_s + by_s)
        return replace(self, tasks=later, over_time=self.over_time.moved(by_s))

    @cached_property
    def lasting_s(self) -> FloatArray:
        """Run time of each task once started, shape (T,), s; see `OverTime.lasting_s`."""
        if self.over_time is None:
            return self.tasks.duration_s
        return self.over_time.lasting_s(self.tasks)

    @property
    def per_second(self) -> float:
        """Factor from an integral over time (W·s or milli-GPU·s) to the objective."""
        if self.over_time is None or self.objective.goal == "energy":
            return 1.0
        return 1.0 / self.over_time.horizon_s

    # -- what methods and policies ask for ------------------------------------------------

    @cached_property
    def never_fits(self) -> tuple[int, ...]:
        """Arrivals that no empty node can host."""
        taken = [
            any(node.takes(task) for node in self.cluster.types) for task in self.tasks.classes
        ]
        return tuple(np.flatnonzero(~np.array(taken)[self.tasks.class_of]).tolist())

    def restrict(self, solution: PlacementSolution) -> PlacementProblem:
        """Return the problem with only the tasks that `solution` places, in the same order."""
        chosen = np.flatnonzero(solution.node >= 0)
        return replace(
            self, tasks=self.tasks.take(chosen.tolist()), name=f"{self.name} (accepted tasks)"
        )

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the tasks, in order of arrival."""
        return self.tasks.names

    def subset(self, indices: Sequence[int]) -> PlacementProblem:
        """Return the problem with only these tasks, in the given order."""
        tasks = self.tasks.take(indices)
        return replace(self, tasks=tasks, name=f"{self.name} ({len(tasks)} tasks of it)")

    def believed(self) -> Iterator[Believed]:
        """Yield processors and memory of nodes, and the power of the GPU models that they have."""
        cluster, idle, full = self.cluster, self.power.gpu_idle_w, self.power.gpu_full_w
        # a node without GPUs may name a model without power figures
        models = sorted({m for m in cluster.models if m in full and m in idle})
        yield "node_cpu_milli", cluster.cpu_milli, lambda k: f"node {cluster.names[k]}, cpu_milli"
        yield (
            "node_memory_mib",
            cluster.memory_mib,
            lambda k: f"node {cluster.names[k]}, memory_mib",
        )
        yield "idle_w", [idle[m] for m in models], lambda k: f"{models[k]}, idle_w"
        yield "full_w", [full[m] for m in models], lambda k: f"{models[k]}, full_w"

    def why_not(self, chosen: Sequence[int]) -> str:
        """Return the resource that these tasks lack; for one task, why no node takes it."""
        if len(chosen) != 1 or chosen[0] not in self.never_fits:
            return super().why_not(chosen)
        task, types = self.tasks.task_class(chosen[0]), list(self.cluster.types)
        more = [f"and {len(types) - MOST_SHOWN} more types of nodes"] * (len(types) > MOST_SHOWN)
        return "; ".join([*(f"{t}: {t.lacks(task)}" for t in types[:MOST_SHOWN]), *more])

    def capacities(self, chosen: Sequence[int]) -> Iterator[Asked]:
        """Yield the capacities of all nodes; tasks that leave need not be present together."""
        if self.over_time is not None:
            return
        cluster, tasks = self.cluster, [self.tasks.task_class(k) for k in chosen]
        cpu, memory = (int(np.sum(x)) for x in (cluster.cpu_milli, cluster.memory_mib))
        yield "CPU", sum(task.cpu_milli for task in tasks), cpu, "milli-CPU"
        yield "memory", sum(task.memory_mib for task in tasks), memory, "MiB"
        for models in sorted({task.allowed_models for task in tasks if task.num_gpu}):
            # every task that may go nowhere but to these models; no models stand for all
            inside = [
                task
                for task in tasks
                if task.num_gpu and (not models or set() < set(task.allowed_models) <= set(models))
            ]
            both = zip(cluster.gpus.tolist(), cluster.models, strict=True)
            there = sum(gpus for gpus, model in both if not models or model in models)
            asked = sum(task.demand_milli for task in inside) / 1000
            yield "GPUs" + (f" of {'|'.join(models)}" if models else ""), asked, there, "GPUs"

    # -- the referee ----------------------------------------------------------------------

    def check(self, solution: PlacementSolution) -> list[Violation]:
        """List every violated constraint (Eq. 6); a rejected task violates none."""
        if self.over_time is not None:
            from optgap.models.placement.timed_referee import check as timed_check

            return timed_check(self, solution)
        from optgap.models.placement.referee import check

        return check(self, solution)

    def evaluate(self, solution: PlacementSolution) -> Evaluation:
        """Recompute the objective and all metrics of a solution."""
        if self.over_time is not None:
            from optgap.models.placement.timed_referee import evaluate as timed_evaluate

            return timed_evaluate(self, solution)
        from optgap.models.placement.referee import evaluate

        return evaluate(self, solution)

    def serves_all(self, solution: PlacementSolution) -> bool:
        """Return whether every task has a place."""
        return bool((solution.node >= 0).all())

    # -- plain data -----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """Return one line with the numbers of nodes, GPUs and tasks, and the objective."""
        goal = self.objective.described
        capacity = max(1, self.cluster.gpu_capacity_milli)
        share, when = int(self.tasks.demand_milli.sum()) / capacity, ""
        if self.over_time is not None:
            share = float(self.tasks.demand_milli @ self.lasting_s)
            share /= capacity * self.over_time.horizon_s
            when = f" over {span(self.over_time.horizon_s)}"
        return (
            f"{len(self.cluster)} nodes, {int(self.cluster.gpus.sum())} GPUs, "
            f"{len(self.tasks)} tasks asking for {100 * share:.1f} % of the GPUs{when}; "
            f"{goal.sense}imise {goal.name} ({goal.unit})"
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.summary}"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.placement.problem/1``."""
        return {
            "schema": SCHEMA,
            **plain(self, "family", "name", "origin"),
            "objective": plain(self.objective, "goal", "alpha", "watts_per_gpu"),
            "power": self.power.to_json(),
            "nodes": self.cluster.to_json(),
            "ranks": self.ranks.tolist(),
            "workload": self.workload.to_json(),
            "tasks": self.tasks.to_json(),
            **({"over_time": self.over_time.to_json()} if self.over_time else {}),
            **saved.written(self.fits),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> PlacementProblem:
        """Read the JSON form.

        Raises
        ------
        InputError: with the name of a field that is missing or wrong.
        """
        fields.schema(SCHEMA)
        goal = fields.object("objective")
        objective = PlacementObjective(
            goal.text("goal"),  # type: ignore[arg-type]  # checked by validate
            goal.number("alpha", maximum=1.0, default=0.5),
            goal.number("watts_per_gpu", default=120.0),
        )
        timed = "over_time" in fields.document
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
            over_time=OverTime.from_json(fields.object("over_time")) if timed else None,
        )
        return replace(problem, fits=saved.restored(fields))
