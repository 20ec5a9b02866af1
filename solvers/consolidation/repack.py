"""The optimum at every event: what runs is placed anew, and moves for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.engine import Choice, Engine, State, lowest
from optgap.models.consolidation.problem import Capacity, ConsolidationObjective
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.models.times import TOLERANCE_S
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.exact import Exact, exact
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import Placement


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
    event_s: seconds per event; 0 for 2 s, or less where that many events would take more
        than a minute together.

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
    own = DEFAULT.repack
    each = event_s or min(own.event_s, own.run_s / (2 * len(problem)))
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
    found = exact(ruled, limits=limits.within(max(event_s, DEFAULT.repack.at_once_s)), seed=seed)
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
        instance = instance_of(self._snapshot(state, present))
        run = Exact(instance, self.limits.within(self.event_s), self.seed, workers=2)
        run.incumbent.offer(self._stay(instance, state, present))
        proven = run.run().status is Status.OPTIMAL
        placement = run.incumbent.placement
        if placement is None:
            return None
        self.events += 1
        self.proven += proven
        return dict(zip(present, placement, strict=True))

    def _stay(self, instance: Instance, state: State, present: list[int]) -> Placement | None:
        """Everybody where they are, a newcomer where it adds least; None if that cannot be."""
        placement: Placement = []
        for ell in present:
            gpus = state.gpus_of(ell) if state.due[ell] < float("inf") else None
            gpus = gpus or least_added_place(instance, placement, len(placement))
            if gpus is None:
                return None
            placement.append(gpus)
        for g, tasks in instance.residents(placement).items():
            held = instance.demand[:, tasks].sum(axis=1)
            if (held > instance.capacity[int(instance.gpu_kind[g])]).any():
                return None
        return placement

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


def least_added_place(
    instance: Instance, placement: Placement, task: int
) -> tuple[int, ...] | None:
    """GPUs for one more task that are awake and have room, the fullest first; else None."""
    contents = instance.residents(placement)
    held = np.zeros((instance.gpus, len(instance.demand)), dtype=np.int64)
    for g, tasks in contents.items():
        held[g] = instance.demand[:, tasks].sum(axis=1)
    room = (held + instance.demand[:, task] <= instance.capacity[instance.gpu_kind]).all(axis=1)
    watts = np.array([instance.cost(g, contents.get(g, [])) for g in range(instance.gpus)])
    added = np.full(instance.gpus, np.inf)
    for g in np.flatnonzero(room).tolist():
        added[g] = instance.cost(g, [*contents.get(g, []), task]) - watts[g]
    awake = np.isin(instance.gpu_server, instance.gpu_server[list(contents)])
    share = np.where(awake, 0.0, instance.server_w[instance.gpu_server])
    order = np.lexsort((np.arange(instance.gpus), -held[:, 0], added + share))
    width = int(instance.width[task])
    best: dict[int, list[int]] = {}
    for g in order.tolist():
        if not np.isfinite(added[g]):
            return None
        own = best.setdefault(int(instance.gpu_server[g]) if instance.gang else 0, [])
        own.append(g)
        if len(own) == width:
            return tuple(sorted(own))
    return None
