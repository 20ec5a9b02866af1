"""Bounds in slots of δ seconds, as linear programs: the references of the paper's problem.

`bound_milp`: binaries say by which slot a job is done. `bound_lp`: no binaries, completions by
work-weighted mean times. Both charge each configuration what it takes in GPUs and power.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.snapshot import undominated
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearModel, Solved
from optgap.solvers.backends.safe import outwards, safe_bound, solver_slack
from optgap.solvers.elastic.area import SAFE, alone, shortest_first


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was found to work well; any of it gives a bound.

    Parameters
    ----------
    most_variables: of a grid of slots. few_variables: of the first, coarsest one.
    growth: power of the number of variables that the time of a program is expected to grow with.
    tolerance: the integer program's own, where HiGHS solves it.
    others_tolerance: that of other back ends, and of linear programs without prices.
    """

    most_variables: int = 2_000_000
    few_variables: int = 20_000
    growth: float = 1.4
    tolerance: float = 1e-9
    others_tolerance: float = 1e-7


TUNING = Tuning()


class Slots:
    """Slots, configurations, and a share of a slot for each job and configuration.

    Where a whole slot does more than all of a job's work, its variable is a share of that instead:
    tiny shares of slots would be lost among a solver's tolerances.

    Parameters
    ----------
    slot_s: δ.
    horizon_s: no less than the end of some optimal schedule.
    configurations: by class, as in `_configurations`.

    Attributes
    ----------
    slots, first: how many, and (J,) that of each job's submission.
    pair: (X,) index of the job and slot of each share: jobs by jobs, slots by slots.
    job, slot: (V,) of each such pair.
    slot_share, done, gpus, watts: (X,) of the slot and of the job's work, and means of n and of
        power over the slot, for a variable of 1.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        slot_s: float,
        horizon_s: float,
        configurations: list[tuple[Floats, Ints, Floats]] | None = None,
    ) -> None:
        self.problem, self.slot_s = problem, slot_s
        self.slots = math.ceil(horizon_s / slot_s)
        classes = range(len(problem.classes))
        self.configurations = configurations or [_configurations(problem, c) for c in classes]
        self.first = (problem.jobs.submit_s // slot_s).astype(int)
        many = np.array([len(c[0]) for c in self.configurations])[problem.jobs.of_class]
        self.size = int(((self.slots - self.first) * (many + 1)).sum())
        if self.size > TUNING.most_variables:
            found = NoQuote(f"{self.size} variables")
            expected = f"at most {TUNING.most_variables}; longer slots, or bound-prices"
            raise InputError("slot_s", "", found, expected)

    def fill(self) -> None:
        """Make the arrays."""
        spans, jobs = self.slots - self.first, self.problem.jobs
        self.job = np.repeat(np.arange(len(jobs)), spans)
        self.slot = np.concatenate([np.arange(t, self.slots) for t in self.first.tolist()])
        tables = [self.configurations[c] for c in jobs.of_class.tolist()]
        many = [len(t[0]) for t in tables]
        self.pair = np.repeat(np.arange(len(self.job)), np.repeat(many, spans))
        done = [self.slot_s / (t[0] * w) for t, w in zip(tables, jobs.iterations, strict=True)]
        self.done, self.gpus, self.watts = (
            np.concatenate([np.tile(row, k) for row, k in zip(rows, spans, strict=True)])
            for rows in (done, [t[1] for t in tables], [t[2] for t in tables])
        )
        self.slot_share = 1 / np.maximum(1.0, self.done)
        self.done = np.minimum(1.0, self.done)
        self.gpus, self.watts = self.gpus * self.slot_share, self.watts * self.slot_share

    def shared(self) -> list[Block]:
        """Σ_c x ≤ 1 for each job and slot, Σ n·x ≤ G in every slot, and Σ P·x ≤ limit in every
        slot, or ≤ budget over all."""
        problem, shares = self.problem, np.arange(len(self.pair))
        slot = self.slot[self.pair]
        # the slot of its arrival counts in full: no policy can do more in it
        blocks = [
            Block.upto(self.pair, shares, self.slot_share, np.ones(len(self.job))),
            Block.upto(slot, shares, self.gpus, np.full(self.slots, float(problem.gpus))),
        ]
        # in units of the limit: solvers like rows near 1
        if problem.cap == "energy":
            part = self.watts * (self.slot_s / problem.energy_budget_j)
            blocks.append(Block.upto(np.zeros_like(slot), shares, part, np.ones(1)))
        elif math.isfinite(problem.power_limit_w):
            part = self.watts / problem.power_limit_w
            blocks.append(Block.upto(slot, shares, part, np.ones(self.slots)))
        return blocks


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one kind: entries (row, column, value), and (m,) limits."""

    row: Ints
    column: Ints
    value: Floats
    lower: Floats
    upper: Floats

    @classmethod
    def upto(cls, row: Ints, column: Ints, value: Floats | Ints, upper: Floats) -> Block:
        """Rows with an upper limit."""
        low = np.full(len(upper), -np.inf)
        return cls(row, column, np.asarray(value, dtype=np.float64), low, upper)

    @classmethod
    def stacked(
        cls, blocks: Sequence[Block], cost: Floats, integer: Ints | None = None, offset: float = 0.0
    ) -> LinearModel:
        """min cᵀx + offset under the rows of all blocks, 0 ≤ x ≤ 1."""
        from scipy.sparse import coo_array

        heights = np.cumsum([0, *(len(b.upper) for b in blocks)])
        rows = np.concatenate([b.row + h for b, h in zip(blocks, heights, strict=False)])
        columns = np.concatenate([b.column for b in blocks])
        values = np.concatenate([b.value for b in blocks])
        table = coo_array((values, (rows, columns)), shape=(int(heights[-1]), len(cost))).tocsr()
        whole = np.zeros(len(cost), dtype=np.bool_)
        whole[integer if integer is not None else []] = True
        return LinearModel(
            cost, table.indptr.astype(np.int64), table.indices.astype(np.int64), table.data,
            np.concatenate([b.lower for b in blocks]), np.concatenate([b.upper for b in blocks]),
            np.zeros(len(cost)), np.ones(len(cost)), whole, "min", offset,
        )  # fmt: skip


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
        fits &= problem.power_w <= problem.power_allowed_w
    least = np.where(fits, problem.time_s, np.inf).min(axis=(1, 2))
    if problem.cap == "energy":
        least = np.where(fits, problem.time_s, 0.0).max(axis=(1, 2))
    return np.asarray(problem.jobs.iterations * least[problem.jobs.of_class])


