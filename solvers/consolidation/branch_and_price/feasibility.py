"""Whether there is a placement with given counts: decided by the columns that it could use.

Where counts of GPUs are held down to a vector (N, Z), the linear program leaves little between its
value and what the vector costs, and columns whose reduced cost is more than that are in no
placement with such counts. Often a few hundred are left: an integer program over them finds a
placement, or there is none. Programs over some of the columns come first: they deny nothing, but
often place in a fraction of the time.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.set_cover import SetCover
from optgap.solvers.consolidation.column_generation.enumeration import (
    Enumerated,
    enumerate_columns,
)
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration, Relaxation
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, FeasibilityParams
from optgap.solvers.consolidation.numerics import SLACK_W, Column, Counts, Placement


@dataclass(frozen=True)
class Verdict:
    """What is known of counts.

    Parameters
    ----------
    denied: no placement has counts that are no more anywhere.
    placement: with such counts; None where none was found.
    """

    denied: bool
    placement: Placement | None = None


OPEN = Verdict(False)


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
        most_columns: with more, nothing is denied. effort: times as many, and as long a search.
        quick: only one turn of each program.
        """
        relaxed, watts = self.relax(counts, cutoff, limits)
        if relaxed.bound > watts:
            self.refused.append(counts)
            return Verdict(denied=True)
        if relaxed.duals is None:
            return OPEN
        most = int(min(effort * most_columns, self.params.max_columns))
        found = self._columns(relaxed, watts, most, limits, effort, assignment is not None)
        if not found.columns:
            return OPEN
        verdict = self._search(found, counts, watts, limits, assignment, quick=quick)
        if verdict.denied and assignment is None:
            self.refused.append(counts)
        return verdict

    def relax(self, counts: Counts, cutoff: float, limits: Limits) -> tuple[Relaxation, float]:
        """The linear program of no more counts, and what a placement may cost, W.

        Where its bound is more than that, there is no placement with such counts.
        """
        master, instance = self.generation.master, self.generation.instance
        # counts that are fixed would take the duals away; servers that are counted may sleep
        least = (a if a < b else 0 for a, b in zip(self.low[:-1], counts, strict=False))
        master.set_box(CountBox((*least, counts[-1]), counts))
        master.set_servers(ServerAssignment.none(instance.tasks, master.servers))
        asleep = master.static_w * (counts[-1] - self.low[-1])  # counted all the same
        watts = min(cutoff + asleep, master.watts(counts)) + SLACK_W
        return self.generation.solve(limits, enough=watts + SLACK_W, certified=True), watts

    def _columns(
        self, relaxed: Relaxation, watts: float, most: int, limits: Limits, effort: float,
        parts: bool,
    ) -> Enumerated:  # fmt: skip
        """All columns of use; or those of the least reduced costs, where there are too many."""
        share = 1.0
        while (
            relaxed.duals is not None and limits.stop is None and share >= self.params.least_share
        ):
            found = enumerate_columns(
                self.generation, relaxed.duals, watts, most, limits, share, effort, parts
            )
            if found.columns:
                return found
            share *= 0.5
        return Enumerated([], False)

    def _search(
        self, found: Enumerated, counts: Counts, watts: float, limits: Limits,
        assignment: ServerAssignment | None, *, quick: bool,
    ) -> Verdict:  # fmt: skip
        """Turns of programs over some columns and over all, each longer than the one before.

        Parameters
        ----------
        watts: that a cover may cost.
        """
        master, params, box = self.generation.master, self.params, CountBox.up_to(counts)
        pools = (spread(found.columns, each) for each in params.spread)
        most = len(found.columns) / params.nearly_all
        columns = [*(pool for pool in pools if len(pool) < most), found.columns]
        programs = [SetCover(master, one, box, watts, assignment) for one in columns]
        first = params.first_s * master.instance.tasks / 100
        for turn in range(1) if quick else itertools.count():
            for program in list(programs):
                whole, others = program.columns is found.columns, len(programs) > 1
                if whole and others and turn == 0 and not found.complete:
                    continue
                last = whole and not others and found.complete and not quick
                own = limits if last else limits.within(first * params.turn_growth**turn)
                cover = program.solve(own, first=True, turn=turn)
                if cover.placement is not None:
                    return Verdict(False, cover.placement)
                if cover.denied and whole:
                    return Verdict(found.complete)
                if cover.denied:
                    programs.remove(program)
                if limits.stop is not None:
                    return OPEN
        return OPEN


def spread(columns: Sequence[Column], each: int) -> list[Column]:
    """The first that leave no task in fewer than so many of them, if it is: some are in few."""
    seen: Counter[int] = Counter()
    kept = []
    for column in columns:
        if any(seen[ell] < each for ell in column):
            kept.append(column)
            seen.update(column)
    return kept
