"""Placements looked for in a thread of their own, while counts and servers are branched on.

Linear programs and compiled loops let go of the interpreter, so that on two cores neither waits for
the other. The thread has programs of its own; what it finds it offers to the search.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Self

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.neighbours import Neighbours
from optgap.solvers.consolidation.outcomes import CLOSE

LAYOUTS_S, NEIGHBOURS_S, LONGER = 3.5, 1.0, 1.5
"""Seconds per hundred tasks for layouts, then for neighbours; how much longer each next time."""
SWITCH_S = 2e-4
"""How long a thread waits for the interpreter: programs take less than the usual time."""
WAITING_S = 0.005
"""Between two looks whether a node is open."""


class Beside:
    """Layouts, and a few servers at a time, by turns.

    Ends with the block that it is used in.

    Parameters
    ----------
    neighbours: None where there are too few servers.
    """

    def __init__(self, tree: Tree, neighbours: Neighbours | None, limits: Limits) -> None:
        self.tree, self.neighbours = tree, neighbours
        self.done = threading.Event()
        self.limits = Limits(limits.remaining, self.done)
        self._thread = ThreadPoolExecutor(1)
        self._work: Future[None] | None = None

    def __enter__(self) -> Self:
        self.tree.prepare()  # with the program that is the tree's own afterwards
        self.tree.apart = self.tree.layouts is not None
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        self._work = self._thread.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self._thread.shutdown()
        sys.setswitchinterval(self._interval)
        self.tree.apart = False
        if self._work is not None:
            self._work.result()

    def _run(self) -> None:
        share = self.tree.pack.tasks / 100
        while self.limits.stop is None:
            self._each(partial(self.tree.lay, ()), self.limits.within(LAYOUTS_S * share))
            if self.neighbours is not None and self.limits.stop is None:
                own = self.limits.within(NEIGHBOURS_S * share)
                self.neighbours.run(own, self.tree.bound * (1 + CLOSE))
            share *= LONGER

    def _each(self, work: Callable[[Limits], bool], limits: Limits) -> None:
        while limits.stop is None:
            if not work(limits):
                self.done.wait(WAITING_S)
