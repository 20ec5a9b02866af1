"""Bounds in slots of δ seconds, as linear programs: the references of the paper's problem.

`bound_milp`: binaries say by which slot a job is done. `bound_lp`: no binaries, completions by
work-weighted mean times. Both charge each configuration what it takes in GPUs and power.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.problem import Floats, Ints
from optgap.models.elastic.snapshot import undominated
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, Solved
from optgap.solvers.elastic.area import alone

MOST_VARIABLES = 2_000_000
SOLVER_SAFE = 1e-6
"""Relative: what a solver's tolerances may leave of a bound."""


class Slots:
    """Slots, configurations and the rows that both programs share.

    Parameters
    ----------
    slot_s: δ.
    horizon_s: no less than the end of some optimal schedule.
    mean_time: for the program without binaries.
    """

    def __init__(self, problem: ElasticProblem, slot_s: float, horizon_s: float) -> None:
        self.problem, self.slot_s = problem, slot_s
        self.slots = math.ceil(horizon_s / slot_s)
        self.configurations = [_configurations(problem, c) for c in range(len(problem.classes))]
        self.first = (problem.jobs.submit_s // slot_s).astype(int)
        size = sum(
            (self.slots - int(t)) * (len(self.configurations[c][0]) + 1)
            for t, c in zip(self.first, problem.jobs.of_class, strict=True)
        )
        if size > MOST_VARIABLES:
            found = NoQuote(f"{size} variables")
            expected = f"at most {MOST_VARIABLES}; longer slots, or bound-prices"
            raise InputError("slot_s", "", found, expected)
        self.builder = LinearBuilder("min")
        # shares of slots, by job and slot: columns of each configuration
        self.columns: list[list[list[int]]] = []

    def shares(self, cost: Any) -> None:
        """x_jct with Σ_c x ≤ 1; `cost(j, t, iterations)` is what a share costs."""
        builder, problem = self.builder, self.problem
        self.columns = []
        for j, c in enumerate(problem.jobs.of_class.tolist()):
            times = self.configurations[c][0]
            rows = []
            for t in range(int(self.first[j]), self.slots):
                done = self.slot_s / (times * problem.jobs.iterations[j])
                rows.append([builder.variable(cost=float(cost(t) * d)) for d in done])
                # the slot of its arrival counts in full: no policy can do more in it
                builder.row([(x, 1.0) for x in rows[-1]], upper=1.0)
            self.columns.append(rows)

    def done(self, j: int) -> Floats:
        """Share of the job's work per share of a slot, by configuration."""
        c = int(self.problem.jobs.of_class[j])
        times = self.configurations[c][0]
        return np.asarray(self.slot_s / (times * self.problem.jobs.iterations[j]))

    def capacities(self) -> None:
        """Σ n·x ≤ G in every slot; Σ P·x ≤ limit in every slot, or ≤ budget over all."""
        problem, builder = self.problem, self.builder
        budget: list[tuple[int, float]] = []
        for t in range(self.slots):
            gpus: list[tuple[int, float]] = []
            watts: list[tuple[int, float]] = []
            for j, c in enumerate(problem.jobs.of_class.tolist()):
                if t < self.first[j]:
                    continue
                _, n, w = self.configurations[c]
                row = self.columns[j][t - int(self.first[j])]
                gpus += zip(row, n.tolist(), strict=True)
                watts += zip(row, w.tolist(), strict=True)
            builder.row(gpus, upper=float(problem.gpus))
            if problem.cap == "energy":
                budget += [(x, w * self.slot_s) for x, w in watts]
            elif math.isfinite(problem.power_limit_w):
                # in units of the limit: solvers like rows near 1
                limit = problem.power_limit_w
                builder.row([(x, w / limit) for x, w in watts], upper=1.0)
        if budget:
            total = problem.energy_budget_j
            builder.row([(x, e / total) for x, e in budget], upper=1.0)


def _configurations(problem: ElasticProblem, c: int) -> tuple[Floats, Ints, Floats]:
    """(T_iter, n, P) of the configurations that no other beats in work, GPU-s and J at once, nor
    any mixture of others and idling in work, GPUs and power: shares of a slot can be mixed."""
    k, f = np.nonzero(np.isfinite(problem.time_s[c]))
    t, n, w = problem.time_s[c, k, f], problem.counts[k], problem.power_w[c, k, f]
    keep = undominated(t, t * n, t * w)
    keep = keep[_corners(1 / t[keep], n[keep], w[keep])]
    return t[keep], n[keep], w[keep]


def _corners(*axes: Floats | Ints) -> Ints:
    """Indices of the corners of the convex hull of points and the origin; all, where it is flat."""
    from scipy.spatial import ConvexHull, QhullError

    points = np.stack([axis / np.max(axis) for axis in axes], axis=1)
    try:
        hull = ConvexHull(np.vstack([points, np.zeros(len(axes))]))
    except QhullError:
        return np.arange(len(points))
    corners = np.sort(hull.vertices)
    return np.asarray(corners[corners < len(points)], dtype=np.int64)


def horizon(problem: ElasticProblem) -> float:
    """An end that some optimal schedule keeps: one job after another, each at its fastest, s.

    In a schedule that is later, the jobs at its end could be moved forward.
    """
    return float(problem.jobs.submit_s.max() + _serial(problem).sum())


def _serial(problem: ElasticProblem) -> Floats:
    """(J,) least time of each job alone within the limit (or the budget's cheapest), s."""
    fits = np.isfinite(problem.time_s)
    if math.isfinite(problem.power_limit_w):
        fits &= problem.power_w <= problem.power_limit_w
    least = np.where(fits, problem.time_s, np.inf).min(axis=(1, 2))
    if problem.cap == "energy":
        least = np.where(fits, problem.time_s, 0.0).max(axis=(1, 2))
    return np.asarray(problem.jobs.iterations * least[problem.jobs.of_class])


def bound_lp(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    slot_s: float = 0.0,
    backend: str = "highs",
) -> Outcome:
    """C_j ≥ Σ_t (share of the work done in slot t)·tδ + iterations·min T_iter/2, as an LP.

    Parameters
    ----------
    slot_s: δ; 0: a hundredth of the horizon.
    backend: see ``optgap info``.
    """
    end = horizon(problem)
    width = _width(slot_s, end, 100)
    slots = Slots(problem, width, end)
    slots.shares(lambda t: t * width)
    for j in range(len(problem)):
        done = slots.done(j).tolist()
        terms = [(x, d) for row in slots.columns[j] for x, d in zip(row, done, strict=True)]
        slots.builder.row(terms, lower=1.0)
    slots.capacities()
    solved = solve(slots.builder.build(), backend=backend, limits=limits, seed=seed)
    return _outcome(problem, solved, slots, half=True, by="work-weighted mean times, LP")


def bound_milp(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    slot_s: float = 0.0,
    backend: str = "highs",
) -> Outcome:
    """Completions by slot as binaries y: a job not done by the end of slot t ends after it.

    Parameters
    ----------
    slot_s: δ; 0: a twentieth of the horizon.
    backend: see ``optgap info``.
    """
    end = horizon(problem)
    width = _width(slot_s, end, 20)
    slots = Slots(problem, width, end)
    slots.shares(lambda t: 0.0)
    builder = slots.builder
    for j in range(len(problem)):
        done, begun = slots.done(j).tolist(), int(slots.first[j])
        submit, least = float(problem.jobs.submit_s[j]), float(problem.least_jct_s[j])
        # C ≥ earliest, and C ≥ (t + 1)δ for every slot t that it is not done by the end of
        earliest = submit + least
        before = -1
        terms: list[tuple[int, float]] = []
        builder.variable(lower=earliest, upper=earliest, cost=1.0)
        for t in range(begun, slots.slots):
            terms += zip(slots.columns[j][t - begun], done, strict=True)
            ends = (t + 1) * width
            worth = max(0.0, ends - max(earliest, t * width))
            if ends <= earliest:
                continue
            y = builder.variable(upper=1.0, cost=-worth, integer=True)
            builder.offset += worth
            builder.row([(y, 1.0), *((x, -d) for x, d in terms)], upper=0.0)
            if before >= 0:
                builder.row([(before, 1.0), (y, -1.0)], upper=0.0)
            before = y
        builder.row([(x, d) for x, d in terms], lower=1.0)
    slots.capacities()
    solved = solve(builder.build(), backend=backend, limits=limits, seed=seed)
    return _outcome(problem, solved, slots, half=False, by="completions by slot, MILP")


def _width(slot_s: float, end: float, many: int) -> float:
    if not 0 <= slot_s < 1e12:
        raise InputError("slot_s", "", slot_s, "seconds, or 0 for a share of the horizon")
    return slot_s or end / many


def _outcome(
    problem: ElasticProblem, solved: Solved, slots: Slots, *, half: bool, by: str
) -> Outcome:
    info = {"slot_s": slots.slot_s, "slots": slots.slots}
    single = alone(problem)
    value = solved.bound
    if value is None and solved.status is Status.OPTIMAL:
        value = solved.objective
    if solved.status in (Status.INFEASIBLE, Status.ERROR) or value is None:
        # within the horizon something always fits: no verdict of a solver's is taken for more
        return Outcome(
            None, Status.BOUND_ONLY, solved.termination, bound=single * (1 - 1e-9),
            bound_by="every job alone", info=info, message=solved.message,
        )  # fmt: skip
    submitted = math.fsum(problem.jobs.submit_s.tolist())
    total = value - SOLVER_SAFE * (abs(value) + submitted)
    if half:
        total += 0.5 * math.fsum(problem.least_jct_s.tolist())
    bound = (total - submitted) / len(problem)
    name = f"{by}, {solved.solver}" if bound > single else "every job alone"
    bound = max(bound, single * (1 - 1e-9))
    return Outcome(
        None, Status.BOUND_ONLY, solved.termination, bound=bound, bound_by=name, info=info
    )
