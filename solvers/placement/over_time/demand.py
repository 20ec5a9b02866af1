"""Tasks that must run at each time if every task starts when it is submitted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.times import freed_s


@dataclass(frozen=True, eq=False)
class Demand:
    """E = 2 T starts and ends in order of time; at the same time ends come first.

    Parameters
    ----------
    time_s: (E,) when, s; an end by as much earlier as counts as the same time.
    lasts_s: (E,) until the next event, s; 0 after the last.
    task, change: (E,) which task, and 1 for its start, -1 for its end.
    """

    time_s: FloatArray
    lasts_s: FloatArray
    task: IntArray
    change: IntArray

    @classmethod
    def of(cls, problem: PlacementProblem) -> Demand:
        """Return the events of a problem over time."""
        start = problem.tasks.submit_s
        end = freed_s(start, start + problem.lasting_s)
        time = np.concatenate([end, start])
        change = np.repeat(np.array([-1, 1]), len(start))
        order = np.argsort(time, kind="stable")
        time = time[order]
        task = np.tile(np.arange(len(start)), 2)[order]
        return cls(time, np.diff(time, append=time[-1]), task, change[order])

    def running(self, event: int) -> IntArray:
        """Return the tasks that run after an event, in order of submission."""
        here = np.zeros(len(self.task) // 2, dtype=np.int64)
        np.add.at(here, self.task[: event + 1], self.change[: event + 1])
        return np.flatnonzero(here)

    def at(self, time_s: float) -> int:
        """Return the last event up to a time."""
        return int(np.searchsorted(self.time_s, time_s, side="right")) - 1


def at_a_moment(problem: PlacementProblem, tasks: IntArray) -> PlacementProblem:
    """Return the problem of placing these tasks, all at once and for ever."""
    some = problem.tasks.take(tasks.tolist())
    still = replace(some, submit_s=np.zeros(len(some)), duration_s=np.full(len(some), np.inf))
    goal = problem.objective.at_a_moment
    return replace(problem, tasks=still, over_time=None, objective=goal)
