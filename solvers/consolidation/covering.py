"""Whether sets cover the tasks with given counts: branching on the set that a task is in.

Where counts of GPUs are tight the linear program leaves little between its value and what the
counts cost, and each set that is used takes its reduced cost from that. So few sets are left for
some task, mostly two or three, and each of them leaves fewer for the next. Where the linear program
is solved again after each choice, a hundred choices tell that there is no cover, as a rule; and
where a compiled search by the reduced costs of one program ends in a moment, not even that many.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.covering_kernels import FOUND, NONE, cover, earned, tallied
from optgap.solvers.consolidation.generation import Set, quiet_program, solve_within
from optgap.solvers.consolidation.master import DUAL, PRIMAL, SAFE, Master
from optgap.solvers.consolidation.packing import FloatArray, IntArray
from optgap.solvers.consolidation.plunge import seated
from optgap.solvers.consolidation.search import Places

SEARCHED, MOST_WORK = 6000, 200_000
"""Sets up to which they are searched with one program's prices, and looks at sets for that."""
FRESH, MOST_USED = 100, 3000
"""Sets that are added to a program at a time, and sets beyond which it forgets those far from use.
"""
DEAR, DEARER, DEAREST = 3.0, 4.0, 50.0
"""Times the dearest GPU: what it costs at first to leave a task out; how much more where one is
left out all the same, and at most."""
LOOSE = 1e-9
"""Of the dearest GPU: what a set may be worth beyond its cost without being added."""
SLICE_S, LONGER = 0.2, 1.2
"""Seconds per hundred tasks of each turn of a search, and how much longer the next ones are."""


class Verdict(Enum):
    """What is known of counts."""

    DENIED = "no placement has counts that are no more anywhere"
    PLACED = "a placement was found"
    OPEN = "neither"


@dataclass(frozen=True)
class Decision:
    """A verdict, and the placement where there is one."""

    verdict: Verdict
    places: Places | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """Whether sets cover the tasks with given counts.

    Parameters
    ----------
    master: whose tasks and levels they are.
    sets: all that a placement can use, or some of them.
    vector: counts of GPUs by level and of servers that are not exceeded.
    watts: what GPUs and the vector's servers may cost.
    part: these are not all sets, so that nothing is denied.
    """

    master: Master
    sets: list[Set]
    vector: tuple[int, ...]
    watts: float
    part: bool = False

    @property
    def gpu_watts(self) -> float:
        """What GPUs may cost."""
        return self.watts - self.master.static_w * self.vector[-1]

    @property
    def each(self) -> FloatArray:
        """(Q,) what a GPU of each level costs."""
        costs: FloatArray = np.cumsum(self.master.steps)
        return costs

    def first(self, number: int) -> Question:
        """The same of no more than so many sets."""
        return replace(self, sets=self.sets[:number], part=self.part or number < len(self.sets))

    def spread(self, each: int) -> Question:
        """The same of the first sets that leave no task in fewer than `each` of them, if it is.

        The first sets of all may hardly have some of the tasks.
        """
        number, kept = [0] * self.master.pack.tasks, []
        for one in self.sets:
            if any(number[ell] < each for ell in one):
                kept.append(one)
                for ell in one:
                    number[ell] += 1
        return replace(self, sets=kept, part=self.part or len(kept) < len(self.sets))


@dataclass
class _Node:
    """What is left after some choices.

    Parameters
    ----------
    wanted: (L,) GPUs of tasks. counts: (Q,) GPUs of each level or more.
    watts: what sets may cost. sets: those that may be used.
    choices: sets for the task that has the fewest, the last first; None before that is known.
    """

    wanted: IntArray
    counts: IntArray
    watts: float
    sets: IntArray
    choices: list[int] | None = None


@dataclass
class _Run:
    """One search.

    Parameters
    ----------
    stack: nodes from the root down. chosen: sets between them.
    rng: draws which of about equal choices come first; None for none of that.
    """

    stack: list[_Node]
    chosen: list[int] = field(default_factory=list)
    rng: np.random.Generator | None = None


