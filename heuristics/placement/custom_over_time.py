"""A policy of your own where tasks leave: the events around the decisions of `custom`."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.result import Termination
from optgap.models.times import freed_s

Decision = tuple[int, tuple[int, ...]]


@dataclass
class Events:
    """Passes the events of a problem in order, and asks what to do about each task.

    Parameters
    ----------
    problem: the problem, over time.
    decide: a node and GPUs for this row at this time, which are then held; None to let its task
        wait, or to turn it away where nothing waits. The second argument is s from the horizon's
        begin, the third the nodes that other rows of the task have just been given.
    fits: whether so many nodes could each take this row now.
    release: give back what this row held.
    """

    problem: PlacementProblem
    decide: Callable[[int, float, Sequence[int]], Decision | None]
    fits: Callable[[int, int], bool]
    release: Callable[[int, Decision], None]
    placed: list[Decision | None] = field(init=False)
    start_s: list[float] = field(init=False)
    arrived: int = 0
    running: list[tuple[float, int, float]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.placed = [None] * len(self.problem.tasks)
        self.start_s = [float("nan")] * len(self.problem.tasks)

    def pass_all(self, limits: Limits, say: Callable[[int], None]) -> Termination:
        """Until nothing is left to happen, or `limits` say stop."""
        rules, submit = self.problem.over_time, self.problem.tasks.submit_s.tolist()
        assert rules is not None
        never, total = set(self.problem.never_fits), len(submit)
        while self.arrived < total or self.running:
            stopped = limits.stop
            if stopped is not None:
                return stopped
            k = self.arrived
            if self.running and (k == total or self.running[0][0] <= submit[k]):
                self._leave()
                continue
            say(k)
            self.arrived += int(self.problem.tasks.parts[k])
            if k in never:
                continue
            blocked = rules.queue == "fifo" and self.waiting
            if (blocked or not self._start(k, submit[k])) and rules.waits:
                self.waiting.append(k)
        return Termination.COMPLETED

    def _rows(self, k: int) -> range:
        """The rows of the task that begins with row `k`."""
        return range(k, k + int(self.problem.tasks.parts[k]))

    def _start(self, k: int, now: float) -> bool:
        """Start the task that begins with row `k`, on all of its nodes or on none."""
        held: list[Decision] = []
        for i in self._rows(k):
            decision = self.decide(i, now - self.problem.epoch_s, [node for node, _ in held])
            if decision is None:
                for j, given in enumerate(held):
                    self.release(k + j, given)
                return False
            held.append(decision)
        end = now + float(self.problem.lasting_s[k])
        for i, decision in zip(self._rows(k), held, strict=True):
            self.placed[i], self.start_s[i] = decision, now
        freed: float = freed_s(now, end)
        heapq.heappush(self.running, (freed, k, end))
        return True

    def _leave(self) -> None:
        """All that leave at this moment, and then what waits, in the order of the queue."""
        now, rules = self.running[0][2], self.problem.over_time
        assert rules is not None
        while self.running and self.running[0][0] <= now:
            _, k, _ = heapq.heappop(self.running)
            for i in self._rows(k):
                decision = self.placed[i]
                assert decision is not None
                self.release(i, decision)
        tasks = self.problem.tasks
        full: set[tuple[int, int]] = set()
        left: list[int] = []
        for at, k in enumerate(self.waiting):
            c = int(tasks.class_of[k]), int(tasks.parts[k])
            if c not in full and not self.fits(k, c[1]):
                full.add(c)  # and nothing leaves any more at this moment
            if c in full or not self._start(k, now):
                left.append(k)
                if rules.queue == "fifo":
                    left += self.waiting[at + 1 :]
                    break
        self.waiting = left

    def solution(self) -> PlacementSolution:
        """What has been decided so far."""
        made = PlacementSolution.of(self.placed)
        return PlacementSolution.of_arrays(made.node, made.gpu_mask, np.array(self.start_s))
