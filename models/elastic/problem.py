"""The elastic problem: jobs that may run on several GPU counts and clocks, under a power limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from optgap.models.elastic.solution import ElasticSolution
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.jsonio import Fields
from optgap.models.performance import saved
from optgap.models.performance.saved import FittedParameters
from optgap.models.result import Evaluation, Objective, Violation
from optgap.models.shortage import WAITING
from optgap.models.shown import Shown
from optgap.models.times import SHORTEST_S

SCHEMA = "optgap.elastic.problem/1"
MOST_GPUS = 1 << 16
MOST_JOBS = 200_000
LARGEST = 1e15
POWER_SLACK = 1e-6
"""Relative: so little above the limit keeps it, for policies, bounds and the referee alike."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cap = Literal["power", "energy", "none"]


@dataclass(frozen=True, slots=True)
class ElasticObjective:
    """Minimise the mean job completion time, s: completion − submission (Eq. 18)."""

    @property
    def described(self) -> Objective:
        """Name, unit and sense."""
        return Objective("mean_jct", "s")


@dataclass(frozen=True, eq=False)
class JobClass:
    """A model trained with a global batch, on every GPU count and clock it may have.

    Parameters
    ----------
    model, batch: what is trained; the batch is global, in samples.
    counts: (K,) n, GPU counts that it may run on, ascending.
    time_s: (K, F) T_iter, s per iteration.
    power_w: (K, F) mean power of all n GPUs together, E_iter/T_iter, W.
    """

    model: str
    batch: int
    counts: tuple[int, ...]
    time_s: Floats
    power_w: Floats

    @property
    def label(self) -> str:
        """As tables call it."""
        return f"{self.model}/{self.batch}"


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds without progress when a job starts, resumes, changes its GPU count or moves.

    base_s + per_doubling_s·(1 + log2 n), and forced_s more where a job of unchanged size is
    moved. The GPUs are held and draw idle power meanwhile. The defaults are those of the
    ElasticFlow simulator below 256 GPUs.
    """

    base_s: float = 2.0
    per_doubling_s: float = 2.0
    forced_s: float = 27.0

    @classmethod
    def of_cluster(cls, gpus: int) -> Overhead:
        """The ElasticFlow simulator's numbers for a cluster of this size."""
        return cls(7.0, 2.0, 47.0) if gpus >= 256 else cls()

    def seconds(self, gpus: int, moved: bool = False) -> float:
        """What one start on n GPUs takes, s."""
        start = self.base_s + self.per_doubling_s * (1.0 + math.log2(gpus))
        if not self.base_s and not self.per_doubling_s:
            start = 0.0
        return start + (self.forced_s if moved else 0.0)

    @property
    def free(self) -> bool:
        """Whether nothing of it costs anything."""
        return not (self.base_s or self.per_doubling_s or self.forced_s)


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs in order of submission.

    Parameters
    ----------
    names: (J,) as users know them.
    submit_s: (J,) when they are known to the scheduler, ascending.
    of_class: (J,) index into the problem's classes.
    iterations: (J,) all there is to do.
    requested: (J,) GPUs that the user asked for: what schedulers that are not elastic give.
    """

    names: tuple[str, ...]
    submit_s: Floats
    of_class: Ints
    iterations: Floats
    requested: Ints

    def __len__(self) -> int:
        return len(self.names)

    def only(self, chosen: Ints) -> Jobs:
        """Those of these numbers."""
        return Jobs(
            tuple(self.names[k] for k in chosen),
            self.submit_s[chosen],
            self.of_class[chosen],
            self.iterations[chosen],
            self.requested[chosen],
        )


@dataclass(frozen=True, eq=False, repr=False)
class ElasticProblem(Shown):
    """Jobs that arrive over time on a cluster of equal nodes with a power limit.

    Parameters
    ----------
    gpus, gpus_per_node: G and the GPUs of each node, a power of two.
    frequencies_mhz: (F,) the clocks that GPUs can be set to, ascending.
    classes: what jobs train.
    jobs: who, when and how much.
    eta: η; the power limit is η·G·P_max.
    p_max_w: P_max, mean power of a busy GPU at the highest clock, W.
    idle_w: power of a GPU that computes nothing on a node that is on, W.
    cap: ``power``: the limit holds at any time (Eq. 19); ``energy``: no limit on power, but
        `energy_budget_j` for everything together; ``none``: neither.
    overhead: what (re)starts cost.
    name, origin, notes: how tables call it, where it comes from, what was changed on the way in.
    fits: the fitted models in it, with what became of each.
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
    energy_budget_j: float = 0.0
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
        energy_budget_j: float = 0.0,
        overhead: Overhead | None = None,
        name: str = "elastic",
        origin: str = "",
        notes: Sequence[str] = (),
        source: str = "problem",
    ) -> ElasticProblem:
        """Check everything and make the problem; jobs are sorted by submission, with a note.

        Without `p_max_w` it is the mean of the classes on one GPU (their fewest) at the highest
        clock; without `idle_w` a tenth of that.

        Raises
        ------
        InputError: naming the field, for anything that is not what it should be; for a time or
            power that is not positive the class, the GPU count and the clock; for a job that may
            be done in less than `SHORTEST_S`; and for a limit under which some job can never run.
        """
        _cluster(source, gpus, gpus_per_node)
        clocks = _clocks(source, frequencies_mhz)
        if not isinstance(eta, (int, float)) or not 0 <= eta <= 1:
            raise InputError(source, "field eta", eta, "a number from 0 to 1")
        if cap not in get_args(Cap):
            raise InputError(source, "field cap", cap, one_of(get_args(Cap)))
        if not classes:
            raise InputError(source, "field classes", NoQuote("nothing"), "at least one")
        kept = tuple(_class(source, k, c, gpus, clocks) for k, c in enumerate(classes))
        if p_max_w is None:
            p_max_w = float(np.mean([c.power_w[0, -1] / c.counts[0] for c in kept]))
        if idle_w is None:
            idle_w = 0.1 * p_max_w
        for key, value, least in (
            ("p_max_w", p_max_w, 1e-9),
            ("idle_w", idle_w, 0.0),
            ("energy_budget_j", energy_budget_j, 1e-9 if cap == "energy" else 0.0),
        ):
            if not least <= value < LARGEST:
                raise InputError(source, f"field {key}", value, "a positive number, below 1e15")
        ordered, more = _jobs(source, jobs, kept)
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
            float(energy_budget_j),
            overhead,
            name,
            origin,
            tuple(notes) + more,
        )
        _last(source, problem)
        _can_run(source, problem)
        return problem

    # -- what methods and policies ask for ------------------------------------------------

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def objective(self) -> ElasticObjective:
        """What to minimise: the mean job completion time."""
        return ElasticObjective()

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return self.gpus // self.gpus_per_node

    @property
    def power_limit_w(self) -> float:
        """η·G·P_max where power is limited (Eq. 19), else infinite; W."""
        return self.eta * self.gpus * self.p_max_w if self.cap == "power" else math.inf

    @property
    def power_allowed_w(self) -> float:
        """The most power that keeps the limit, W.

        A job may need exactly the limit, and η·G·P_max is rounded.
        """
        return self.power_limit_w * (1 + POWER_SLACK)

    @cached_property
    def counts(self) -> Ints:
        """(K,) every GPU count that some class may run on, ascending."""
        return np.array(sorted({n for c in self.classes for n in c.counts}), dtype=np.int64)

    @cached_property
    def time_s(self) -> Floats:
        """(C, K, F) T_iter, s; infinite where a class may not run on that count."""
        return self._stacked("time_s", np.inf)

    @cached_property
    def power_w(self) -> Floats:
        """(C, K, F) power of all GPUs of a job, W; 0 where it may not run."""
        return self._stacked("power_w", 0.0)

    def _stacked(self, name: str, missing: float) -> Floats:
        table = np.full((len(self.classes), len(self.counts), len(self.frequencies_mhz)), missing)
        for k, item in enumerate(self.classes):
            table[k, np.searchsorted(self.counts, item.counts)] = getattr(item, name)
        table.flags.writeable = False
        return table

    @cached_property
    def least_jct_s(self) -> Floats:
        """(J,) iterations × min T_iter: no job can take less, s."""
        least = self.time_s.min(axis=(1, 2))
        return np.asarray(self.jobs.iterations * least[self.jobs.of_class])

    @property
    def epoch_s(self) -> float:
        """The first submission, s; makespan and energy count from here."""
        return float(self.jobs.submit_s[0])

    def moved(self, by_s: float) -> ElasticProblem:
        """The same problem, everything so much later."""
        return replace(self, jobs=replace(self.jobs, submit_s=self.jobs.submit_s + by_s))

    def restrict(self, solution: ElasticSolution) -> ElasticProblem:
        """The same with only the jobs that were finished, under the limit that was kept."""
        from optgap.models.elastic.referee import finished

        done = np.flatnonzero(finished(self, solution))
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
        """What is to be served, by name."""
        return self.jobs.names

    def subset(self, indices: Sequence[int]) -> ElasticProblem:
        """The same problem with only these jobs."""
        jobs = self.jobs.only(np.array(indices, dtype=np.int64))
        return replace(self, jobs=jobs, name=f"{self.name} ({len(jobs)} jobs of it)")

    @property
    def always_possible(self) -> str:
        """Why there is a solution for sure; "" where there need not be."""
        return "" if self.cap == "energy" else WAITING

    def why_not(self, jobs: Sequence[int]) -> str:
        """What is short for these jobs together, in one line; "" where nothing obvious is."""
        from optgap.models.elastic.shortage import why_not

        return why_not(self, jobs)

    # -- the referee ----------------------------------------------------------------------

    def check(self, solution: ElasticSolution) -> list[Violation]:
        """Every broken constraint; a job that is not finished is none, see `serves_all`."""
        from optgap.models.elastic.referee import check

        return check(self, solution)

    def evaluate(self, solution: ElasticSolution) -> Evaluation:
        """Mean JCT and metrics, recomputed from scratch."""
        from optgap.models.elastic.referee import evaluate

        return evaluate(self, solution)

    def serves_all(self, solution: ElasticSolution) -> bool:
        """Whether every job is finished, and within the problem's own power limit."""
        from optgap.models.elastic.referee import finished, within_limit

        return bool(finished(self, solution).all()) and within_limit(self, solution)

    # -- plain data -----------------------------------------------------------------------

    @property
    def summary(self) -> str:
        """One line: sizes, limit and the objective."""
        limit = {
            "power": f"η = {self.eta:g} ({self.power_limit_w / 1000:.4g} kW)",
            "energy": f"{self.energy_budget_j / 1e6:.4g} MJ",
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
        """JSON form, ``optgap.elastic.problem/1``."""
        jobs = self.jobs
        return {
            "schema": SCHEMA,
            "family": self.family,
            "name": self.name,
            "origin": self.origin,
            "notes": list(self.notes),
            "gpus": self.gpus,
            "gpus_per_node": self.gpus_per_node,
            "frequencies_mhz": self.frequencies_mhz.tolist(),
            "eta": self.eta,
            "p_max_w": self.p_max_w,
            "idle_w": self.idle_w,
            "cap": self.cap,
            "energy_budget_j": self.energy_budget_j,
            "overhead": {
                "base_s": self.overhead.base_s,
                "per_doubling_s": self.overhead.per_doubling_s,
                "forced_s": self.overhead.forced_s,
            },
            "classes": [
                {
                    "model": c.model,
                    "batch": c.batch,
                    "counts": list(c.counts),
                    "time_s": c.time_s.tolist(),
                    "power_w": c.power_w.tolist(),
                }
                for c in self.classes
            ],
            "jobs": {
                "name": list(jobs.names),
                "submit_s": jobs.submit_s.tolist(),
                "class": jobs.of_class.tolist(),
                "iterations": jobs.iterations.tolist(),
                "gpus": jobs.requested.tolist(),
            },
            **saved.written(self.fits),
        }

    @classmethod
    def from_json(cls, fields: Fields) -> ElasticProblem:
        """Read the JSON form.

        Raises
        ------
        InputError: naming the field that is missing or not what it should be.
        """
        fields.schema(SCHEMA)
        clocks = fields.numbers("frequencies_mhz")
        classes = [_class_from_json(item, len(clocks)) for item in fields.objects("classes")]
        item = fields.object("jobs")
        names = tuple(item.texts("name"))
        columns: dict[str, list[Any]] = {
            "submit_s": item.numbers("submit_s"),
            "class": item.integers("class"),
            "iterations": item.numbers("iterations"),
            "gpus": item.integers("gpus"),
        }
        for key, values in columns.items():
            if len(values) != len(names):
                raise item.fail(key, NoQuote(f"{len(values)} entries"), f"{len(names)}, as in name")
        over = fields.object("overhead")
        problem = cls.of(
            classes,
            Jobs(
                names,
                np.array(columns["submit_s"], dtype=np.float64),
                np.array(columns["class"], dtype=np.int64),
                np.array(columns["iterations"], dtype=np.float64),
                np.array(columns["gpus"], dtype=np.int64),
            ),
            clocks,
            gpus=fields.integer("gpus"),
            gpus_per_node=fields.integer("gpus_per_node"),
            eta=fields.number("eta"),
            p_max_w=fields.number("p_max_w"),
            idle_w=fields.number("idle_w"),
            cap=fields.text("cap", "power"),  # type: ignore[arg-type]  # checked
            energy_budget_j=fields.number("energy_budget_j", default=0.0),
            overhead=Overhead(
                over.number("base_s"), over.number("per_doubling_s"), over.number("forced_s")
            ),
            name=fields.text("name", "elastic"),
            origin=fields.text("origin", ""),
            notes=fields.texts("notes") if "notes" in fields.document else (),
            source=fields.source,
        )
        return replace(problem, fits=saved.restored(fields))


# -- the door -----------------------------------------------------------------------------


def power_of_two(value: int) -> bool:
    """Whether `value` is 1, 2, 4, …"""
    return value > 0 and value & (value - 1) == 0


def _cluster(source: str, gpus: int, per_node: int) -> None:
    for name, value in (("gpus", gpus), ("gpus_per_node", per_node)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_GPUS:
            raise InputError(source, f"field {name}", value, f"an integer from 1 to {MOST_GPUS}")
    if not power_of_two(per_node):
        raise InputError(source, "field gpus_per_node", per_node, "a power of two")
    if gpus % per_node:
        raise InputError(source, "field gpus", gpus, f"a multiple of gpus_per_node = {per_node}")


def _clocks(source: str, values: Sequence[float]) -> Floats:
    clocks = np.array(values, dtype=np.float64)
    rising = clocks.ndim == 1 and len(clocks) and np.isfinite(clocks).all() and clocks[0] > 0
    if not rising or (np.diff(clocks) <= 0).any() or clocks[-1] >= LARGEST:
        raise InputError(source, "field frequencies_mhz", list(values), "positive, ascending MHz")
    clocks.flags.writeable = False
    return clocks


def _class(source: str, k: int, item: JobClass, gpus: int, clocks: Floats) -> JobClass:
    """The class without counts above G; every entry must be a positive time and power."""
    where = f"field classes[{k}] ({item.label})"
    if not item.counts or list(item.counts) != sorted(set(item.counts)) or item.counts[0] < 1:
        raise InputError(source, f"{where}, counts", list(item.counts), "ascending GPU counts")
    for n in item.counts:
        if not power_of_two(n):
            raise InputError(source, f"{where}, counts", n, "a power of two")
    shape = (len(item.counts), len(clocks))
    for name, unit in (("time_s", "s"), ("power_w", "W")):
        table = np.asarray(getattr(item, name), dtype=np.float64)
        if table.shape != shape:
            found = NoQuote(f"shape {table.shape}")
            raise InputError(source, f"{where}, {name}", found, f"shape {shape}, counts × clocks")
        with np.errstate(invalid="ignore"):
            bad = ~((table > 1e-12) & (table < LARGEST))
        if bad.any():
            i, j = np.argwhere(bad)[0]
            place = f"{where}, {name} at {item.counts[i]} GPUs, {clocks[j]:g} MHz"
            raise InputError(source, place, float(table[i, j]), f"a positive number of {unit}")
    keep = [i for i, n in enumerate(item.counts) if n <= gpus and n <= item.batch]
    if not keep:
        found = NoQuote(f"at least {item.counts[0]} GPUs, batch {item.batch}")
        raise InputError(source, where, found, f"a count that {gpus} GPUs and the batch allow")
    return JobClass(
        item.model,
        item.batch,
        tuple(item.counts[i] for i in keep),
        np.asarray(item.time_s, dtype=np.float64)[keep],
        np.asarray(item.power_w, dtype=np.float64)[keep],
    )


def _class_from_json(item: Fields, clocks: int) -> JobClass:
    counts = item.integers("counts", minimum=1)
    tables = {}
    for name in ("time_s", "power_w"):
        rows = item.array(name)
        if len(rows) != len(counts) or any(
            not isinstance(row, list)
            or len(row) != clocks
            or any(type(x) not in (int, float) for x in row)
            for row in rows
        ):
            raise item.fail(name, NoQuote("other rows"), f"{len(counts)} rows of {clocks} numbers")
        tables[name] = np.array(rows, dtype=np.float64).reshape(len(counts), clocks)
    return JobClass(
        item.text("model"),
        item.integer("batch", minimum=1),
        tuple(counts),
        tables["time_s"],
        tables["power_w"],
    )


def _jobs(source: str, jobs: Jobs, classes: tuple[JobClass, ...]) -> tuple[Jobs, tuple[str, ...]]:
    """The jobs in order of submission, and what was changed."""
    if not 0 < len(jobs) <= MOST_JOBS:
        found = NoQuote(f"{len(jobs) or 'no'} jobs")
        raise InputError(source, "field jobs", found, f"1 to {MOST_JOBS} jobs")
    if len(set(jobs.names)) != len(jobs):
        twice = next(n for k, n in enumerate(jobs.names) if n in jobs.names[:k])
        raise InputError(source, "field jobs.name", twice, "a name of its own for each job")
    tests = (
        ("submit_s", (jobs.submit_s >= 0) & (jobs.submit_s < LARGEST), "0 to below 1e15 s"),
        ("iterations", (jobs.iterations > 0) & (jobs.iterations < LARGEST), "above 0, below 1e15"),
        ("class", (jobs.of_class >= 0) & (jobs.of_class < len(classes)), "one of the classes"),
    )
    for key, good, expected in tests:
        if not good.all():
            k = int(np.argmin(good))
            found = {"submit_s": jobs.submit_s, "iterations": jobs.iterations}.get(
                key, jobs.of_class
            )[k]
            raise InputError(source, f"field jobs.{key}[{k}]", found.item(), expected)
    for k, (c, n) in enumerate(zip(jobs.of_class, jobs.requested, strict=True)):
        if int(n) not in classes[c].counts:
            allowed = ", ".join(map(str, classes[c].counts))
            where = f"field jobs.gpus[{k}] ({jobs.names[k]}, {classes[c].label})"
            raise InputError(source, where, int(n), f"one of {allowed}")
    if (np.diff(jobs.submit_s) >= 0).all():
        return jobs, ()
    order = np.argsort(jobs.submit_s, kind="stable")
    return jobs.only(order), ("jobs were not in order of submission; sorted",)


def _last(source: str, problem: ElasticProblem) -> None:
    """Raise InputError for a job that may be done sooner than times can be told apart."""
    for j in np.flatnonzero(problem.least_jct_s < SHORTEST_S)[:1].tolist():
        found = NoQuote(f"{problem.least_jct_s[j]:g} s of work at its fastest")
        where = f"job {problem.jobs.names[j]}, iterations"
        raise InputError(source, where, found, f"at least {SHORTEST_S:g} s")


def _can_run(source: str, problem: ElasticProblem) -> None:
    """Raise InputError for a power limit under which some class can never run."""
    watts = np.where(np.isfinite(problem.time_s), problem.power_w, np.inf)
    # a restart holds the GPUs at idle power, which no clock of the job's own may undercut
    idle = problem.idle_w * problem.counts[None, :, None]
    least = np.maximum(watts, idle).min(axis=(1, 2))
    for c in np.unique(problem.jobs.of_class):
        if least[c] > problem.power_allowed_w:
            found = NoQuote(f"{problem.power_limit_w:.12g} W (η = {problem.eta:g})")
            label = problem.classes[c].label
            where = f"power limit for {label}"
            needed = f"at least {least[c]:.12g} W, what it needs to run"
            raise InputError(source, where, found, needed)
