"""The least power at every moment of a schedule, for a picture of what it leaves to gain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementObjective, PlacementProblem
from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.solution import PlacementSolution
from optgap.solvers.placement.over_time.bounding import refinement_for


@dataclass(frozen=True, eq=False)
class BoundCurve:
    """What is proven of the tasks that a schedule runs, at the times at which it runs them.

    Parameters
    ----------
    time_s: (S,) from when on each holds, s; the first is the horizon's begin.
    power_w: (S,) least power of whatever runs then, tasks migrating for free, W.
    energy_j: least energy of running these tasks at these times, J.
    """

    time_s: FloatArray
    power_w: FloatArray
    energy_j: float


def bound_curve(
    problem: PlacementProblem,
    solution: PlacementSolution,
    *,
    limits: Limits | None = None,
    tolerance: float = 5e-4,
) -> BoundCurve:
    """The curve of `bound-over-time` where starts are those of a schedule.

    Where nothing waits, `energy_j` is that method's bound for the tasks that the schedule runs.

    Parameters
    ----------
    tolerance: as for `bound_over_time`.
    """
    rules, begun = problem.over_time, solution.start_s
    assert rules is not None
    assert begun is not None
    some = problem.restrict(solution)
    placed = np.flatnonzero(solution.node >= 0)
    lasting = problem.lasting_s[placed]
    start = some.tasks.submit_s if not rules.waits else begun[placed]
    until = max(rules.end_s, float((start + lasting).max()))
    given = PlacementProblem.of(
        some.cluster,
        replace(some.tasks, submit_s=start, duration_s=lasting),
        some.workload,
        some.ranks,
        some.power,
        PlacementObjective("energy"),
        over_time=replace(rules, queue="reject", horizon_s=until - rules.begin_s),
    )
    found = refinement_for(given, tolerance, limits or Limits(), {})
    found.run()
    base = found.generation.aggregate.base
    time = np.append(rules.begin_s, np.maximum(found.demand.time_s, rules.begin_s))
    return BoundCurve(
        time,
        base + np.append(0.0, found.pool.value),
        found.bound - base * (until - rules.end_s),
    )
