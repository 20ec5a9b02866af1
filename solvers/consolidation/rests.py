"""Placements whose counts are near open ones, where there are many tasks: in a thread beside.

A way down loses little until some two hundred tasks are left. What is left then is small enough for
an integer program over a few sets for each task, which places it in seconds where it can be; and
where it cannot, another way leaves something else.
"""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.deciding import relax
from optgap.solvers.consolidation.endings import EndedBy, way_down
from optgap.solvers.consolidation.generation import Set
from optgap.solvers.consolidation.levels import Levels, dearer
from optgap.solvers.consolidation.master import Binding, Box, Master
from optgap.solvers.consolidation.packing import Packing
from optgap.solvers.consolidation.search import Places

WHOLE = 1e-6
"""What counts as whole."""
DRAWN = 6
"""Counts of which those are taken that leave most to lose."""
HOPE, MORE_HOPE, MOST_HOPE = 0.4, 1.2, 0.9
"""Share of the gap that a placement's counts may keep; how that grows while there is none, and to
what."""
LOST = 0.6
"""GPUs that other ways down to counts lose as a rule: where there is more to lose, they do."""
NOISE = 0.5
"""Of the shares by which sets are taken on the way."""


class Rests:
    """Ways down to counts that cost a share of the gap, one after the other.

    Parameters
    ----------
    box: what a placement may count.
    """

    def __init__(self, pack: Packing, own: Levels, box: Box, seed: int) -> None:
        self.pack, self.own, self.box = pack, own, box
        self.master = Master(pack, own, box, 0)
        self.rng = np.random.default_rng(seed)
        self.near: tuple[int, ...] | None = None
        self.hope = HOPE

    def learn(self, sets: list[Set], limits: Limits) -> None:
        """Begin with sets of another program, and with the counts of the linear program; once."""
        if self.near is None:
            self.master.add(list(sets))  # whose own program may add to them meanwhile
            relaxed = self.master.run(limits)
            self.near = tuple(np.floor(relaxed.vector + WHOLE).astype(int).tolist())

    def attempt(self, bound: float, known: float, limits: Limits) -> Places | None:
        """A placement for less than `known` W, with a few GPUs more than the linear program has.

        Parameters
        ----------
        bound: what no placement undercuts, W.
        """
        places = None
        vector, room = self._vector(bound + self.hope * (known - bound), known, limits)
        if vector is not None:
            none = Binding.none(self.pack.tasks, 0)
            ended: EndedBy = "programs" if room < LOST * self.master.top else "search"
            self.master.shrink()
            places = way_down(self.master, vector, none, limits, self.rng, NOISE, ended)
        self.hope = HOPE if places is not None else min(MOST_HOPE, MORE_HOPE * self.hope)
        return places

    def _vector(
        self, most: float, known: float, limits: Limits
    ) -> tuple[tuple[int, ...] | None, float]:
        """Of some counts that are drawn, those whose linear program leaves most to lose, in W."""
        best, room, near = None, 0.0, self.near or self.box.low
        drawn = {dearer(self.pack, self.own, near[:-1], most, self.rng) for _ in range(DRAWN)}
        for counts in sorted(drawn):
            vector = (*counts, max(near[-1], self.pack.servers_for(counts[0])))
            relaxed, watts = relax(self.master, self.box.low, vector, math.inf, limits)
            if watts - relaxed.bound > room and watts < known:
                best, room = vector, watts - relaxed.bound
        return best, room
