"""The tree: nodes by their bounds, the least first, each relaxed, then split or decided."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import (
    CostLevels,
    closed_form_w,
    server_limit,
)
from optgap.solvers.consolidation.branch_and_price.branching import (
    split_around,
    split_beyond,
    split_count,
    split_servers,
    unassigned,
)
from optgap.solvers.consolidation.branch_and_price.feasibility import CountFeasibility
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic, SearchState
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration, Relaxation
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import CLOSE, INTEGRALITY, SLACK_W, Counts

BY_TREE = "columns, branched on counts of GPUs and on servers"


class Tree:
    """Branch-and-price for equal GPUs in equal servers, whose counts by level fix the power.

    Parameters
    ----------
    counts: (Q,) GPUs of each level or more that every placement has.
    incumbent: what is better is looked for; placements are offered to it.
    heuristics: take turns between nodes, and all are asked at whole counts.

    Attributes
    ----------
    halted: nodes that were neither denied nor realised, with their counts as `near`.
    """

    def __init__(
        self,
        instance: Instance,
        levels: CostLevels,
        counts: Counts,
        incumbent: Incumbent,
        heuristics: Sequence[PrimalHeuristic] = (),
        seed: int = 0,
        params: Params = DEFAULT,
    ) -> None:
        self.instance, self.levels, self.incumbent = instance, levels, incumbent
        self.heuristics, self.params = heuristics, params
        self.rng = np.random.default_rng(seed)
        floor = closed_form_w(instance, levels, counts)
        servers = server_limit(instance, floor, incumbent.watts, max(1, counts[0]))
        box = self._root_box(counts, floor, servers)
        self.generation = ColumnGeneration(
            instance, levels, box, servers if instance.gang else 0, params=params
        )
        self.generation.master.add(incumbent.contents)
        self.numbers = itertools.count()
        none = ServerAssignment.none(instance.tasks, self.generation.master.servers)
        self.root = Node(floor, 0, next(self.numbers), box, none, box.low)
        self.heap = [self.root] if box.nonempty else []
        self.halted: list[Node] = []
        self.feasibility = CountFeasibility(self.generation, box.low, params.feasibility)
        self._pruned = math.inf if box.nonempty else floor  # nothing is searched, nothing denied
        self._current = math.inf  # bound of the node that is looked at, which is not in the heap
        self._undecided: set[tuple[Counts, bool]] = set()
        self._seen_counts = False
        self.patience = 1.0
        self.nodes = 0
        self.limits = Limits()
        self._began, self._heuristic_s, self._turn = 0.0, 0.0, 0

    def _root_box(self, counts: Counts, floor: float, servers: int) -> CountBox:
        """What a better placement may count: each GPU more must be paid for out of the gap."""
        gap = max(0.0, self.incumbent.watts - floor)
        high = [
            min(self.instance.gpus, count + int(min(self.instance.gpus, gap / step + 1e-6)))
            for count, step in zip(counts, self.levels.steps_w.tolist(), strict=True)
        ]
        return CountBox((*counts, self.instance.servers_for(counts[0])), (*high, servers))

    @property
    def many_levels(self) -> bool:
        """Whether there are so many that hardly any linear program has whole counts."""
        most = self.params.tree.decided_levels
        return len(self.levels.quanta) > most and not self.instance.preplaced

    @property
    def large(self) -> bool:
        """Whether there are too many tasks to enumerate all columns that counts allow."""
        return self.instance.tasks > self.params.tree.decided_tasks and not self.instance.preplaced

    @property
    def cutoff(self) -> float:
        """What is too dear to look at, W."""
        return self.incumbent.watts * (1 - 0.5 * CLOSE)

    @property
    def bound(self) -> float:
        """What no placement undercuts, W; infinite where none is better than the incumbent."""
        least = min((node.bound for node in self.halted), default=math.inf)
        first = self.heap[0].bound if self.heap else math.inf
        return min(first, self._current, least, self._pruned)

    @property
    def open(self) -> bool:
        """Whether there is a node that may hold something better."""
        return bool(self.heap) and self.heap[0].bound < self.cutoff

    def state(self) -> SearchState:
        """What heuristics see."""
        nodes = self.heap or self.halted or [self.root]
        best = heapq.nsmallest(self.params.tree.best_shown, nodes)
        bound = min(self.bound, self.incumbent.watts)
        return SearchState(self.generation, self.incumbent, self.rng, self.root, best, bound)

    def run(self, limits: Limits, most_nodes: float = math.inf) -> float:
        """Branch until nothing better is left, for so many nodes, or to the limits: the bound, W.

        May be called again, to go on.
        """
        self.limits = limits
        self._began, self._heuristic_s = working_time(), 0.0
        last = self.nodes + most_nodes
        while self.open and limits.stop is None and self.nodes < last:
            if self._heuristics_are_due():
                self._improve()
                continue
            node = heapq.heappop(self.heap)
            self._current = node.bound
            self._expand(node)
            self._current = math.inf
            limits.progress("counts of GPUs", self.incumbent.watts, self.bound)
        return self.bound

    def reopen(self) -> bool:
        """Go back to halted nodes with more patience; whether there is one that may be better."""
        self.patience *= self.params.tree.patience_growth
        self._undecided.clear()
        self.heap += self.halted
        heapq.heapify(self.heap)
        self.halted = []
        return self.open

    def _heuristics_are_due(self) -> bool:
        """Whether they have had less than their share of the time, and may be of use."""
        params, best = self.params.tree, self.heap[0]
        if not self.heuristics or not self.nodes:
            return False
        early = self._seen_counts or self.large or self.many_levels
        far = early and self.cutoff > best.bound * (1 + params.far)
        if not (far or unassigned(self.instance, best.assignment).size):
            return False
        many = self.instance.gang and self.instance.tasks > params.small_gangs
        share = params.gang_share if many else params.heuristic_share
        return self._heuristic_s <= share * (working_time() - self._began)

    def _improve(self) -> None:
        """The next heuristic's turn."""
        began = working_time()
        heuristic = self.heuristics[self._turn % len(self.heuristics)]
        self._turn += 1
        self.generation.master.remove_unused()
        seconds = self.params.tree.heuristic_s * self.instance.tasks / 100
        heuristic.improve(self.state(), self.limits.within(seconds))
        name = type(heuristic).__name__
        self.limits.progress(name, self.incumbent.watts, min(self.bound, self.incumbent.watts))
        self._heuristic_s += working_time() - began

    def _push(self, node: Node, near: Counts, box: CountBox, assignment: ServerAssignment) -> None:
        """A child of a node, unless it is too dear; servers with tasks in them are awake."""
        master = self.generation.master
        box = CountBox((*box.low[:-1], max(box.low[-1], assignment.first_empty)), box.high)
        bound = max(node.bound, master.watts(box.low))
        if bound >= self.cutoff:
            self._prune(bound)
            return
        inside = tuple(np.clip(near, box.low, box.high).tolist())
        number = next(self.numbers)
        child = Node(bound, node.height - 1, number, box, assignment, inside, node.basis)
        heapq.heappush(self.heap, child)

    def _push_boxes(self, node: Node, near: Counts, boxes: Iterable[CountBox]) -> None:
        for box in boxes:
            self._push(node, near, box, node.assignment)

    def _prune(self, bound: float) -> None:
        """A node that is too dear for now: a better incumbent never changes that."""
        self._pruned = min(self._pruned, bound)

    def _relax(self, node: Node, limits: Limits) -> Relaxation:
        master = self.generation.master
        master.set_box(node.box)
        master.set_servers(node.assignment)
        master.start_at(node.basis)
        hopeless = -math.inf
        if node.box.single:  # its cost is its bound already: only whether it is allowed is asked
            hopeless = master.watts(node.box.low) + SLACK_W
        return self.generation.solve(limits, enough=self.cutoff, hopeless=hopeless)

    def _expand(self, node: Node) -> None:
        """Relax a node; prune it, split it, or decide on its counts."""
        self.nodes += 1
        master, own = self.generation.master, self.limits
        if self.large:  # a linear program that takes long waits for those of other nodes
            seconds = self.patience * self.params.tree.node_s * self.instance.tasks / 100
            own = own.within(seconds)
        relaxed = self._relax(node, own)
        node = replace(node, bound=max(node.bound, relaxed.bound))
        if node.bound >= self.cutoff:
            self._prune(node.bound)
        elif self.limits.stop is not None:
            heapq.heappush(self.heap, node)
        elif own.stop is not None and self.nodes > 1:  # the root is split anyway
            self.halted.append(node)
        else:
            node = replace(node, basis=master.basis)
            near = tuple(np.ceil(relaxed.counts - INTEGRALITY).astype(int).tolist())
            boxes = [] if node.box.single else split_count(node.box, relaxed.counts, master.prices)
            if boxes:
                self._push_boxes(node, near, boxes)
            elif node.box.single and relaxed.value > master.watts(near) + 10 * SLACK_W:
                self.halted.append(replace(node, near=node.box.low))  # not denied, and not realised
            else:
                self._settle(node, relaxed)

    def _settle(self, node: Node, relaxed: Relaxation) -> None:
        """Counts are whole: realise or deny them, else branch on servers."""
        self._seen_counts = True
        counts = tuple(np.round(relaxed.counts).astype(int).tolist())
        shares = self.generation.master.server_shares(relaxed.usage)
        rest = unassigned(self.instance, node.assignment).size
        denied = not self._realise(node, counts, before_proof=True)
        denied = denied and self._denied(counts, quick=True)
        if not (denied or rest or self._realise(node, counts, before_proof=False)):
            assigned = node.assignment if node.assignment.any else None
            denied = self._denied(counts, quick=assigned is not None, assignment=assigned)
        if denied:
            refused = self.feasibility.refusing(counts) or counts
            self._push_boxes(node, counts, split_beyond(node.box, refused))
            return
        if self.incumbent.watts <= node.bound * (1 + CLOSE):
            self._prune(node.bound)
        elif self.limits.stop is not None:  # not the whole look was taken
            self._undecided -= {(counts, True), (counts, False)}
            heapq.heappush(self.heap, node)
        elif rest:
            most = node.box.high[-1]
            for assignment in split_servers(self.instance, node.assignment, most, shares):
                self._push(node, counts, node.box, assignment)
        elif not node.box.single:
            self._push_boxes(node, counts, split_around(node.box, counts))
        else:
            self.halted.append(replace(node, near=counts))

    def _realise(self, node: Node, counts: Counts, *, before_proof: bool) -> bool:
        """Ask heuristics for a placement with these counts; whether there is one."""
        for heuristic in self.heuristics:
            if self.limits.stop is not None or self.state().realised(counts):
                break
            if heuristic.before_proof is before_proof:
                heuristic.realise(self.state(), node, counts, self.limits)
        return self.state().realised(counts)

    def _denied(
        self, counts: Counts, *, quick: bool, assignment: ServerAssignment | None = None
    ) -> bool:
        """Whether counts are denied, with all that are less; asked once until more patient.

        Parameters
        ----------
        quick: the program has little time, as there are other ways or many assignments.
        assignment: for which alone it is asked, and not only once.
        """
        if self.feasibility.refusing(counts) is not None:
            return True
        restricted = self.instance.gang or bool(self.instance.preplaced)
        if assignment is None and (restricted or (counts, quick) in self._undecided):
            return False
        self._undecided.add((counts, quick))
        own = self.params.feasibility
        limits = self.limits.within(self.patience * own.seconds * self.instance.tasks / 100)
        columns = own.large_columns if self.large else own.columns
        verdict = self.feasibility.decide(
            counts, self.cutoff, limits, most_columns=columns, effort=self.patience, quick=quick,
            assignment=assignment,
        )  # fmt: skip
        self.incumbent.offer(verdict.placement)
        return verdict.denied
