"""Schedules of little energy by packing: where tasks may move, anew at every arrival and end.

What is searched are the rules of packing: how much utilisation the tasks of a GPU may add up to,
by task, and in which order tasks are packed; where none may move, what it counts if they keep a GPU
awake for longer. One run of a rule is one schedule.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
)
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import chosen
from optgap.models.work import CONSOLIDATION
from optgap.solvers.consolidation.numerics import FloatArray
from optgap.solvers.consolidation.outcome import bound_only
from optgap.solvers.consolidation.over_time.bounding import best_bound
from optgap.solvers.consolidation.over_time.case import case_of
from optgap.solvers.consolidation.over_time.packing_kernels import Rule
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams, HindsightParams
from optgap.solvers.consolidation.over_time.repacking import fresh_run, run_packed

ANEW = "packed anew at every arrival and end; moves at other times were not tried"
STAYS = "moves no task; the bound beside it lets tasks move for nothing"
NO_ORDERS = np.zeros((0, 0), dtype=np.int64)


def hindsight(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Return the best of many packings, and the bound of ``bound-over-time`` beside it.

    Tasks start as soon as their GPUs have room. Where tasks may move, all of them are packed anew
    at every event; elsewhere each is packed when it arrives. `given` as in `HindsightParams`.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    params = chosen(HindsightParams, given, "hindsight")
    bound, _ = best_bound(problem, limits, BoundParams())
    packed = Repacking(problem, limits, seed)
    packed.search(params.schedules)
    if not math.isfinite(packed.joules):
        return replace(bound_only(bound, limits), message="packing finds no room for a task")
    return Outcome(
        packed.solution(),
        Status.FEASIBLE,
        limits.stop or Termination.COMPLETED,
        claimed=packed.joules,
        bound=bound.watts,
        bound_by=bound.by,
        message=ANEW if problem.rules.migration else STAYS,
    )


class Tried(NamedTuple):
    """A rule, and the (K, L) keys that its orders come of: the largest is packed first."""

    rule: Rule
    keys: FloatArray


class Repacking:
    """Rules of packing that have been tried.

    Attributes
    ----------
    best: the best one so far. joules: its energy, infinite where there is none. work: units that
        packing takes at an event, per order.
    """

    def __init__(self, problem: ConsolidationProblem, limits: Limits, seed: int) -> None:
        self.problem, self.limits, self.rng = problem, limits, np.random.default_rng(seed)
        self.case = case = case_of(problem)
        self.mean = np.array([task.util_percent.mean() for task in problem.tasks])
        self.wide = case.width > 1
        lasting = float(case.submit[-1] - case.submit[0] + case.duration.mean())
        self.work = CONSOLIDATION.packed * len(case.gpu_kind) * case.duration.sum() / lasting
        moves = self.moves = problem.rules.migration
        caps = TUNING.summed_percent if moves else TUNING.staying_percent
        caps = caps if len(problem.rows) == 0 else (math.inf,)
        keys = self._keys() if moves else np.zeros((0, len(self.mean)))
        per_s = 0.0 if moves else TUNING.longer / float(case.duration.mean())
        self.first = [
            tried(Rule(self.mean, most, NO_ORDERS, fast, per_s), keys)
            for fast, cap in itertools.product((True, False), caps)
            for most in self._most(cap, moves)
        ]
        if moves:  # for a time limit within which nothing can be packed anew
            self.first.insert(0, tried(self.first[0].rule, keys[:0]))
        self.best, self.joules = self.first[0], math.inf

    def _most(self, cap: float, moves: bool) -> list[FloatArray]:
        """Return caps, (L,), %: lower for gangs first, whose slowest GPU holds back all."""
        same = np.full(len(self.mean), cap)
        gangs = TUNING.beside_gangs_percent
        if not moves or not self.wide.any() or cap <= gangs:
            return [same]
        return [np.where(self.wide, gangs, cap), same]

    def _keys(self) -> FloatArray:
        """Return (K, L) by utilisation, memory, both, the larger and duration; gangs come first."""
        case = self.case
        memory = (case.demand[0] / case.limit[:, 0].max()).astype(np.float64)
        asked = self.mean / 100
        lasting = case.duration / case.duration.max()
        orders = [asked + memory, asked, memory, np.maximum(asked, memory), lasting]
        return np.array([1e-3 + key for key in orders]) * np.where(self.wide, 1e3 * case.width, 1.0)

    def search(self, schedules: int = 0) -> None:
        """Try so many rules: some by hand, then the best one changed for a few tasks or all.

        Parameters
        ----------
        schedules
            Number of rules; 0 for 1,000, or 3,000 where no task may move, since a schedule is one
            packing then; fewer with more than 60 tasks.
        """
        usual = self.limits.effort * min(1000, 60_000 // len(self.mean))
        usual *= 1 if self.moves else 3
        for k in range(schedules or round(usual)):
            if self.limits.stop is not None:
                return
            one = self.first[k] if k < len(self.first) else self._changed()
            joules = self._run(one.rule)
            if joules <= self.joules:
                self.best, self.joules = one, joules
            if k % 20 == 0 and math.isfinite(self.joules):
                self.limits.progress("packing anew", self.joules, None)
            if k + 1 >= len(self.first) and math.isinf(self.joules):
                return

    def _run(self, rule: Rule) -> float:
        """Return the energy of a rule's schedule, J; infinite without one, or if time is up."""
        run, joules = fresh_run(self.case, self.problem), -1.0
        while joules < 0 and self.limits.stop is None:
            joules = run_packed(self.case, rule, run, TUNING.packings_at_once)
            self.limits.spend(self.work * TUNING.packings_at_once * (1 + len(rule.orders)))
        return joules if joules >= 0 else math.inf

    def _changed(self) -> Tried:
        """Return the best rule with other caps, or in another order."""
        rng, most, keys = self.rng, self.best.rule.most.copy(), self.best.keys.copy()
        few = rng.integers(0, len(most), size=int(rng.integers(1, 4)))
        kind = rng.random() if len(keys) else 0.0
        if kind < 0.4:
            most[few] = rng.choice(TUNING.summed_percent)
        elif kind < 0.8:
            keys[:, few] *= np.exp(rng.normal(0, 0.5, len(few)))
        else:
            keys *= np.exp(rng.normal(0, 0.05, keys.shape[1]))
        return tried(self.best.rule._replace(most=most), keys)

    def solution(self) -> ConsolidationSolution:
        """Return the schedule of the best rule, by what differs after each packing."""
        run = fresh_run(self.case, self.problem)
        shown, lit = run.packed.place.copy(), run.clock.copy()
        assignments, clocks = [], []
        while run_packed(self.case, self.best.rule, run, 1) < 0:
            now, place, mhz = float(run.meter[0]), run.packed.place, run.clock
            for task in run.active[: run.counts[0]].tolist():
                if (place[task] != shown[task]).any():
                    gpus = sorted(place[task][place[task] >= 0].tolist())
                    assignments.append(Assignment(task, tuple(gpus), now))
                    shown[task] = place[task]
            for g in np.flatnonzero((mhz > 0) & (mhz != lit)).tolist():
                clocks.append(Clock(g, float(mhz[g]), now))
                lit[g] = mhz[g]
        return ConsolidationSolution.of(assignments, clocks)


def tried(rule: Rule, keys: FloatArray) -> Tried:
    """Return a rule whose orders are those of the keys."""
    return Tried(rule._replace(orders=np.argsort(-keys, axis=1, kind="stable")), keys)
