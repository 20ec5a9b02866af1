"""Branching on counts of GPUs by level, then on the servers of tasks of several GPUs."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.choosing import Choice, Choosing
from optgap.solvers.consolidation.covering import Verdict
from optgap.solvers.consolidation.deciding import decide, relax
from optgap.solvers.consolidation.generation import FEW, Set
from optgap.solvers.consolidation.layouts import Layouts
from optgap.solvers.consolidation.levels import Levels, closed_bound, dearer, server_limit
from optgap.solvers.consolidation.master import Basis, Binding, Box, Master, up_to
from optgap.solvers.consolidation.outcomes import CLOSE
from optgap.solvers.consolidation.packing import QUANTUM_W, FloatArray, IntArray, Packing
from optgap.solvers.consolidation.plunge import Plunge, part_of
from optgap.solvers.consolidation.search import Places, Search
from optgap.solvers.consolidation.squeeze import Attempts

WHOLE, SLACK_W = 1e-6, 1e-4
"""What counts as whole, and what a linear program's value may be above its counts' own cost."""
PLUNGES, LARGE_WAYS = 3, 8
"""Ways down from counts whose tasks are all bound, and where they are short and all there is."""
REACH, LEAST_REACH, MORE, LESS = 1.5e-3, 2e-4, 1.8, 0.8
"""Share of the bound that a dive from the root may lose at first, and at least; how that changes
where there is no way down, and where it leads to nothing better."""
LOOSE = 0.9
"""Share of the gap that other dives may lose, from the best node: fast, enough for few tasks."""
FAR = 1e-3
"""Relative gap above which a placement is looked for that costs more than the bound."""
FARTHER, LEAST_LOSS, BIND_S, DOWN_FROM = 5e-3, 1e-3, 1.0, 2
"""Relative gap above which a small tree's dives bind tasks at the least loss that they come by; the
loss they begin with, seconds per hundred tasks until any will do, and ways down from a binding."""
FEW_TASKS, FEW_ON_A_GPU, DIVE_NODES = 100, 192, 20
"""Tasks up to which a tree with servers is small, with memory alone and with more rows; nodes that
a dive looks at under the binding that it finds."""
DIVE_S, HOPED = 2.5, 0.3
"""Seconds of a dive per hundred tasks, and the share of what is left of the gap that a placement is
to cost."""
AIMS, LAYOUT_S, LAYOUT_SHARE = 8, 0.4, 0.9
"""Nodes whose counts a layout is made for, seconds per hundred tasks for all others in it, and the
share of the time that goes to layouts once counts are known."""
MORE_SERVERS = 0.25
"""How often a layout has the servers of the best placement, where its counts need fewer."""
HOPE, MORE_HOPE = 0.5, 1.2
"""Share of the gap that a layout's placement may keep, and how that grows while none does."""
NEARLY, NEAR = 1e-2, 3e-3
"""Relative gaps below which counts are decided where a task's GPUs are in one server: as if they
could be anywhere, and in one."""
DEAL_TURNS, DEAL_LONGER, MOST_HOPE = 4, 3.0, 0.95
"""Every so many turns counts are guessed; how much longer at most their placements are annealed;
the share of the gap that they may keep."""
MOST_DECIDED = 256
"""Tasks up to which all sets that counts allow are searched: with more there are too many."""
MOST_SPLIT = 8
"""Levels up to which that is so where a task's GPUs are in one server, as servers tell more."""
DECIDE_S, LIFT, LIFT_S, RARELY = 8.0, 2.0, 0.6, 6
"""Seconds per hundred tasks for a search among what counts allow; where it denies them,
times what it took for one over more of the dearer levels, the most of that, and how many denials
later that is tried again where it led to nothing."""
SLOW_S = 1.0
"""Seconds per hundred tasks after which a linear program waits for those of other nodes."""
MISSED, MOST_MISSES = 0.02, 2
"""Excess in GPUs beyond which annealing missed counts, and after how many misses they are left to
what decides them."""
PATIENT, MOST_PATIENT = 3.0, 30.0
"""How much longer each time what was decided neither way is looked at again, up to so much."""
WAYS, LOOSELY = 4, 0.5
"""Kinds of ways down beside a program, by turns; the noise of those where nothing is taken back."""
MOST_LEVELS = 12
"""Levels beyond which counts are hardly ever whole: placements come from ways down where nothing is
taken back, and integer programs choose among all sets, not those for given counts."""
FIRST_DOWN, DOWNS, KEPT, RENEWED = 4, 4, (0.3, 0.8), 0.5
"""After how many nodes such ways down begin, and how many; from what share of the best placement
later ones begin, and what share of the time they take."""
FEW_SETS, AT_ONCE_S = 600, 0.5
"""Sets with which a node's integer program is solved at once, and for how long."""
NEARER, LISTED_LESS = 1e-5, 5.0
"""How much better, relatively, the best placement must be than when sets were listed last, and how
many times as long as that took is waited before they are listed again."""
MOST_ATTEMPTS = 8
"""Vectors of counts for which placements are annealed."""
ATTEMPTS_LONGER = 2.0
"""How much longer than at first placements with given counts are annealed."""


