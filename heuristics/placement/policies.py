"""The online policies: each is a `Rule` for the compiled event loop.

All of them follow the cycle of the public simulators (FGD, and its fork for PWR): tasks that
no node can take fail for good; among the feasible nodes the highest score wins and the lowest
rank settles ties; then GPUs are selected in the chosen node. k whole GPUs are always its k
lowest-indexed idle ones.

Where a paper and its implementation disagree, the implementation is the default, because it is
what the published numbers were made with; ``score="exact"`` and ``strict_fraction=True`` follow
the paper's words.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.placement import tables
from optgap.heuristics.placement.engine import sigmoid_steps, simulate
from optgap.heuristics.placement.tables import Rule
from optgap.models.errors import InputError, one_of
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome


def pwr(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    score: str = "implemented",
    strict_fraction: bool = False,
) -> Outcome:
    """PWR, Alg. 1: the node and GPU whose power rises least.

    Parameters
    ----------
    score: ``implemented`` truncates the rise to whole W and stretches the scores of the
        feasible nodes to 0..100; ``exact`` is Alg. 1's argmin of Δ as printed.
    strict_fraction: hold fractional tasks to Cond. 3 as printed, D ≤ u − ⌊u⌋, which lets them
        use only GPUs that are in use already. On an idle cluster no fractional task can then
        ever start; the simulator accepts any GPU with enough left.

    Raises
    ------
    InputError: for an unknown `score`.
    """
    if _exact("pwr", score):
        rule = _rule(tables.EXACT, gpu=tables.EXACT, watts=1.0, strict=strict_fraction)
    else:
        rule = _rule(tables.PWR, gpu=tables.PWR, normalise=True, strict=strict_fraction)
    return simulate(problem, rule, limits=limits, seed=seed, label="pwr")


def fgd(
    problem: PlacementProblem, *, limits: Limits, seed: int, score: str = "implemented"
) -> Outcome:
    """FGD: the node and GPU whose expected fragmentation rises least.

    Parameters
    ----------
    score: ``implemented`` is the simulators' trunc(100·sigmoid(−ΔF)), ΔF in GPUs, for nodes
        and GPUs alike: changes within about 0.04 GPU of one another tie, and ranks decide;
        ``exact`` is the argmin of ΔF as the paper describes it.

    Raises
    ------
    InputError: for an unknown `score`.
    """
    if _exact("fgd", score):
        rule = _rule(tables.EXACT, gpu=tables.EXACT, fragments=1.0)
    else:
        rule = _rule(tables.FGD, gpu=tables.FGD)
    return simulate(problem, rule, limits=limits, seed=seed, label="fgd")


def pwr_fgd(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    alpha: float = 0.1,
    score: str = "implemented",
    strict_fraction: bool = False,
) -> Outcome:
    """PWR+FGD: both scores, weighted by α and 1 − α.

    Parameters
    ----------
    alpha: weight of PWR, 0 to 1.
    score: ``implemented`` adds PWR's score, stretched to 0..100, and FGD's points, which are
        not stretched, with the integer weights 1000·α and 1000·(1 − α); the heavier of the two
        selects the GPU, FGD at equal weights. ``exact`` is Eq. 5 as printed: the node and GPU
        with the least α·ΔP + (1 − α)·ΔF, P in W and F in GPUs.
    strict_fraction: see `pwr`.

    Raises
    ------
    InputError: for an α outside 0..1 or an unknown `score`.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
        raise InputError("policy pwr+fgd", "parameter alpha", alpha, "a number from 0 to 1")
    if _exact("pwr+fgd", score):
        rule = _rule(
            tables.EXACT,
            gpu=tables.EXACT,
            watts=alpha,
            fragments=(1 - alpha) / 1000,
            strict=strict_fraction,
        )
    else:
        weights = (float(round(alpha * 1000)), float(round((1 - alpha) * 1000)))
        rule = _rule(
            tables.PWR,
            tables.FGD,
            weights,
            gpu=tables.PWR if weights[0] > weights[1] else tables.FGD,
            normalise=True,
            strict=strict_fraction,
        )
    return simulate(problem, rule, limits=limits, seed=seed, label="pwr+fgd")


def greedy_exact(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """The node and GPU that raise the problem's own objective least, without any rounding.

    Ties go to the lowest rank, then to the lowest GPU. Under ``accepted_gpu`` every feasible
    node accepts the task alike, so fragmentation decides: what it leaves unusable is what
    later tasks cannot be given.
    """
    rule = greedy_rule(problem)
    return simulate(problem, rule, limits=limits, seed=seed, label="greedy-exact")


def greedy_rule(problem: PlacementProblem) -> Rule:
    """The rule of `greedy_exact`: scores are the objective's own increase, negated."""
    watts, fragments = problem.objective.weights
    if problem.objective.goal == "accepted_gpu":
        fragments = 1.0
    return _rule(tables.EXACT, gpu=tables.EXACT, watts=watts, fragments=fragments)


def best_fit(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """BestFit: the node with the least left, CPU and GPU weighing the same.

    Left-overs are shares of the largest node (128 vCPUs, 8 GPUs), truncated to percent.
    Fractional tasks get the fullest GPU that still fits them.
    """
    rule = _rule(tables.BESTFIT, normalise=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="bestfit")


def dot_product(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """DotProd: the node whose free CPU and GPU have the smallest dot product with the request.

    Shares of the largest node (128 vCPUs, 8 GPUs), in percent; a node's GPUs are one dimension.
    Fractional tasks get the fullest GPU that still fits them.
    """
    rule = _rule(tables.DOTPROD)
    return simulate(problem, rule, limits=limits, seed=seed, label="dotprod")


def gpu_packing(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """GpuPacking: GPUs in use first, then idle GPUs of nodes in use, idle nodes last.

    CPU-only tasks go to the lowest rank.
    """
    rule = _rule(tables.PACKING)
    return simulate(problem, rule, limits=limits, seed=seed, label="gpupacking")


def gpu_clustering(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """GpuClustering: nodes that have served the same kind of task (shares; 1, 2, … GPUs).

    CPU-only tasks go to the lowest rank.
    """
    rule = _rule(tables.CLUSTERING)
    return simulate(problem, rule, limits=limits, seed=seed, label="gpuclustering")


def random(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """Random: any feasible node, and any GPU that fits a fractional task, drawn from `seed`."""
    rule = _rule(tables.NONE, gpu=tables.RANDOM, random_node=True)
    return simulate(problem, rule, limits=limits, seed=seed, label="random")


def first_fit(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """FirstFit: the feasible node of the lowest rank and its lowest GPU that fits.

    The simulators have no such policy; it is the plainest baseline.
    """
    rule = _rule(tables.NONE, gpu=tables.FIRST)
    return simulate(problem, rule, limits=limits, seed=seed, label="firstfit")


def _exact(policy: str, score: Any) -> bool:
    known = ("implemented", "exact")
    if score not in known:
        raise InputError(f"policy {policy}", "parameter score", score, one_of(known))
    return bool(score == "exact")


def _rule(
    first: int,
    second: int = tables.NONE,
    weights: tuple[float, float] = (1.0, 0.0),
    *,
    gpu: int = tables.BEST,
    normalise: bool = False,
    random_node: bool = False,
    watts: float = 0.0,
    fragments: float = 0.0,
    strict: bool = False,
) -> Rule:
    return Rule(
        first,
        second,
        weights[0],
        weights[1],
        normalise,
        gpu,
        random_node,
        float(watts),
        float(fragments),
        999 if strict else 1000,
        sigmoid_steps(),
    )
