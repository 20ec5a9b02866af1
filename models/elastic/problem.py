"""The elastic problem: jobs that may run on several GPU counts and clocks, under a power limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from optgap.models.elastic import referee
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.checks import (
    LARGEST,
    POWER_SLACK,
    check_cluster,
    check_lengths,
    check_limit,
    class_of,
    clocks_of,
    jobs_of,
)
from optgap.models.elastic.document import arguments, document
from optgap.models.elastic.jobs import JobClass, Jobs, Overhead
from optgap.models.elastic.solution import ElasticSolution
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.performance import saved
from optgap.models.performance.saved import FittedParameters
from optgap.models.quantities import Believed
from optgap.models.result import Evaluation, Objective, Violation
from optgap.models.shortage import WAITING
from optgap.models.shown import Shown

Cap = Literal["power", "none"]


@dataclass(frozen=True, slots=True)
class ElasticObjective:
    """Minimise the mean job completion time, s: completion − submission (Eq. 18)."""

    @property
    def described(self) -> Objective:
        """Name, unit and sense of the objective."""
        return Objective("mean_jct", "s")


@dataclass(frozen=True, eq=False, repr=False)
class ElasticProblem(Shown):
    """Elastic problem: jobs arrive over time at a cluster of equal nodes with a power limit.

    Parameters
    ----------
    gpus, gpus_per_node: number G of GPUs, and the GPUs of each node, a power of two.
    frequencies_mhz: frequencies of the GPUs, shape (F,), ascending, MHz.
    classes: classes of jobs, with tables of time and power.
    jobs: the jobs, with submission, class and iterations.
    eta: η; the power limit is η·G·P_max.
    p_max_w: P_max, mean power of a busy GPU at the highest clock, W.
    idle_w: power of a GPU that computes nothing on a node that is on, W.
    cap: ``power``: the limit holds at any time (Eq. 19); ``none``: there is no limit.
    overhead: time that a start or restart costs.
    name, origin, notes: its name in tables, the source of its data, changes made by the reader.
    fits: the fitted models in it, with their use.
    """

    family: ClassVar[str] = "elastic"

    gpus: int
    gpus_per_node: int
    frequencies_mhz: Floats
    classes: tuple[JobClass, ...]
    jobs: Jobs
    eta: float
    p_max_w: float
    idle_w: float
    cap: Cap = "power"
    overhead: Overhead = field(default_factory=Overhead)
    name: str = "elastic"
    origin: str = ""
    notes: tuple[str, ...] = ()
    fits: tuple[FittedParameters, ...] = ()

    @classmethod
    def of(
        cls,
        classes: Sequence[JobClass],
        jobs: Jobs,
        frequencies_mhz: Sequence[float],
        *,
        gpus: int,
        gpus_per_node: int = 8,
        eta: float = 0.6,
        p_max_w: float | None = None,
        idle_w: float | None = None,
        cap: Cap = "power",
        overhead: Overhead | None = None,
        name: str = "elastic",
        origin: str = "",
        notes: Sequence[str] = (),
        source: str = "problem",
    ) -> ElasticProblem:
        """Check the parts and make the problem; jobs are sorted by submission, with a note.

        Without `p_max_w` it is the mean of the classes on one GPU (their fewest) at the highest
        clock; without `idle_w` a tenth of that.

        Raises
        ------
        InputError: with the field of a wrong value; for a time or
            power that is not positive the class, the GPU count and the clock; for a job that may
            be done in less than `SHORTEST_S`; and for a limit under which some job can never run.
        """
        check_cluster(source, gpus, gpus_per_node)
        clocks = clocks_of(source, frequencies_mhz)
        if not isinstance(eta, (int, float)) or not 0 <= eta <= 1:
            raise InputError(source, "field eta", eta, "a number from 0 to 1")
        if cap not in get_args(Cap):
            raise InputError(source, "field cap", cap, one_of(get_args(Cap)))
        if not classes:
            raise InputError(source, "field classes", NoQuote("nothing"), "at least one")
        kept = tuple(
            class_of(source, k, c, gpus=gpus, clocks=clocks) for k, c in enumerate(classes)
        )
        if p_max_w is None:
            p_max_w = float(np.mean([c.power_w[0, -1] / c.counts[0] for c in kept]))
        if idle_w is None:
            idle_w = 0.1 * p_max_w
        for key, value, least in (
            ("p_max_w", p_max_w, 1e-9),
            ("idle_w", idle_w, 0.0),
        ):
            if not least <= value < LARGEST:
                raise InputError(source, f"field {key}", value, "a positive number, below 1e15")
        ordered, more = jobs_of(source, jobs, kept)
        overhead = Overhead.of_cluster(gpus) if overhead is None else overhead
        for key in ("base_s", "per_doubling_s", "forced_s"):
            value = getattr(overhead, key)
            if not 0 <= value < LARGEST:
                raise InputError(source, f"field overhead.{key}", value, "0 to below 1e15 s")
        problem = cls(
            gpus,
            gpus_per_node,
            clocks,
            kept,
            ordered,
            float(eta),
            float(p_max_w),
            float(idle_w),
            cap,
            overhead,
            name,
            origin,
            tuple(notes) + more,
        )
        check_lengths(source, problem)
        check_limit(source, problem)
        return problem

    # -- what methods and policies ask for ------------------------------------------------

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def objective(self) -> ElasticObjective:
        """Objective: the mean job completion time."""
        return ElasticObjective()

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.gpus // self.gpus_per_node

    @property
    def power_limit_w(self) -> float:
        """Power limit η·G·P_max (Eq. 19), W; infinite without a limit on power."""
        return self.eta * self.gpus * self.p_max_w if self.cap == "power" else math.inf

    @property
    def power_allowed_w(self) -> float:
        """Highest power that keeps the limit, W.

        A job may need exactly the limit, and η·G·P_max is rounded.
        """
        return self.power_limit_w * (1 + POWER_SLACK)

    @cached_property
    def counts(self) -> Ints:
        """GPU counts that some class may run on, shape (K,), ascending."""
        return np.array(sorted({n for c in self.classes for n in c.counts}), dtype=np.int64)

    @cached_property
    def time_s(self) -> Floats:
        """Time T_iter of an iteration, shape (C, K, F), s; infinite for an unknown count."""
        return self._stacked("time_s", np.inf)

    @cached_property
    def power_w(self) -> Floats:
        """Power of all GPUs of a job, shape (C, K, F), W; 0 for an unknown count."""
        return self._stacked("power_w", 0.0)

    @cached_property
    def counted_w(self) -> Floats:
        """Power that a limit counts, shape (C, K, F), W: a restart holds GPUs at idle power."""
        watts: Floats = np.maximum(self.power_w, self.idle_w * self.counts[None, :, None])
        return watts

    def _stacked(self, name: str, missing: float) -> Floats:
        table = np.full((len(self.classes), len(self.counts), len(self.frequencies_mhz)), missing)
        for k, item in enumerate(self.classes):
            table[k, np.searchsorted(self.counts, item.counts)] = getattr(item, name)
        table.flags.writeable = False
        return table

    @cached_property
    def least_jct_s(self) -> Floats:
        """Shortest run time of each job, iterations × min T_iter, shape (J,), s."""
        least = self.time_s.min(axis=(1, 2))
        return np.asarray(self.jobs.iterations * least[self.jobs.of_class])

    @property
    def epoch_s(self) -> float:
        """First submission, s; makespan and energy count from here."""
        return float(self.jobs.submit_s[0])

    def moved(self, by_s: float) -> ElasticProblem:
        """Return the same problem with all times shifted by `by_s`."""
        return replace(self, jobs=replace(self.jobs, submit_s=self.jobs.submit_s + by_s))

    def restrict(self, solution: ElasticSolution) -> ElasticProblem:
        """Return the problem with only the finished jobs, under the declared limit."""
        done = np.flatnonzero(referee.finished(self, solution))
        if not len(done):
            raise InputError("solution", "", NoQuote("no job finished"), "at least one")
        eta = self.eta
        cap: Cap = self.cap
        if solution.power_limit_w is not None and solution.power_limit_w > self.power_limit_w:
            eta = solution.power_limit_w / (self.gpus * self.p_max_w)
            cap = "power" if eta <= 1 else "none"
            eta = min(eta, 1.0)
        name = f"{self.name} (jobs done, limit kept)"
        return replace(self, jobs=self.jobs.only(done), eta=eta, cap=cap, name=name)

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of all tasks or jobs, in order."""
        return self.jobs.names

    def subset(self, indices: Sequence[int]) -> ElasticProblem:
        """Return the problem with only these jobs."""
        jobs = self.jobs.only(np.array(indices, dtype=np.int64))
        return replace(self, jobs=jobs, name=f"{self.name} ({len(jobs)} jobs of it)")

    @property
    def always_possible(self) -> str:
        """Reason why the problem has a solution."""
        return WAITING

    def believed(self) -> Iterator[Believed]:
        """Yield clocks, power of a GPU, and time and power of an iteration at the highest clock."""
        classes = self.classes

        def of(name: str) -> Callable[[int], str]:
            return lambda k: f"model {classes[k].label} on {classes[k].counts[0]} GPUs, {name}"

        per_gpu = [float(c.power_w[0, -1]) / c.counts[0] for c in classes]
        yield "frequency_mhz", self.frequencies_mhz, lambda _: "frequencies_mhz"
        yield "p_max_w", [self.p_max_w], lambda _: "p_max_w"
        yield "idle_w", [self.idle_w], lambda _: "idle_w"
        yield "power_w", per_gpu, of("power_w of each")
        yield "iteration_s", [np.max(c.time_s) for c in classes], of("time_s")

    # -- the referee ----------------------------------------------------------------------

    def check(self, solution: ElasticSolution) -> list[Violation]:
        """List every violated constraint; `serves_all` says whether every job ends."""
        return referee.check(self, solution)

    def evaluate(self, solution: ElasticSolution) -> Evaluation:
        """Recompute the mean JCT and all metrics of a solution."""
        return referee.evaluate(self, solution)

    def serves_all(self, solution: ElasticSolution) -> bool:
        """Return whether every job is finished, within the problem's own power limit."""
        done = referee.finished(self, solution).all()
        return bool(done) and referee.within_limit(self, solution)

    # -- plain data -----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """Return one line with sizes, limit and the objective."""
        limit = {
            "power": f"η = {self.eta:g} ({self.power_limit_w / 1000:.4g} kW)",
            "none": "no limit",
        }[self.cap]
        return (
            f"{len(self)} jobs of {len(self.classes)} classes on {self.gpus} GPUs "
            f"({self.gpus_per_node} per node), {len(self.frequencies_mhz)} clocks, {limit}; "
            "minimise mean_jct (s)"
        )

    def __str__(self) -> str:
        return "\n".join([f"{self.name}: {self.summary}", *(f"  note: {n}" for n in self.notes)])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.elastic.problem/1``."""
        return document(self)

    @classmethod
    def from_json(cls, fields: Fields) -> ElasticProblem:
        """Read the JSON form.

        Raises
        ------
        InputError: with the name of a field that is missing or wrong.
        """
        return replace(cls.of(**arguments(fields)), fits=saved.restored(fields))
