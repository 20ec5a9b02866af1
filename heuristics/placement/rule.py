"""A policy as data for the compiled event loop, and the door through which it is run.

All policies follow the cycle of the public simulators (FGD, and its fork for PWR): tasks that
no node can take fail for good; among the feasible nodes the highest score wins and the lowest
rank settles ties; then GPUs are selected in the chosen node. k whole GPUs are always its k
lowest-indexed idle ones.

Where a paper and its implementation disagree, the implementation is the default, because it is
what the published numbers were made with; ``score="exact"`` follows the paper's words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.heuristics.placement.values import NO_VALUES, NodeValues
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import FloatArray
from optgap.models.result import Outcome

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

CPU_SCALE = 128_000.0
"""The largest node's milli-vCPU, by which BestFit and DotProd scale."""
GPU_SCALE = 8000.0
"""The largest node's milli-GPU."""
NO_STEPS = np.zeros(0)


class Rule(NamedTuple):
    """A policy as data.

    Parameters
    ----------
    first, second: the kinds of its node scores.
    first_weight, second_weight: total = first_weight·first + second_weight·second.
    normalise: stretch the first score to 0..100 over the feasible nodes, in integers.
    gpu: how a fractional task's GPU is selected.
    random_node: draw a feasible node instead of scoring.
    watt_weight, fragment_weight: the EXACT score is −(watt_weight·ΔP + fragment_weight·ΔF).
    steps: (100,) the smallest fragment decrease in GPUs that earns 1..100 FGD points.
    values: what is left of a node; the VALUE score is EXACT's plus its change.
    """

    first: int
    second: int
    first_weight: float
    second_weight: float
    normalise: bool
    gpu: int
    random_node: bool
    watt_weight: float
    fragment_weight: float
    steps: FloatArray
    values: NodeValues

    @classmethod
    def of(
        cls,
        first: int,
        second: int = NONE,
        weights: tuple[float, float] = (1.0, 0.0),
        *,
        gpu: int = BEST,
        normalise: bool = False,
        random_node: bool = False,
        watts: float = 0.0,
        fragments: float = 0.0,
        steps: FloatArray = NO_STEPS,
        values: NodeValues = NO_VALUES,
    ) -> Rule:
        """A rule of what differs from the plainest."""
        return cls(
            first,
            second,
            weights[0],
            weights[1],
            normalise,
            gpu,
            random_node,
            float(watts),
            float(fragments),
            steps,
            values,
        )


def simulate(
    problem: PlacementProblem,
    rule: Rule,
    *,
    limits: Limits,
    seed: int,
    label: str,
) -> Outcome:
    """Run a policy over all arrivals, or until `limits` say stop: `engine.simulate`."""
    # here, as the engine's loop calls the compiled scores that stand beside each policy
    from optgap.heuristics.placement.engine import simulate as run

    return run(problem, rule, limits=limits, seed=seed, label=label)
