"""PWR+FGD (F. Lettich et al., Eq. 5): the scores of PWR and FGD, weighted by α and 1 − α.

The simulator adds PWR's score, stretched to 0..100, and FGD's points, which are not stretched, with
the integer weights 1000·α and 1000·(1 − α); the heavier of the two selects the GPU, FGD at equal
weights. ``score="exact"`` is Eq. 5 as printed: the node and GPU with the least
α·ΔP + (1 − α)·ΔF, P in W and F in GPUs.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.placement.engine import simulate
from optgap.heuristics.placement.fgd import sigmoid_steps
from optgap.heuristics.placement.parameters import PwrFgdParams
from optgap.heuristics.placement.rule import EXACT, FGD, PWR, Rule
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def pwr_fgd(problem: PlacementProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run PWR+FGD; `given` is as in `PwrFgdParams`.

    Raises
    ------
    InputError: for an α outside 0..1 or an unknown `score`.
    """
    options = chosen(PwrFgdParams, given, "policy pwr+fgd", "parameter ")
    alpha = options.alpha
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
        raise InputError("policy pwr+fgd", "parameter alpha", alpha, "a number from 0 to 1")
    if options.score == "exact":
        per_milli = (1 - alpha) / 1000
        rule = Rule(EXACT, gpu=EXACT, watt_weight=float(alpha), fragment_weight=per_milli)
    else:
        weights = (float(round(alpha * 1000)), float(round((1 - alpha) * 1000)))
        gpu = PWR if weights[0] > weights[1] else FGD
        rule = Rule(PWR, FGD, *weights, gpu=gpu, normalise=True, steps=sigmoid_steps())
    return simulate(problem, rule, limits=limits, seed=seed, label="pwr+fgd")
