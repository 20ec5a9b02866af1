"""PWR (F. Lettich et al., Alg. 1): least rise of the power of a node and its GPUs.

The score of a task on node n with GPUs g is −ΔP, with P = P_CPU + P_GPU of Eq. 1-2; n must have
room (Eq. 6). The simulator truncates ΔP to whole W and stretches the scores of the feasible nodes
to 0..100; ``score="exact"`` is Alg. 1's argmin of Δ as printed.

Cond. 3 as printed, D ≤ u − ⌊u⌋, lets fractional tasks use only GPUs that are in use already. On an
idle cluster no such task could ever start. Like the simulator, this accepts any GPU with room.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.placement.engine import simulate
from optgap.heuristics.placement.parameters import PwrParams
from optgap.heuristics.placement.rule import EXACT, PWR, Rule
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def pwr(problem: PlacementProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run PWR; `given` is as in `PwrParams`.

    Raises
    ------
    InputError: for an unknown `score`.
    """
    options = chosen(PwrParams, given, "policy pwr", "parameter ")
    if options.score == "exact":
        rule = Rule(EXACT, gpu=EXACT, watt_weight=1.0)
    else:
        rule = Rule(PWR, gpu=PWR, normalise=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="pwr")
