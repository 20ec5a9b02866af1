"""Whether there is a placement with given counts: decided by the columns that it could use.

Where counts of GPUs are held down to a vector (N, Z), the linear program leaves little between its
value and what the vector costs, and columns whose reduced cost is more than that are in no
placement with such counts. Often a few hundred are left: an integer program over them finds a
placement, or there is none. Programs over some of the columns come first: they deny nothing, but
often place in a fraction of the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.set_cover import GangSetCover, SetCover
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
        gang: bool,
        most_columns: int,
        quick: bool = False,
    ) -> Verdict:
        """Look for a placement for less than `cutoff` W whose counts are no more.

        Parameters
        ----------
        gang: a task's GPUs are in one server. Without, they may be anywhere, and a denial holds
            for both.
        most_columns: with more, nothing is denied; 0 to ask the linear program alone.
        quick: only one turn of each program.
        """
        relaxed, watts = self.relax(counts, cutoff, limits)
        if relaxed.bound > watts:
            self.refused.append(counts)
            return Verdict(True)
        if relaxed.duals is None or not most_columns:
            return OPEN
        found = self._columns(relaxed, watts, most_columns, limits)
        turns = 1 if quick else math.inf
        search = _Search(found, counts, watts, gang, turns)
        verdict = self._search(search, limits) if found.columns else OPEN
        if verdict.denied:
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

    def _columns(self, relaxed: Relaxation, watts: float, most: int, limits: Limits) -> Enumerated:
        """All columns of use; or those of the least reduced costs, where there are too many."""
        share = 1.0
        while (
            relaxed.duals is not None and limits.stop is None and share >= self.params.least_share
        ):
            found = enumerate_columns(self.generation, relaxed.duals, watts, most, share)
            if found.columns:
                return found
            share *= 0.5
        return Enumerated([], False)

    def _search(self, asked: _Search, limits: Limits) -> Verdict:
        """Turns of programs over some columns and over all, each longer than the one before."""
        master, params, columns = self.generation.master, self.params, asked.found.columns
        kind = GangSetCover if asked.gang else SetCover
        pools = _first(columns, params.pools) if asked.gang else _spread(columns, params.spread)
        pools = [pool for pool in pools if len(pool) * params.nearly_all < len(columns)]
        box = CountBox.up_to(asked.counts)
        programs = [kind(master, pool, box, asked.watts) for pool in (*pools, columns)]
        turn, each = 0, params.first_s * master.instance.tasks / 100
        while turn < asked.turns:
            for program in list(programs):
                whole = program.columns is columns
                if whole and turn == 0 and len(programs) > 1 and not asked.found.complete:
                    continue
                last = len(programs) == 1 and asked.found.complete and math.isinf(asked.turns)
                own = limits if last else limits.within(each * params.turn_growth**turn)
                cover = program.solve(own, first=True, turn=turn)
                if cover.placement is not None:
                    return Verdict(False, cover.placement)
                if cover.denied and whole:
                    return Verdict(asked.found.complete)
                if cover.denied:
                    programs.remove(program)
                if limits.stop is not None:
                    return OPEN
            turn += 1
        return OPEN


@dataclass(frozen=True)
class _Search:
    """Columns among which covers with counts are looked for.

    Parameters
    ----------
    watts: that they may cost. turns: of each program.
    """

    found: Enumerated
    counts: Counts
    watts: float
    gang: bool
    turns: float


def _first(columns: Sequence[Column], numbers: tuple[int, ...]) -> list[list[Column]]:
    """The first of them, so many at a time."""
    return [list(columns[:number]) for number in numbers]


def _spread(columns: Sequence[Column], numbers: tuple[int, ...]) -> list[list[Column]]:
    """The first that leave no task in fewer than so many of them, if it is: some are in few."""
    found = []
    for each in numbers:
        seen: dict[int, int] = {}
        kept = []
        for column in columns:
            if any(seen.get(ell, 0) < each for ell in column):
                kept.append(column)
                for ell in column:
                    seen[ell] = seen.get(ell, 0) + 1
        found.append(kept)
    return found
