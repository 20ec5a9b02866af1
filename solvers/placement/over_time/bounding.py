"""A bound over a whole horizon, from prices of tasks that each prove one at every moment.

The bound of `columns`, idle cost + Σ_c π_c d_c − K(π) with K(π) = Σ_t n_t·max(0, V_t(π)), holds for
any demand d: the prices need not be the best for it. So every price vector bounds the cost of every
moment by one product with the tasks that run then; the largest at each moment, integrated over
time, bounds every schedule, migrating or not. Prices are made at some moments, first at equal
distances and then between those where the last ones raised the bound most.

Where tasks may wait, nobody knows what runs when. But no more nodes carry something than tasks run,
so that what runs costs at least Σ (π_c − v) beyond idle, v the largest V_t(π) or 0: each task
contributes π_c − v for as long as it lasts, whenever that is. The prices are best for nodes without
number.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import shown, slack_s
from optgap.solvers.placement.aggregate import Aggregate
from optgap.solvers.placement.columns import ColumnGeneration, Prices
from optgap.solvers.placement.over_time.demand import Demand, at_a_moment
from optgap.solvers.placement.over_time.exact import unproven
from optgap.solvers.placement.patterns import (
    ROUNDING_ERROR,
    generate,
    generation_for,
    never_fits,
    optional,
    too_much,
)

BOUND_BY = "prices of tasks from column generation over node patterns, at every moment the best"
BOUND_BY_WAITING = "prices of tasks from column generation over node patterns, whenever they run"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work goes into a bound over time.

    Parameters
    ----------
    moments: at equal distances that prices are made at first; most: in all.
    units: of CPU per node that prices are proven with at most.
    """

    moments: int = 8
    most: int = 32
    units: int = 15_000


EFFORT = Effort()


def bound_over_time(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    tolerance: float = 1e-3,
    found: dict[str, Any] | None = None,
) -> Outcome:
    """A proven bound for running every task, migrations free.

    Parameters
    ----------
    tolerance: relative; prices at a moment are improved until they prove so much of what the
        patterns found so far give, and moments are added while they are expected to raise the whole
        bound by more.
    found: the patterns and prices of an earlier call for the same nodes and a superset of the
        tasks; those of this one where there is none.
    """
    lost = None if optional(problem) else never_fits(problem)
    if lost is not None:
        return lost
    assert problem.over_time is not None
    if problem.over_time.waits:
        return _waiting(problem, limits, tolerance)
    refinement = refinement_for(problem, tolerance, limits, {} if found is None else found)
    refinement.run()
    if refinement.short is not None:
        return refinement.short
    info: dict[str, float | int | str] = {
        "moments": len(refinement.pool.prices),
        "patterns": len(refinement.generation.master.columns),
    }
    if math.isinf(refinement.pool.integral):
        return Outcome(None, Status.NO_SOLUTION, limits.stop or Termination.COMPLETED, info=info)
    stop = limits.stop or Termination.COMPLETED
    return Outcome(
        None,
        Status.BOUND_ONLY,
        stop,
        bound=refinement.bound,
        bound_by=BOUND_BY,
        info=info,
        message=unproven(problem),
    )


def _whole(problem: PlacementProblem, base: float, beyond_idle: float, largest: float) -> float:
    """The bound in the objective's unit, less what rounding and times that count as the same allow.

    Parameters
    ----------
    base: what the idle cluster costs at a moment. beyond_idle: ∫ over all time; largest: the
        highest price of a task.
    """
    assert problem.over_time is not None
    idle = base * problem.over_time.horizon_s
    late = float(slack_s(problem.tasks.submit_s + problem.lasting_s).sum())
    off = ROUNDING_ERROR * (abs(beyond_idle) + abs(idle)) + 2 * largest * late
    proven = problem.per_second * (idle + beyond_idle - off)
    if not optional(problem):
        return proven
    asked = math.fsum((problem.tasks.demand_milli * problem.lasting_s).tolist())
    return problem.per_second * asked - proven


def _waiting(problem: PlacementProblem, limits: Limits, tolerance: float) -> Outcome:
    """The bound where tasks may start later than they are submitted."""
    assert problem.over_time is not None
    aggregate, there = Aggregate(problem), Aggregate(problem)
    aggregate.count = np.full_like(aggregate.count, len(problem.tasks))
    lasts = np.bincount(problem.tasks.class_of, problem.lasting_s, len(aggregate.classes))
    longest = problem.lasting_s.max()
    aggregate.demand = lasts / longest
    generation = generation_for(aggregate)
    # as good as the whole bound asks for, in which the nodes that there are stand idle
    generation.idle = there.base * problem.over_time.horizon_s / longest
    generate(generation, limits, tolerance, EFFORT.units)
    stop = limits.stop or generation.stopped or Termination.COMPLETED
    best = generation.best
    if best is None and aggregate.frag_weight:
        return Outcome(None, Status.NO_SOLUTION, stop)
    each = np.zeros(len(lasts)) if best is None else best.task - best.most
    if not aggregate.frag_weight:  # without the others, what runs costs no more
        each = np.maximum(each, 0.0)
    bound = _whole(
        problem, there.base, math.fsum((each * lasts).tolist()), float(np.abs(each).max())
    )
    return Outcome(
        None, Status.BOUND_ONLY, stop, bound=bound, bound_by=BOUND_BY_WAITING,
        message=unproven(problem),
    )  # fmt: skip


