"""SCIP, as the ortools wheel carries it: through pywraplp, with no package of its own.

Not through MathOpt, whose SCIP complains to standard error as soon as it may be interrupted.
"""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.backends.linear import LinearModel, Options, Solved, normalised
from optgap.solvers.backends.watch import watch


def probe() -> None:
    """Import it."""
    from ortools.linear_solver import pywraplp  # noqa: F401


def solve(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Solve with SCIP on one thread; it knows no `target`."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("SCIP")
    variables = _translate(model, solver)
    if options.start is not None:
        solver.SetHint(variables, [float(value) for value in options.start])
    solver.SetSolverSpecificParametersAsString(
        # its absolute gap; the relative one is among the parameters
        f"limits/absgap = 1e-9\nrandomization/randomseedshift = {options.seed % 2**31}\n"
    )
    parameters = pywraplp.MPSolverParameters()
    parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, options.gap)
    if math.isfinite(limits.remaining):
        solver.SetTimeLimit(max(1, math.ceil(1000 * limits.remaining)))  # 0 would be none
    status = watch(lambda: int(solver.Solve(parameters)), limits, solver.InterruptSolve)
    if status is None:
        stop = limits.stop or Termination.TIME_LIMIT
        return Solved(Status.NO_SOLUTION, stop, solver=_name())
    if status == solver.INFEASIBLE and not _bounded(model):
        return _told_apart(model, limits, options)
    return _result(model, limits, solver, variables, status)


def _name() -> str:
    return f"SCIP (ortools {version('ortools')})"


def _translate(model: LinearModel, solver: Any) -> list[Any]:
    """Fill the solver; returns its variables."""
    objective = solver.Objective()
    variables = [
        (solver.IntVar if whole else solver.NumVar)(float(low), float(high), f"x{j}")
        for j, (low, high, whole) in enumerate(
            zip(model.lower, model.upper, model.integer, strict=True)
        )
    ]
    for j in np.flatnonzero(model.cost).tolist():
        objective.SetCoefficient(variables[j], float(model.cost[j]))
    objective.SetOffset(model.offset)
    objective.SetOptimizationDirection(model.sense == "max")
    for i in range(model.rows):
        row = solver.Constraint(float(model.row_lower[i]), float(model.row_upper[i]))
        for k in range(int(model.starts[i]), int(model.starts[i + 1])):
            row.SetCoefficient(variables[int(model.columns[k])], float(model.values[k]))
    return variables


def _bounded(model: LinearModel) -> bool:
    """Whether the limits of the variables alone keep the objective finite."""
    better = model.lower if model.sense == "min" else model.upper
    worse = model.upper if model.sense == "min" else model.lower
    ends = np.where(model.cost > 0, better, worse)
    return bool(np.isfinite(ends[model.cost != 0]).all())


def _told_apart(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Infeasible, or unbounded: pywraplp says the former of both.

    What has a point when nothing is asked of it is unbounded.
    """
    any_point = replace(model, cost=np.zeros_like(model.cost))
    found = solve(any_point, limits, replace(options, start=None))
    if found.values is None:
        return replace(found, bound=None)
    return Solved(Status.ERROR, Termination.ERROR, solver=found.solver, message="unbounded")


def _result(
    model: LinearModel, limits: Limits, solver: Any, variables: list[Any], status: int
) -> Solved:
    feasible = status in (solver.OPTIMAL, solver.FEASIBLE)
    termination = Termination.COMPLETED
    if status in (solver.FEASIBLE, solver.NOT_SOLVED):
        termination = limits.stop or Termination.TIME_LIMIT
    elif status not in (solver.OPTIMAL, solver.INFEASIBLE):
        termination = Termination.ERROR
    shown = "unbounded" if status == solver.UNBOUNDED else f"SCIP ended with status {status}"
    return normalised(
        model,
        solver=_name(),
        proven=status == solver.OPTIMAL,
        infeasible=status == solver.INFEASIBLE,
        values=(
            np.array([x.solution_value() for x in variables], dtype=np.float64)
            if feasible
            else None
        ),
        bound=_bound(model, solver, status),
        termination=termination,
        message=shown if termination is Termination.ERROR else "",
    )


def _bound(model: LinearModel, solver: Any, status: int) -> float | None:
    """What is proven; of a linear program only its optimum."""
    if not model.integer.any():
        return float(solver.Objective().Value()) if status == solver.OPTIMAL else None
    if status not in (solver.OPTIMAL, solver.FEASIBLE, solver.NOT_SOLVED):
        return None
    bound = float(solver.Objective().BestBound())
    return bound if abs(bound) < 1e20 else None  # SCIP's infinity
