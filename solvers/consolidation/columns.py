"""Set partitioning over what one GPU may hold: column generation, dives, branch-and-price."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Termination
from optgap.solvers.consolidation.bounds import Proof, bounded, column_bound
from optgap.solvers.consolidation.dive import dive_to
from optgap.solvers.consolidation.levels import closed_bound, counted, level_bound, levels
from optgap.solvers.consolidation.outcomes import closed, outcome
from optgap.solvers.consolidation.packing import Packing, packing
from optgap.solvers.consolidation.partition import Partition
from optgap.solvers.consolidation.search import MOST_STEPS, STEPS, Search

STEP_S = 1.5e-7
"""About what a step of annealing takes."""
MOST_BRANCHED = 80
"""Tasks up to which there is branch-and-price."""


def columns(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    dives: int = 20,
    nodes: int = 3000,
) -> Outcome:
    """Columns give the bound, rounded up level by level; search and dives the placement.

    What is left between them is closed by branch-and-price where GPUs and servers are equal; see
    `partition.py`. With ``gang=server`` its bounds let a task's GPUs be anywhere, so that a gap
    may stay.

    Parameters
    ----------
    dives: how many are tried, each with other choices among equals.
    nodes: of branch-and-price at most, up to `MOST_BRANCHED` tasks; 0 for none.

    Raises
    ------
    InputError: for a negative number of either.
    """
    for name, value in (("dives", dives), ("nodes", nodes)):
        if value < 0:
            raise InputError("columns", name, value, "a number of at least 0")
    pack = packing(problem)
    search = Search(pack, seed)
    search.build(limits)
    own = levels(pack)
    counts = counted(pack, own, limits)
    proof = Proof(closed_bound(pack, own, counts), "GPUs counted by level", counts)
    # where it works it is done before annealing has begun
    proof = _branched(pack, search, proof, limits.within(0.3 * limits.remaining), nodes // 20)
    if not closed(search, proof):
        _anneal(pack, search, limits, min(pack.tasks / 40, 0.2 * limits.remaining))
        proof = _better(proof, _proof(pack, search, limits, seed))
        dive_to(pack, search, proof.watts, limits, seed, dives)
    if not closed(search, proof) and limits.stop is None:
        # the dives may have found counts that are easier to prove
        proof = _better(proof, _proof(pack, search, limits, seed))
        proof = _branched(pack, search, proof, limits, nodes)
    return outcome(pack, search, proof, limits.stop or Termination.COMPLETED)


def _better(one: Proof, other: Proof) -> Proof:
    return max(one, other, key=lambda proof: proof.watts)


def _branched(pack: Packing, search: Search, proof: Proof, limits: Limits, nodes: int) -> Proof:
    """The proof after branch-and-price, which offers `search` what it finds."""
    able = pack.uniform and pack.tasks <= MOST_BRANCHED and math.isfinite(search.watts)
    if not able or not nodes or closed(search, proof) or limits.stop is not None:
        return proof
    tree = Partition(pack, levels(pack), proof.counts, proof.watts, search, limits)
    bound = min(tree.run(nodes), search.watts)
    if bound <= proof.watts:
        return proof
    return Proof(bound, "branch-and-price on pairs of tasks", proof.counts)


def bound_columns(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """The bound alone."""
    pack = packing(problem, scaled="least")
    search = Search(pack, seed)
    search.build(limits, tries=3)
    _anneal(pack, search, limits, min(1.0, pack.tasks / 100, 0.1 * limits.remaining))
    proof = _proof(pack, search, limits, seed)
    return bounded(proof.watts, proof.by, limits)


def _anneal(pack: Packing, search: Search, limits: Limits, seconds: float) -> None:
    """Improve the placement, unless annealing once would already take half of the time."""
    once = STEP_S * min(MOST_STEPS, STEPS * int(pack.width.sum()))
    if once <= 0.5 * limits.remaining:
        search.improve(limits, seconds, _closed_form(pack, limits))


def _closed_form(pack: Packing, limits: Limits) -> float:
    """A bound that ends a search that has reached it."""
    own = levels(pack)
    return closed_bound(pack, own, counted(pack, own, limits))


def _proof(pack: Packing, search: Search, limits: Limits, seed: int) -> Proof:
    """Counts by level, then columns, then servers by level, as far as time allows."""
    own = levels(pack)
    places = search.places or []
    tops = [max(int(own.of[ell]) for ell in tasks) for tasks in pack.contents(places).values()]
    hoped = tuple(int(np.sum(np.array(tops) >= q)) for q in range(len(own.quanta)))
    half = limits.within(0.4 * min(limits.remaining, 3600))
    counts = counted(pack, own, half, hoped if places else None)
    best = Proof(closed_bound(pack, own, counts), "contents of a GPU, rounded up by level", counts)
    if limits.stop is None:
        joint = column_bound(pack, search, limits.within(0.5 * min(limits.remaining, 3600)))
        if joint > best.watts:
            best = Proof(joint, "linear program over contents of a GPU", counts)
    if search.watts > best.watts * (1 + 1e-9) and limits.stop is None:
        found = level_bound(pack, own, counts, limits.within(20), watts=search.watts, seed=seed)
        if found.watts > best.watts:
            best = Proof(found.watts, found.by, counts)
    return best
