"""A node of the tree: a box of counts and an assignment to servers, with a bound on both."""

from __future__ import annotations

from dataclasses import dataclass, field

from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.numerics import Counts


@dataclass(order=True)
class Node:
    """Ordered by bound, then the deepest first, then the oldest.

    Parameters
    ----------
    bound: lower bound on the power of the node's placements, W.
    height: minus its depth. number: in order of creation.
    box, assignment: what the node's placements keep.
    rounded: the counts of its parent's linear program, rounded up into the box.
    """

    bound: float
    height: int
    number: int
    box: CountBox = field(compare=False)
    assignment: ServerAssignment = field(compare=False)
    rounded: Counts = field(compare=False, default=())
