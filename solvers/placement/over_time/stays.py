"""From when to when tasks hold their place, where starts are given: the moments between.

Task k holds its place from its submission s_k until it has run for `lasting_s`. Where its node
is on by then, that begins at s_k. Where the node boots, having been switched on for task j (k
itself, or one that came at most `wake_s` earlier), it begins at s_j + `wake_s`. So each task has
few possible *stays*, and which of them it is depends on what else is on its node.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.sleeping import runs
from optgap.models.times import freed_s, slack_s
from optgap.solvers.placement.over_time.demand import Demand

Tasks = frozenset[int]
"""Tasks, or stays of them, by number."""


@dataclass(frozen=True, eq=False)
class Stays:
    """V possible stays of T tasks; those of one task stand together, in order of tasks.

    Parameters
    ----------
    task: (V,) whose. boot: (V,) the task that the node was switched on for, which it waits for;
        -1 for a node that is on.
    from_s, begin_s, end_s: (V,) since when it holds its place, when it runs, and until when.
    sleep_after_s: how long after an end a node is still on, s.
    own: (T,) each task's stay on a node that boots for it; -1 where nodes boot in no time.
    """

    task: IntArray
    boot: IntArray
    from_s: FloatArray
    begin_s: FloatArray
    end_s: FloatArray
    sleep_after_s: float
    own: IntArray

    @classmethod
    def of(cls, problem: PlacementProblem) -> Stays:
        """All stays that a problem without waiting allows."""
        rules, submit = problem.over_time, problem.tasks.submit_s
        assert rules is not None
        found: list[tuple[int, int, float]] = []
        own = np.full(len(submit), -1)
        order = np.argsort(submit, kind="stable")
        place = np.argsort(order)
        for k, now in enumerate(submit.tolist()):
            found.append((k, -1, now))
            if not rules.wake_s:
                continue
            for j in sorted(order[: place[k] + 1].tolist()):
                ready = float(submit[j]) + rules.wake_s
                if now < ready:
                    if j == k:
                        own[k] = len(found)
                    found.append((k, j, ready))
        task, boot = (np.array([one[i] for one in found], dtype=np.int64) for i in (0, 1))
        begin = np.array([ready for _, _, ready in found])
        return cls(
            task, boot, submit[task], begin, begin + problem.lasting_s[task],
            rules.sleep_after_s, own,
        )  # fmt: skip

    def by_task(self, stays: Iterable[int]) -> list[list[int]]:
        """Some stays, those of one task together."""
        groups = itertools.groupby(sorted(stays), key=self.task.__getitem__)
        return [list(group) for _, group in groups]

    def keeping_on(self, stay: int, among: Iterable[int]) -> list[int]:
        """Those of `among` of earlier tasks that keep their node on until this one comes."""
        now, rank = self.from_s[stay], self._rank
        since = now - slack_s(now)
        earlier = [u for u in among if rank[u] < rank[stay]]
        return [u for u in earlier if since <= self.end_s[u] + self.sleep_after_s]

    @cached_property
    def _rank(self) -> IntArray:
        """(V,) the place of each one's task in the order of submission."""
        _, first = np.unique(self.task, return_index=True)
        place: IntArray = np.argsort(np.argsort(self.from_s[first], kind="stable"))[self.task]
        return place

    def taken(self, problem: PlacementProblem, solution: PlacementSolution) -> list[int]:
        """Which stays a schedule has, one per task placed."""
        begin = runs(problem, solution).begin_s
        placed = np.flatnonzero(solution.node >= 0)
        own = [np.flatnonzero(self.task == k) for k in placed.tolist()]
        pairs = zip(own, begin[placed].tolist(), strict=True)
        return [int(mine[np.abs(self.begin_s[mine] - at).argmin()]) for mine, at in pairs]


@dataclass(frozen=True, eq=False)
class Moments:
    """What runs between events, were every stay taken: E = 2V events, ends first of equal ones.

    Parameters
    ----------
    begin, end: (V,) the places of each stay's begin and end in the order of events.
    running: the stays that last after each event. lasts_s: (E,) until the next event, s, not below
        0. full: whether an end follows, so that no moment before or after has all these and more.
    overlap_s: by how much events overlap that count as the same time, in all.
    """

    begin: IntArray
    end: IntArray
    running: tuple[Tasks, ...]
    lasts_s: FloatArray
    full: tuple[bool, ...]
    overlap_s: float

    @classmethod
    def of(cls, stays: Stays) -> Moments:
        """The moments between the begins and ends of all stays that are possible."""
        start, end = stays.from_s, stays.end_s
        events = Demand.between(start, freed_s(stays.begin_s, end))
        task, begins = events.task, events.change > 0
        time = np.where(begins, start[task], end[task])
        lasts = np.diff(time, append=time[-1])
        here: set[int] = set()
        running = []
        for k, begun in zip(task.tolist(), begins.tolist(), strict=True):
            here = here | {k} if begun else here - {k}
            running.append(frozenset(here))
        begin, ends = np.empty_like(task[begins]), np.empty_like(task[begins])
        begin[task[begins]], ends[task[~begins]] = np.flatnonzero(begins), np.flatnonzero(~begins)
        full = [bool(a and not b) for a, b in itertools.pairwise(begins.tolist())]
        return cls(
            begin, ends, tuple(running), np.maximum(lasts, 0.0),
            (*full, False), float(-np.minimum(lasts, 0.0).sum()),
        )  # fmt: skip

    def among(self, tasks: Iterable[int]) -> dict[Tasks, tuple[float, bool]]:
        """What of some tasks runs together: for how long, s, and whether it is ever `full`."""
        chosen = frozenset(tasks)
        found: dict[Tasks, tuple[float, bool]] = {}
        columns = (self.running, self.lasts_s.tolist(), self.full)
        for running, lasts, full in zip(*columns, strict=True):
            here = running & chosen
            if here and (lasts > 0 or full):
                before, ever = found.get(here, (0.0, False))
                found[here] = before + lasts, ever or full
        return found
