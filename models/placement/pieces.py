"""The problem over time whose tasks may move: each piece of a life is a task of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optgap.models.placement.problem import PlacementProblem
from optgap.models.times import SHORTEST_S

MOMENTS = 100
"""At which tasks may move, at most; at every start and end, where there are no more of them."""


def movable(problem: PlacementProblem) -> PlacementProblem | None:
    """The problem in which tasks move for nothing at up to `MOMENTS` starts and ends of others.

    Every task starts when it is submitted, and its pieces follow one another. A schedule of them
    that leaves none out is one of the problem with migration, and its energy is the same. None
    where tasks stay for ever, and where nodes are switched off.
    """
    if problem.over_time is None or problem.over_time.sleeps:
        return None
    submit = problem.tasks.submit_s
    end = submit + problem.lasting_s
    events = np.unique(np.concatenate([submit, end]))
    if len(events) > MOMENTS:
        equal = np.linspace(events[0], events[-1], MOMENTS + 1)
        events = np.unique(events[np.searchsorted(events, equal, side="right") - 1])
    first = np.searchsorted(events, submit + SHORTEST_S, side="left")
    last = np.searchsorted(events, end - SHORTEST_S, side="right")
    count = np.maximum(last - first, 0) + 1  # pieces
    task = np.repeat(np.arange(len(submit)), count)
    place = np.arange(len(task)) - np.repeat(np.cumsum(count) - count, count)
    at = first[task] + place  # of the moment that ends it; none for the last
    start = np.where(place == 0, submit[task], events[np.maximum(at - 1, 0)])
    until = np.where(place == count[task] - 1, end[task], events[np.minimum(at, len(events) - 1)])
    order = np.argsort(start, kind="stable")
    pieces = problem.tasks.take(task[order].tolist())
    tasks = replace(pieces, submit_s=start[order], duration_s=(until - start)[order])
    rules = replace(problem.over_time, queue="reject")
    return replace(problem, tasks=tasks, over_time=rules)
