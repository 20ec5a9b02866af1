"""The cheapest placement of all that may be cheaper than the best: an integer program beside.

A placement for less than the best uses no set whose reduced cost is more than what lies between the
bound and the best. With many levels of cost a way down is soon so good that some thousand sets are
left, and the cheapest choice of them is the optimum, or nothing is cheaper. The solver lets go of
the interpreter: meanwhile ways down go on, and where one is better, fewer sets are needed.

A set stands for all that are smaller, where the tasks that it has more cost nothing more; so what
is chosen is the cheapest of all, but not each placement is a choice.
"""

from __future__ import annotations

import bisect
import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import Set
from optgap.solvers.consolidation.master import Box, Master
from optgap.solvers.consolidation.plunge import seated
from optgap.solvers.consolidation.programs import Program
from optgap.solvers.consolidation.search import Places

MOST_LISTED, MOST_NODES = 15_000, 5_000_000
"""Sets that a program has, and sets that are looked at to list them, at most."""
FEWER = 0.6
"""Share of the sets of the program that runs, of which another is begun instead."""
ASIDE = (
    "mip_heuristic_run_rins",
    "mip_heuristic_run_rens",
    "mip_heuristic_run_root_reduced_cost",
)
"""What is left to ways down: smaller programs, that the solver does not end when it is asked."""
SLACK = 1e-7
"""Relative: what a solver's bound may be off by, and what it leaves between that and a solution."""


@dataclass(frozen=True)
class Choice:
    """What is known of placements for less than was asked.

    Parameters
    ----------
    bound: W that none of them undercuts. complete: the program has ended by itself.
    places: of the best solution, where there is one.
    """

    bound: float
    complete: bool
    places: Places | None


class Choosing:
    """One program at a time, in a thread of its own."""

    def __init__(self, master: Master, around: Box) -> None:
        self.master, self.around = master, around
        self.sets = 0
        """Of the program that runs; 0 for none."""
        self._thread: ThreadPoolExecutor | None = None
        self._done = threading.Event()
        self._job: Future[None] | None = None
        self._program: _Cheapest | None = None

    def begin(self, box: Box, bound: float, most: float, limits: Limits) -> bool:
        """Whether a program was begun, for placements for less than `most` W.

        It is not where there are too many sets, or hardly fewer than in the program that runs. The
        master has the prices of the box, with that bound.

        Parameters
        ----------
        limits: of the program, not of this call.
        """
        wanted = int(FEWER * self.sets) if self.sets else MOST_LISTED
        program = self._listed(box, bound, most, wanted)
        if program is None:
            return False
        self._done.set()  # the one that runs ends by itself
        self.sets, self._program = max(1, len(program.sets)), program
        self._done = done = threading.Event()
        self._thread = self._thread or ThreadPoolExecutor(2)
        self._job = self._thread.submit(program.run, limits, done)
        return True

    def now(self, box: Box, bound: float, most: float, limits: Limits, sets: int) -> Choice | None:
        """The same at once, where there are no more sets than so many."""
        program = self._listed(box, bound, most, sets)
        if program is None:
            return None
        program.run(limits)
        return program.choice()

    def _listed(self, box: Box, bound: float, most: float, sets: int) -> _Cheapest | None:
        """A program over all sets that are of use; None where there are more than so many."""
        listed, complete = self.master.listed(most, sets, MOST_NODES)
        if not complete:
            return None
        inside = [one for _, one in listed]
        return _Cheapest(self.master, inside, box, self.around, bound, most)

    @property
    def ready(self) -> bool:
        """Whether a program has ended."""
        return self._job is not None and self._job.done()

    def take(self) -> Places | None:
        """The last better placement that the program that runs has found, once."""
        return None if self._program is None else self._program.take()

    def stop(self) -> Choice | None:
        """End the program, if one runs, and say what is known by it."""
        if self._job is None or self._program is None:
            return None
        self._done.set()
        self._job.result()
        choice = self._program.choice()
        self._job, self._program, self.sets = None, None, 0
        return choice

    def close(self) -> Choice | None:
        """The same, for good."""
        choice = self.stop()
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        return choice


class _Cheapest(Program):
    """Tasks covered by sets at the least cost."""

    def __init__(
        self, master: Master, sets: list[Set], box: Box, around: Box, bound: float, most: float
    ) -> None:
        super().__init__()
        self.master, self.sets, self.least, self.most = master, sets, bound, most
        self.option("objective_bound", most)
        self.option("mip_rel_gap", SLACK)
        self.option("mip_abs_gap", 0.0)
        for name in ASIDE:
            self.option(name, False)
        self._found: list[float] | None = None
        self._highs.cbMipImprovingSolution += self._improved
        width, own = master.pack.width, master.own.of
        cover = [self.row(float(v), self.infinity) for v in width.tolist()]
        told = [
            q
            for q, (low, high) in enumerate(zip(box.low[:-1], box.high[:-1], strict=True))
            if low > around.low[q] or high < around.high[q]
        ]
        counts = [self.row(float(box.low[q]), float(box.high[q])) for q in told]
        seats = self.row(-self.infinity, 0.0)
        each = np.cumsum(master.steps)
        for inside in sets:
            top = int(own[list(inside)].max())
            above = counts[: bisect.bisect_right(told, top)]
            rows = dict.fromkeys([*(cover[ell] for ell in inside), *above, seats], 1.0)
            self.column(float(each[top]), float(width[list(inside)].min()), rows)
        awake = self.row(float(box.low[-1]), float(box.high[-1]))
        self.column(master.static_w, float(box.high[-1]), {seats: -float(master.width), awake: 1.0})
        self.build()

    def _improved(self, event: Any) -> None:
        self._found = list(event.data_out.mip_solution)

    def take(self) -> Places | None:
        """A better placement that was found since this was asked last."""
        found, self._found = self._found, None
        return None if not found else self._places(np.rint(found).astype(int).tolist())

    def choice(self) -> Choice:
        """What the run has shown."""
        if self.infeasible:
            return Choice(self.most, True, None)
        values = self.values
        bound = float(self._highs.getInfo().mip_dual_bound)
        if not math.isfinite(bound):
            bound = self.least
        bound = min(self.most, max(self.least, bound * (1 - SLACK)))
        places = None if values is None else self._places(values)
        return Choice(bound, self.solved, places)

    def _places(self, values: list[int]) -> Places | None:
        chosen: list[tuple[Set, int]] = []
        for one, amount in zip(self.sets, values, strict=False):
            chosen += [(one, -1)] * amount
        return seated(self.master, chosen)
