"""A bound over a whole horizon, from prices of tasks that each prove one at every moment.

The bound of `columns`, idle cost + Σ_c π_c d_c − K(π) with K(π) = Σ_t n_t·max(0, V_t(π)), holds for
any demand d: the prices need not be the best for it. So every price vector bounds the cost of every
moment by one product with the tasks that run then; the largest at each moment, integrated over
time, bounds every schedule, migrating or not. Prices are made at moments at equal distances, or
after all events if these are few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import IntArray
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import shown, slack_s
from optgap.solvers.placement.aggregate import UNITS, Aggregate
from optgap.solvers.placement.columns import ColumnGeneration
from optgap.solvers.placement.exact.infeasible import never_fits
from optgap.solvers.placement.over_time.demand import Demand, at_a_moment
from optgap.solvers.placement.over_time.pool import Counting, Pool
from optgap.solvers.placement.patterns import (
    ROUNDING_ERROR,
    generate,
    generation_for,
    optional,
    too_much,
)

BOUND_BY = "prices of tasks from column generation over node patterns, at every moment the best"


@dataclass(frozen=True, slots=True)
class MomentEffort:
    """Amounts of work for a bound over time.

    Parameters
    ----------
    moments: at equal distances that prices are made at; up to twice as many events all count.
    units: of CPU per node that prices are proven with at most.
    """

    moments: int = 64
    units: int = 15_000


EFFORT = MomentEffort()


def bound_over_time(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    tolerance: float = 5e-4,
    found: dict[str, Any] | None = None,
) -> Outcome:
    """Return a proven bound for running every task, migrations free.

    Parameters
    ----------
    tolerance: relative; prices at a moment are improved until they prove so much of what the
        patterns found so far give.
    found: the prices of an earlier call for the same nodes and a superset of the tasks, which prove
        the bound without others; those of this call where there is none.
    """
    lost = "" if optional(problem) else never_fits(problem)
    if lost:
        return Outcome(None, Status.INFEASIBLE, message=lost)
    assert problem.over_time is not None
    refinement = refinement_for(problem, tolerance, limits, {} if found is None else found)
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
    )


def _whole(problem: PlacementProblem, base: float, beyond_idle: float, largest: float) -> float:
    """Return the bound in the objective's unit, less the error of rounding and of equal times.

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


def counts(problem: PlacementProblem) -> bool:
    """Tell whether what is in use is counted: where it costs, and nothing else does."""
    return problem.objective.goal == "energy" and problem.power.cpu_rule == "packages"


def refinement_for(
    problem: PlacementProblem, tolerance: float, limits: Limits, found: dict[str, Any]
) -> Refinement:
    """Return prices that were found for more tasks on the same nodes; without any, make them.

    They prove as much for any demand: what they say does not depend on it.
    """
    known: Refinement | None = found.get("refinement")
    if known is None or not known.knows(problem):
        aggregate = Aggregate(problem, counting=counts(problem))
        made = Refinement(problem, tolerance, limits, generation_for(aggregate))
        made.run()
        if made.short is None and limits.stop is None:
            found["refinement"] = made
        return made
    made = Refinement(problem, tolerance, limits, known.generation)
    if made.counting is not None and known.counting is not None:
        made.counting.know(known.counting)
        made.pool.in_use(made.counting.least)
    for prices in known.pool.prices:
        made.pool.add(prices)
    return made


class Refinement:
    """Prices at moments of a horizon, and what they prove at every moment.

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
        class_of, none = own[problem.tasks.class_of], np.zeros((UNITS, len(start)))
        self.pool = Pool(self.demand, class_of, start, none)
        self.counting: Counting | None = None
        if generation.aggregate.counting:
            self.counting = Counting(generation.aggregate, self.demand, class_of)
        self.short: Outcome | None = None

    def knows(self, problem: PlacementProblem) -> bool:
        """Tell whether the problem differs in nothing but tasks, and has none of another class."""
        own = self.problem
        same = own.cluster is problem.cluster and own.workload is problem.workload
        same = same and own.power == problem.power and own.objective == problem.objective
        return same and set(problem.tasks.classes) <= set(self.generation.aggregate.classes)

    def run(self) -> None:
        """Make prices at moments at equal distances, or if few after all events, until a stop."""
        moments = self.demand.time_s
        if len(moments) > 2 * EFFORT.moments:
            moments = np.linspace(moments[0], moments[-1], 2 * EFFORT.moments + 1)[1::2]
        for event in np.unique([self.demand.at(time_s) for time_s in moments.tolist()]).tolist():
            self.prices_at(event)
            if self.short is not None or self.limits.stop is not None:
                return

    def running(self, event: int) -> IntArray:
        """Return (classes,) how many tasks of each run after an event."""
        of = self.pool.class_of[self.demand.running(event)]
        return np.bincount(of, minlength=len(self.generation.aggregate.classes))

    @property
    def bound(self) -> float:
        """So far, in the objective's unit."""
        base, largest = self.generation.aggregate.base, self.pool.largest
        if self.counting is not None:
            largest += self.counting.rises(self.pool.dearest)
        return _whole(self.problem, base, self.pool.integral, largest)

    def prices_at(self, event: int) -> None:
        """Make prices for what runs after an event."""
        demand = self.running(event)
        if self.counting is not None:
            self._count(event, demand)
        least = self.pool.least[:, event]
        self.generation.change_demand(demand, self.limits, self.pool.prices, least)
        generate(self.generation, self.limits, self.tolerance, EFFORT.units)
        if self.generation.short and self.limits.stop is None:
            self.short = self._infeasible(event)
        if self.generation.best is not None:
            self.pool.add(self.generation.best)
        self.limits.progress("prices over time", None, self.bound)

    def _count(self, event: int, demand: IntArray) -> None:
        """Prove how many are in use after an event, of what costs enough for that to matter."""
        assert self.counting is not None
        aggregate = self.generation.aggregate
        little = self.tolerance * (aggregate.base + float(self.pool.value[event]))
        # rounding gives half of one, of which the program evades a part
        which = np.flatnonzero(aggregate.unit_cost / 4 > little).tolist()
        self.counting.offer(self.generation.master.columns)
        self.counting.raise_at(demand, which, self.limits, units=EFFORT.units)
        self.pool.in_use(self.counting.least)

    def _infeasible(self, event: int) -> Outcome | None:
        """Return the proof that the tasks after an event cannot run together, with the time."""
        proof = too_much(at_a_moment(self.problem, self.demand.running(event)), self.limits)
        if proof is None:
            return None
        return replace(proof, message=f"{proof.message} at {shown(self.demand.time_s[event])} s")
