"""What the tree asks of a primal heuristic, and what it shows to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.numerics import CLOSE, Counts


@dataclass
class SearchState:
    """The tree as a heuristic sees it.

    Parameters
    ----------
    generation: the tree's own restricted master: what is fixed in it must be let go again.
    incumbent: is offered placements.
    root: of all placements. best: nodes of the least bounds, the first of them first.
    bound: W that no placement undercuts.
    """

    generation: ColumnGeneration
    incumbent: Incumbent
    rng: np.random.Generator
    root: Node
    best: list[Node]
    bound: float

    @property
    def cutoff(self) -> float:
        """W that a placement must undercut to be better."""
        return self.incumbent.watts * (1 - 0.5 * CLOSE)

    @property
    def gap(self) -> float:
        """Between bound and incumbent, relative to the bound."""
        return self.cutoff / max(1e-12, self.bound) - 1

    def realised(self, counts: Counts) -> bool:
        """Whether the incumbent costs no more than the counts."""
        return self.incumbent.watts <= self.generation.master.watts(counts) * (1 + CLOSE)


class PrimalHeuristic(Protocol):
    """Looks for placements; the tree calls it between nodes and at whole counts.

    Attributes
    ----------
    before_proof: whether `realise` is called before it is decided if counts can be realised.
    """

    before_proof: bool

    def improve(self, state: SearchState, limits: Limits) -> None:
        """Look for any better placement."""

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Look for a placement with counts that the linear program of a node has."""
