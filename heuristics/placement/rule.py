"""Policy as data for the compiled event loop.

All policies follow the cycle of the public simulators (FGD, and its fork for PWR): tasks that
no node can take fail for good; among the feasible nodes the highest score wins and the lowest
rank settles ties; then GPUs are selected in the chosen node. k whole GPUs are always its k
lowest-indexed idle ones.

If a paper and its implementation disagree, the implementation is the default, because it made the
published numbers; ``score="exact"`` follows the paper's words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.heuristics.placement.values import NO_WORTH, NodeWorth
from optgap.models.placement.arrays import FloatArray

# Node scores
NONE = 0
PWR = 1
FGD = 2
EXACT = 3
VALUE = 4
BESTFIT = 5
DOTPROD = 6
PACKING = 7
CLUSTERING = 8

# GPU selection; PWR, FGD, EXACT and VALUE stand for "the GPU with the best such score"
BEST = 10
FIRST = 11
RANDOM = 12

NO_STEPS = np.zeros(0)


class Rule(NamedTuple):
    """Policy as data.

    Parameters
    ----------
    first, second: the kinds of its node scores.
    first_weight, second_weight: total = first_weight·first + second_weight·second.
    normalise: stretch the first score to 0..100 over the feasible nodes, in integers.
    gpu: how a fractional task's GPU is selected.
    random_node: draw a feasible node instead of scoring.
    watt_weight, fragment_weight: the EXACT score is −(watt_weight·ΔP + fragment_weight·ΔF).
    steps: (100,) the smallest fragment decrease in GPUs that earns 1..100 FGD points.
    values: worth of a node's free capacity; the VALUE score is the EXACT score plus its change.
    """

    first: int
    second: int = NONE
    first_weight: float = 1.0
    second_weight: float = 0.0
    normalise: bool = False
    gpu: int = BEST
    random_node: bool = False
    watt_weight: float = 0.0
    fragment_weight: float = 0.0
    steps: FloatArray = NO_STEPS
    values: NodeWorth = NO_WORTH