class Covering:
    """A search, which goes on where it was stopped, by turns with short ones that are drawn.

    Some of those find a placement in a hundredth of the time of others.
    """

    def __init__(self, asked: Question) -> None:
        import highspy

        self.asked, self.part, self.denied = asked, asked.part, False
        self.tasks, self.levels = asked.master.pack.tasks, len(asked.vector) - 1
        self.size: IntArray = np.array([len(one) for one in asked.sets], dtype=np.int64)
        self.inside: IntArray = np.full((len(asked.sets), int(self.size.max())), -1, np.int64)
        for k, one in enumerate(asked.sets):
            self.inside[k, : len(one)] = one
        own = np.append(asked.master.own.of, 0)  # the last is that of no task
        self.level: IntArray = own[self.inside].max(axis=1)
        self.each = asked.each
        self._highs = quiet_program(ones=True)
        self._infinity = highspy.kHighsInf
        self._dear = DEAR
        self._wanted: IntArray = np.zeros(self.tasks, dtype=np.int64)
        self._counts: IntArray = np.zeros(self.levels, dtype=np.int64)
        self.used: list[int] = []
        """The set of each column of the program."""
        self._enabled: list[bool] = []
        self._build()
        counts: IntArray = np.array(asked.vector[:-1], dtype=np.int64)
        able = self._able(np.arange(len(asked.sets)), counts)
        self.root = _Node(asked.master.pack.width.copy(), counts, asked.gpu_watts, able)
        self.whole = _Run([replace(self.root)])
        self.drawn, self.slice = 0, SLICE_S * self.tasks / 100

    def _build(self) -> None:
        highs = self._highs
        for _ in range(self.tasks):
            highs.addRow(0.0, self._infinity, 0, [], [])
        for _ in range(self.levels):
            highs.addRow(-self._infinity, 0.0, 0, [], [])
        for ell in range(self.tasks):
            highs.addCol(self._dear * self.each[-1], 0.0, self._infinity, 1, [ell], [1.0])

    def solve(self, limits: Limits, turn: int = 0, done: threading.Event | None = None) -> Decision:
        """Go on with the search until it ends, or the limits, or until `done` is set.

        Parameters
        ----------
        turn: as programs have it; here each search is another anyway.
        """
        done = done or threading.Event()
        while limits.stop is None and not done.is_set():
            decision = self._go(self.whole, limits.within(self.slice), done)
            if decision is None and limits.stop is None and not done.is_set():
                self.drawn += 1
                drawn = _Run([replace(self.root)], rng=np.random.default_rng(self.drawn))
                decision = self._go(drawn, limits.within(self.slice), done)
                self.slice *= LONGER
            if decision is not None:
                self.denied = decision.verdict is Verdict.DENIED
                return decision
        return Decision(Verdict.OPEN)

    def _go(self, run: _Run, limits: Limits, done: threading.Event) -> Decision | None:
        """Go on with one search; None where it does not end."""
        while run.stack:
            if limits.stop is not None or done.is_set():
                return None
            node = run.stack[-1]
            if node.choices is None:
                found = self._look(node, limits, run.rng)
                if found is not None:
                    return self._placed([*run.chosen, *found])
            elif node.choices:
                self._choose(run, node, node.choices.pop())
            else:
                run.stack.pop()
                if run.chosen:
                    run.chosen.pop()
        return Decision(Verdict.DENIED)

    def _placed(self, sets: list[int]) -> Decision:
        inside = (tuple(self.inside[k, : self.size[k]].tolist()) for k in sets)
        places = seated(self.asked.master, [(one, -1) for one in inside])
        return Decision(Verdict.OPEN if places is None else Verdict.PLACED, places)

    def _choose(self, run: _Run, node: _Node, k: int) -> None:
        """A node below where one GPU more has a set; beside it, none has."""
        wanted, counts = node.wanted.copy(), node.counts.copy()
        own = self.inside[k, : self.size[k]]
        wanted[own] = np.maximum(0, wanted[own] - 1)
        counts[: self.level[k] + 1] -= 1
        watts = node.watts - float(self.each[self.level[k]])
        run.stack.append(_Node(wanted, counts, watts, self._able(node.sets, counts)))
        run.chosen.append(k)
        node.sets = node.sets[node.sets != k]

    def _able(self, sets: IntArray, counts: IntArray) -> IntArray:
        """Those of sets for whose level there are GPUs."""
        none = np.flatnonzero(counts == 0)
        return sets[self.level[sets] < none[0]] if none.size else sets

    def _look(
        self, node: _Node, limits: Limits, rng: np.random.Generator | None
    ) -> list[int] | None:
        """Find a node's choices, none where nothing is left; or what covers the tasks."""
        if not node.wanted.any():
            return []
        relaxed = self._relax(node, limits)
        if relaxed is None:
            return None
        bound, reduced, prices, amounts = relaxed
        near = reduced <= node.watts - bound
        node.sets, reduced = node.sets[near], np.maximum(reduced[near], 0.0)
        number = tallied(self.inside, self.size, node.sets, self.tasks)
        number[node.wanted == 0] = len(node.sets) + 1
        if bound > node.watts or not number.min():
            node.choices = []
            return None
        if len(node.sets) <= SEARCHED:
            ended, found = cover(
                self.inside[node.sets], self.size[node.sets], self.level[node.sets], reduced,
                prices, node.wanted, node.counts, node.watts - bound, MOST_WORK,
            )  # fmt: skip
            if ended == FOUND:
                return [int(k) for k in node.sets[found]]
            if ended == NONE:
                node.choices = []
                return None
        noise = np.zeros(self.tasks) if rng is None else rng.random(self.tasks)
        task = int((number + noise).argmin())
        own = np.flatnonzero((self.inside[node.sets] == task).any(axis=1))
        likely = amounts[node.sets[own]]
        if rng is not None:
            likely = likely * rng.uniform(0.5, 1.0, len(own))
        order = np.lexsort((-reduced[own], likely))
        node.choices = node.sets[own[order]].tolist()
        return None

    def _relax(
        self, node: _Node, limits: Limits
    ) -> tuple[float, FloatArray, FloatArray, FloatArray] | None:
        """Bound, reduced costs of the node's sets, prices, and amounts of all; None: out of time.

        The bound holds for whatever prices: what a set is worth beyond its cost is paid for as
        often as there are GPUs. Where the solver has nothing to say, it is that of no prices.
        """
        self._confine(node)
        again = False
        while True:
            self._highs.setOptionValue("simplex_strategy", PRIMAL if again else DUAL)
            again = True
            solution = solve_within(self._highs, limits)
            known = solution.value_valid and solution.dual_valid
            if not known and limits.stop is not None:
                return None
            duals = np.array(solution.row_dual) if known else np.zeros(self.tasks + self.levels)
            prices = np.where(node.wanted > 0, np.maximum(duals[: self.tasks], 0.0), 0.0)
            rents = np.maximum(-duals[self.tasks :], 0.0)
            costs = (self.each + np.cumsum(rents))[self.level[node.sets]]
            reduced = costs - earned(self.inside, self.size, node.sets, prices)
            worth, rent = float(node.wanted @ prices), float(node.counts @ rents)
            least = float(reduced.min(initial=0.0))
            bound = worth - rent + int(node.counts[0]) * least - SAFE * (worth + rent)
            found = np.zeros(self.tasks + len(self.used))
            if known:
                found[:] = solution.col_value
            ended = not known or bound > node.watts or limits.stop is not None
            if not ended and least < -LOOSE * float(self.each[-1]):
                number = min(FRESH, len(reduced))
                first = np.argpartition(reduced, number - 1)[:number]
                ended = not self._add(node.sets[first[reduced[first] < 0]].tolist())
            else:
                ended = ended or not self._dearer(float(found[: self.tasks].max()))
            if ended:
                amounts = np.zeros(len(self.size))
                amounts[self.used[: len(found) - self.tasks]] = found[self.tasks :]
                return bound, reduced, prices, amounts

    def _dearer(self, left_out: float) -> bool:
        """Let it cost more to leave a task out, where one is; whether it does."""
        if self._dear >= DEAREST or left_out <= 1e-7:
            return False
        self._dear = min(DEAREST, DEARER * self._dear)
        for ell in range(self.tasks):
            self._highs.changeColCost(ell, self._dear * float(self.each[-1]))
        return True

    def _confine(self, node: _Node) -> None:
        """Let the program be that of a node."""
        if len(self.used) > MOST_USED:
            self._forget()
        allowed = np.zeros(len(self.size), dtype=bool)
        allowed[node.sets] = True
        enabled = allowed[self.used]
        for column in np.flatnonzero(enabled != np.array(self._enabled, dtype=bool)).tolist():
            most = self._infinity if enabled[column] else 0.0
            self._highs.changeColBounds(self.tasks + column, 0.0, most)
        self._enabled = enabled.tolist()
        for ell in np.flatnonzero(node.wanted != self._wanted).tolist():
            self._highs.changeRowBounds(ell, float(node.wanted[ell]), self._infinity)
        for q in np.flatnonzero(node.counts != self._counts).tolist():
            most = float(node.counts[q])
            self._highs.changeRowBounds(self.tasks + q, -self._infinity, most)
        self._wanted, self._counts = node.wanted.copy(), node.counts.copy()

    def _add(self, sets: list[int]) -> int:
        """Add sets to the program; how many are new."""
        known = set(self.used)
        fresh = [k for k in sets if k not in known]
        for k in fresh:
            top = int(self.level[k])
            rows = self.inside[k, : self.size[k]].tolist()
            rows += range(self.tasks, self.tasks + top + 1)
            ones = [1.0] * len(rows)
            self._highs.addCol(float(self.each[top]), 0.0, self._infinity, len(rows), rows, ones)
        self.used += fresh
        self._enabled += [True] * len(fresh)
        return len(fresh)

    def _forget(self) -> None:
        """Leave out the half of the program's sets that is farthest from use."""
        worth = np.array(self._highs.getSolution().col_dual)[self.tasks :]
        kept = np.zeros(len(self.used), dtype=bool)
        kept[np.argsort(worth, kind="stable")[: MOST_USED // 2]] = True
        gone = np.flatnonzero(~kept).astype(np.int32)
        self._highs.deleteCols(len(gone), gone + np.int32(self.tasks))
        self.used = list(itertools.compress(self.used, kept))
        self._enabled = list(itertools.compress(self._enabled, kept))
