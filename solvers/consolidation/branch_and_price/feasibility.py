"""Whether there is a placement with given counts: decided by the columns that it could use.

Where counts of GPUs are held down to a vector (N, Z), the linear program leaves little between its
value and what the vector costs, and columns whose reduced cost is more than that are in no
placement with such counts. Often a few hundred are left: an integer program over them finds a
placement, or there is none.
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
    """Decides on counts one after another, and remembers what is denied.

    Parameters
    ----------
    generation: whose instance and levels they are.
    low: counts that no placement has less of.
    """

    def __init__(
        self,
        generation: ColumnGeneration,
        low: Counts,
        params: FeasibilityParams = DEFAULT.feasibility,
    ) -> None:
        self.generation, self.low, self.params = generation, low, params
        self.refused: list[Counts] = []

    def refusing(self, counts: Counts) -> Counts | None:
        """Counts that are denied already and no fewer anywhere."""
        for other in self.refused:
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
        """Look for a placement for less than `cutoff` W whose counts are no more.

        Parameters
        ----------
        assignment: of all tasks of several GPUs to servers, for which alone the verdict is then;
            without one a task's GPUs may be anywhere.
        most_columns: with more, nothing is decided. effort: times as many, and as long a search.
        quick: the program has little time.
        """
        relaxed, watts = self.relax(counts, cutoff, limits)
        if relaxed.bound > watts:
            self.refused.append(counts)
            return Verdict(denied=True)
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
        if verdict.denied and assignment is None:
            self.refused.append(counts)
        return verdict

    def relax(self, counts: Counts, cutoff: float, limits: Limits) -> tuple[Relaxation, float]:
        """The linear program of no more counts, and what a placement may cost, W.

        Where its bound is more than that, there is no placement with such counts.
        """
        master = self.generation.master
        # counts that are fixed would take the duals away; servers that are counted may sleep
        least = (a if a < b else 0 for a, b in zip(self.low[:-1], counts, strict=False))
        master.set_box(CountBox((*least, counts[-1]), counts))
        master.set_servers(ServerAssignment.none(master.instance.tasks, master.servers))
        asleep = master.static_w * (counts[-1] - self.low[-1])  # counted all the same
        watts = min(cutoff + asleep, master.watts(counts)) + SLACK_W
        return self.generation.solve(limits, enough=watts + SLACK_W, certified=True), watts