@dataclass(eq=False)
class Pool:
    """The best bound at every moment so far.

    Parameters
    ----------
    demand, class_of: when tasks run, and (T,) of which class each is.
    value: (E,) what is proven beyond the idle cluster, from each event to the next.
    prices: what proves it; largest: the highest of them.
    """

    demand: Demand
    class_of: IntArray
    value: FloatArray
    prices: list[Prices] = field(default_factory=list)
    largest: float = 0.0

    def add(self, prices: Prices) -> None:
        """Take what these prices prove wherever that is more."""
        each = prices.task[self.class_of[self.demand.task]] * self.demand.change
        np.maximum(self.value, np.cumsum(each) - prices.nodes, out=self.value)
        self.largest = max(self.largest, float(np.abs(prices.task).max()))
        self.prices.append(prices)

    @property
    def integral(self) -> float:
        """Over all time; minus infinity where nothing is proven yet."""
        if math.isinf(float(self.value.min())):
            return -math.inf
        return float(self.value @ self.demand.lasts_s)


@dataclass(order=True)
class Interval:
    """Between two moments that prices were made at; the most promising is the least.

    Parameters
    ----------
    promise: minus what the last prices raised the bound by at one of its ends, times its length.
    """

    promise: float
    begin_s: float = field(compare=False)
    end_s: float = field(compare=False)


def refinement_for(
    problem: PlacementProblem, tolerance: float, limits: Limits, found: dict[str, Any]
) -> Refinement:
    """Prices from those that were found for more tasks on the same nodes, where there are any.

    They prove as much for any demand: what they say does not depend on it.
    """
    known: Refinement | None = found.get("refinement")
    if known is None or not known.knows(problem):
        made = Refinement(problem, tolerance, limits, generation_for(Aggregate(problem)))
        found["refinement"] = made
        return made
    made = Refinement(problem, tolerance, limits, known.generation)
    for prices in known.pool.prices:
        made.pool.add(prices)
    return made


class Refinement:
    """Prices at more and more moments.

    Parameters
    ----------
    generation: for the nodes of the problem, and tasks of its classes among others.

    Attributes
    ----------
    short: the proof that some moment's tasks cannot run together, where that came out.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        tolerance: float,
        limits: Limits,
        generation: ColumnGeneration,
    ) -> None:
        self.problem, self.tolerance, self.limits = problem, tolerance, limits
        self.generation = generation
        self.demand = Demand.of(problem)
        place = {task: c for c, task in enumerate(generation.aggregate.classes)}
        own = np.array([place[task] for task in problem.tasks.classes], dtype=np.int64)
        least = -math.inf if generation.aggregate.frag_weight else 0.0  # no task lowers power
        start = np.full(len(self.demand.time_s), least)
        self.pool = Pool(self.demand, own[problem.tasks.class_of], start)
        self.short: Outcome | None = None
        self.seen: set[int] = set()

    def knows(self, problem: PlacementProblem) -> bool:
        """Whether the problem differs in nothing but tasks, and has none of another class."""
        own = self.problem
        same = own.cluster is problem.cluster and own.workload is problem.workload
        same = same and own.power == problem.power and own.objective == problem.objective
        return same and set(problem.tasks.classes) <= set(self.generation.aggregate.classes)

    def run(self) -> None:
        """Until little is expected to be gained, or the limits say stop."""
        times = self.demand.time_s
        edges = np.linspace(times[0], times[-1], EFFORT.moments + 1).tolist()
        open_ = [Interval(-math.inf, begin, end) for begin, end in itertools.pairwise(edges)]
        while open_ and len(self.seen) < EFFORT.most and self.limits.stop is None:
            promised = -sum(one.promise for one in open_) * self.problem.per_second
            if promised <= self.tolerance * max(self.bound, 0.0):
                return
            interval = heapq.heappop(open_)
            middle = (interval.begin_s + interval.end_s) / 2
            gained = self.prices_at(middle)
            if self.short is not None:
                return
            for begin, end in ((interval.begin_s, middle), (middle, interval.end_s)):
                heapq.heappush(open_, Interval(-gained * (end - begin), begin, end))
            self.limits.progress("prices over time", None, self.bound)

    @property
    def bound(self) -> float:
        """So far, in the objective's unit."""
        base = self.generation.aggregate.base
        return _whole(self.problem, base, self.pool.integral, self.pool.largest)

    def prices_at(self, time_s: float) -> float:
        """Make prices for what runs then, and tell what they raise the bound by there."""
        event = self.demand.at(time_s)
        if event in self.seen:
            return 0.0
        self.seen.add(event)
        running = self.demand.running(event)
        classes = len(self.generation.aggregate.classes)
        demand = np.bincount(self.pool.class_of[running], minlength=classes)
        self.generation.change_demand(demand, self.pool.prices)
        before = float(self.pool.value[event])
        generate(self.generation, self.limits, self.tolerance, EFFORT.units)
        if self.generation.short and self.limits.stop is None:
            self.short = self._infeasible(running, time_s)
        if self.generation.best is None:
            return 0.0
        self.pool.add(self.generation.best)
        return float(self.pool.value[event]) - before

    def _infeasible(self, running: IntArray, time_s: float) -> Outcome | None:
        """The proof that these tasks cannot run together, with when they would."""
        proof = too_much(at_a_moment(self.problem, running), self.limits)
        if proof is None:
            return None
        return replace(proof, message=f"{proof.message} at {shown(time_s)} s")
