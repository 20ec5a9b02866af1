"""Nodes that are switched off while they hold nothing: when tasks end, and who draws power when.

By the rule of the problem and nothing else: every node is off at first, and again once it has held
nothing for `sleep_after_s`. The first task that is placed on it switches it on; for `wake_s` it
boots, and what is placed there meanwhile holds its room, draws its power and does not run yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.placement.arrays import BoolArray, FloatArray
from optgap.models.times import freed_s, slack_s

if TYPE_CHECKING:
    from optgap.models.placement.problem import PlacementProblem
    from optgap.models.placement.solution import PlacementSolution
    from optgap.models.placement.timeline import NodeEvents, NodeValues


@dataclass(frozen=True, eq=False)
class Runs:
    """When tasks run, (T,); NaN for one that is not placed.

    Parameters
    ----------
    begin_s, end_s: `lasting_s` apart; the begin is the start, or when all its nodes have booted.
    switching: whether it is what its node is switched on for.
    """

    begin_s: FloatArray
    end_s: FloatArray
    switching: BoolArray


def runs(problem: PlacementProblem, solution: PlacementSolution) -> Runs:
    """When the tasks of a solution over time run."""
    assert solution.start_s is not None
    assert problem.over_time is not None
    rules, lasting = problem.over_time, problem.lasting_s
    begins = np.where(solution.node >= 0, solution.start_s, np.nan)
    found = Runs(begins, begins + lasting, np.zeros(len(begins), dtype=np.bool_))
    if not rules.sleeps:
        return found
    free: dict[int, float] = {}  # when all that each node held has made room
    off: dict[int, float] = {}  # when it is switched off, were nothing placed on it any more
    ready: dict[int, float] = {}
    placed = np.flatnonzero(solution.node >= 0)
    order = placed[np.argsort(solution.start_s[placed], kind="stable")]
    changes = np.flatnonzero(np.diff(problem.tasks.gang[order])) + 1
    for rows in np.split(order, changes) if len(order) else []:
        start = float(solution.start_s[rows[0]])
        nodes = solution.node[rows].tolist()
        for k, n in zip(rows.tolist(), nodes, strict=True):
            if start - slack_s(start) > off.get(n, -np.inf) and start >= free.get(n, -np.inf):
                found.switching[k] = True
                ready[n] = start + rules.wake_s
        begin = max(start, *(ready[n] for n in nodes))
        end = begin + float(lasting[rows[0]])
        found.begin_s[rows], found.end_s[rows] = begin, end
        for n in nodes:
            free[n] = max(free.get(n, -np.inf), float(freed_s(begin, end)))
            off[n] = max(off.get(n, -np.inf), end + rules.sleep_after_s)
    return found


def drawn_s(problem: PlacementProblem, events: NodeEvents) -> FloatArray:
    """(E,) how long after each event its node draws more than one that is off, s.

    Until its next event, or where it holds nothing until it is switched off or the horizon ends.
    """
    rules = problem.over_time
    assert rules is not None
    if not rules.sleeps:
        return events.lasts_s
    last = np.append(events.node[1:] != events.node[:-1], True)
    gap = np.where(last, np.inf, events.lasts_s)
    idle = np.minimum(np.minimum(gap, rules.sleep_after_s), rules.end_s - events.time_s)
    drawn: FloatArray = np.where(events.running > 0, events.lasts_s, np.maximum(idle, 0.0))
    return drawn


def unused_w(problem: PlacementProblem, rest: NodeValues) -> tuple[FloatArray, FloatArray]:
    """(N,) what the CPUs and the GPUs of a node draw that is never used, W; `rest`: one awake."""
    rules = problem.over_time
    if rules is None or not rules.sleeps:
        return rest.cpu_w, rest.gpu_w
    return np.full_like(rest.cpu_w, rules.off_w), np.zeros_like(rest.gpu_w)
