"""The baselines of FGD's simulators, and FirstFit, which they have not.

c and g are what is free of a node in milli-vCPU and milli-GPU, over those of the largest node,
C = 128,000 and G = 8000. Fractional tasks get the fullest GPU that still fits them, but for the
last two; CPU-only tasks go to the lowest rank where a score does not tell nodes apart.

- *BestFit*: least left over, trunc(100·(1 − ½·(c − c_task)/C − ½·(g − g_task)/G)), stretched to
  0..100 over the feasible nodes.
- *DotProd*: the smallest product with the request, trunc(100·(1 − ½·(c·c_task/C² + g·g_task/G²))).
- *GpuPacking*: GPUs in use first, then idle GPUs of nodes in use, idle nodes last.
- *GpuClustering*: nodes that have served the same kind of task (shares; 1, 2, … GPUs), and those
  with less free GPU.
- *Random*: any feasible node, and any GPU that fits a fractional task, drawn from the seed.
- *FirstFit*: the feasible node of the lowest rank and its lowest GPU that fits.
"""

from __future__ import annotations

from optgap.heuristics.placement.engine import simulate
from optgap.heuristics.placement.rule import (
    BESTFIT,
    CLUSTERING,
    DOTPROD,
    FIRST,
    NONE,
    PACKING,
    RANDOM,
    Rule,
)
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome


def best_fit(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """BestFit."""
    rule = Rule(BESTFIT, normalise=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="bestfit")


def dot_product(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """DotProd."""
    return simulate(problem, Rule(DOTPROD), limits=limits, seed=seed, label="dotprod")


def gpu_packing(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """GpuPacking."""
    return simulate(problem, Rule(PACKING), limits=limits, seed=seed, label="gpupacking")


def gpu_clustering(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """GpuClustering."""
    return simulate(problem, Rule(CLUSTERING), limits=limits, seed=seed, label="gpuclustering")


def random(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Random."""
    rule = Rule(NONE, gpu=RANDOM, random_node=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="random")


def first_fit(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """FirstFit."""
    return simulate(problem, Rule(NONE, gpu=FIRST), limits=limits, seed=seed, label="firstfit")
