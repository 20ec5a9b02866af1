"""CBC through PuLP, with cbcbox's executable, else PuLP 3's own.

CBC counts neither iterations nor looks for a caller, so that a budget of work does not stop it:
only a time limit or an interrupt does. No default uses CBC.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from optgap.models.limits import Limits, why_stopped
from optgap.models.result import Status, Termination
from optgap.solvers.backends.linear import FloatArray, LinearModel, Options, Solved, normalised
from optgap.solvers.backends.watch import watch

BOUND = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)
GRACE_S = 1.0
"""Longest time that CBC may take to return after an interrupt; then it ends by itself."""
OPTIMAL, INFEASIBLE, UNSOLVED, UNBOUNDED = 1, -1, 0, -2
"""PuLP's codes."""


def probe() -> None:
    """Find what it needs, or raise ImportError."""
    import pulp  # noqa: F401

    executable()


def executable() -> str:
    """Return the path of the CBC to run: cbcbox's where that is installed, else PuLP 3's.

    Raises
    ------
    ImportError
        If there is neither, or PuLP 3 has none for this machine.
    """
    try:
        from cbcbox import cbc_bin_path
    except ModuleNotFoundError:
        return _bundled()
    return str(cbc_bin_path())


def _bundled() -> str:
    from pulp import PULP_CBC_CMD

    path = str(getattr(PULP_CBC_CMD, "pulp_cbc_path", ""))
    if not os.access(path, os.X_OK):
        raise ImportError("cbcbox not installed, and PuLP has no CBC that runs here")
    return path


def solve(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Solve with CBC; an interrupt leaves it to end by itself, and its incumbent is lost."""
    import pulp

    from optgap.solvers.backends.pulp_model import to_pulp

    problem = to_pulp(model, limits)
    if problem is None:
        told = "stopped while the model was written"
        return Solved(Status.NO_SOLUTION, why_stopped(limits), solver=_name(), message=told)
    if options.start is not None:
        for variable in problem.variables():
            variable.setInitialValue(float(options.start[int(variable.name[1:])]))
    with tempfile.TemporaryDirectory(prefix="optgap-cbc-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        command = pulp.COIN_CMD(
            path=executable(),
            msg=False,
            timeLimit=limits.seconds_left if math.isfinite(limits.seconds_left) else None,
            gapRel=options.gap,
            gapAbs=1e-9,
            options=[f"randomCbcSeed {options.seed % 2**31}"],
            warmStart=options.start is not None,
            logPath=str(log),
        )
        command.tmpDir = folder
        try:
            answer = watch(lambda: problem.solve(command), limits, lambda: None, GRACE_S)
        except (pulp.PulpSolverError, ValueError, LookupError) as error:
            told = f"CBC died or wrote what is no answer: {error}"
            return Solved(Status.ERROR, Termination.ERROR, solver=_name(), message=told)
        if answer is None:
            return Solved(Status.NO_SOLUTION, why_stopped(limits), solver=_name())
        return _read(
            model, problem, answer, log.read_text(errors="replace"), limits=limits, gap=options.gap
        )


def _read(
    model: LinearModel, problem: Any, answer: Any, log: str, *, limits: Limits, gap: float
) -> Solved:
    """Read what PuLP took from CBC's solution file; the log alone knows the bound."""
    status = int(getattr(answer, "status", answer))  # PuLP 4 returns a record, PuLP 3 the code
    known = getattr(answer, "has_solution", None)
    found = problem.sol_status > 0 if known is None else bool(known)
    optimal = status == OPTIMAL and (known is not None or problem.sol_status == OPTIMAL)
    values = _values(model, problem) if found else None
    sign = 1.0 if model.sense == "min" else -1.0
    told = BOUND.search(log)
    bound = sign * _at_least(told.group(1)) + model.offset if told else None
    if optimal and values is not None:
        if limits.stop is not None and not model.whole(values):
            # out of time after its first linear program, CBC calls that one's optimum the model's
            optimal, bound, values = False, model.objective(values), None
        else:
            bound = _proven(model, values, gap, bound)
    termination = Termination.COMPLETED
    if not optimal and status != INFEASIBLE:
        stopped = limits.time_limit is not None and status != UNBOUNDED
        termination = why_stopped(limits) if stopped else Termination.ERROR
    return normalised(
        model,
        solver=_name(),
        proven=optimal,
        infeasible=status == INFEASIBLE,
        values=values,
        bound=bound,
        termination=termination,
        message="unbounded" if status == UNBOUNDED else f"CBC ended with PuLP's status {status}",
    )


def _proven(model: LinearModel, values: FloatArray, gap: float, logged: float | None) -> float:
    """Return the bound that "optimal" within a gap means, or the log's: that may be rounded."""
    objective = model.objective(model.rounded(values))
    sign = 1.0 if model.sense == "min" else -1.0
    meant = objective - sign * gap * abs(objective - model.offset)
    if logged is None:
        return meant
    return max(meant, logged) if model.sense == "min" else min(meant, logged)


def _name() -> str:
    try:
        import cbcbox  # noqa: F401
    except ModuleNotFoundError:
        return f"CBC (PuLP {version('pulp')})"
    return f"CBC (cbcbox {version('cbcbox')})"


def _at_least(text: str) -> float:
    """Return a number of CBC's log less half a unit of its last digit, since it may be rounded."""
    mantissa, _, exponent = text.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return float(text) - 0.5 * 10.0 ** (int(exponent or 0) - digits)


def _values(model: LinearModel, problem: Any) -> FloatArray:
    """Return the columns' values; a variable in no row and without cost was not written."""
    values: FloatArray = np.clip(np.zeros(model.variables), model.lower, model.upper)
    for variable in problem.variables():
        if variable.varValue is not None:
            values[int(variable.name[1:])] = float(variable.varValue)
    return values
