"""Descent that always moves the group of tasks with the largest saving per migration.

A group is everything on a GPU, or a CPU package's worth of a node, because less saves nothing
(Eq. 1-2). Its tasks go to the nodes where they cost the fewest watts at that moment, so every step
fits by construction.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement.migrations import MigrationProblem, Move
from optgap.solvers.placement.migrations.state import NOTHING, State

Unit = tuple[int, tuple[int, ...], int]
"""Node, tasks that must all leave it before power is saved (the hardest to place first), and GPUs
(bits) to which they must not come back, -1 for the whole node."""


class Descent:
    """Greedy descent from the current placement, after the moves `begun`."""

    def __init__(self, migration: MigrationProblem, begun: Sequence[Move] = ()) -> None:
        self.migration, self.state, self.moves = migration, State(migration), list(begun)
        # -W saved per migration, a running number that breaks ties, the node's age, the group
        self._heap: list[tuple[float, int, int, Unit]] = []
        self._age: Counter[int] = Counter()
        self._number = 0
        for move in begun:
            self.state.move(move)
        for n in range(len(migration.problem.cluster)):
            self._value(n)

    def run(self, limits: Limits, most: float = math.inf) -> None:
        """Move until `most` migrations are used up, or no group saves power."""
        while self._heap and len(self.moves) < most and not limits.stop:
            _, _, age, unit = heapq.heappop(self._heap)
            if age != self._age[unit[0]] or len(self.moves) + len(unit[1]) > most:
                continue
            saved, moves = self._evaluated(unit)
            if not moves:
                continue
            if self._heap and -saved / len(moves) > self._heap[0][0] + NOTHING:
                self._push(saved, unit)
                continue
            for move in moves:
                self.state.move(move)
            self.moves += moves
            for n in {unit[0], *(move.to_node for move in moves)}:
                self._value(n)

    def _value(self, n: int) -> None:
        """Evaluate the groups of node `n` again."""
        self._age[n] += 1
        for unit in self._units(n):
            saved, moves = self._evaluated(unit)
            if moves:
                self._push(saved, unit)

    def _push(self, saved: float, unit: Unit) -> None:
        self._number += 1
        entry = (-saved / len(unit[1]), self._number, self._age[unit[0]], unit)
        heapq.heappush(self._heap, entry)

    def _units(self, n: int) -> Iterator[Unit]:
        """Yield the groups of node `n`: all tasks of a GPU, or a CPU package's worth of others."""
        movable, tasks, state = self.migration.movable, self.state.tasks, self.state
        here = sorted(state.on[n])

        def unit(members: list[int], barred: int) -> Unit:
            order = sorted(members, key=lambda k: (-tasks.demand_milli[k], -tasks.cpu_milli[k], k))
            return n, tuple(order), barred

        for members in state.groups(n):
            yield unit(members, int(np.bitwise_or.reduce(state.mask[members])))
        plain = [k for k in here if movable[k] and not tasks.num_gpu[k]]
        plain.sort(key=lambda k: -tasks.cpu_milli[k])
        free = int(state.free_cpu[n])
        now = state.cpu_power(n, free)
        for i, k in enumerate(plain):
            free += int(tasks.cpu_milli[k])
            if state.cpu_power(n, free) < now - NOTHING:
                yield unit(plain[: i + 1], -1)
                return

    def _evaluated(self, unit: Unit) -> tuple[float, list[Move]]:
        """Return the saving (W) if the unit leaves, and its moves; none without a saving.

        The state is unchanged.
        """
        state, (node, tasks, barred) = self.state, unit
        before = state.power(node)
        was = [(k, *state.take(k)) for k in tasks]
        saved = before - state.power(node)
        moves: list[Move] = []
        for k in tasks:
            to, mask, watts = state.best(k, node, barred)
            if to < 0 or saved <= NOTHING:
                break
            saved -= watts
            state.put(k, to, mask)
            moves.append(Move(k, node, to, mask))
        for move in moves:
            state.take(move.task)
        for k, n, mask in was:
            state.put(k, n, mask)
        return saved, moves if len(moves) == len(was) and saved > NOTHING else []