def one_by_one(problem: ElasticProblem) -> float:
    """The mean JCT of a schedule with free restarts: the least remaining work first, alone, s.

    With a budget on energy it may not be allowed: infinite.
    """
    if problem.cap == "energy":
        return math.inf
    ends = shortest_first(problem.jobs.submit_s, _serial(problem))
    return math.fsum((ends - problem.jobs.submit_s).tolist()) / len(problem)


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
    slot_s: δ; 0: a hundredth of the horizon. Coarser slots come first, and where δ would not
        fit the time, the finest of them count.
    backend: see ``optgap info``.
    """
    half = 0.5 * math.fsum(problem.least_jct_s.tolist())
    by = "work-weighted mean times, LP"
    return _refined(problem, _mean_times, limits, seed, slot_s, 100, backend, by, half)


def _mean_times(slots: Slots) -> LinearModel:
    """Costs in slots."""
    jobs, shares = slots.job[slots.pair], np.arange(len(slots.pair))
    every = np.ones(len(slots.first))
    work = Block(jobs, shares, slots.done, every, np.full(len(every), np.inf))
    cost = slots.slot[slots.pair] * slots.done
    return Block.stacked([*slots.shared(), work], cost)


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
    slot_s: δ; 0: a twentieth of the horizon. Coarser slots come first, as for `bound_lp`.
    backend: see ``optgap info``.
    """
    by = "completions by slot, MILP"
    return _refined(problem, _completions, limits, seed, slot_s, 20, backend, by, 0.0)


