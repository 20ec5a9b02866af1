"""Moves one group after another, always the group that saves the most per migration.

A group is all that runs on a GPU, or a CPU package's worth of a node: less than that saves nothing
(Eq. 1-2). Its tasks go where they cost the fewest watts at that moment, so that
every step fits by construction.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from optgap.models.limits import Limits
from optgap.models.placement.migrations import MigrationProblem, Move
from optgap.solvers.placement.migrations.state import NOTHING, State, Unit

Candidate = tuple[float, int, int, Unit]
"""−W saved per migration, a running number that breaks ties, the node's age, the group."""


@dataclass
class Descent:
    """A greedy descent from a state.

    Parameters
    ----------
    state: where it is; changed in place.
    """

    state: State
    moves: list[Move] = field(default_factory=list)
    _heap: list[Candidate] = field(default_factory=list)
    _age: dict[int, int] = field(default_factory=dict)
    _number: int = 0

    @classmethod
    def of(cls, migration: MigrationProblem, begun: Sequence[Move] = ()) -> Descent:
        """A descent that has valued every group and made no moves but those that are `begun`."""
        made = cls(State(migration), list(begun))
        for move in begun:
            made.state.move(move)
        for n in range(len(migration.problem.cluster)):
            made.value(n)
        return made

    def value(self, n: int) -> None:
        """Value the groups of node `n` afresh."""
        self._age[n] = self._age.get(n, 0) + 1
        for unit in self.state.units(n):
            found = self.state.evaluate(unit)
            if found is not None:
                self._push(found[0], unit)

    def _push(self, saved: float, unit: Unit) -> None:
        self._number += 1
        entry = (-saved / len(unit.tasks), self._number, self._age[unit.node], unit)
        heapq.heappush(self._heap, entry)

    def run(self, most: int, limits: Limits) -> None:
        """Move until `most` migrations are used up or nothing saves any more."""
        while self._heap and len(self.moves) < most and not limits.stop:
            _, _, age, unit = heapq.heappop(self._heap)
            if age != self._age[unit.node]:
                continue
            if len(self.moves) + len(unit.tasks) > most:
                continue
            found = self.state.evaluate(unit)
            if found is None:
                continue
            saved, moves = found
            if self._heap and -saved / len(moves) > self._heap[0][0] + NOTHING:
                self._push(saved, unit)
                continue
            for move in moves:
                self.state.move(move)
                self.moves.append(move)
            for n in {unit.node, *(move.to_node for move in moves)}:
                self.value(n)
