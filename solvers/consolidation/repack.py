"""The optimum at every event: what runs is placed anew, and moves for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np

from optgap.models.consolidation import Assignment, ConsolidationProblem
from optgap.models.consolidation.clocks import lowest
from optgap.models.consolidation.engine import Choice, Engine, State
from optgap.models.consolidation.problem import Capacity, ConsolidationObjective
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.models.times import TOLERANCE_S
from optgap.solvers.consolidation.exact import exact
from optgap.solvers.consolidation.levels import closed_bound, counted, levels
from optgap.solvers.consolidation.outcomes import CLOSE
from optgap.solvers.consolidation.packing import Packing, packing
from optgap.solvers.consolidation.partition import Partition
from optgap.solvers.consolidation.search import Places, Search

EVENT_S, RUN_S = 2.0, 60.0
"""Seconds for one event, and for all of them together, unless told otherwise."""
MOST_BRANCHED, NODES = 60, 500
"""Tasks up to which branch-and-price is tried for an event, and its nodes."""
LEAST_S = 0.02
"""With less there is no point in starting a proof."""


def opt_repack(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    capacity: str = "",
    event_s: float = 0.0,
    strict_queue: bool = False,
) -> Outcome:
    """Least power for the tasks that are present, whenever one arrives or ends.

    Each event starts from what the last one left, and is solved as far as its time goes: the
    message and `events_proven` say for how many the least power is proven.

    Parameters
    ----------
    capacity: a rule for each event (``mean``, ``slot``, …) beside the problem's own; "" for
        that alone.
    event_s: seconds per event; 0 for `EVENT_S`, or less where that many events would take more
        than `RUN_S` together.

    Raises
    ------
    InputError: for another rule than these, a negative time, or power that follows utilisation.
    """
    if capacity and capacity not in get_args(Capacity):
        raise InputError("opt_repack", "capacity", capacity, one_of(get_args(Capacity)))
    if problem.rules.capacity not in ("none", capacity or problem.rules.capacity):
        expected = f"{problem.rules.capacity}, the problem's own rule"
        raise InputError("opt_repack", "capacity", capacity, expected)
    if not 0 <= event_s < 1e6:
        raise InputError("opt_repack", "event_s", event_s, "seconds, at least 0")
    if problem.rules.util_scaled:
        expected = "false: an event is solved for power that follows clocks alone"
        raise InputError("opt_repack", "field util_scaled", NoQuote("true"), expected)
    if problem.objective.goal == "power":
        return _at_once(problem, limits, seed, capacity, event_s)
    each = event_s or min(EVENT_S, RUN_S / (2 * len(problem)))
    repacker = Repacker(problem, limits, seed, capacity, each)
    engine = Engine(
        problem, repacker.decide, lowest, limits, strict=strict_queue, repack=repacker.repack
    )
    outcome = engine.run()
    proven, events = repacker.proven, repacker.events
    info = {**outcome.info, "events_proven": proven, "events_unproven": events - proven}
    said = "" if proven == events else f"least power proven at {proven} of {events} events"
    return replace(outcome, info=info, message="; ".join(filter(None, (outcome.message, said))))


def _at_once(
    problem: ConsolidationProblem, limits: Limits, seed: int, capacity: str, event_s: float
) -> Outcome:
    """All tasks are present: there is one event that counts."""
    ruled = problem
    if capacity:
        ruled = replace(problem, rules=replace(problem.rules, capacity=capacity))  # type: ignore[arg-type]
    found = exact(ruled, limits=limits.within(max(event_s, 20.0)), seed=seed)
    proven = int(found.status is Status.OPTIMAL)
    return Outcome(
        found.solution,
        Status.FEASIBLE if found.solution is not None else Status.NO_SOLUTION,
        limits.stop or type(found.termination).COMPLETED,
        claimed=found.claimed,
        info={"decisions": 1, "events_proven": proven, "events_unproven": 1 - proven},
        message="" if proven else "least power proven at 0 of 1 events",
    )


class Repacker:
    """Solves the problem of the tasks that are present."""

    def __init__(
        self,
        problem: ConsolidationProblem,
        limits: Limits,
        seed: int,
        capacity: str,
        event_s: float,
    ) -> None:
        self.problem, self.limits, self.seed = problem, limits, seed
        self.capacity = capacity or problem.rules.capacity
        self.event_s = event_s
        self.events = self.proven = 0
        self.plan: dict[int, tuple[int, ...]] = {}

    def decide(self, state: State, task: int) -> Choice:
        """A newcomer's place in the optimum with it; the others move there afterwards."""
        present = [*state.running[: state.present].tolist(), task]
        plan = self._solved(state, present)
        if plan is None:
            return None
        self.plan = plan
        room = state.fits(task)
        if all(room[g] for g in plan[task]):
            return plan[task]
        # the others have to move out of the way first: any place will do for an instant
        own = self.problem.tasks[task].gpus
        for i in range(len(self.problem.servers)):
            gpus = range(int(state.first_gpu[i]), int(state.first_gpu[i + 1]))
            free = [g for g in gpus if room[g]]
            if len(free) >= own:
                return tuple(free[:own])
        return None

    def repack(self, engine: Engine) -> None:
        """Move everything to where the plan has it."""
        state = engine.state
        present = state.running[: state.present].tolist()
        if set(self.plan) != set(present):
            if not present:
                return
            plan = self._solved(state, present)
            if plan is None:
                return
            self.plan = plan
        moving = [ell for ell in present if state.gpus_of(ell) != tuple(sorted(self.plan[ell]))]
        for ell in moving:
            engine.move(ell, self.plan[ell])

    def _solved(self, state: State, present: list[int]) -> dict[int, tuple[int, ...]] | None:
        """GPUs by task: from where they are, better ones as far as the time for an event goes."""
        now = self._snapshot(state, present)
        limits = self.limits.within(self.event_s)
        pack = packing(now)
        search = Search(pack, self.seed)
        stay = self._stay(pack, state, present)
        if stay is not None:
            search.offer(stay)
        search.build(limits, tries=3 if stay is None else 2)
        own = levels(pack)
        counts = counted(pack, own, limits)
        bound = closed_bound(pack, own, counts)
        small = pack.uniform and pack.tasks <= MOST_BRANCHED and search.best is not None
        if small and self._open(search, bound, limits):
            half = limits.within(0.5 * limits.remaining)
            tree = Partition(pack, own, counts, bound, search, half)
            bound = max(bound, min(tree.run(NODES), search.watts))
        if self._open(search, bound, limits):
            found = exact(now, limits=limits, seed=self.seed, workers=2)
            bound = max(bound, found.bound or 0.0)
            if found.solution is not None:
                search.offer([a.gpus for a in sorted(found.solution.assignments, key=_task)])
        places = search.places
        if places is None:
            return None
        self.events += 1
        self.proven += search.watts <= bound * (1 + CLOSE)
        return dict(zip(present, places, strict=True))

    @staticmethod
    def _open(search: Search, bound: float, limits: Limits) -> bool:
        """Whether there is a gap, and time to do something about it."""
        gap = bool(np.isfinite(search.watts)) and search.watts > bound * (1 + CLOSE)
        return (gap or search.best is None) and limits.remaining > LEAST_S

    def _stay(self, pack: Packing, state: State, present: list[int]) -> Places | None:
        """Everybody where they are, a newcomer where it adds least; None if that cannot be."""
        places: Places = []
        for ell in present:
            gpus = state.gpus_of(ell) if state.due[ell] < float("inf") else None
            gpus = gpus or least_added_place(pack, places, len(places))
            if gpus is None:
                return None
            places.append(gpus)
        for g, tasks in pack.contents(places).items():
            held = pack.rows[:, tasks].sum(axis=1)
            if (held > pack.limits[int(pack.gpu_kind[g])]).any():
                return None
        return places

    def _snapshot(self, state: State, present: list[int]) -> ConsolidationProblem:
        """The tasks that are present, as they are now."""
        problem = self.problem
        tasks = []
        for ell in present:
            task = problem.tasks[ell]
            done = state.progress_of(ell) if state.due[ell] < float("inf") else 0.0
            # a rule of the problem's own holds for whole series, aligned slots for what is left
            shift = int((done + TOLERANCE_S) / problem.period_s) if self.capacity == "slot" else 0
            first = min(task.util_percent.size - 1, shift)
            left = max(task.duration_s - done, 1e-6)
            tasks.append(replace(task, util_percent=task.util_percent[first:], duration_s=left))
        rules = replace(problem.rules, capacity=self.capacity)  # type: ignore[arg-type]
        return ConsolidationProblem(
            problem.kinds,
            problem.servers,
            tuple(tasks),
            ConsolidationObjective("power"),
            rules,
            problem.period_s,
            problem.name,
            problem.origin,
        )


