"""FGD (Weng et al., USENIX ATC 2023): least rise of a node's expected fragmentation.

F_n(M) is the milli-GPU of node n that tasks drawn from the target workload M cannot use (section
4); a task scores by ΔF_n(M). The simulators score nodes and GPUs alike with
trunc(100·sigmoid(−ΔF)), ΔF in GPUs: changes within about 0.04 GPU of one another tie, and ranks
decide; ``score="exact"`` is the argmin of ΔF as the paper describes it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from optgap.heuristics.placement.engine import simulate
from optgap.heuristics.placement.parameters import FgdParams
from optgap.heuristics.placement.rule import EXACT, FGD, Rule
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import FloatArray
from optgap.models.result import Outcome
from optgap.models.spec import chosen


def fgd(problem: PlacementProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run FGD; `given` is as in `FgdParams`.

    Raises
    ------
    InputError: for an unknown `score`.
    """
    if chosen(FgdParams, given, "policy fgd", "parameter ").score == "exact":
        rule = Rule(EXACT, gpu=EXACT, fragment_weight=1.0)
    else:
        rule = Rule(FGD, gpu=FGD, steps=sigmoid_steps())
    return simulate(problem, rule, limits=limits, seed=seed, label="fgd")


@lru_cache(maxsize=1)
def sigmoid_steps() -> FloatArray:
    """Return the smallest x with trunc(100·sigmoid(x)) ≥ 1, 2, …, 100, by bisection, (100,).

    FGD's points are a step function of the fragment change, and one wrong point alters every
    later placement. With the steps found once by Python's `math.exp`, no other exponential
    decides on which side of a step a change falls.
    """
    return np.array([_step(points) for points in range(1, 101)])


def _step(points: int) -> float:
    low, high = -64.0, 64.0
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return high
        if math.trunc(100 * (1 / (1 + math.exp(-middle)))) >= points:
            high = middle
        else:
            low = middle
