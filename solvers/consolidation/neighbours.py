"""A placement improved a few servers at a time, each time by branching on those servers' tasks."""

from __future__ import annotations

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.levels import counted, levels
from optgap.solvers.consolidation.packing import IntArray, Packing
from optgap.solvers.consolidation.search import Places, Search

EACH_S = 0.3
"""Seconds for one choice of servers."""
SIZES = ((2, 0.4), (3, 0.4), (4, 0.2))
"""Servers that are solved together, and how often so many."""
MOST_TASKS = 90
"""Tasks of the chosen servers: with more, the branching ends nowhere in its time."""
IDLE = 200
"""Choices in a row that may be known already before the neighbours count as exhausted."""


class Neighbours:
    """Improves the best placement of a search; remembers what is not to be improved."""

    def __init__(self, pack: Packing, search: Search, seed: int) -> None:
        self.pack, self.search = pack, search
        self.rng = np.random.default_rng(seed)
        self.done: set[tuple[int, ...]] = set()
        self.solved = 0

    def run(self, limits: Limits, target: float) -> None:
        """Until `target` W, the limits, or until no choice of servers is left that is new."""
        idle = 0
        while limits.stop is None and self.search.watts > target and idle < IDLE:
            idle = 0 if self._step(limits) else idle + 1

    def _step(self, limits: Limits) -> bool:
        """One choice of servers; False where it is known to be of no use."""
        places = self.search.places
        if places is None:
            return False
        width = int(self.pack.server_gpus[0])
        homes = [sorted({g // width for g in gpus}) for gpus in places]
        awake = sorted({i for own in homes for i in own})
        sizes, often = zip(*SIZES, strict=True)
        size = min(len(awake), int(self.rng.choice(sizes, p=often)))
        chosen = set(self.rng.choice(awake, size, replace=False).tolist())
        tasks = [ell for ell, own in enumerate(homes) if chosen.issuperset(own)]
        inside = {ell for ell, own in enumerate(homes) if chosen.intersection(own)}
        if not 2 <= len(tasks) <= MOST_TASKS or len(inside) != len(tasks):
            return False
        key = (size, *sorted(tasks))
        if key in self.done:
            return False
        self._solve(np.array(tasks), sorted(chosen), places, limits)
        self.done.add(key)
        return True

    def _solve(self, tasks: IntArray, servers: list[int], places: Places, limits: Limits) -> None:
        """The tasks on their servers, as well as there is time for."""
        width = int(self.pack.server_gpus[0])
        part = self.pack.part(tasks, len(servers))
        search = Search(part, int(self.rng.integers(2**31)))
        local = {i * width + k: j * width + k for j, i in enumerate(servers) for k in range(width)}
        back = {there: here for here, there in local.items()}
        search.offer([tuple(local[g] for g in places[ell]) for ell in tasks.tolist()])
        before = search.watts
        own, within = levels(part), limits.within(EACH_S)
        tree = Tree(part, own, counted(part, own, within), search, int(self.rng.integers(2**31)))
        tree.run(within)
        tree.close()
        self.solved += 1
        if search.watts < before - 1e-9 and search.places is not None:
            better = list(places)
            for ell, gpus in zip(tasks.tolist(), search.places, strict=True):
                better[ell] = tuple(sorted(back[g] for g in gpus))
            self.search.offer(better)
