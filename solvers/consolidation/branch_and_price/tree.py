"""The tree: best-first search; each node is relaxed, then pruned, branched on, or decided."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from optgap.models.limits import Limits
from optgap.models.work import WORK
from optgap.solvers.consolidation.bounds import CostLevels, closed_form_w, server_limit
from optgap.solvers.consolidation.branch_and_price.branching import (
    Node,
    split_around,
    split_beyond,
    split_count,
    split_servers,
    unassigned,
)
from optgap.solvers.consolidation.branch_and_price.feasibility import CountFeasibility
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration, Relaxation
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import (
    CLOSE,
    INTEGRALITY,
    SLACK_W,
    CountBox,
    Counts,
    IntArray,
)
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.turns import turn
from optgap.solvers.engines.best_first import BestFirst

BY_TREE = "columns, branched on counts of GPUs and on servers"


class Tree:
    """Branch-and-price for identical GPUs and servers, where counts by level fix the power.

    Parameters
    ----------
    counts: (Q,) lower bounds on the GPUs of each level or more.
    incumbent: only better placements are looked for, and offered to it.
    heuristic: looks for better placements in turns between nodes; columns that it fixes are freed
        again.

    Attributes
    ----------
    search: the open nodes; set aside are those whose counts were neither proven infeasible nor
        found in a placement.
    patience: factor on the limits of linear and integer programs; grows with `reopen`.
    """

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        counts: Counts,
        incumbent: Incumbent,
        *,
        heuristic: Callable[[Tree, Limits], None] | None = None,
        seed: int = 0,
    ) -> None:
        self.instance, self.levels, self.incumbent = instance, levels, incumbent
        self.heuristic, self.rng = heuristic, np.random.default_rng(seed)
        floor = closed_form_w(instance, levels, counts)
        servers = server_limit(instance, floor, incumbent.watts, max(1, counts[0]))
        box = self._root_box(counts, floor, servers)
        self.generation = ColumnGeneration(instance, levels, box, servers if instance.gang else 0)
        self.generation.master.add(incumbent.contents)
        self.root = Node(floor, box, self.generation.master.assignment, box.low)
        roots = [self.root] if box.nonempty else []
        self.search = BestFirst(roots, self._expand, lambda: incumbent.cutoff, self._improve)
        if not roots:
            self.search.prune(floor)
        self.feasibility = CountFeasibility(self.generation, box.low)
        self._asked: set[Counts] = set()
        self.patience = 1.0
        self.nodes = 0
        self.limits = Limits()
        self._heuristic_work, self._work, self._begun = 0.0, 0.0, 0.0

    def _root_box(self, counts: Counts, floor: float, servers: int) -> CountBox:
        """Limits on a better placement's counts: each GPU more costs a part of the gap."""
        gap = max(0.0, self.incumbent.watts - floor)
        high = [
            min(self.instance.gpus, count + int(min(self.instance.gpus, gap / step + 1e-6)))
            for count, step in zip(counts, self.levels.steps_w.tolist(), strict=True)
        ]
        return CountBox((*counts, self.instance.servers_for(counts[0])), (*high, servers))

    @property
    def bound(self) -> float:
        """The lower bound, W; infinite where no placement is better than the incumbent."""
        return self.search.bound

    @property
    def open(self) -> bool:
        """Whether an open node may hold a better placement."""
        return self.search.active

    @property
    def best(self) -> Node:
        """The node of the least bound that is not done."""
        return self.search.best or self.root

    def run(self, limits: Limits) -> float:
        """Expand open nodes until none is left or the limits end: the bound, W.

        A later call continues.
        """
        self.limits, self._begun = limits, limits.spent - self._work
        self.search.run(limits)
        self._work = limits.spent - self._begun
        return self.bound

    def reopen(self) -> bool:
        """Open undecided nodes again with higher limits; whether one may be better."""
        self.patience *= DEFAULT.tree.patience_growth
        self.generation.effort = self.patience
        self._asked.clear()
        self.search.reopen()
        return self.open

    def _improve(self) -> bool:
        """Give the heuristic a turn, if it is due; whether it was."""
        limits = self.limits
        limits.progress("nodes", self.incumbent.watts, min(self.bound, self.incumbent.watts))
        limits.spend(WORK.lp)  # whatever a turn does, it counts
        before, share = limits.spent, DEFAULT.tree.heuristic_share
        due = self._heuristic_work <= share * (before - self._begun)
        if not (self.heuristic and self.nodes and due):
            return False
        units = DEFAULT.tree.heuristic_units * self.instance.tasks / 100
        self.heuristic(self, turn(limits, units))
        self._heuristic_work += limits.spent - before
        return True

    def _child(
        self, node: Node, rounded: Counts, box: CountBox, assignment: IntArray | None = None
    ) -> Node:
        """Return a child of a node; servers with assigned tasks are awake."""
        master = self.generation.master
        assignment = node.assignment if assignment is None else assignment
        awake = max(box.low[-1], int(assignment.max()) + 1)
        box = CountBox((*box.low[:-1], awake), box.high)
        inside = tuple(np.clip(rounded, box.low, box.high).tolist())
        return Node(max(node.bound, master.watts(box.low)), box, assignment, inside)

    def _children(self, node: Node, rounded: Counts, boxes: Iterable[CountBox]) -> list[Node]:
        return [self._child(node, rounded, box) for box in boxes]

    def _relax(self, node: Node) -> Relaxation:
        master, cutoff = self.generation.master, self.incumbent.cutoff
        master.set_box(node.box)
        master.set_servers(node.assignment)
        # the bound of one vector is its power already: what counts is whether it is feasible
        stop_value = master.watts(node.box.low) + SLACK_W if node.box.single else -math.inf
        return self.generation.solve(self.limits, stop_bound=cutoff, stop_value=stop_value)

    def _expand(self, node: Node) -> list[Node]:
        """Relax a node; branch on a count, or decide on its counts."""
        self.nodes += 1
        master = self.generation.master
        relaxed = self._relax(node)
        node = replace(node, bound=max(node.bound, relaxed.bound))
        if node.bound >= self.incumbent.cutoff or self.limits.stop is not None:
            return [node]
        rounded = tuple(np.ceil(relaxed.counts - INTEGRALITY).astype(int).tolist())
        boxes = [] if node.box.single else split_count(node.box, relaxed.counts, master.prices)
        if boxes:
            return self._children(node, rounded, boxes)
        if node.box.single and relaxed.value > master.watts(rounded) + 10 * SLACK_W:
            self.search.set_aside(replace(node, rounded=node.box.low))
            return []
        return self._settle(node, relaxed)

    def _settle(self, node: Node, relaxed: Relaxation) -> list[Node]:
        """Counts are integer: find a placement or prove them infeasible, else branch on servers."""
        counts = tuple(np.round(relaxed.counts).astype(int).tolist())
        shares = self.generation.master.server_shares(relaxed.usage)
        rest = unassigned(self.instance, node.assignment).size
        if self._infeasible(node.assignment, counts):
            largest = self.feasibility.dominating(counts) or counts
            return self._children(node, counts, split_beyond(node.box, largest))
        if self.incumbent.watts <= node.bound * (1 + CLOSE):
            self.search.prune(node.bound)
        elif self.limits.stop is not None:  # the limits ended in between: ask again
            self._asked.discard(counts)
            return [node]
        elif rest:
            split = split_servers(self.instance, node.assignment, node.box.high[-1], shares)
            return [self._child(node, counts, node.box, assignment) for assignment in split]
        elif not node.box.single:
            return self._children(node, counts, split_around(node.box, counts))
        else:
            self.search.set_aside(replace(node, rounded=counts))
        return []

    def _infeasible(self, assignment: IntArray, counts: Counts) -> bool:
        """Try to prove that counts, and all smaller ones, are infeasible under an assignment.

        Without one the same counts are tried once until the tree is opened again.
        """
        if self.feasibility.dominating(counts) is not None:
            return True
        anywhere = bool((assignment < 0).all())
        asked = anywhere and counts in self._asked
        if asked or unassigned(self.instance, assignment).size:
            return False
        self._asked.add(counts)
        own = DEFAULT.feasibility
        units = self.patience * (own.units if anywhere else own.assigned_units)
        limits = turn(self.limits, units * self.instance.tasks / 100)
        verdict = self.feasibility.decide(
            counts, self.incumbent.cutoff, limits, most_columns=own.columns, effort=self.patience,
            assignment=None if anywhere else assignment
        )  # fmt: skip
        self.incumbent.offer(verdict.placement)
        return verdict.infeasible
