"""Baselines of FGD's simulators, and FirstFit, which the simulators lack.

c and g are the free milli-vCPU and milli-GPU of a node; C = 128,000 and G = 8000 are those of the
largest node. Except under the last two policies, a fractional task gets the fullest GPU that still
fits it. A CPU-only task goes to the lowest rank if scores do not tell nodes apart.

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
    """Run BestFit."""
    rule = Rule(BESTFIT, normalise=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="bestfit")


def dot_product(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run DotProd."""
    return simulate(problem, Rule(DOTPROD), limits=limits, seed=seed, label="dotprod")


def gpu_packing(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run GpuPacking."""
    return simulate(problem, Rule(PACKING), limits=limits, seed=seed, label="gpupacking")


def gpu_clustering(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run GpuClustering."""
    return simulate(problem, Rule(CLUSTERING), limits=limits, seed=seed, label="gpuclustering")


def random(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run Random."""
    rule = Rule(NONE, gpu=RANDOM, random_node=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="random")


def first_fit(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run FirstFit."""
    return simulate(problem, Rule(NONE, gpu=FIRST), limits=limits, seed=seed, label="firstfit")
