"""What elastic schedulers at a common clock share: GPU counts from scratch at every event."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from optgap.heuristics.elastic.shared_clock import Clock
from optgap.models.compiled import floats
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Ints
from optgap.models.elastic.simulation.protocol import Decision, Settings, State


class Elastic(ABC):
    """What elastic schedulers at a common clock share."""

    def __init__(self, problem: ElasticProblem, clock: Clock) -> None:
        self.problem, self.clock = problem, clock
        self.settings = Settings(making="least")
        self.least, self.following = next_count(problem)
        clock.fewer = previous_count(problem)
        top = int(clock.wanted[0])
        time_s = problem.time_s[:, :, top]
        self.speed = floats(np.where(np.isfinite(time_s), 1.0 / time_s, 0.0))

    @abstractmethod
    def shares(self, state: State) -> tuple[Ints, Ints]:
        """(A,) count index, and the order in which jobs keep what they have under the limit."""

    def decide(self, state: State) -> Decision:
        """From scratch at every event."""
        count, order = self.shares(state)
        clock = self.clock.settle(state, count, order)
        return Decision(count, clock)


def previous_count(problem: ElasticProblem) -> Ints:
    """(C, K) the next smaller count index of each class, −1 for none."""
    allowed = np.isfinite(problem.time_s[:, :, 0])
    fewer = np.full(allowed.shape, -1, dtype=np.int64)
    for c, row in enumerate(allowed):
        index = np.flatnonzero(row)
        fewer[c, index[1:]] = index[:-1]
    return fewer


def next_count(problem: ElasticProblem) -> tuple[Ints, Ints]:
    """(C,) first and (C, K) following count index of each class, −1 for none."""
    allowed = np.isfinite(problem.time_s[:, :, 0])
    following = np.full(allowed.shape, -1, dtype=np.int64)
    for c, row in enumerate(allowed):
        index = np.flatnonzero(row)
        following[c, index[:-1]] = index[1:]
    return allowed.argmax(axis=1), following