@dataclass(order=True)
class Node:
    """A box of counts and a binding, with a bound on what lies in it."""

    bound: float
    deep: int
    order: int
    box: Box = field(compare=False)
    binding: Binding = field(compare=False)
    aim: tuple[int, ...] = field(compare=False, default=())
    """Counts near those of its linear program."""
    basis: Basis | None = field(compare=False, default=None)
    """Where the linear program of its parent ended."""


class Tree:
    """Best bound first, deepest first among equals.

    Parameters
    ----------
    search: holds the best placement, and is offered better ones.

    Attributes
    ----------
    halted: what was neither denied nor placed, with its counts as aims. left: least bound of what
        was too dear.
    """

    def __init__(
        self,
        pack: Packing,
        own: Levels,
        counts: tuple[int, ...],
        search: Search,
        seed: int,
    ) -> None:
        self.pack, self.own, self.search = pack, own, search
        self.rng = np.random.default_rng(seed)
        floor = closed_bound(pack, own, counts)
        servers = server_limit(pack, floor, search.watts, max(1, counts[0]))
        box = self._box(counts, floor, servers)
        self.master = Master(pack, own, box, servers if pack.gang else 0)
        self.master.add(pack.contents(search.places or []).values())
        self.numbers = itertools.count()
        binding = Binding.none(pack.tasks, self.master.servers)
        self.root = Node(floor, 0, next(self.numbers), box, binding, box.low)
        self.heap = [self.root] if box.holds else []
        self.looked_at = math.inf
        """Bound of the node that is looked at, which is not in the heap."""
        self.left = math.inf if box.holds else floor  # nothing is searched, nothing denied
        self.nodes = self.dives = self.turns = 0
        self.reach, self.diving = REACH, 0.0
        self.limits = self.whole = Limits()
        self.attempts = Attempts(pack, own, search, self.rng, self.limits)
        self.attempts.longer = ATTEMPTS_LONGER
        self.tried: dict[tuple[int, ...], int] = {}
        self.denials = self.lift_from = 0
        self.decided: set[tuple[int, ...]] = set()
        self.refused: list[tuple[int, ...]] = []
        self.halted: list[Node] = []
        self.ways, self.misses, self.patience = -1, 0, 1.0
        self.basis: Basis | None = None
        self.near: FloatArray = np.array(box.low, dtype=np.float64)
        self.hope = self.guess = HOPE
        self.layouts = self._layouts(seed)
        self.choosing = Choosing(self.master, box) if self.fine and self.settles else None
        self.chosen, self.listed_at, self.listing = -math.inf, math.inf, 0.0

    def _layouts(self, seed: int) -> Layouts | None:
        """What places tasks of several GPUs first, where there are such and others."""
        if not self.pack.gang:
            return None
        layouts = Layouts(self.pack, self.own, self.search, Tree, seed)
        return layouts if layouts.useful else None

    def _box(self, counts: tuple[int, ...], floor: float, servers: int) -> Box:
        """What a better placement may count: each GPU more must be paid for out of the gap."""
        gap = max(0.0, self.search.watts - floor)
        steps = np.diff([0, *self.own.quanta]) * QUANTUM_W
        high = [
            min(self.pack.gpus, count + int(gap / step + 1e-6))
            for count, step in zip(counts, steps.tolist(), strict=True)
        ]
        return Box((*counts, self.pack.servers_for(counts[0])), (*high, servers))

    @property
    def few(self) -> bool:
        """Whether the tree is small: then dives begin at its nodes more often than at its root.

        With memory alone a GPU holds more tasks, so that linear programs take longer.
        """
        most = FEW_ON_A_GPU if len(self.pack.rows) > 1 else FEW_TASKS
        return self.pack.gang and self.pack.tasks <= most

    @property
    def fine(self) -> bool:
        """Whether there are so many levels that hardly any linear program has whole counts."""
        return len(self.own.quanta) > MOST_LEVELS and not self.pack.anchors

    @property
    def large(self) -> bool:
        """Whether there are too many tasks for a search among all sets."""
        return self.pack.tasks > MOST_DECIDED and not self.pack.anchors

    @property
    def ended(self) -> bool:
        """Whether counts are placed along linear programs, as there are no servers in them."""
        return not (self.pack.gang or self.pack.anchors or self.fine)

    @property
    def settles(self) -> bool:
        """Whether counts are decided in the end, so that no servers are branched on."""
        return self.pack.tasks <= MOST_DECIDED and not (self.pack.gang or self.pack.anchors)

    @property
    def cut(self) -> float:
        """What is too dear to look at, W."""
        return self.search.watts * (1 - 0.5 * CLOSE)

    @property
    def stuck(self) -> float:
        """Least bound of what was neither denied nor placed, W."""
        return min((node.bound for node in self.halted), default=math.inf)

    @property
    def bound(self) -> float:
        """What no placement undercuts, W; infinite where none is better than the best."""
        least = min(self.heap[0].bound if self.heap else math.inf, self.looked_at)
        return max(self.chosen, min(least, self.stuck, self.left))

    def run(self, limits: Limits) -> float:
        """Branch until nothing better is left, or the limits; the bound in W.

        May be called again, to go on.
        """
        self.limits = self.attempts.limits = limits
        began, self.diving = working_time(), 0.0
        while self.open() and limits.stop is None:
            if self.nodes and self._seek(self.heap[0], working_time() - began):
                self._choose()
                continue
            if not self.open():
                break
            self.looked_at = self.heap[0].bound
            node = heapq.heappop(self.heap)
            done = self._expand(node)
            if not done:
                heapq.heappush(self.heap, node)
            self.looked_at = math.inf
            if done and self.fine and self.nodes == FIRST_DOWN:
                self._downs()
            self._choose()
            limits.progress("counts of GPUs", self.search.watts, self.bound)
        return self.bound

    def _choose(self) -> None:
        """Begin an integer program where the best placement is near the bound; see what it says."""
        if self.choosing is None:
            return
        if self.choosing.ready:
            self._known(self.choosing.stop())
        self._offer(self.choosing.take())
        began = working_time()
        late = began >= self.listing and self.cut < (1 - NEARER) * self.listed_at
        if not (self.open() and late) or self.limits.stop is not None:
            return
        self.listed_at = self.cut
        box = self._hull()
        self.master.confine(box)
        self.master.bind(self.root.binding)
        relaxed = self.master.run(self.limits, self.cut, priced=True)
        if relaxed.bound < self.cut:
            self.choosing.begin(box, relaxed.bound, self.cut, self.whole)
        self.listing = working_time() + LISTED_LESS * (working_time() - began)

    def _chosen(self, choosing: Choosing, node: Node, bound: float) -> bool:
        """Whether few sets are left for what is better, and the cheapest of them are known."""
        own = self.limits.within(AT_ONCE_S)
        choice = choosing.now(node.box, bound, self.cut, own, FEW_SETS)
        if choice is None:
            return False
        self._offer(choice.places)
        if choice.complete:
            self.left = min(self.left, choice.bound)
        return choice.complete

    def _known(self, choice: Choice | None) -> None:
        """What an integer program has said of all placements that are better, wherever they are."""
        if choice is None:
            return
        self._offer(choice.places)
        self.chosen = max(self.chosen, choice.bound)
        if choice.complete:
            self.left = min(self.left, choice.bound)
            self.heap, self.halted = [], []

    def close(self) -> None:
        """End what runs beside."""
        if self.choosing is not None:
            self._known(self.choosing.close())

    def _hull(self) -> Box:
        """A box around what is open."""
        boxes = [node.box for node in (*self.heap, *self.halted) if node.bound < self.cut]
        low = np.min([box.low for box in boxes], axis=0)
        high = np.max([box.high for box in boxes], axis=0)
        return Box(tuple(low.tolist()), tuple(high.tolist()))

    def _seek(self, best: Node, spent: float) -> bool:
        """Look for a placement, when it is time to; whether to do so again before branching."""
        if self.fine:
            if self.nodes <= FIRST_DOWN or self.diving > RENEWED * spent:
                return False
            self._renew()
            return True
        tried = self.tried if self.pack.tasks > MOST_DECIDED else self.halted
        far = bool(tried or (self.ended and self.large)) and self.cut > best.bound * (1 + FAR)
        if not (far or self._unbound(best.binding).size):
            return False
        many = self.layouts is not None and not self.few
        farther = self.few and self.cut > best.bound * (1 + FARTHER)
        share = LAYOUT_SHARE if many and self.tried else 0.5
        if self.diving > share * spent:
            return False
        if farther:
            self._nearest(best)
            return False
        self.turns += 1
        dealt = not self.few if self.pack.gang else self.pack.tasks > MOST_DECIDED
        if self.ended or (dealt and self.turns % DEAL_TURNS == 1):
            self._deal(best.aim)
        elif self.layouts is not None and (many or self.turns % 2 == 0):
            self._lay([])
        elif (self.dives + 1) % (4 if self.few else 2):
            self._dive(best, LOOSE * (self.cut - best.bound), best.bound)
        else:
            loss = self.reach * best.bound
            self._dive(replace(self.root, bound=best.bound), loss, best.bound + loss)
        return many

    def open(self) -> bool:
        """Whether there is a node that may hold something better."""
        return bool(self.heap) and self.heap[0].bound < self.cut

    def _push(self, node: Node, bound: float, box: Box, binding: Binding) -> None:
        bound = max(bound, node.bound, self.master.watts(box.low))
        if bound >= self.cut:
            self.left = min(self.left, bound)
        else:
            aim = tuple(np.clip(np.ceil(self.near - WHOLE), box.low, box.high).astype(int).tolist())
            number = next(self.numbers)
            below = Node(bound, node.deep - 1, number, box, binding, aim, self.basis)
            heapq.heappush(self.heap, below)

    def _expand(self, node: Node) -> bool:
        """Whether the node is done with; else it counts as open."""
        self.nodes += 1
        self.master.confine(node.box)
        self.master.bind(node.binding)
        self.master.begin(node.basis)
        own = self.limits
        if self.large:
            own = own.within(self.patience * SLOW_S * self.pack.tasks / 100)
        relaxed = self.master.run(own, enough=self.cut, hopeless=self._hopeless(node))
        bound = max(node.bound, relaxed.bound)
        if bound >= self.cut:
            self.left = min(self.left, bound)
            return True
        if self.limits.stop is not None:
            node.bound = bound
            return False
        if own.stop is not None and self.nodes > 1:  # others come first; the root is split anyway
            self._stick(node, bound, node.aim or node.box.low)
            return True
        if self.choosing is not None and self._chosen(self.choosing, node, bound):
            return True
        self.near, self.basis = relaxed.vector, self.master.basis
        vector = np.round(relaxed.vector).astype(int)
        far = np.abs(relaxed.vector - vector)
        if not node.box.single and far.max() > WHOLE:
            self._on_counts(node, bound, relaxed.vector, far)
        elif node.box.single and relaxed.value > self.master.watts(vector) + 1e-3:
            self._stick(node, bound, node.box.low)  # not denied, and no way down from here
        else:
            self._settle(node, bound, tuple(vector.tolist()))
        return True

    def _hopeless(self, node: Node) -> float:
        """One vector's cost is its bound already: only whether it is allowed is asked."""
        return self.master.watts(node.box.low) + SLACK_W if node.box.single else -math.inf

    def _on_counts(self, node: Node, bound: float, found: FloatArray, far: FloatArray) -> None:
        weights = far * np.maximum(self.master.prices, WHOLE)  # servers may cost nothing
        j = int(np.where(far > WHOLE, weights, 0.0).argmax())
        low, high = list(node.box.low), list(node.box.high)
        low[j], high[j] = math.floor(found[j]) + 1, math.floor(found[j])
        self._push(node, bound, Box(tuple(low), node.box.high), node.binding)
        self._push(node, bound, Box(node.box.low, tuple(high)), node.binding)

    def _denied(self, node: Node, vector: tuple[int, ...]) -> tuple[int, ...] | None:
        """Counts that are denied, with all that are less; once for each vector."""
        for known in self.refused:
            if all(a <= b for a, b in zip(vector, known, strict=True)):
                return tuple(min(a, b) for a, b in zip(known, node.box.high, strict=True))
        if vector in self.decided or self.pack.anchors or self._placed(vector):
            return None
        if self.large:
            self.decided.add(vector)
            if self._relaxed_away(vector):
                return vector
            if self.pack.gang:
                return None
        many = len(self.own.quanta) > MOST_SPLIT  # what is left falls into a box for each level
        if self.pack.gang and (self.few or many):
            return None
        if self.pack.gang and self.cut > self.master.watts(vector) * (1 + NEARLY):
            return None
        self.decided.add(vector)
        seconds = self.patience * DECIDE_S * self.pack.tasks / 100
        near = self.pack.gang and self.cut < self.master.watts(vector) * (1 + NEAR)
        for gang in (False, True) if near else (False,):
            began = working_time()
            if self._decides(vector, gang, seconds):
                seconds = LIFT * (working_time() - began)
                self.refused.append(self._lifted(node, vector, gang, seconds))
                return self.refused[-1]
        return None

    def _lifted(
        self, node: Node, vector: tuple[int, ...], gang: bool, seconds: float
    ) -> tuple[int, ...]:
        """As many more of the dearer levels as are denied too, in so many seconds each."""
        more, first, self.denials = 1, vector, self.denials + 1
        while self.denials >= self.lift_from and self.limits.stop is None:
            trial = [min(vector[0], x + more) for x in vector]
            trial[0], trial[-1] = vector[0], vector[-1]
            upper = tuple(min(a, b) for a, b in zip(trial, node.box.high, strict=True))
            if upper == vector or not self._decides(upper, gang, seconds, wait=False):
                break
            vector, more = upper, 2 * more
        if vector == first and self.denials >= self.lift_from:
            self.lift_from = self.denials + RARELY
        return vector

    def _relaxed_away(self, vector: tuple[int, ...]) -> bool:
        """Whether a linear program denies counts, which hold where a box has no others."""
        low = self.root.box.low
        relaxed, watts = relax(self.master, low, vector, self.cut, self.limits)
        return relaxed.bound > watts

    def _decides(
        self, vector: tuple[int, ...], gang: bool, seconds: float, wait: bool = True
    ) -> bool:
        """Whether counts are denied; a placement with them is offered.

        Parameters
        ----------
        wait: or else there is only time for a quick look.
        """
        quick = LIFT_S * self.pack.tasks / 100
        own = self.limits.within(seconds if wait else min(seconds, quick))
        low = self.root.box.low
        ways = wait and (self.layouts is not None or not self.pack.gang)
        way = partial(self._way, vector) if ways else None
        placing = wait and gang == self.pack.gang
        decision = decide(
            self.master, low, vector, self.cut, own, gang, way, placing, partly=not self.large
        )
        if gang == self.pack.gang and decision.places is not None:
            self.search.offer(decision.places)
        return decision.verdict is Verdict.DENIED

    def _way(self, vector: tuple[int, ...]) -> bool:
        """Whether a way down from counts, or a layout for them, ends in a placement with them."""
        if self.layouts is not None:
            self._lay([vector])
        else:
            self.ways += 1
            self.master.shrink()
            self._along(vector, self.ways % WAYS)
        return self._placed(vector)

    def _along(self, vector: tuple[int, ...], turn: int) -> None:
        """A way down to counts: choices taken back, or none; or to dearer ones, if all is far."""
        if turn % 2 == 0:
            self._plunge(vector, self.root.binding, turn / 2)
        elif turn == 1 and self.cut > self.master.watts(vector) * (1 + FAR):
            self._deal(vector)
        else:
            least = tuple(min(a, b) for a, b in zip(self.root.box.low, vector, strict=True))
            most = self.master.watts(vector) + SLACK_W
            self._down(Box(least, vector), self.root.binding, most, LOOSELY)

    def _placed(self, vector: tuple[int, ...]) -> bool:
        return self.search.watts <= self.master.watts(vector) * (1 + CLOSE)

    def _beyond(self, node: Node, bound: float, vector: tuple[int, ...]) -> None:
        """Boxes for what is more than a vector in some place."""
        low, high = list(node.box.low), list(node.box.high)
        for j, x in enumerate(vector):
            if x < high[j]:
                box = Box((*low[:j], x + 1, *low[j + 1 :]), (*high[:j], *node.box.high[j:]))
                self._push(node, bound, box, node.binding)
            high[j] = x

    def _around(self, node: Node, bound: float, vector: tuple[int, ...]) -> None:
        """The vector by itself, and the rest of the box in boxes that leave it out."""
        low, high = list(node.box.low), list(node.box.high)
        self._push(node, bound, Box(vector, vector), node.binding)
        for j, x in enumerate(vector):
            for least, most in ((x + 1, node.box.high[j]), (node.box.low[j], x - 1)):
                if least <= most:
                    self._push(
                        node, bound,
                        Box((*low[:j], least, *low[j + 1 :]), (*high[:j], most, *high[j + 1 :])),
                        node.binding,
                    )  # fmt: skip
            low[j] = high[j] = x

    def _settle(self, node: Node, bound: float, vector: tuple[int, ...]) -> None:
        """Counts are whole: look for a placement that keeps them, then branch on servers."""
        complete = not self._unbound(node.binding).size
        denied = self._look(node, vector, complete)
        if denied is not None:
            self._beyond(node, bound, denied)
            return
        if self.search.watts <= bound * (1 + CLOSE):
            self.left = min(self.left, bound)
        elif self.limits.stop is not None:  # not the whole look was taken
            self.decided.discard(vector)
            heapq.heappush(self.heap, replace(node, bound=bound))
        elif not complete:
            self._on_servers(node, bound)
        elif not node.box.single:
            self._around(node, bound, vector)
        else:
            self._stick(node, bound, vector)

    def _look(self, node: Node, vector: tuple[int, ...], complete: bool) -> tuple[int, ...] | None:
        """Placements with these counts, by annealing at first, then along the linear program.

        What is returned are counts that are denied.
        """
        number = self.tried[vector] = self.tried.get(vector, 0) + 1
        if number == 1 and len(self.tried) <= MOST_ATTEMPTS and self.misses < MOST_MISSES:
            self.attempts(vector[:-1])
            self.misses += self.settles and self.attempts.left > MISSED
        denied = self._denied(node, vector)
        if denied is not None or not complete:
            return denied
        ways = LARGE_WAYS if self.ended else PLUNGES
        for k in range(1 if self.settles else ways):
            if self._placed(vector) or self.limits.stop is not None:
                break
            self._plunge(vector, node.binding, 0.0 if number == 1 and k == 0 else 1.0)
        return None

    def _stick(self, node: Node, bound: float, vector: tuple[int, ...]) -> None:
        self.halted.append(replace(node, bound=bound, aim=vector))

    def again(self) -> bool:
        """Go back to what was neither denied nor placed, with more patience; whether there is any.

        Not where servers are branched on, unless there are nodes that took too long.
        """
        waits = self.settles or self.large
        if not waits or self.patience >= MOST_PATIENT or not self.halted:
            return False
        self.patience *= PATIENT
        self.decided.clear()
        self.heap += self.halted
        heapq.heapify(self.heap)
        self.halted = []
        return self.open()

    def retry(self, limits: Limits) -> None:
        """Look again for placements of what was neither denied nor placed, the cheapest first."""
        self.limits = self.attempts.limits = limits
        vectors = sorted((node.aim for node in self.halted), key=self.master.watts)
        while limits.stop is None and self.stuck < self.cut:
            for vector in vectors:
                if self.master.watts(vector) >= self.cut or limits.stop is not None:
                    break
                if self.attempts(vector[:-1]) is None and not self.pack.gang:
                    self._plunge(vector, self.root.binding, 1.0)
            limits.progress("counts of GPUs", self.search.watts, self.bound)

    def _plunge(self, vector: tuple[int, ...], binding: Binding, noise: float) -> None:
        """One way down from counts."""
        most = self.master.watts(vector) + SLACK_W
        plunge = Plunge(self.master, self.limits, self.rng, noise)
        self._offer(plunge.placed(up_to(vector), binding, most, most))

    def _offer(self, places: Places | None) -> None:
        if places is not None:
            self.search.offer(places)

    def _unbound(self, binding: Binding) -> IntArray:
        """Tasks of several GPUs that no server has yet, where one must."""
        wide = (self.pack.width > 1) & (binding.server < 0)
        return np.flatnonzero(wide) if self.pack.gang else np.zeros(0, dtype=np.int64)

    def _downs(self) -> None:
        """Ways down from the root, by which the best placement is near from the beginning."""
        began = working_time()
        for k in range(DOWNS):
            if self.open() and self.limits.stop is None:
                self.master.shrink()
                self._down(self._near(0), self.root.binding, self.cut, float(k > 0))
        self.diving += working_time() - began

    def _near(self, servers: int) -> Box:
        """The root's box with as many GPUs and servers as the best node has, or more servers."""
        root, best = self.root.box, self.heap[0].box
        least = min(root.high[-1], max(best.low[-1], servers))
        most = least if self.pack.gang else root.high[-1]
        return Box((best.low[0], *root.low[1:-1], least), (*root.high[:-1], most))

    def _renew(self) -> None:
        """A way down from a part of the best placement."""
        began = working_time()
        self.master.shrink()
        part = part_of(self.pack, self.search.places or [], self.rng.uniform(*KEPT), self.rng)
        servers = part.awake if self.pack.gang and self.rng.random() < MORE_SERVERS else 0
        binding = self.root.binding.bind(part.bound)
        self._down(self._near(servers), binding, self.cut, 1.0, part.kept)
        self.limits.progress("parts of the best placement", self.search.watts, self.bound)
        self.diving += working_time() - began

    def _down(
        self,
        box: Box,
        binding: Binding,
        most: float,
        noise: float,
        kept: Mapping[Set, int] | None = None,
    ) -> None:
        """A way down where nothing is taken back."""
        plunge = Plunge(self.master, self.limits, self.rng, noise)
        self._offer(plunge.down(box, binding, most, kept))

    def _dive(self, node: Node, loss: float, good: float) -> None:
        """From a node down: all tasks bound by their shares, sets fixed, a few counts tried."""
        began = working_time()
        before = self.search.watts
        loss = min(loss, LOOSE * (self.cut - node.bound))
        own = self.limits.within(DIVE_S * self.pack.tasks / 100)
        self.master.shrink()
        plunge = Plunge(self.master, own, self.rng, 0.0 if self.dives == 0 else 1.0)
        whole: Binding | None = node.binding
        if self._unbound(node.binding).size:
            whole = plunge.bound(node.box, node.binding, node.bound + loss, good)
        if whole is not None:
            self.master.confine(node.box)
            self.master.bind(whole)
            lowest = self.master.run(own, self.cut, most_nodes=FEW).value
            better = not self.few
            while better and lowest < self.cut and own.stop is None:
                known = self.search.watts
                hoped = lowest + HOPED * (self.cut - lowest)
                self._offer(plunge.placed(node.box, whole, hoped, self.cut))
                better = self.search.watts < known
            if self.pack.gang and lowest < self.cut and own.stop is None:
                self._below(node, whole)
        if self.dives % 2 == 0 and self.search.watts >= before:
            self.reach *= MORE if whole is None else LESS
        if not LEAST_REACH < self.reach < (self.cut / node.bound - 1):
            self.reach = REACH
        self.dives += 1
        self.diving += working_time() - began

    def _nearest(self, best: Node) -> None:
        """From the root down: all tasks bound at the least loss, and placements with that binding.

        By turns with no more GPUs than the best node's linear program has.
        """
        began = working_time()
        box = self._near(0)
        if self.dives % 2 == 0:
            gpus = max(box.low[0], best.aim[0])
            servers = min(self.root.box.high[-1], max(box.low[-1], self.pack.servers_for(gpus)))
            box = Box((*box.low[:-1], servers), (gpus, *box.high[1:-1], servers))
        self.master.shrink()
        plunge = Plunge(self.master, self.limits, self.rng, 0.0 if self.dives == 0 else 1.0)
        most, seconds = best.bound * (1 + LEAST_LOSS), BIND_S * self.pack.tasks / 100
        whole = plunge.bound(
            box, self.root.binding, most, -math.inf, dearest=self.cut, seconds=seconds
        )
        if whole is not None:
            for k in range(DOWN_FROM):
                self._down(box, whole, self.cut, float(k > 0))
        self.dives += 1
        self.diving += working_time() - began

    def _lay(self, first: Sequence[tuple[int, ...]]) -> None:
        """A layout between nodes."""
        began = working_time()
        self.prepare(first)
        self.lay(first, self.limits)
        self.limits.progress("layouts", self.search.watts, self.bound)
        self.diving += working_time() - began

    def prepare(self, first: Sequence[tuple[int, ...]] = ()) -> None:
        """Prices for the first layout, where there are none yet."""
        if self.layouts is not None and not self.layouts.learned:
            self.master.bind(self.root.binding)
            aims = self._aims(first) or [self.root.aim]
            self.layouts.begin(self.master, aims[0], self.limits)

    def _aims(self, first: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Given counts, then those of the best nodes."""
        best = heapq.nsmallest(AIMS, list(self.heap))
        return list(dict.fromkeys((*first, *(node.aim for node in best))))

    def lay(self, first: Sequence[tuple[int, ...]], limits: Limits) -> bool:
        """A layout for given counts, or those of one of the best nodes; whether there are any."""
        layouts, aims = self.layouts, self._aims(first)
        if layouts is None or not aims:
            return False
        which = min(len(aims), int(layouts.rng.geometric(0.5))) - 1
        known = self.search.watts
        bound = min(self.bound, known)  # what is open may just have been closed
        below = bound + self.hope * (known - bound)
        wanted = aims[which]
        awake = len({int(self.pack.gpu_server[g]) for one in self.search.places or [] for g in one})
        if wanted[-1] < awake and layouts.rng.random() < MORE_SERVERS:
            wanted = (*wanted[:-1], awake)
        layouts.attempt(wanted, below, limits, LAYOUT_S * self.pack.tasks / 100)
        better = self.search.watts < known
        self.hope = HOPE if better else min(1.0, self.hope * MORE_HOPE)
        return True

    def _deal(self, near: tuple[int, ...]) -> None:
        """A placement with counts that cost a share of the gap more than those of an open node."""
        began, known = working_time(), self.search.watts
        most = self.bound + self.guess * (known - self.bound)
        vector = dearer(self.pack, self.own, near[:-1], most, self.rng)
        if self.ended:
            servers = max(self.pack.servers_for(vector[0]), near[-1])
            self._plunge((*vector, servers), self.root.binding, 1.0)
        else:
            self.attempts.longer = float(self.rng.uniform(1.0, DEAL_LONGER))
            self.attempts(vector)
            self.attempts.longer = ATTEMPTS_LONGER
        better = self.search.watts < known
        self.guess = HOPE if better else min(MOST_HOPE, self.guess * MORE_HOPE)
        self.limits.progress("counts by level", self.search.watts, self.bound)
        self.diving += working_time() - began

    def _below(self, node: Node, whole: Binding) -> None:
        """The best counts that a binding allows, within a few nodes."""
        heap, halted, done = self.heap, list(self.halted), self.nodes
        self.heap = [Node(node.bound, 0, next(self.numbers), node.box, whole)]
        while self.heap and self.nodes < done + DIVE_NODES and self.limits.stop is None:
            below = heapq.heappop(self.heap)
            if below.bound < self.cut:
                self._expand(below)
        self.heap, self.halted, self.nodes = heap, halted, done

    def _on_servers(self, node: Node, bound: float) -> None:
        """The widest unbound task into each server where it may be, or a fresh one."""
        binding, pack = node.binding, self.pack
        unbound = self._unbound(binding)
        task = int(unbound[np.lexsort((-pack.tallest[unbound], -pack.width[unbound]))[0]])
        for home in range(min(binding.fresh + 1, node.box.high[-1])):
            self._push(node, bound, node.box, binding.bind([(task, home)]))