def _task(assignment: Assignment) -> int:
    return assignment.task


def least_added_place(pack: Packing, places: Places, task: int) -> tuple[int, ...] | None:
    """GPUs for one more task that are awake and have room, the fullest first; else None."""
    contents = pack.contents(places)
    held = np.zeros((pack.gpus, len(pack.rows)), dtype=np.int64)
    for g, tasks in contents.items():
        held[g] = pack.rows[:, tasks].sum(axis=1)
    room = (held + pack.rows[:, task] <= pack.limits[pack.gpu_kind]).all(axis=1)
    watts = np.array([pack.cost(g, contents.get(g, [])) for g in range(pack.gpus)])
    added = np.full(pack.gpus, np.inf)
    for g in np.flatnonzero(room).tolist():
        added[g] = pack.cost(g, [*contents.get(g, []), task]) - watts[g]
    awake = np.isin(pack.gpu_server, pack.gpu_server[list(contents)])
    share = np.where(awake, 0.0, pack.server_w[pack.gpu_server])
    order = np.lexsort((np.arange(pack.gpus), -held[:, 0], added + share))
    width = int(pack.width[task])
    best: dict[int, list[int]] = {}
    for g in order.tolist():
        if not np.isfinite(added[g]):
            return None
        own = best.setdefault(int(pack.gpu_server[g]) if pack.gang else 0, [])
        own.append(g)
        if len(own) == width:
            return tuple(sorted(own))
    return None
