"""Optimum at every event: all present tasks are placed anew, and migration is free."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optgap.heuristics.consolidation.clocks import lowest
from optgap.heuristics.consolidation.engine import Engine
from optgap.heuristics.consolidation.parameters import OptRepackParams, RepackWork
from optgap.heuristics.consolidation.state import Choice, ConsolidationState
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.problem import ConsolidationObjective
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import chosen
from optgap.models.times import TOLERANCE_S
from optgap.solvers.consolidation.exact import repack
from optgap.solvers.consolidation.turns import turn

Gpus = tuple[int, ...]
WORK = RepackWork()


def opt_repack(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """Minimise the power of the present tasks whenever one arrives or ends.

    Each event starts from the placement of the last one, and is solved within its budget of work.
    The message and `events_proven` count the events whose least power is proven. `given` is as in
    `OptRepackParams`.

    Raises
    ------
    InputError: for an unknown rule, or tasks that may not move.
    """
    capacity = chosen(OptRepackParams, given, "opt_repack").capacity
    if problem.rules.capacity not in ("none", capacity or problem.rules.capacity):
        expected = f"{problem.rules.capacity}, the problem's own rule"
        raise InputError("opt_repack", "capacity", capacity, expected)
    if not problem.rules.migration:
        raise InputError("opt_repack", "field migration", NoQuote("false"), "true: it moves tasks")
    if problem.objective.goal == "power":
        return _at_once(problem, limits, seed, capacity)
    each = limits.effort * min(WORK.event, WORK.run / (2 * len(problem)))
    repacker = Repacker(problem, limits, seed, capacity=capacity, each=each)
    outcome = Engine(problem, repacker.decide, lowest, limits, repack=repacker.repack).run()
    proven, events = repacker.proven, repacker.events
    info = {**outcome.info, "events_proven": proven, "events_unproven": events - proven}
    said = "" if proven == events else f"least power proven at {proven} of {events} events"
    return replace(outcome, info=info, message="; ".join(filter(None, (outcome.message, said))))


def _at_once(problem: ConsolidationProblem, limits: Limits, seed: int, capacity: str) -> Outcome:
    """Solve the only event that matters if all tasks are present at once."""
    ruled = problem
    if capacity:
        ruled = replace(problem, rules=replace(problem.rules, capacity=capacity))  # type: ignore[arg-type]
    found = repack(ruled, None, turn(limits, limits.effort * WORK.at_once), seed)
    proven = int(found.status is Status.OPTIMAL)
    return Outcome(
        found.solution,
        Status.FEASIBLE if found.solution is not None else Status.NO_SOLUTION,
        limits.stop or Termination.COMPLETED,
        claimed=found.claimed,
        info={"decisions": 1, "events_proven": proven, "events_unproven": 1 - proven},
        message="" if proven else "least power proven at 0 of 1 events",
    )


class Repacker:
    """Solver of the problem of the present tasks."""

    def __init__(
        self,
        problem: ConsolidationProblem,
        limits: Limits,
        seed: int,
        *,
        capacity: str,
        each: float,
    ) -> None:
        self.problem, self.limits, self.seed = problem, limits, seed
        self.capacity = capacity or problem.rules.capacity
        self.each = each
        self.events = self.proven = 0
        self.plan: dict[int, Gpus] = {}

    def decide(self, state: ConsolidationState, task: int) -> Choice:
        """Choose the arriving task's GPUs in the new optimum; other tasks migrate afterwards."""
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
        """Move every task to its place in the plan."""
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

    def _solved(self, state: ConsolidationState, present: list[int]) -> dict[int, Gpus] | None:
        """Return GPUs by task, improved from the present ones within the work for an event."""
        stay = [state.gpus_of(j) if state.due[j] < float("inf") else None for j in present]
        snapshot = self._snapshot(state, present)
        found = repack(snapshot, stay, turn(self.limits, self.each), self.seed)
        if found.solution is None:
            return None
        self.events += 1
        self.proven += found.status is Status.OPTIMAL
        return {present[a.task]: a.gpus for a in found.solution.assignments}

    def _snapshot(self, state: ConsolidationState, present: list[int]) -> ConsolidationProblem:
        """Return the problem of the present tasks, each with its remaining duration."""
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
        return replace(
            problem,
            tasks=tuple(tasks),
            objective=ConsolidationObjective("power"),
            rules=rules,
            fits=(),
        )
