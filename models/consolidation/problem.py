"""The consolidation problem: tasks with memory and utilisation, servers with GPUs, power."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from optgap.models.consolidation import document, referee
from optgap.models.consolidation.cluster import MOST_GPUS, GpuKind, PowerLine, Server
from optgap.models.consolidation.solution import ConsolidationSolution
from optgap.models.consolidation.tasks import (
    BYTES,
    MICRO,
    IntArray,
    Task,
    memory_bytes,
    micro_percent,
)
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.performance import saved
from optgap.models.performance.saved import FittedParameters
from optgap.models.quantities import Believed
from optgap.models.result import Evaluation, Objective, Violation
from optgap.models.shortage import Asked, Limited
from optgap.models.shown import Shown
from optgap.models.times import SHORTEST_S, slack_s

MOST_TASKS = 100_000
MOST_CELLS = 50_000_000
"""Most samples of all series together, and most entries of a table of slots."""
Goal = Literal["power", "energy"]
Capacity = Literal["none", "mean", "slot", "peak"]
Gang = Literal["server", "free"]


@dataclass(frozen=True, slots=True)
class ConsolidationObjective:
    """Goal that is minimised: ``power`` of tasks that are all present, W (6), or ``energy``, J."""

    goal: Goal = "power"

    @property
    def described(self) -> Objective:
        """Name, unit and sense of the objective."""
        return Objective(self.goal, "W" if self.goal == "power" else "J")


@dataclass(frozen=True, slots=True)
class Rules:
    """Constraints on the tasks of one GPU, and the behaviour of tasks over time.

    Parameters
    ----------
    capacity: ``none`` as printed; ``mean``: Σ ū ≤ U; ``peak``: Σ max u ≤ U; ``slot``:
        Σ u[t] ≤ U for every sample t, all tasks at their first one.
    limit_percent: U.
    gang: ``server``: a task's GPUs are in one server; ``free``: anywhere, each once.
    contention: q of the slowdown s(U) = max(1, (U/100)^q) of tasks on one GPU (energy only).
    waiting: whether a task may start later than it is submitted (energy only).
    migration: whether a task may go on elsewhere, for nothing, once it runs (energy only).
    """

    capacity: Capacity = "none"
    limit_percent: float = 100.0
    gang: Gang = "server"
    contention: float = 1.0
    waiting: bool = True
    migration: bool = True

    def validate(self, source: str, goal: str) -> None:
        """Raise InputError for an unknown rule."""
        if goal not in get_args(Goal):
            raise InputError(source, "field objective.goal", goal, one_of(get_args(Goal)))
        for name, kinds in (("capacity", Capacity), ("gang", Gang)):
            if getattr(self, name) not in get_args(kinds):
                expected = one_of(get_args(kinds))
                raise InputError(source, f"field {name}", getattr(self, name), expected)
        if not 0 < self.limit_percent <= 1e6:
            raise InputError(source, "field limit_percent", self.limit_percent, "a percentage")
        if not 0 <= self.contention <= 10:
            raise InputError(source, "field contention", self.contention, "a number from 0 to 10")
        if goal == "energy" and self.capacity == "slot":
            why = "none, mean or peak: over time, residents are not aligned"
            raise InputError(source, "field capacity", "slot", why)


@dataclass(frozen=True, eq=False, repr=False)
class ConsolidationProblem(Shown, Limited):
    """Consolidation problem: tasks on servers, at one instant (power) or over time (energy).

    GPUs are numbered through the cluster, server after server.

    Parameters
    ----------
    kinds, servers, tasks: kinds of GPUs, servers of them, and tasks in order of submission.
    objective, rules: the goal and the constraints.
    period_s: time between two samples of a series, s of progress at f_max.
    name, origin: its name in tables, and the source of its data ("synthetic" for synthetic data).
    fits: the fitted models in it, with their use.
    """

    family: ClassVar[str] = "consolidation"

    kinds: tuple[GpuKind, ...]
    servers: tuple[Server, ...]
    tasks: tuple[Task, ...]
    objective: ConsolidationObjective = field(default_factory=ConsolidationObjective)
    rules: Rules = field(default_factory=Rules)
    period_s: float = 60.0
    name: str = "consolidation"
    origin: str = ""
    fits: tuple[FittedParameters, ...] = ()

    @classmethod
    def of(
        cls,
        kinds: Sequence[GpuKind],
        servers: Sequence[Server],
        tasks: Sequence[Task],
        *,
        goal: Goal = "power",
        rules: Rules | None = None,
        period_s: float = 60.0,
        name: str = "consolidation",
        origin: str = "",
        source: str = "problem",
    ) -> ConsolidationProblem:
        """Check the parts and make the problem; a duration of 0 is that of the series.

        Raises
        ------
        InputError: for an empty cluster or list of tasks, numbers out of range, a name given
            twice, or a task that no GPU or no server can hold.
        """
        rules = rules or Rules()
        rules.validate(source, goal)
        if not SHORTEST_S <= period_s < 1e9:
            expected = f"a time of at least {SHORTEST_S:g} s"
            raise InputError(source, "field period_s", period_s, expected)
        _check_cluster(kinds, servers, source)
        timed = [
            t if t.duration_s else replace(t, duration_s=period_s * t.util_percent.size)
            for t in tasks
        ]
        _check_tasks(timed, source)
        order = sorted(timed, key=lambda t: t.submit_s)  # stable: ties in the order given
        problem = cls(
            tuple(kinds),
            tuple(servers),
            tuple(order),
            ConsolidationObjective(goal),
            rules,
            float(period_s),
            name,
            origin,
        )
        problem._check_fit(source)
        return problem

    def _check_fit(self, source: str) -> None:
        if self.rules.capacity == "slot" and self.horizon * len(self) > MOST_CELLS:
            found = NoQuote(f"{self.horizon} samples of {len(self)} tasks")
            raise InputError(source, "field capacity", found, f"at most {MOST_CELLS} together")
        spare = self.limit_micro - self.rows.max(axis=0, initial=0)
        free = self.rules.gang == "free"
        largest = int(self.gpu_memory.max())
        for k, task in enumerate(self.tasks):
            where = f"field tasks[{k}] ({task.name})"
            if self.memory[k] > largest:
                most = max(kind.memory_gb for kind in self.kinds_used)
                raise InputError(source, f"{where}, memory_gb", task.memory_gb, f"at most {most:g}")
            if spare[k] < 0:
                found = NoQuote(f"a {self.rules.capacity} above {self.rules.limit_percent:g} %")
                raise InputError(source, f"{where}, util_percent", found, "one that fits a GPU")
            room = np.bincount(
                self.gpu_server, self.gpu_memory >= self.memory[k], minlength=len(self.servers)
            )
            most_gpus = int(room.sum() if free else room.max())
            if task.gpus > most_gpus:
                place = "the cluster" if free else "one server"
                expected = (
                    f"at most {most_gpus}, as {place} has that can hold {task.memory_gb:g} GB"
                )
                raise InputError(source, f"{where}, gpus", task.gpus, expected)

    # -- the cluster, GPU by GPU ----------------------------------------------------------

    def __len__(self) -> int:
        return len(self.tasks)

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Server and index in the server of each GPU."""
        return tuple((i, j) for i, s in enumerate(self.servers) for j in range(len(s.gpus)))

    @cached_property
    def numbers(self) -> dict[tuple[int, int], int]:
        """Number of the GPU at each (server, index): the inverse of `places`."""
        return {place: g for g, place in enumerate(self.places)}

    @cached_property
    def gpu_server(self) -> IntArray:
        """Server of each GPU, shape (G,)."""
        return np.array([i for i, _ in self.places], dtype=np.int64)

    @cached_property
    def gpu_kind(self) -> IntArray:
        """Kind of each GPU, shape (G,)."""
        return np.array([k for s in self.servers for k in s.gpus], dtype=np.int64)

    @cached_property
    def gpu_memory(self) -> IntArray:
        """Memory c of each GPU, shape (G,), bytes."""
        each = np.array([memory_bytes(kind.memory_gb) for kind in self.kinds], dtype=np.int64)
        return each[self.gpu_kind]

    @property
    def kinds_used(self) -> list[GpuKind]:
        """Kinds of GPUs that some server has."""
        return [self.kinds[k] for k in sorted(set(self.gpu_kind.tolist()))]

    # -- the tasks, as arrays -------------------------------------------------------------

    @cached_property
    def memory(self) -> IntArray:
        """Memory d of each task on each of its GPUs, shape (L,), bytes."""
        return np.array([memory_bytes(task.memory_gb) for task in self.tasks], dtype=np.int64)

    @cached_property
    def width(self) -> IntArray:
        """Number v of GPUs of each task, shape (L,)."""
        return np.array([task.gpus for task in self.tasks], dtype=np.int64)

    @cached_property
    def mean_micro(self) -> IntArray:
        """Mean utilisation ū of each task, shape (L,), millionths of a percent."""
        return np.array(
            [round(float(micro_percent(t.util_percent).mean())) for t in self.tasks], dtype=np.int64
        )

    @property
    def limit_micro(self) -> int:
        """Limit U on utilisation, millionths of a percent."""
        return round(self.rules.limit_percent * MICRO)

    @cached_property
    def horizon(self) -> int:
        """Number of samples of the longest series."""
        return max(task.util_percent.size for task in self.tasks)

    @cached_property
    def rows(self) -> IntArray:
        """Share of U that each task takes in each capacity row, shape (R, L), 1e-6 percent."""
        capacity = self.rules.capacity
        if capacity == "none":
            return np.zeros((0, len(self)), dtype=np.int64)
        if capacity == "mean":
            return self.mean_micro[None, :]
        if capacity == "peak":
            peaks = [int(micro_percent(t.util_percent).max()) for t in self.tasks]
            return np.array(peaks, dtype=np.int64)[None, :]
        return np.stack([self._slots(task) for task in self.tasks], axis=1)

    def _slots(self, task: Task) -> IntArray:
        """Return u[t] up to the horizon; the last sample holds until the task ends."""
        series = micro_percent(task.util_percent)
        values = np.zeros(self.horizon, dtype=np.int64)
        lasting = task.duration_s - slack_s(task.duration_s)
        lasting = min(self.horizon, math.ceil(lasting / self.period_s))
        values[: series.size] = series
        values[series.size :] = series[-1]
        values[lasting:] = 0
        return values

    @cached_property
    def floors_mhz(self) -> tuple[tuple[float, ...], ...]:
        """Lowest frequency that keeps κ (14'), by kind and task, MHz."""
        return tuple(
            tuple(kind.floor_mhz(t.kappa, t.beta) for t in self.tasks) for kind in self.kinds
        )

    def line(self, task: int, kind: int) -> PowerLine:
        """Return the power line of a GPU of this kind for this task."""
        return self.tasks[task].power or self.kinds[kind].power

    def watts(self, kind: int, residents: Sequence[int], mhz: float) -> float:
        """Return the power of an active GPU: the highest line of its tasks at its frequency, W."""
        return max(self.line(ell, kind).watts(mhz) for ell in residents)

    # -- time -----------------------------------------------------------------------------

    @property
    def epoch_s(self) -> float:
        """First submission, s; 0 if all tasks are present at once."""
        timed = self.objective.goal == "energy"
        return min(task.submit_s for task in self.tasks) if timed else 0.0

    def moved(self, by_s: float) -> ConsolidationProblem:
        """Return the same problem with all times shifted by `by_s`."""
        tasks = tuple(replace(task, submit_s=task.submit_s + by_s) for task in self.tasks)
        return replace(self, tasks=tasks)

    # -- parts ----------------------------------------------------------------------------

    def restrict(self, solution: ConsolidationSolution) -> ConsolidationProblem:
        """Return the problem with only the tasks that `solution` runs.

        Raises
        ------
        InputError: if it runs none.
        """
        served = sorted({a.task for a in solution.assignments})
        if not served:
            raise InputError("solution", "", NoQuote("no task that runs"), "at least one")
        tasks = tuple(self.tasks[k] for k in served)
        return replace(self, tasks=tasks, name=f"{self.name} (tasks run)")

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all tasks or jobs, in order."""
        return tuple(task.name for task in self.tasks)

    def subset(self, indices: Sequence[int]) -> ConsolidationProblem:
        """Return the problem with only these tasks, in the given order."""
        return replace(
            self,
            tasks=tuple(self.tasks[k] for k in indices),
            name=f"{self.name} ({len(indices)} tasks of it)",
        )

    def believed(self) -> Iterator[Believed]:
        """Yield powers, clocks, memory, durations and utilisation."""
        kinds, tasks = self.kinds, self.tasks

        def gpu(name: str) -> Callable[[int], str]:
            return lambda k: f"GPU {kinds[k].name}, {name}"

        def task(name: str) -> Callable[[int], str]:
            return lambda k: f"task {tasks[k].name}, {name}"

        top, none = kinds[0].f_max_mhz, float("nan")
        own = [none if t.power is None else t.power.watts(top) for t in tasks]
        most = [float(t.util_percent.max(initial=0.0)) for t in tasks]
        yield (
            "power_w",
            [k.power.watts(k.f_max_mhz) for k in kinds],
            gpu("power at its highest clock"),
        )
        yield "power_w", own, task("power at the highest clock")
        yield "frequency_mhz", [kind.f_min_mhz for kind in kinds], gpu("f_min_mhz")
        yield "frequency_mhz", [kind.f_max_mhz for kind in kinds], gpu("f_max_mhz")
        yield "gpu_memory_gb", [kind.memory_gb for kind in kinds], gpu("memory_gb")
        static = [server.static_w for server in self.servers]
        yield "server_static_w", static, lambda k: f"server {k}, static_w"
        yield "duration_s", [t.duration_s for t in tasks], task("duration_s")
        yield "util_percent", most, task("util_percent (the largest)")

    def capacities(self, chosen: Sequence[int]) -> Iterator[Asked]:
        """Yield the capacities of all GPUs; over time tasks need not be present together."""
        if self.objective.goal == "energy":
            return
        tasks, gpus, rules = np.array(chosen, dtype=np.int64), self.gpu_memory, self.rules
        width, memory, rows = self.width[tasks], self.memory[tasks], self.rows[:, tasks]
        asked = float((width * memory).sum()) / BYTES
        yield "memory of GPUs", asked, float(gpus.sum()) / BYTES, "GB"
        if rules.capacity != "none":
            most = float((rows * width).sum(axis=1).max()) / MICRO
            room = len(gpus) * rules.limit_percent
            yield f"utilisation of GPUs ({rules.capacity})", most, room, "%"
        # two tasks that take more than half of a GPU, in one and the same row, never share one
        over = 2 * rows > self.limit_micro
        full = over[int(np.argmax((over * width).sum(axis=1)))] if len(over) else np.zeros(0, int)
        halves = {"memory": 2 * memory > gpus.max(), "utilisation": full}
        for what, large in halves.items():
            alone = float(width[large].sum())
            yield f"GPUs for tasks with more than half the {what}", alone, len(gpus), "GPUs"

    # -- the referee ----------------------------------------------------------------------

    def check(self, solution: ConsolidationSolution) -> list[Violation]:
        """List every violated constraint; `serves_all` says whether every task runs."""
        if self.objective.goal == "power":
            return referee.check(self, solution)
        from optgap.models.consolidation import timeline  # whose kernels take time to import

        return timeline.check(self, solution)

    def evaluate(self, solution: ConsolidationSolution) -> Evaluation:
        """Recompute the objective and all metrics of a solution."""
        if self.objective.goal == "power":
            return referee.evaluate(self, solution)
        from optgap.models.consolidation import timeline  # whose kernels take time to import

        return timeline.evaluate(self, solution)

    def serves_all(self, solution: ConsolidationSolution) -> bool:
        """Return whether every task runs."""
        return {a.task for a in solution.assignments} == set(range(len(self)))

    # -- plain data -----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """Return one line with sizes, rules and the objective."""
        goal = self.objective.described
        return (
            f"{len(self)} tasks ({int(self.width.sum())} GPU shares) on {len(self.places)} GPUs in "
            f"{len(self.servers)} servers, capacity {self.rules.capacity}, gang {self.rules.gang}; "
            f"minimise {goal.name} ({goal.unit})"
        )

    def __str__(self) -> str:
        return f"{self.name}: {self.summary}"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.consolidation.problem/1``."""
        return document.written(self)

    @classmethod
    def from_json(cls, fields: Fields) -> ConsolidationProblem:
        """Read the JSON form.

        Raises
        ------
        InputError: with the name of a field that is missing or wrong.
        """
        given = document.arguments(fields)
        rules = Rules(**fields.like(Rules(), *document.RULES, "migration"))
        return replace(cls.of(**given, rules=rules), fits=saved.restored(fields))


