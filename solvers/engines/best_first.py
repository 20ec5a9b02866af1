"""Best-first branch and bound: of all open nodes, the one of the least bound is expanded next.

A tree of subproblems with a lower bound each (Land and Doig 1960). A node whose bound reaches the
cutoff, which the incumbent sets, is pruned. The least bound of all nodes that are not done bounds
the optimum at any time, so the search may stop anywhere and go on later. Among equal bounds the
newest node comes first, as in a depth-first search (Achterberg 2007, section 6).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from optgap.models.limits import Limits
from optgap.models.result import Termination


class Bounded(Protocol):
    """A node: all that its solutions have in common, and a lower bound on their values."""

    @property
    def bound(self) -> float:
        """Lower bound on the values of the node's solutions."""


N = TypeVar("N", bound=Bounded)


class BestFirst(Generic[N]):
    """Open nodes and what is proven by them.

    Parameters
    ----------
    roots: nodes that hold every solution.
    expand: returns nodes that hold every solution of a node that may be better than the incumbent,
        the most promising first. A node that was not done returns itself, perhaps with a better
        bound; None pauses the search, and the node stays open. `prune` and `set_aside` are for
        nodes that end without children.
    cutoff: returns the value from which on solutions are not looked for.
    primal: called before each node; tells whether it took the node's turn, to look for solutions.

    Attributes
    ----------
    aside: nodes that were set aside.
    """

    def __init__(
        self,
        roots: Iterable[N],
        expand: Callable[[N], Iterable[N] | None],
        cutoff: Callable[[], float],
        primal: Callable[[], bool] = lambda: False,
    ) -> None:
        self._expand, self._cutoff, self._primal = expand, cutoff, primal
        self._heap: list[tuple[float, int, N]] = []
        self._numbers = itertools.count()
        self.aside: list[N] = []
        self._pruned = self._current = math.inf
        self._open(roots)

    @property
    def bound(self) -> float:
        """Lower bound on all solutions that are not known yet; infinite if there are none."""
        least = min((node.bound for node in self.aside), default=math.inf)
        first = self._heap[0][0] if self._heap else math.inf
        return min(first, self._current, least, self._pruned)

    @property
    def active(self) -> bool:
        """Whether an open node may hold a better solution than the incumbent."""
        return bool(self._heap) and self._heap[0][0] < self._cutoff()

    @property
    def best(self) -> N | None:
        """The open node of the least bound, or else such a node of those set aside."""
        if self._heap:
            return self._heap[0][2]
        return min(self.aside, key=lambda node: node.bound, default=None)

    def prune(self, bound: float) -> None:
        """Take a node for done whose best solution, if not worse than the bound, is known."""
        self._pruned = min(self._pruned, bound)

    def set_aside(self, node: N) -> None:
        """Keep a node that can neither be divided nor decided; its bound counts."""
        self.aside.append(node)

    def reopen(self) -> None:
        """Open the nodes again that were set aside."""
        nodes, self.aside = self.aside, []
        self._open(nodes)

    def run(self, limits: Limits) -> Termination | None:
        """Expand nodes while one is active; the limit that ended this, or None."""
        while self.active:
            if limits.stop is not None:
                return limits.stop
            if self._primal():
                continue
            self._current, _, node = heapq.heappop(self._heap)
            children = self._expand(node)
            self._open([node] if children is None else children)
            self._current = math.inf
            if children is None:
                break
        return None

    def _open(self, nodes: Iterable[N]) -> None:
        """Open nodes, the first of which is to be the newest, or prune them."""
        for node in reversed([*nodes]):
            if node.bound >= self._cutoff():
                self.prune(node.bound)
            else:
                heapq.heappush(self._heap, (node.bound, -next(self._numbers), node))
