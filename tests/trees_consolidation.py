"""Trees of counts for small consolidation problems, and what holds wherever one ends."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.exhaustive import exhaustive
from optgap.solvers.consolidation.levels import Levels, counted, levels
from optgap.solvers.consolidation.packing import IntArray, Packing
from optgap.solvers.consolidation.search import Places, Search


def built(pack: Packing, own: Levels | None = None) -> tuple[Tree, Search]:
    """A tree with the placement that one try has found, and what holds that."""
    own, search = own or levels(pack), Search(pack, 0)
    search.build(Limits(), tries=1)
    return Tree(pack, own, counted(pack, own, Limits()), search, 0), search


def counts_of(pack: Packing, own: Levels, places: Places) -> IntArray:
    """GPUs by level, and servers."""
    inside = Packing.contents(list(places))
    top = np.array([own.of[tasks].max() for tasks in inside.values()])
    servers = len({int(pack.gpu_server[g]) for g in inside})
    counts = [int((top >= q).sum()) for q in range(len(own.quanta))]
    return np.array([*counts, servers], dtype=np.int64)


def least_watts(problem: ConsolidationProblem) -> float | None:
    """Of all placements, which are enumerated; None where there is none."""
    truth = exhaustive(problem, limits=Limits(20), seed=0)
    return None if truth.solution is None else problem.evaluate(truth.solution).objective


def holds(problem: ConsolidationProblem, search: Search, bound: float, least: float) -> None:
    """A bound is one, and the best placement keeps the rules."""
    assert min(bound, search.watts) <= least * (1 + 1e-9) + 1e-5
    assert search.places is not None
    assert problem.check(search.pack.solution(search.places)) == []
