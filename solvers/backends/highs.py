"""HiGHS through highspy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.backends.linear import LinearModel, Options, Solved, normalised
from optgap.solvers.backends.watch import watch

PROGRESS_S = 0.5


def probe() -> None:
    """Import it."""
    import highspy  # noqa: F401


def solve(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Solve with HiGHS; a new solver object each time, since it counts time over its life."""
    import highspy

    highs = highspy.Highs()
    solver = f"HiGHS {highs.version()}"
    for name, value in _settings(model, limits, options).items():
        highs.setOptionValue(name, value)
    highs.passModel(_translate(model, highspy))
    if options.start is not None:
        start = highspy.HighsSolution()
        start.col_value = [float(value) for value in options.start]
        highs.setSolution(start)
    highs.HandleUserInterrupt = True
    if model.integer.any():
        _report(highs, limits)
    back = watch(highs.run, limits, highs.cancelSolve)
    return _result(model, highs, solver, limits.stop, ran=back is not None)


def _settings(model: LinearModel, limits: Limits, options: Options) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "output_flag": False,
        "random_seed": options.seed % 2**31,
        # The default stops 0.01 % short of the optimum and calls it optimal.
        "mip_rel_gap": options.gap,
        "mip_abs_gap": 1e-9,
        "allow_unbounded_or_infeasible": False,
    }
    if math.isfinite(limits.remaining):
        settings["time_limit"] = limits.remaining
    if options.tolerance:
        for kind in ("primal_feasibility", "dual_feasibility", "mip_feasibility"):
            settings[f"{kind}_tolerance"] = options.tolerance
    if not options.presolve:
        settings["presolve"] = "off"
    if options.target is not None and model.integer.any():
        settings["objective_target"] = options.target
    return settings


def _translate(model: LinearModel, highspy: Any) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_ = model.variables
    lp.num_row_ = model.rows
    lp.sense_ = highspy.ObjSense.kMinimize if model.sense == "min" else highspy.ObjSense.kMaximize
    lp.offset_ = model.offset
    lp.col_cost_ = model.cost
    lp.col_lower_ = model.lower
    lp.col_upper_ = model.upper
    lp.row_lower_ = model.row_lower
    lp.row_upper_ = model.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = model.starts.astype(np.int32)
    lp.a_matrix_.index_ = model.columns.astype(np.int32)
    lp.a_matrix_.value_ = model.values
    if model.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in model.integer]
    return lp


def _report(highs: Any, limits: Limits) -> None:
    last = [0.0]

    def tell(event: Any) -> None:
        if limits.elapsed - last[0] < PROGRESS_S:
            return
        last[0] = limits.elapsed
        found, proven = event.data_out.mip_primal_bound, event.data_out.mip_dual_bound
        limits.progress(
            "HiGHS",
            found if math.isfinite(found) else None,
            proven if math.isfinite(proven) else None,
        )

    highs.cbMipInterrupt += tell


def _result(
    model: LinearModel, highs: Any, solver: str, stop: Termination | None, ran: bool
) -> Solved:
    import highspy

    status = highs.getModelStatus() if ran else highspy.HighsModelStatus.kNotset
    kinds = highspy.HighsModelStatus
    info = highs.getInfo() if ran else None
    feasible = info is not None and info.primal_solution_status == 2
    optimal = status == kinds.kOptimal
    integer = bool(model.integer.any())
    bound = None
    if info is not None and integer:
        bound = info.mip_dual_bound
    elif info is not None and optimal:
        bound = info.objective_function_value
    termination = Termination.COMPLETED
    if status not in (kinds.kOptimal, kinds.kInfeasible, kinds.kObjectiveTarget):
        stopped = status in (kinds.kTimeLimit, kinds.kInterrupt) or not ran
        termination = (stop or Termination.TIME_LIMIT) if stopped else Termination.ERROR
    solution = highs.getSolution() if feasible else None
    return normalised(
        model,
        solver=solver,
        proven=optimal and feasible,
        infeasible=status == kinds.kInfeasible,
        values=np.array(solution.col_value, dtype=np.float64) if solution else None,
        bound=bound,
        termination=termination,
        duals=(
            np.array(solution.row_dual, dtype=np.float64)
            if solution and not integer and solution.dual_valid
            else None
        ),
        message=str(highs.modelStatusToString(status)) if termination is Termination.ERROR else "",
    )