def _check_cluster(kinds: Sequence[GpuKind], servers: Sequence[Server], source: str) -> None:
    for k, kind in enumerate(kinds):
        kind.validate(source, f"field kinds[{k}]")
    if not any(server.gpus for server in servers):
        raise InputError(source, "field servers", NoQuote("no GPUs"), "at least one")
    if sum(len(server.gpus) for server in servers) > MOST_GPUS:
        found = NoQuote(f"more than {MOST_GPUS} GPUs")
        raise InputError(source, "field servers", found, f"at most {MOST_GPUS}")
    for i, server in enumerate(servers):
        where = f"field servers[{i}]"
        if not 0 <= server.static_w < 1e6:
            raise InputError(source, f"{where}.static_w", server.static_w, "0 to below 1e6 W")
        if not server.gpus:
            raise InputError(source, f"{where}.gpus", NoQuote("no GPUs"), "at least one")
        for kind_number in server.gpus:
            if not 0 <= kind_number < len(kinds):
                raise InputError(source, f"{where}.gpus", kind_number, f"0 to {len(kinds) - 1}")


def _check_tasks(tasks: Sequence[Task], source: str) -> None:
    if not 1 <= len(tasks) <= MOST_TASKS:
        found = NoQuote(f"{len(tasks)} tasks" if tasks else "no tasks")
        raise InputError(source, "field tasks", found, f"1 to {MOST_TASKS}")
    if sum(task.util_percent.size for task in tasks) > MOST_CELLS:
        raise InputError(source, "field tasks", NoQuote("longer series"), f"{MOST_CELLS} samples")
    seen: set[str] = set()
    for k, task in enumerate(tasks):
        if task.name in seen:
            found = NoQuote(f"{task.name} twice")
            raise InputError(source, f"field tasks[{k}].name", found, "each name once")
        seen.add(task.name)
        task.validate(source, f"field tasks[{k}] ({task.name})")
