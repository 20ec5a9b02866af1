"""Whether integer counts are feasible: whether a placement has at most these counts.

With counts bounded by a vector (N, Z), the gap between the linear program's bound and the power of
the vector is small. Columns whose reduced cost is above that gap are in no such placement; of the
others there are often a few hundred. An integer program over them finds a placement, or proves that
there is none.
"""

from __future__ import annotations

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.set_cover import OPEN, SetCover, Verdict
from optgap.solvers.consolidation.column_generation.enumeration import enumerate_columns
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration, Relaxation
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, FeasibilityParams
from optgap.solvers.consolidation.numerics import SLACK_W, Counts


class CountFeasibility:
    """Decides on one vector of counts after another, and remembers those that are infeasible.

    Parameters
    ----------
    generation: column generation of the instance; its box and assignment are replaced.
    low: proven lower bounds on the counts.
    """

    def __init__(
        self,
        generation: ColumnGeneration,
        low: Counts,
        params: FeasibilityParams = DEFAULT.feasibility,
    ) -> None:
        self.generation, self.low, self.params = generation, low, params
        self.proven_infeasible: list[Counts] = []

    def dominating(self, counts: Counts) -> Counts | None:
        """A vector proven infeasible that is no smaller: `counts` are infeasible, too."""
        for other in self.proven_infeasible:
            if all(a <= b for a, b in zip(counts, other, strict=True)):
                return other
        return None

    def decide(
        self,
        counts: Counts,
        cutoff: float,
        limits: Limits,
        *,
        most_columns: int,
        effort: float = 1.0,
        quick: bool = False,
        assignment: ServerAssignment | None = None,
    ) -> Verdict:
        """Look for a placement below `cutoff` W with at most these counts.

        Parameters
        ----------
        assignment: of all tasks of several GPUs to servers: the verdict then holds under this
            assignment alone. Without one a task's GPUs may be in any servers.
        most_columns: columns beyond which nothing is decided. effort: factor on that number, and on
            the time of the search.
        quick: limit the time of the integer program to `FeasibilityParams.quick_s`.
        """
        relaxed, watts = self.relax(counts, cutoff, limits)
        if relaxed.bound > watts:
            self.proven_infeasible.append(counts)
            return Verdict(infeasible=True)
        if relaxed.duals is None:
            return OPEN
        most = int(min(effort * most_columns, self.params.max_columns))
        columns = enumerate_columns(
            self.generation, relaxed.duals, watts, most, limits, effort, assignment is not None
        )
        if not columns:
            return OPEN
        master = self.generation.master
        if quick:
            limits = limits.within(effort * self.params.quick_s * master.instance.tasks / 100)
        verdict = SetCover(master, columns, CountBox.up_to(counts), watts, assignment).solve(limits)
        if verdict.infeasible and assignment is None:
            self.proven_infeasible.append(counts)
        return verdict

    def relax(self, counts: Counts, cutoff: float, limits: Limits) -> tuple[Relaxation, float]:
        """The linear relaxation with at most these counts, and the power to stay below, W.

        Where the bound is above that power, the counts are infeasible.
        """
        master = self.generation.master
        # a fixed count has no useful dual, so it is bounded from above alone; counted servers may
        # sleep
        least = (a if a < b else 0 for a, b in zip(self.low[:-1], counts, strict=False))
        master.set_box(CountBox((*least, counts[-1]), counts))
        master.set_servers(ServerAssignment.none(master.instance.tasks, master.servers))
        asleep = master.static_w * (counts[-1] - self.low[-1])  # of servers that may sleep
        watts = min(cutoff + asleep, master.watts(counts)) + SLACK_W
        return self.generation.solve(limits, stop_bound=watts + SLACK_W, certified=True), watts
