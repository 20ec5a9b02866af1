"""A schedule of little energy for somebody who knows what is to come.

Where tasks may move they are packed anew at every event; else insertion, then annealing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

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
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.outcome import bound_only
from optgap.solvers.consolidation.over_time.bounding import best_bound
from optgap.solvers.consolidation.over_time.case import Case, case_of
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams, HindsightParams
from optgap.solvers.consolidation.over_time.repacking import Repacking
from optgap.solvers.consolidation.over_time.replay_kernels import Plan, replay, scratch_of
from optgap.solvers.consolidation.over_time.search_kernels import (
    anneal,
    insert,
    refresh_servers,
)

DRAWS = 8
"""Random numbers per move."""
ANEW = "packed anew at every arrival and end; moves at other times were not tried"
STAYS = "moves no task; the bound beside it lets tasks move for nothing"


class Search:
    """Plans of one problem.

    Attributes
    ----------
    plan: where the search is. best: the best one so far.
    """

    def __init__(self, problem: ConsolidationProblem, limits: Limits, seed: int) -> None:
        self.limits = limits
        self.rng = np.random.default_rng(seed)
        self.case: Case = case_of(problem)
        self.scratch = scratch_of(self.case)
        self.gangs: IntArray = np.flatnonzero(self.case.width > 1)
        self.singles: IntArray = np.flatnonzero(self.case.width == 1)
        self.plan = self.best = empty_plan(self.case)

    @property
    def joules(self) -> float:
        """Energy of the best plan."""
        return needed(self.best)

    def construct(self) -> bool:
        """Each task in order of submission where it adds least energy; False if one finds no room.

        With the time up, where it fits first.
        """
        case = self.case
        for task in range(len(case.submit)):
            targets = self._targets()
            if self.limits.stop is not None:
                targets = targets[:: max(1, len(targets) // 4)]
            room = insert(case, self.scratch, self.plan, self.gangs, task, targets)
            everywhere = np.arange(len(case.gpu_kind))
            if not room and not insert(case, self.scratch, self.plan, self.gangs, task, everywhere):
                return False
        self.best = copied(self.plan)
        return True

    def take(self, place: IntArray) -> bool:
        """Go on from an assignment if it breaks no rule and needs less; whether it does."""
        plan = empty_plan(self.case)
        plan.place[:] = place
        if not self._replay(plan):
            return False
        if (self.best.place[:, 0] >= 0).all() and needed(plan) >= self.joules:
            return False
        self.plan, self.best = plan, copied(plan)
        return True

    def _replay(self, plan: Plan) -> bool:
        """Fill in a plan's times and energies; whether it breaks no rule."""
        every, gpus = np.arange(len(self.case.submit)), np.arange(len(self.case.gpu_kind))
        events = replay(self.case, self.scratch, plan, gpus, every, np.zeros((0, 3)))
        refresh_servers(self.case, plan, gpus)
        return bool(events >= 0)

    def _targets(self) -> IntArray:
        """GPUs in use, and of the others the first of each server that is in some way unlike."""
        case = self.case
        used = np.zeros(len(case.gpu_kind), dtype=bool)
        used[self.plan.place[self.plan.place >= 0]] = True
        awake = np.bincount(case.gpu_server, used, minlength=len(case.server_w)) > 0
        seen: set[tuple[int, float, int]] = set()
        found = np.flatnonzero(used).tolist()
        for g in np.flatnonzero(~used).tolist():
            i = int(case.gpu_server[g])
            # a server in use counts as itself, one that sleeps as any like it
            key = (int(case.gpu_kind[g]), float(case.server_w[i]), i if awake[i] else -1)
            if key not in seen:
                seen.add(key)
                found.append(g)
        return np.array(found, dtype=np.int64)

    def anneal(self, moves: int) -> None:
        """Anneal the plan; `moves` of 0 for 20,000 moves, fewer with few or many tasks."""
        tasks, at_once = len(self.case.submit), TUNING.moves_at_once
        moves = moves or min(500 * tasks, 20_000, 6_000_000 // tasks)
        hot, cold = (x * self.joules / tasks for x in (TUNING.hot, TUNING.cold))
        chunks = max(1, moves // at_once)
        usable = min(len(self.case.gpu_kind), int(self.plan.place.max()) + 9)
        for k in range(chunks):
            if self.limits.stop is not None:
                return
            own, later = (hot * (cold / hot) ** (i / chunks) for i in (k, k + 1))
            anneal(
                self.case, self.scratch, self.plan, self.best, self.gangs, self.singles, usable,
                self.rng.random((at_once, DRAWS)), own, later,
            )  # fmt: skip
            if k % 20 == 0:
                self.limits.progress("annealing", self.joules, None)
        self.plan = copied(self.best)

    def solution(self) -> ConsolidationSolution:
        """The best plan, with its clocks."""
        return solution_of(self.case, self.best)


def needed(plan: Plan) -> float:
    """Energy of a plan, J."""
    return math.fsum([*plan.energy.tolist(), *plan.static.tolist()])


def empty_plan(case: Case) -> Plan:
    """Nothing placed, clocks at f_max."""
    tasks, widest = len(case.submit), int(case.width.max())
    return Plan(
        place=np.full((tasks, widest), -1, dtype=np.int64),
        level=np.ones(tasks),
        start=np.zeros(tasks),
        end=np.zeros(tasks),
        energy=np.zeros(len(case.gpu_kind)),
        static=np.zeros(len(case.server_w)),
    )


def copied(plan: Plan) -> Plan:
    """The same plan in arrays of its own."""
    return Plan(
        plan.place.copy(), plan.level.copy(), plan.start.copy(), plan.end.copy(),
        plan.energy.copy(), plan.static.copy(),
    )  # fmt: skip


def solution_of(case: Case, plan: Plan) -> ConsolidationSolution:
    """A plan as the family's solution; it is replayed once more for its clocks."""
    tasks = np.arange(len(case.submit))
    log = np.zeros((4 * int(case.width.sum()) + 8, 3))
    ran = copied(plan)
    count = replay(case, scratch_of(case), ran, np.arange(len(case.gpu_kind)), tasks, log)
    assignments = [
        Assignment(ell, tuple(sorted(plan.place[ell, : case.width[ell]].tolist())), start)
        for ell, start in enumerate(ran.start.tolist())
    ]
    clocks = [Clock(int(g), mhz, time) for time, g, mhz in log[:count].tolist()]
    return ConsolidationSolution.of(assignments, clocks)


def hindsight(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Return a schedule of little energy, and the bound of ``bound-over-time`` beside it.

    Tasks start as soon as their GPUs have room. Where tasks may move, the schedule is the better of
    one that packs all tasks anew at every event and, up to `TUNING.inserted` tasks, one that moves
    none. The latter is annealed from insertion; where tasks may not move, from the better of
    insertion and packing, and with many tasks from packing. `given` as in `HindsightParams`.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    params = chosen(HindsightParams, given, "hindsight")
    bound, _ = best_bound(problem, limits, BoundParams())
    moves, many = problem.rules.migration, len(problem) > TUNING.inserted
    packed = Repacking(problem, limits, seed)
    packed.search(params.schedules or min(1000, 60_000 // len(problem)))
    joules, solution, said = packed.joules, None, ANEW if moves else STAYS
    if math.isfinite(joules):
        solution = packed.solution()
    if solution is None or not (moves and many):
        search = Search(problem, limits, seed)
        found = search.construct() if solution is None or not many else False
        if solution is not None and not moves:
            found = search.take(packed.place()) or found
        if found and (not moves or search.joules <= joules or len(problem) <= TUNING.few_tasks):
            search.anneal(params.moves)
        if found and search.joules < joules:
            joules, solution, said = search.joules, search.solution(), STAYS
    if solution is None:
        return replace(bound_only(bound, limits), message="insertion finds no room for a task")
    return Outcome(
        solution,
        Status.FEASIBLE,
        limits.stop or Termination.COMPLETED,
        claimed=joules,
        bound=bound.watts,
        bound_by=bound.by,
        message=said,
    )
