"""The co-scheduling problem: one node, jobs that may run on several GPU counts, idle power."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

from optgap.models.coscheduling.solution import CoschedulingSolution
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields, plain
from optgap.models.performance import saved
from optgap.models.performance.saved import FittedParameters
from optgap.models.quantities import Believed
from optgap.models.result import Evaluation, Objective, Violation
from optgap.models.shortage import WAITING
from optgap.models.shown import Shown
from optgap.models.times import LATEST_S, SHORTEST_S, shown

SCHEMA = "optgap.coscheduling.problem/1"
MOST_GPUS = 1024
MOST_JOBS = 100_000
Goal = Literal["energy", "makespan", "edp"]
UNITS = {"energy": "J", "makespan": "s", "edp": "J·s"}


@dataclass(frozen=True, slots=True)
class CoschedulingObjective:
    """Goal that is minimised.

    Parameters
    ----------
    goal: ``energy`` of all GPUs from the first release until the last job ends, J; ``makespan``,
        the time between the two, s; or ``edp``, the product of the two, J·s.
    """

    goal: Goal = "energy"

    @property
    def described(self) -> Objective:
        """Name, unit and sense of the objective."""
        return Objective(self.goal, UNITS[self.goal])

    def validate(self, source: str) -> None:
        """Raise InputError for an unknown goal."""
        if self.goal not in get_args(Goal):
            raise InputError(source, "field objective.goal", self.goal, one_of(get_args(Goal)))


@dataclass(frozen=True, slots=True)
class Mode:
    """Mode of an application: its run time and power on one GPU count.

    Parameters
    ----------
    gpu_count: g, GPUs held from start to end.
    runtime_s: T, s.
    power_per_gpu_w: mean power of one of the g GPUs, W.
    dram_util_sum: mean share of time that DRAM is active, summed over the g GPUs; None where it
        was not sampled.
    fitted_s: run time by a fit, s; None without a fit. Policies may decide on it, and the referee
        counts `runtime_s`.
    """

    gpu_count: int
    runtime_s: float
    power_per_gpu_w: float
    dram_util_sum: float | None = None
    fitted_s: float | None = None

    @property
    def power_w(self) -> float:
        """Power P of all g GPUs, W."""
        return self.gpu_count * self.power_per_gpu_w

    @property
    def energy_j(self) -> float:
        """Energy P·T, J."""
        return self.power_w * self.runtime_s


@dataclass(frozen=True, slots=True)
class Application:
    """Application with its modes by ascending GPU count; counts may be missing."""

    name: str
    modes: tuple[Mode, ...]

    def mode(self, gpu_count: int) -> Mode | None:
        """Return the mode on `gpu_count` GPUs, or None."""
        return next((mode for mode in self.modes if mode.gpu_count == gpu_count), None)

    @property
    def fastest(self) -> Mode:
        """Mode of least run time, of equals that of fewer GPUs."""
        return min(self.modes, key=lambda mode: (mode.runtime_s, mode.gpu_count))


@dataclass(frozen=True, eq=False, repr=False)
class CoschedulingProblem(Shown):
    """Co-scheduling problem: jobs run on one node, each once, without interruption.

    Parameters
    ----------
    gpus: M, identical GPUs.
    numa: K, NUMA domains, the most jobs that run at a time.
    idle_w: power of a GPU without a job, W.
    applications: the applications with their modes.
    jobs: index into `applications` per job, in queue order.
    objective: the goal.
    name, origin: its name in tables, and the source of its data ("synthetic" for synthetic data).
    releases: release time of each job, s; empty if all jobs wait at time 0.
    fits: the fitted models in it, with their use.
    """

    family: ClassVar[str] = "coscheduling"

    gpus: int
    numa: int
    idle_w: float
    applications: tuple[Application, ...]
    jobs: tuple[int, ...]
    objective: CoschedulingObjective = field(default_factory=CoschedulingObjective)
    name: str = "coscheduling"
    origin: str = ""
    releases: tuple[float, ...] = ()
    fits: tuple[FittedParameters, ...] = ()

    @classmethod
    def of(
        cls,
        applications: Sequence[Application],
        jobs: Sequence[int] | None = None,
        *,
        gpus: int = 4,
        numa: int = 2,
        idle_w: float = 70.0,
        goal: Goal = "energy",
        name: str = "coscheduling",
        origin: str = "",
        releases: Sequence[float] | None = None,
        source: str = "problem",
    ) -> CoschedulingProblem:
        """Check the parts and make the problem, with each application once unless `jobs` says more.

        Modes on more than M GPUs are left out.

        Raises
        ------
        InputError: for M or K below 1, an idle power that is none, an empty window, an
            application named twice or without a mode that fits, a GPU count given twice, a
            run time below `SHORTEST_S`, a power that is not positive, or release times that are
            none or not one per job.
        """
        _whole(source, "gpus", gpus, MOST_GPUS)
        _whole(source, "numa", numa, MOST_GPUS)
        if not 0 <= idle_w < math.inf:
            raise InputError(source, "field idle_w", idle_w, "a power in W of at least 0")
        queue = tuple(range(len(applications)) if jobs is None else jobs)
        if not 0 < len(queue) <= MOST_JOBS:
            found = NoQuote(f"{len(queue) or 'no'} jobs")
            raise InputError(source, "field jobs", found, f"1 to {MOST_JOBS} jobs")
        names = Counter(application.name for application in applications)
        for k, application in enumerate(applications):
            if not application.name or names[application.name] > 1:
                where = f"field applications[{k}].name"
                raise InputError(source, where, application.name, "a name of its own")
        kept = tuple(_fitting(app, gpus, source, k) for k, app in enumerate(applications))
        for k, a in enumerate(queue):
            if not 0 <= a < len(kept):
                raise InputError(source, f"field jobs[{k}]", a, "an application of the problem")
        objective = CoschedulingObjective(goal)
        objective.validate(source)
        times = _releases(releases, len(queue), source)
        return cls(gpus, numa, float(idle_w), kept, queue, objective, name, origin, times)

    # -- what methods and policies ask for ------------------------------------------------

    def __len__(self) -> int:
        return len(self.jobs)

    def application(self, job: int) -> Application:
        """Return the application of job number `job`."""
        return self.applications[self.jobs[job]]

    def mode(self, job: int, gpu_count: int) -> Mode:
        """Return the mode of job number `job` on `gpu_count` GPUs.

        Raises
        ------
        ValueError: if there is none.
        """
        mode = self.application(job).mode(gpu_count)
        if mode is None:
            raise ValueError(f"job {job} has no mode on {gpu_count} GPUs")
        return mode

    def release_s(self, job: int) -> float:
        """Return the release time of job number `job`, s."""
        return self.releases[job] if self.releases else 0.0

    @cached_property
    def epoch_s(self) -> float:
        """First release, s; makespan and energy count from here."""
        return min(self.releases, default=0.0)

    @property
    def latest_s(self) -> float:
        """Latest start that the referee accepts, s; no better schedule starts later."""
        modes = (self.application(job).modes for job in range(len(self)))
        longest = math.fsum(max(m.runtime_s for m in each) for each in modes)
        last = max(self.releases, default=0.0) - self.epoch_s
        return self.epoch_s + max(LATEST_S, last + longest)

    def delay_s(self, job: int) -> float:
        """Return the time from the first release to that of job number `job`, s."""
        return self.release_s(job) - self.epoch_s

    def moved(self, by_s: float) -> CoschedulingProblem:
        """Return the same problem with all times shifted by `by_s`."""
        times = tuple(self.release_s(job) + by_s for job in range(len(self)))
        return replace(self, releases=times if any(times) else ())

    @cached_property
    def job_names(self) -> tuple[str, ...]:
        """Names of the applications, with ``#1``, ``#2``, … if queued more than once."""
        total = Counter(self.jobs)
        seen: Counter[int] = Counter()
        names = []
        for a in self.jobs:
            seen[a] += 1
            name = self.applications[a].name
            names.append(name if total[a] == 1 else f"{name}#{seen[a]}")
        return tuple(names)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all tasks or jobs, in order."""
        return self.job_names

    def cost_j(self, mode: Mode) -> float:
        """Return the energy of a mode beyond that of idle GPUs, (P − g·P_idle)·T, J."""
        return (mode.power_w - self.idle_w * mode.gpu_count) * mode.runtime_s

    def value(self, energy_j: float, makespan_s: float) -> float:
        """Return the objective of an energy and a makespan."""
        goal = self.objective.goal
        if goal == "edp":
            return energy_j * makespan_s
        return energy_j if goal == "energy" else makespan_s

    def restrict(self, solution: CoschedulingSolution) -> CoschedulingProblem:
        """Return the problem with only the jobs that `solution` runs, in queue order."""
        if solution.measured:
            from optgap.models.coscheduling.measured import as_measured

            return as_measured(self, solution)
        served = {run.job for run in solution.runs}
        jobs = tuple(a for k, a in enumerate(self.jobs) if k in served)
        times = tuple(t for k, t in enumerate(self.releases) if k in served)
        return replace(self, jobs=jobs, releases=times, name=f"{self.name} (jobs run)")

    @property
    def always_possible(self) -> str:
        """Reason why every such problem has a solution."""
        return WAITING

    # -- the referee ----------------------------------------------------------------------

    def check(self, solution: CoschedulingSolution) -> list[Violation]:
        """List every violated constraint; `serves_all` says whether every job runs."""
        from optgap.models.coscheduling.referee import check

        return check(self, solution)

    def evaluate(self, solution: CoschedulingSolution) -> Evaluation:
        """Recompute the objective and all metrics of a schedule."""
        from optgap.models.coscheduling.referee import evaluate

        return evaluate(self, solution)

    def serves_all(self, solution: CoschedulingSolution) -> bool:
        """Return whether every job runs, and as its profile says unless times are measured."""
        return not solution.measured and {run.job for run in solution.runs} == set(range(len(self)))

    # -- plain data -----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """Return one line with sizes and the objective."""
        goal = self.objective.described
        return (
            f"{len(self)} jobs of {len(set(self.jobs))} applications on {self.gpus} GPUs in "
            f"{self.numa} NUMA domains, {self.idle_w:g} W idle{self._stream}; "
            f"minimise {goal.name} ({goal.unit})"
        )

    @property
    def _stream(self) -> str:
        return f", released until {shown(max(self.releases))} s" if self.releases else ""

    def __str__(self) -> str:
        return f"{self.name}: {self.summary}"

    def believed(self) -> Iterator[Believed]:
        """Yield idle power, and power and run time of every mode."""
        modes = [(app, mode) for app in self.applications for mode in app.modes]

        def of(name: str) -> Callable[[int], str]:
            return lambda k: (
                f"application {modes[k][0].name} on {modes[k][1].gpu_count} GPUs, {name}"
            )

        yield "idle_w", [self.idle_w], lambda _: "idle_w"
        yield "power_w", [mode.power_per_gpu_w for _, mode in modes], of("power_per_gpu_w")
        yield "runtime_s", [mode.runtime_s for _, mode in modes], of("runtime_s")

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.coscheduling.problem/1``."""
        return {
            "schema": SCHEMA,
            **plain(self, "family", "name", "origin"),
            "objective": {"goal": self.objective.goal},
            **plain(self, "gpus", "numa", "idle_w"),
            "applications": [
                {"name": app.name, "modes": [_mode_json(mode) for mode in app.modes]}
                for app in self.applications
            ],
            "jobs": list(self.jobs),
            **({"release_s": list(self.releases)} if self.releases else {}),
            **saved.written(self.fits),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> CoschedulingProblem:
        """Read the JSON form.

        Raises
        ------
        InputError: with the name of a field that is missing or wrong.
        """
        fields.schema(SCHEMA)
        applications = [
            Application(
                item.text("name"),
                tuple(
                    Mode(
                        mode.integer("gpu_count", minimum=1),
                        mode.number("runtime_s"),
                        mode.number("avg_power_per_gpu_w"),
                        *(
                            mode.number(name) if name in mode.document else None
                            for name in ("dram_util_sum", "fitted_s")
                        ),
                    )
                    for mode in item.objects("modes")
                ),
            )
            for item in fields.objects("applications")
        ]
        problem = cls.of(
            applications,
            fields.integers("jobs"),
            gpus=fields.integer("gpus", minimum=1),
            numa=fields.integer("numa", minimum=1),
            idle_w=fields.number("idle_w"),
            goal=fields.object("objective").text("goal"),  # type: ignore[arg-type]  # checked
            name=fields.text("name", "coscheduling"),
            origin=fields.text("origin", ""),
            releases=fields.numbers("release_s") if "release_s" in fields.document else None,
            source=fields.source,
        )
        return replace(problem, fits=saved.restored(fields))


def _mode_json(mode: Mode) -> dict[str, float | int]:
    known = {**plain(mode, "gpu_count", "runtime_s"), "avg_power_per_gpu_w": mode.power_per_gpu_w}
    maybe = plain(mode, "dram_util_sum", "fitted_s")
    return {**known, **{name: value for name, value in maybe.items() if value is not None}}


def _whole(source: str, name: str, value: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InputError(source, f"field {name}", value, f"an integer from 1 to {most}")


def _releases(times: Sequence[float] | None, jobs: int, source: str) -> tuple[float, ...]:
    """Return one time per job, or none at all if every job waits at time 0."""
    if times is None:
        return ()
    if len(times) != jobs:
        raise InputError(source, "field release_s", NoQuote(f"{len(times)} times"), f"{jobs}")
    for k, time in enumerate(times):
        if not 0 <= time < 1e12:
            raise InputError(source, f"field release_s[{k}]", time, "0 to below 1e12 s")
    return tuple(map(float, times)) if any(times) else ()


def _fitting(app: Application, gpus: int, source: str, k: int) -> Application:
    """Return the application with its modes in order, without those on too many GPUs."""
    where = f"field applications[{k}] ({app.name})"
    counts = [mode.gpu_count for mode in app.modes]
    for mode in app.modes:
        _whole(source, f"applications[{k}] ({app.name}), gpu_count", mode.gpu_count, MOST_GPUS)
        if counts.count(mode.gpu_count) > 1:
            raise InputError(source, where, NoQuote(f"gpu_count {mode.gpu_count} twice"), "it once")
        if not SHORTEST_S <= mode.runtime_s < 1e12:
            expected = f"a time of at least {SHORTEST_S:g} s"
            raise InputError(source, f"{where}, runtime_s", mode.runtime_s, expected)
        if not 0 < mode.power_per_gpu_w < 1e12:
            given = mode.power_per_gpu_w
            raise InputError(source, f"{where}, power", given, "above 0, below 1e12 W")
        if mode.dram_util_sum is not None and not 0 <= mode.dram_util_sum < math.inf:
            shown = mode.dram_util_sum
            raise InputError(source, f"{where}, dram_util_sum", shown, "a number of at least 0")
        if mode.fitted_s is not None and not 0 < mode.fitted_s < 1e12:
            raise InputError(source, f"{where}, fitted_s", mode.fitted_s, "a time in s above 0")
    kept = sorted((m for m in app.modes if m.gpu_count <= gpus), key=lambda m: m.gpu_count)
    if not kept:
        found = NoQuote(f"at least {min(counts)} GPUs needed" if counts else "no modes")
        raise InputError(source, where, found, f"a mode on at most {gpus} GPUs")
    return Application(app.name, tuple(kept))
