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
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, CLOSE, FloatArray, IntArray
from optgap.solvers.consolidation.outcome import Bound, bound_only
from optgap.solvers.consolidation.over_time.bounding import best_bound
from optgap.solvers.consolidation.over_time.envelope import envelope
from optgap.solvers.consolidation.over_time.hindsight import Search
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams, ExactParams
from optgap.solvers.consolidation.over_time.relaxation import utilisations
from optgap.solvers.consolidation.over_time.sharing_kernels import (
    least_energy,
    merged,
    partitions,
    shared_energy,
)

MOST_TASKS = 15
BY_SETS = "every set of tasks that can share a GPU for life"


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

    Proven where tasks may not move (``migration=false``) and clocks are no choice (each κ keeps
    GPUs at f_max, or there is one clock). Otherwise the best way to share at f_max, its clocks
    annealed, with a bound, and the message says what is left open.

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
        bound, _, _ = best_bound(problem, limits.within(1.0), BoundParams())
        outcome = bound_only(bound, limits)
        return replace(outcome, message="not all sets of tasks were tried in time")
    return run.outcome(params)


class Exact:
    """One run.

    Attributes
    ----------
    kinds: numbers of GPUs that are alike. energy: (2^L,) J of each set of tasks at f_max, for each
        of `kinds`. fixed: whether clocks are no choice.
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

    def outcome(self, params: ExactParams) -> Outcome:
        """The best partition of the tasks, and what is proven of it."""
        joules, parts = _shared_out(self.energy, [len(gpus) for gpus in self.kinds])
        if not np.isfinite(joules):
            return self._impossible()
        place, plan = self.search.plan.place, self.search.plan
        for gpus, sets in zip(self.kinds, parts, strict=True):
            for gpu, mask in zip(gpus, sets, strict=False):
                for ell in range(len(self.problem)):
                    if mask >> ell & 1:
                        place[ell, 0] = gpu
        self.search.adopt(plan)
        if not self.fixed:
            mean = joules / len(self.problem)
            self.search.anneal(params.moves, TUNING.clocks_hot * mean, TUNING.clocks_cold * mean)
        return self._judged()

    def _impossible(self) -> Outcome:
        if not self.problem.rules.migration:
            return Outcome(None, Status.INFEASIBLE, bound_by=BY_SETS)
        bound, _, _ = best_bound(self.problem, self.limits, BoundParams())
        message = "there is no schedule that moves no task; with moves there may be one"
        return Outcome(
            None, Status.BOUND_ONLY, bound=bound.watts, bound_by=bound.by, message=message
        )

    def _judged(self) -> Outcome:
        problem, joules = self.problem, self.search.joules
        solution = self.search.solution()
        if self.fixed and not problem.rules.migration:
            return Outcome(
                solution, Status.OPTIMAL, claimed=joules, bound=joules * (1 - BOUND_SAFETY),
                bound_by=BY_SETS,
            )  # fmt: skip
        bound, _, _ = best_bound(problem, self.limits, BoundParams())
        if not problem.rules.migration:
            bound = bound.raised(self.any_clock(), BY_SETS + ", at any clocks")
        done = joules <= bound.watts * (1 + CLOSE)
        return Outcome(
            solution,
            Status.OPTIMAL if done else Status.FEASIBLE,
            self.limits.stop or Termination.COMPLETED,
            claimed=joules,
            bound=min(bound.watts, joules),
            bound_by=bound.by,
            message="" if done else self._open(bound, joules),
        )

    def _open(self, bound: Bound, joules: float) -> str:
        """Why there is no proof, and how far it got."""
        left = f"not proven: up to {100 * (joules / bound.watts - 1):.1f} % "
        if self.problem.rules.migration:
            why = "may be saved by moves of tasks that run (migration=false rules them out)"
            return left + why + ("" if self.fixed else ", or by clocks between f_max and the least")
        return left + "may be saved by clocks below f_max; every way to share was tried at f_max"

    def any_clock(self) -> float:
        """A bound on every schedule that moves no task, J."""
        problem, case = self.problem, self.case
        curve = envelope(problem, BoundParams().tangents)
        _, highest, work = utilisations(problem)
        period = problem.period_s
        before = [np.cumsum(t.util_percent) - t.util_percent for t in problem.tasks]
        even = bool((case.beta == case.beta[:, :1]).all())
        # the curve lies below every kind's, static power of servers included
        costs = self.energy[0].copy()
        for other in self.energy[1:]:
            costs = np.minimum(costs, other)
        least_energy(
            case, np.concatenate(before) * period / 100, highest, work, curve.factor, curve.pace,
            curve.watts, even, costs,
        )  # fmt: skip
        best, _ = partitions(costs, len(case.gpu_kind))
        return float(best[-1, -1]) * (1 - BOUND_SAFETY)


def _shared_out(energy: list[FloatArray], gpus: list[int]) -> tuple[float, list[list[int]]]:
    """The least energy of all tasks, and the sets of each kind; infinite where they do not fit."""
    tables = [partitions(costs, most) for costs, most in zip(energy, gpus, strict=True)]
    values = [tables[0][0][-1]]
    split = []
    for best, _ in tables[1:]:
        value, given = merged(values[-1], best[-1])
        values.append(value)
        split.append(given)
    mask = len(energy[0]) - 1
    total = float(values[-1][mask])
    parts: list[list[int]] = [[] for _ in energy]
    if not np.isfinite(total):
        return total, parts
    for k in range(len(energy) - 1, -1, -1):
        own = int(split[k - 1][mask]) if k else mask
        mask ^= own
        parts[k] = _parts_of(*tables[k], own)
    return total, parts


def _parts_of(best: FloatArray, part: IntArray, mask: int) -> list[int]:
    """The sets that a set is best parted into."""
    found, row, limited = [], len(best) - 1, len(best) > 2
    while mask:
        while limited and row > 1 and best[row - 1, mask] == best[row, mask]:
            row -= 1
        own = int(part[row, mask])
        found.append(own)
        mask ^= own
        row -= limited
    return found
