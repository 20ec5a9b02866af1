"""A schedule of little energy for somebody who knows what is to come, beside its lower bound."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import chosen
from optgap.solvers.consolidation.outcome import bound_only
from optgap.solvers.consolidation.over_time.bounding import best_bound
from optgap.solvers.consolidation.over_time.parameters import BoundParams, HindsightParams
from optgap.solvers.consolidation.over_time.repacking import Repacking

ANEW = "packed anew at every arrival and end; moves at other times were not tried"
STAYS = "moves no task; the bound beside it lets tasks move for nothing"


def hindsight(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Return the best of many packings, and the bound of ``bound-over-time`` beside it.

    Tasks start as soon as their GPUs have room. Where tasks may move, all of them are packed anew
    at every event; elsewhere each is packed when it arrives. `given` as in `HindsightParams`.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    params = chosen(HindsightParams, given, "hindsight")
    bound, _ = best_bound(problem, limits, BoundParams())
    packed = Repacking(problem, limits, seed)
    packed.search(params.schedules)
    if not math.isfinite(packed.joules):
        return replace(bound_only(bound, limits), message="packing finds no room for a task")
    return Outcome(
        packed.solution(),
        Status.FEASIBLE,
        limits.stop or Termination.COMPLETED,
        claimed=packed.joules,
        bound=bound.watts,
        bound_by=bound.by,
        message=ANEW if problem.rules.migration else STAYS,
    )
