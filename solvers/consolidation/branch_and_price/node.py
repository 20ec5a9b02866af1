"""A node of the tree: a box of counts and an assignment to servers, with a bound on both."""

from __future__ import annotations

from dataclasses import dataclass, field

from optgap.solvers.consolidation.column_generation.master import Basis
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.numerics import Counts


@dataclass(order=True)
class Node:
    """Ordered by bound, then the deepest, then the oldest first.

    Parameters
    ----------
    bound: W that no placement in the node undercuts.
    height: minus its depth. number: in order of creation.
    near: whole counts in the box near those of its parent's linear program.
    basis: where its parent's linear program ended.
    """

    bound: float
    height: int
    number: int
    box: CountBox = field(compare=False)
    assignment: ServerAssignment = field(compare=False)
    near: Counts = field(compare=False, default=())
    basis: Basis | None = field(compare=False, default=None)