def _completions(slots: Slots) -> LinearModel:
    """Shares x, then w ≤ Σ done·x until the end of each slot, then y ≤ w; costs in slots."""
    problem, shares = slots.problem, np.arange(len(slots.pair))
    pairs = np.arange(len(slots.job))
    last = np.append(slots.job[1:] != slots.job[:-1], True)
    w = len(shares) + pairs
    goes_on = pairs[~last]
    ones = np.ones(len(pairs))
    done = [  # w_t − w_(t−1) − Σ done·x_t ≤ 0, and w = 1 in the last slot
        Block.upto(
            np.concatenate([pairs, goes_on + 1, slots.pair]),
            np.concatenate([w, w[goes_on], shares]),
            np.concatenate([ones, -ones[goes_on], -slots.done]),
            np.zeros(len(pairs)),
        ),
        Block(np.arange(last.sum()), w[last], ones[last], ones[last], ones[last]),
    ]
    # C ≥ earliest, and C ≥ the end of every slot by which the job is not done
    earliest = (problem.jobs.submit_s + problem.least_jct_s) / slots.slot_s
    begins = np.maximum(earliest[slots.job], slots.slot)
    worth = np.maximum(0.0, slots.slot + 1 - begins)
    chosen = np.flatnonzero(worth > 0)
    y = len(shares) + len(pairs) + np.arange(len(chosen))
    each = np.arange(len(chosen))
    same = np.flatnonzero(slots.job[chosen[1:]] == slots.job[chosen[:-1]])
    plus, minus = np.ones(len(y)), -np.ones(len(y))
    done += [
        Block.upto(np.tile(each, 2), np.concatenate([y, w[chosen]]),
                   np.concatenate([plus, minus]), np.zeros(len(y))),
        Block.upto(np.tile(np.arange(len(same)), 2), np.concatenate([y[same], y[same + 1]]),
                   np.concatenate([plus[same], minus[same]]), np.zeros(len(same))),
    ]  # fmt: skip
    cost = np.concatenate([np.zeros(len(shares) + len(pairs)), -worth[chosen]])
    offset = math.fsum([*earliest.tolist(), *worth.tolist()])
    return Block.stacked([*slots.shared(), *done], cost, y, offset)


def _refined(
    problem: ElasticProblem,
    program: Callable[[Slots], LinearModel],
    limits: Limits,
    seed: int,
    slot_s: float,
    many: int,
    backend: str,
    by: str,
    more: float,
) -> Outcome:
    """The program on slots that become shorter, as far as time allows: every grid gives a bound.

    Parameters
    ----------
    program: Σ completions less `more`, in slots, least over schedules.
    many: slots of the horizon where `slot_s` is 0.
    """
    if not 0 <= slot_s < 1e12:
        raise InputError("slot_s", "", slot_s, "seconds, or 0 for a share of the horizon")
    submitted = problem.jobs.submit_s.tolist()
    end, most = horizon(problem), one_by_one(problem)
    finest = Slots(problem, slot_s or end / many, end)
    grids = [finest]
    while grids[-1].size > TUNING.few_variables and grids[-1].slots > 1:
        grids.append(Slots(problem, 2 * grids[-1].slot_s, end, finest.configurations))
    single = alone(problem) * (1 - SAFE)
    best, name = single, "every job alone"
    info: dict[str, float | int] = {"slot_s": finest.slot_s, "slots": finest.slots}
    termination, message, used, took = Termination.COMPLETED, "", finest, 0.0
    for slots in reversed(grids):
        expected = took * (slots.size / used.size) ** TUNING.growth
        stop = limits.stop or (Termination.TIME_LIMIT if expected > limits.remaining else None)
        if stop is not None:
            termination = stop
            message = f"slots of {slots.slot_s:.4g} s and less would take too long"
            break
        begun, used = limits.elapsed, slots
        solved, value = _solved(slots, program, limits, seed, backend)
        took = limits.elapsed - begun
        termination, message = solved.termination, solved.message
        bound = outwards([value * slots.slot_s, more, *(-t for t in submitted)]) / len(problem)
        if bound > most * (1 + 1e-6):
            message = f"{solved.solver} puts the bound above a schedule; it is left out"
        elif bound > best:
            best, name = bound, f"{by}, {solved.solver}"
            info = {"slot_s": slots.slot_s, "slots": slots.slots}
        limits.progress(f"{slots.slots} slots", None, best)
        if termination is not Termination.COMPLETED:
            break
    return Outcome(
        None, Status.BOUND_ONLY, termination, bound=best, bound_by=name, info=info, message=message
    )


def _solved(
    slots: Slots,
    program: Callable[[Slots], LinearModel],
    limits: Limits,
    seed: int,
    backend: str,
) -> tuple[Solved, float]:
    """What a back end says of one grid, and what that proves; −∞ for nothing."""
    slots.fill()
    model = program(slots)
    tolerance = TUNING.tolerance if backend == "highs" and model.integer.any() else 0.0
    solved = solve(model, backend=backend, limits=limits, seed=seed, tolerance=tolerance)
    # within the horizon something always fits: no verdict of a solver's is taken for more
    if solved.duals is not None:
        return solved, safe_bound(model, solved.duals)
    value = solved.bound
    if value is None and solved.status is Status.OPTIMAL:
        value = solved.objective
    if value is None or solved.status in (Status.INFEASIBLE, Status.ERROR):
        return solved, -math.inf
    return solved, value - solver_slack(model, tolerance or TUNING.others_tolerance)
