"""The optimum at every event: what runs is placed anew, and moves for nothing."""

from __future__ import annotations

from dataclasses import replace

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.clocks import lowest
from optgap.models.consolidation.engine import Choice, Engine, State
from optgap.models.consolidation.problem import ConsolidationObjective
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.solvers.consolidation.exact import exact

MOST_TASKS = 300
"""Over time: each event is solved."""


def opt_repack(
    problem: ConsolidationProblem,
    *,
    limits: Limits,
    seed: int,
    capacity: str = "",
    event_s: float = 2.0,
    strict_queue: bool = False,
) -> Outcome:
    """Least power for the tasks that are present, whenever one arrives or ends.

    Parameters
    ----------
    capacity: a rule for each event (``mean``, ``slot``, …) beside the problem's own; "" for
        that alone.
    event_s: seconds per event; `events_unproven` counts those where that was too few.

    Raises
    ------
    InputError: for more than `MOST_TASKS` tasks over time.
    """
    if capacity not in ("", "none", "mean", "slot", "peak"):
        expected = "none, mean, slot or peak"
        raise InputError("opt_repack", "capacity", capacity, expected)
    if problem.rules.capacity not in ("none", capacity or problem.rules.capacity):
        expected = f"{problem.rules.capacity}, the problem's own rule"
        raise InputError("opt_repack", "capacity", capacity, expected)
    if problem.rules.util_scaled:
        expected = "false: an event is solved for power that follows clocks alone"
        raise InputError("opt_repack", "field util_scaled", NoQuote("true"), expected)
    if problem.objective.goal == "power":
        return _at_once(problem, limits, seed, capacity, event_s)
    if len(problem) > MOST_TASKS:
        raise InputError("opt_repack", "tasks", len(problem), f"at most {MOST_TASKS} over time")
    repacker = Repacker(problem, limits, seed, capacity, event_s)
    engine = Engine(
        problem, repacker.decide, lowest, limits, strict=strict_queue, repack=repacker.repack
    )
    outcome = engine.run()
    info = {**outcome.info, "events_unproven": repacker.unproven}
    return replace(outcome, info=info)


def _at_once(
    problem: ConsolidationProblem, limits: Limits, seed: int, capacity: str, event_s: float
) -> Outcome:
    """All tasks are present: there is one event that counts."""
    ruled = problem
    if capacity:
        ruled = replace(problem, rules=replace(problem.rules, capacity=capacity))  # type: ignore[arg-type]
    found = exact(ruled, limits=limits.within(max(event_s, 20.0)), seed=seed)
    return Outcome(
        found.solution,
        Status.FEASIBLE if found.solution is not None else Status.NO_SOLUTION,
        limits.stop or type(found.termination).COMPLETED,
        claimed=found.claimed,
        info={"decisions": 1, "events_unproven": int(found.status is not Status.OPTIMAL)},
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
        self.unproven = 0
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
        problem = self.problem
        tasks = []
        for ell in present:
            task = problem.tasks[ell]
            done = state.progress_of(ell) if state.due[ell] < float("inf") else 0.0
            # a rule of the problem's own holds for whole series, aligned slots for what is left
            shift = int(done / problem.period_s + 1e-9) if self.capacity == "slot" else 0
            first = min(task.util_percent.size - 1, shift)
            left = max(task.duration_s - done, 1e-6)
            tasks.append(replace(task, util_percent=task.util_percent[first:], duration_s=left))
        rules = replace(problem.rules, capacity=self.capacity)  # type: ignore[arg-type]
        now = ConsolidationProblem(
            problem.kinds,
            problem.servers,
            tuple(tasks),
            ConsolidationObjective("power"),
            rules,
            problem.period_s,
            problem.name,
            problem.origin,
        )
        found = exact(now, limits=self.limits.within(self.event_s), seed=self.seed, workers=2)
        if found.solution is None:
            return None
        self.unproven += found.status is not Status.OPTIMAL
        return {present[a.task]: a.gpus for a in found.solution.assignments}
