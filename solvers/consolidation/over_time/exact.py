"""Every way in which a few tasks can share GPUs for life."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import chosen
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, CLOSE, FloatArray
from optgap.solvers.consolidation.outcome import Bound, bound_only
from optgap.solvers.consolidation.over_time.bounding import best_bound
from optgap.solvers.consolidation.over_time.clocks import (
    Kind,
    certify,
    clocked,
    shared_out,
    tasks_of,
)
from optgap.solvers.consolidation.over_time.hindsight import Search
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams, ExactParams
from optgap.solvers.consolidation.over_time.sharing_kernels import shared_energy

MOST_TASKS = 15
BY_SETS = "every set of tasks that can share a GPU for life"
BY_CLOCKS = "sets of tasks that share a GPU for life, at any clocks"


def unfit(problem: ConsolidationProblem) -> tuple[str, object, str] | None:
    """Field, what it is, and what it would have to be, where sets of tasks do not fix energy."""
    if len(problem) > MOST_TASKS:
        return "tasks", NoQuote(f"{len(problem)} tasks"), f"at most {MOST_TASKS}"
    if problem.rules.waiting:
        return "waiting", NoQuote("true"), "false: a task starts when it is submitted"
    wide = next((task for task in problem.tasks if task.gpus > 1), None)
    if wide is not None:
        return f"gpus of task {wide.name}", wide.gpus, "1: sets of tasks are tried GPU by GPU"
    shared = next((s for s in problem.servers if s.static_w and len(s.gpus) > 1), None)
    if shared is not None:
        return "static_w", shared.static_w, "0 W for a server of several GPUs"
    return None


def exact_over_time(
    problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """The schedule of least energy in which no task moves; `given` as in `ExactParams`.

    Proven where tasks may not move (``migration=false``): if clocks are no choice (each κ keeps
    GPUs at f_max, or there is one clock) the optimum, else within ``gap`` where all tasks have the
    same exponent. Otherwise the best sets, their clocks annealed, with a bound, and the message
    says what is left open.

    Raises
    ------
    InputError: for a parameter out of range, more than 15 tasks, tasks that may wait or take
        several GPUs, or servers of several GPUs with static power.
    """
    params = chosen(ExactParams, given, "exact-over-time")
    trouble = unfit(problem)
    if trouble is not None:
        field, found, expected = trouble
        raise InputError("exact-over-time", f"field {field}", found, expected)
    run = Exact(problem, limits, seed)
    if not run.tabulate():
        known = best_bound(problem, limits.within(1.0), BoundParams())
        outcome = bound_only(known.bound, limits)
        return replace(outcome, message="not all sets of tasks were tried in time")
    return run.outcome(params)


class Exact:
    """One run.

    Attributes
    ----------
    kinds: numbers of GPUs that are alike. energy: (2^L,) J of each set of tasks by the best clocks
        known, those at f_max to begin with, for each of `kinds`. fixed: whether clocks are no
        choice.
    """

    def __init__(self, problem: ConsolidationProblem, limits: Limits, seed: int) -> None:
        self.problem, self.limits = problem, limits
        self.search = Search(problem, limits, seed)
        self.case = self.search.case
        case = self.case
        alike: dict[tuple[int, float], list[int]] = {}
        for g, server in enumerate(case.gpu_server.tolist()):
            alike.setdefault((int(case.gpu_kind[g]), float(case.server_w[server])), []).append(g)
        self.kinds = list(alike.values())
        used = sorted(set(case.gpu_kind.tolist()))
        self.fixed = bool((case.floor[used] >= case.f_max[used][:, None] - 1e-9).all())
        self.energy: list[FloatArray] = []

    def tabulate(self) -> bool:
        """The energy of every set on every kind; False where time is up."""
        for gpus in self.kinds:
            costs = np.full(1 << len(self.problem), np.inf)
            for first in range(0, len(costs), TUNING.sets_at_once):
                if self.limits.stop is not None:
                    return False
                shared_energy(
                    self.case, self.search.scratch, self.search.plan, gpus[0], costs, first,
                    first + TUNING.sets_at_once,
                )  # fmt: skip
            self.energy.append(costs)
        return True

    def bounds(self) -> list[Kind]:
        """What sets need at most and at least at any clocks, on each kind; `energy` is lowered."""
        return [
            Kind(self.problem, self.search, gpus, energy)
            for gpus, energy in zip(self.kinds, self.energy, strict=True)
        ]

    def outcome(self, params: ExactParams) -> Outcome:
        """The best partition of the tasks, and what is proven of it."""
        bound = 0.0
        if not self.fixed:
            bounds = self.bounds()
            if not self.problem.rules.migration:
                bound = certify(bounds, params, self.limits)
        joules, parts = shared_out(self.energy, [len(gpus) for gpus in self.kinds])
        if not np.isfinite(joules):
            return self._impossible(bound)
        plan = self.search.plan
        plan.level[:] = 1.0
        for gpus, sets in zip(self.kinds, parts, strict=True):
            for gpu, mask in zip(gpus, sets, strict=False):
                own = tasks_of(mask)
                plan.place[own, 0] = gpu
                if not self.fixed:
                    clocked(self.search, gpu, own)
        self.search.adopt(plan)
        near = bound >= self.search.joules * (1 - params.gap)
        if not self.fixed and not near:
            mean = joules / len(self.problem)
            self.search.anneal(params.moves, TUNING.clocks_hot * mean, TUNING.clocks_cold * mean)
        return self._judged(bound, near)

    def _impossible(self, bound: float) -> Outcome:
        if not self.problem.rules.migration and (self.fixed or not np.isfinite(bound)):
            return Outcome(None, Status.INFEASIBLE, bound_by=BY_SETS)
        known = best_bound(self.problem, self.limits, BoundParams()).bound
        message = "there is no schedule at f_max that moves no task"
        message += "; with moves there may be one" if self.problem.rules.migration else ""
        return Outcome(
            None, Status.BOUND_ONLY, bound=known.watts, bound_by=known.by, message=message
        )

    def _judged(self, bound: float, near: bool) -> Outcome:
        """What was found, with the bound by sets, and with that of all schedules if it is far."""
        problem, joules = self.problem, self.search.joules
        if self.fixed and not problem.rules.migration:
            bound, near = joules * (1 - BOUND_SAFETY), True
        known = Bound(bound, BY_SETS if self.fixed else BY_CLOCKS, ())
        if not near:
            other = best_bound(problem, self.limits, BoundParams()).bound
            known = other.raised(bound, known.by)
        done = joules <= known.watts * (1 + CLOSE)
        return Outcome(
            self.search.solution(),
            Status.OPTIMAL if done else Status.FEASIBLE,
            self.limits.stop or Termination.COMPLETED,
            claimed=joules,
            bound=min(known.watts, joules),
            bound_by=known.by,
            message="" if done else self._open(joules / known.watts - 1, near),
        )

    def _open(self, share: float, near: bool) -> str:
        """What is left open, and why."""
        if near:
            return f"proven within {100 * share:.2f} %, which other clocks below f_max may save"
        left = f"not proven: up to {100 * share:.1f} % "
        if self.problem.rules.migration:
            why = "may be saved by moves of tasks that run (migration=false rules them out)"
            return left + why + ("" if self.fixed else ", or by clocks between f_max and the least")
        return left + "may be saved by clocks below f_max, or by other sets at such clocks"
