"""CP-SAT through ortools, for formulations of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from optgap.models.limits import Limits, why_stopped
from optgap.models.result import Termination
from optgap.models.work import WORK
from optgap.solvers.backends.watch import watch


def probe() -> None:
    """Import it."""
    from ortools.sat.python import cp_model  # noqa: F401


@dataclass(frozen=True, slots=True)
class CpSatRun:
    """One run of CP-SAT.

    Parameters
    ----------
    solver: holds the values, when there are any.
    status: `cp_model.OPTIMAL` and so on.
    bound: in the model's integers; None when none was proven.
    """

    solver: Any
    status: int
    bound: float | None


def run(
    model: Any,
    limits: Limits,
    *,
    workers: int = 1,
    seed: int = 0,
    phase: str = "CP-SAT",
    scale: Callable[[float], float] = float,
    settings: Callable[[Any], None] | None = None,
    enough: Callable[[Any], bool] | None = None,
) -> CpSatRun:
    """Run CP-SAT on a `cp_model.CpModel` within the limits, and count its work.

    A budget is CP-SAT's deterministic time. One worker does the same work at every run; several do
    not, and each of them has the budget for itself.

    Parameters
    ----------
    workers: threads.
    phase, scale: how progress is told, and how CP-SAT's integers become the objective's unit.
    settings: changes CP-SAT's parameters before the run.
    enough: given each solution (`value`, `boolean_value`), says whether to stop there.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    if limits.stop is not None:
        return CpSatRun(solver, int(cp_model.UNKNOWN), None)
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed % 2**31
    # Its own handler is meant for the main thread; from another one it ends the process.
    solver.parameters.catch_sigint_signal = False
    if math.isfinite(limits.remaining):
        solver.parameters.max_deterministic_time = limits.remaining / WORK.cpsat
    if math.isfinite(limits.seconds_left):
        solver.parameters.max_time_in_seconds = limits.seconds_left
    if settings is not None:
        settings(solver.parameters)
    told: dict[str, float | None] = {"found": None, "bound": None}

    def tell() -> None:
        shown = [None if told[key] is None else scale(float(told[key] or 0)) for key in told]
        limits.progress(phase, *shown)

    class Found(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            told["found"] = self.objective_value
            told["bound"] = self.best_objective_bound
            tell()
            if enough is not None and enough(self):
                self.stop_search()

    def improved(bound: float) -> None:
        told["bound"] = bound
        tell()

    if model.has_objective():
        solver.best_bound_callback = improved
    try:
        back = watch(lambda: int(solver.solve(model, Found())), limits, solver.stop_search)
    except MemoryError:  # `terminated` calls it an error; the caller has its own bound to keep
        return CpSatRun(solver, int(cp_model.MODEL_INVALID), told["bound"])
    if back is not None:
        limits.spend(WORK.cpsat * solver.response_proto.deterministic_time)
    status = int(cp_model.UNKNOWN) if back is None else back
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return CpSatRun(solver, status, float(solver.best_objective_bound))
    # Stopped early, the response holds a bound of 0 that nobody proved: only what the
    # callback was told counts.
    return CpSatRun(solver, status, told["bound"])


def terminated(status: int, limits: Limits) -> Termination:
    """Return why a run that ended with `status` ended."""
    from ortools.sat.python import cp_model

    if status in (cp_model.OPTIMAL, cp_model.INFEASIBLE):
        return Termination.COMPLETED
    if status == cp_model.MODEL_INVALID:
        return Termination.ERROR
    return why_stopped(limits)


def solver_name() -> str:
    """Name and version."""
    return f"CP-SAT {version('ortools')}"
