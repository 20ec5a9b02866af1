"""The interface of a primal heuristic: what the tree calls, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.branching import Node
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.numerics import CLOSE, Counts


@dataclass
class SearchState:
    """The tree as a heuristic sees it.

    Parameters
    ----------
    generation: the tree's own column generation; columns that a heuristic fixes must be freed
        again.
    incumbent: placements are offered to it.
    root: the root node. best: open nodes of the least bounds, ascending.
    bound: the tree's lower bound, W.
    """

    generation: ColumnGeneration
    incumbent: Incumbent
    rng: np.random.Generator
    root: Node
    best: list[Node]
    bound: float

    @property
    def cutoff(self) -> float:
        """The power that a better placement stays below, W."""
        return self.incumbent.watts * (1 - 0.5 * CLOSE)

    @property
    def gap(self) -> float:
        """The gap between bound and incumbent, relative to the bound."""
        return self.cutoff / max(1e-12, self.bound) - 1

    def realised(self, counts: Counts) -> bool:
        """Whether the incumbent's power is at most that of the counts."""
        return self.incumbent.watts <= self.generation.master.watts(counts) * (1 + CLOSE)


class PrimalHeuristic(Protocol):
    """Looks for placements; the tree calls it between nodes and at integer counts.

    Attributes
    ----------
    before_proof: whether `realise` is called before the tree tries to prove counts infeasible.
    """

    before_proof: bool

    def improve(self, state: SearchState, limits: Limits) -> None:
        """Look for any better placement."""

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Look for a placement with these counts, which a node's linear program has."""
