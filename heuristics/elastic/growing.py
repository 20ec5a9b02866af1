"""What elastic schedulers at a common clock share: GPU counts from scratch at every event."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from optgap.heuristics.elastic.shared_clock import Clock
from optgap.models.compiled import floats
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.simulation.protocol import Decision, Settings, State


class Elastic(ABC):
    """What elastic schedulers at a common clock share."""

    def __init__(self, problem: ElasticProblem, clock: Clock) -> None:
        self.problem, self.clock = problem, clock
        self.settings = Settings(making="least")
        self.least, self.following, clock.fewer = neighbours(problem.time_s)
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


def neighbours(time_s: Floats) -> tuple[Ints, Ints, Ints]:
    """(C,) the first count of each class, and (C, K) the next and the last one, −1 for none.

    time_s: (C, K, F), infinite where a class may not run on a count.
    """
    allowed = np.isfinite(time_s[:, :, 0])
    following = np.full(allowed.shape, -1, dtype=np.int64)
    fewer = following.copy()
    for c, row in enumerate(allowed):
        index = np.flatnonzero(row)
        following[c, index[:-1]], fewer[c, index[1:]] = index[1:], index[:-1]
    return allowed.argmax(axis=1), following, fewer
