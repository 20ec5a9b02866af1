"""Placements in two steps: tasks of several GPUs into servers, then the others exactly.

With the tasks of several GPUs in place, the others are a problem without gangs: what is on a GPU
already is an *anchor* there, and anchors are kept apart. That problem is solved in moments. So what
has to be found is a layout that leaves room of the right kind: it is annealed at the prices of the
linear programs of the layouts before it, by which room of every size and level has a worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.frames import Frames
from optgap.solvers.consolidation.generation import FEW, Set
from optgap.solvers.consolidation.levels import Levels, counted
from optgap.solvers.consolidation.master import Box, Master
from optgap.solvers.consolidation.packing import IntArray, Packing
from optgap.solvers.consolidation.search import Places, Search
from optgap.solvers.consolidation.squeeze import squeeze_to

TIGHT = 0.98
"""Of the counts wanted: what prices are taken at, so that what is scarce has one."""
QUICK = 0.3
"""Of the time for the others, on counts near those of the linear program."""
LEARN_GAP, LEARN_S = 2e-3, 0.3
"""How close a bound is to the value where prices are asked for that are no proof; seconds per
hundred tasks after which they are taken as they are."""
POOL, BESIDE = 600, 25
"""Sets of tasks that are handed on from one layout to the next, and how many to each anchor."""


class Rooted(Protocol):
    """A node of it."""

    box: Box


class Branched(Protocol):
    """What solves the others: a `branching.Tree`."""

    master: Master
    search: Search

    @property
    def root(self) -> Rooted: ...
    @property
    def cut(self) -> float: ...
    def open(self) -> bool: ...
    def run(self, limits: Limits) -> float: ...


Solver = Callable[[Packing, Levels, tuple[int, ...], Search, int], Branched]


@dataclass(frozen=True)
class Part:
    """The problem that a layout leaves.

    Parameters
    ----------
    pack: anchors, then the tasks of one GPU. top: (tasks,) the task that each takes its cost from.
    places: from its placements to whole ones.
    """

    pack: Packing
    top: IntArray
    places: Callable[[Places], Places]


class Layouts(Frames):
    """Layouts one after another, each with the placement that it allows.

    Parameters
    ----------
    search: is offered placements.
    solver: makes what solves the others.
    """

    def __init__(
        self, pack: Packing, own: Levels, search: Search, solver: Solver, seed: int
    ) -> None:
        super().__init__(pack, own, np.random.default_rng(seed))
        self.search, self.solver = search, solver
        self.learning = LEARN_S * pack.tasks / 100
        self.pool: dict[Set, None] = {}

    def begin(self, master: Master, wanted: tuple[int, ...], limits: Limits) -> None:
        """First prices: of a program without layouts."""
        self._learn(master, wanted, self.narrow, np.arange(self.pack.tasks), limits)

    def attempt(
        self, wanted: tuple[int, ...], below: float, limits: Limits, seconds: float
    ) -> None:
        """One layout for counts of GPUs by level and of servers; what can be placed for less in it.

        Parameters
        ----------
        below: W that a placement is looked for under. seconds: for that.
        """
        first = self.laid(wanted)
        if not self.holds(first, wanted[-1]):
            return
        part = self.part(first, wanted[-1])
        own = replace(self.own, of=self.own.of[part.top])
        search = Search(part.pack, int(self.rng.integers(2**31)))
        search.watts = below
        counts = counted(part.pack, own, limits)
        tree = self.solver(part.pack, own, counts, search, int(self.rng.integers(2**31)))
        tree.master.add(self._known(part))
        narrow = np.arange(part.pack.anchors, part.pack.tasks)
        self._learn(tree.master, wanted, narrow, part.top, limits)
        if tree.open() and limits.stop is None:
            tree.master.confine(tree.root.box)
            relaxed = tree.master.run(limits, tree.cut, gap=LEARN_GAP, most_nodes=FEW)
            if relaxed.bound >= tree.cut:
                return
            near = tuple(np.ceil(relaxed.vector[:-1] - 1e-6).astype(int).tolist())
            squeeze_to(part.pack, own, near, search, limits.within(QUICK * seconds), 0)
            tree.run(limits.within(seconds))
        if search.places is not None:
            self.search.offer(part.places(search.places))
            self.best = first

    def part(self, first: IntArray, servers: int) -> Part:
        """What the layout leaves: GPUs with the same tasks are one anchor."""
        runs = {
            ell: tuple(range(begin, begin + int(self.pack.width[ell])))
            for ell, begin in zip(self.wide.tolist(), first.tolist(), strict=True)
        }
        on: list[list[int]] = [[] for _ in range(self.span * servers)]
        for ell, gpus in runs.items():
            for g in gpus:
                on[g].append(ell)
        alike: dict[Set, list[int]] = {}
        for g, inside in enumerate(on):
            alike.setdefault(tuple(inside), []).append(g)
        empty = alike.pop((), [])
        anchors = list(alike)
        top = [max(one, key=lambda ell: int(self.own.of[ell])) for one in anchors]
        stands = np.array(top + self.narrow.tolist())
        part = self.pack.part(stands, servers)
        for k, one in enumerate(anchors):
            part.width[k] = len(alike[one])
            part.rows[:, k] = self.pack.rows[:, list(one)].sum(axis=1)
        apart = (np.arange(len(stands)) < len(anchors)).astype(np.int64)
        part = replace(
            part,
            rows=np.vstack([part.rows, apart]),
            limits=np.column_stack([part.limits, np.ones(len(part.limits), dtype=np.int64)]),
            anchors=len(anchors),
        )
        groups = list(alike.values())
        return Part(part, stands, lambda found: self._whole(found, runs, groups, empty))

    def _whole(
        self, found: Places, runs: dict[int, Set], groups: list[list[int]], empty: list[int]
    ) -> Places:
        """A part's placement on the GPUs that the layout means.

        Parameters
        ----------
        runs: GPUs of tasks of several. groups: those of each anchor. empty: those with none.
        """
        means: dict[int, int] = {}
        for gpus, group in zip(found, groups, strict=False):
            means |= dict(zip(gpus, group, strict=True))
        rest = iter(empty)
        whole: Places = [runs.get(ell, ()) for ell in range(self.pack.tasks)]
        for ell, (gpu,) in zip(self.narrow.tolist(), found[len(groups) :], strict=True):
            if gpu not in means:
                means[gpu] = next(rest)
            whole[ell] = (means[gpu],)
        return whole

    def _known(self, part: Part) -> list[Set]:
        """Sets of earlier layouts, alone and beside anchors that leave room for them."""
        anchors, local = part.pack.anchors, {}
        for k, ell in enumerate(self.narrow.tolist()):
            local[ell] = anchors + k
        sets = [tuple(local[ell] for ell in one) for one in list(self.pool)[-POOL:]]
        if not sets:
            return []
        rows, most = part.pack.rows[:-1], part.pack.most[:-1]
        used = np.array([rows[:, list(one)].sum(axis=1) for one in sets]).T
        fill = (used / np.maximum(most[:, None], 1)).max(axis=0)
        known = list(sets)
        for anchor in range(anchors):
            fits = np.all(used <= (most - rows[:, anchor])[:, None], axis=0)
            fullest = np.argsort(np.where(fits, -fill, np.inf), kind="stable")[:BESIDE]
            known += [(anchor, *sets[k]) for k in fullest.tolist() if fits[k]]
        return known

    def _learn(
        self,
        master: Master,
        wanted: tuple[int, ...],
        narrow: IntArray,
        means: IntArray,
        limits: Limits,
    ) -> None:
        """Prices a little below the counts wanted, and the sets that are used there.

        Parameters
        ----------
        narrow: tasks of the program that are those of one GPU, in the order of `self.narrow`.
        means: the task that each of the program's stands for.
        """
        master.aim(TIGHT * np.array(wanted[:-1], dtype=np.float64), wanted[-1])
        relaxed = master.run(limits.within(self.learning), gap=LEARN_GAP, most_nodes=FEW)
        prices, rents = master.priced()
        self.learn(prices[narrow], rents)
        single = np.zeros(len(means), dtype=bool)
        single[narrow] = True
        for k in np.flatnonzero(relaxed.amounts > 1e-7).tolist():
            inside = tuple(int(means[ell]) for ell in master.sets[k] if single[ell])
            if inside:
                self.pool.pop(inside, None)
                self.pool[inside] = None
