"""With many levels of cost: the cheapest cover by all columns that a better placement can use.

A placement for less than the incumbent uses no column whose reduced cost is more than what lies
between bound and incumbent. Where each task has a cost of its own, counts are hardly ever whole,
but the incumbent is soon so good that some thousand columns are left; the cheapest cover by them is
the optimum, or nothing is cheaper.
"""

from __future__ import annotations

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.set_cover import Cover, SetCover
from optgap.solvers.consolidation.column_generation.enumeration import enumerate_columns
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, CheapestCoverParams


class CheapestCover:
    """Integer programs over all columns of use, each given twice the time of the one before."""

    def __init__(
        self,
        generation: ColumnGeneration,
        params: CheapestCoverParams = DEFAULT.cheapest_cover,
    ) -> None:
        self.generation, self.params = generation, params
        self.seconds = params.first_s
        self._next = 0.0

    @property
    def due(self) -> bool:
        """Whether as long has passed as the last one took."""
        return working_time() >= self._next

    def solve(
        self, hull: CountBox, nothing: ServerAssignment, cutoff: float, limits: Limits
    ) -> Cover | None:
        """For a box around all that is open; None where there are too many columns.

        Its bound holds for every placement.
        """
        began, master = working_time(), self.generation.master
        master.set_box(hull)
        master.set_servers(nothing)
        relaxed = self.generation.solve(limits, enough=cutoff, certified=True)
        cover = None
        if relaxed.duals is not None and relaxed.bound < cutoff and limits.stop is None:
            own = limits.within(self.seconds)
            found = enumerate_columns(
                self.generation, relaxed.duals, cutoff, self.params.columns, own
            )
            if found.complete and limits.stop is None:
                self.seconds *= 2.0
                cover = Cover(None, cutoff, True)
                if found.columns:
                    cover = SetCover(master, found.columns, hull, cutoff).solve(own, first=False)
        self._next = working_time() + self.params.wait * (working_time() - began)
        return cover
