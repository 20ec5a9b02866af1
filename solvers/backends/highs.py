"""HiGHS through highspy, on one thread and stopped by counts: simplex iterations, or looks.

A *look* is a call of HiGHS's interrupt callback in an integer program. Looks come at the same
places on every machine, busy or idle; nodes are a poor measure, since a root may take longer than
all of the tree.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from optgap.models.limits import Limits, why_stopped
from optgap.models.result import Termination
from optgap.models.work import WORK
from optgap.solvers.backends.linear import LinearModel, Options, Solved, normalised
from optgap.solvers.backends.watch import watch

PROGRESS_S = 0.5
"""Seconds between two words on progress; nothing else goes by this clock."""
MOST_ITERATIONS = 2**31 - 1
"""HiGHS's own value for no limit."""


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
    highs.passModel(translate(model))
    if options.start is not None:
        start = highspy.HighsSolution()
        start.col_value = [float(value) for value in options.start]
        highs.setSolution(start)
    back = run_within(highs, limits, integer=bool(model.integer.any()))
    return _result(model, highs, solver, limits, ran=back)


def run_within(highs: Any, limits: Limits, *, integer: bool) -> bool:
    """Run a loaded program within the limits and count its work; False if it did not come back.

    A budget stops a linear program after so many simplex iterations and an integer program after so
    many looks. A time limit or an interrupt cancels it.
    """
    highs.HandleUserInterrupt = True
    looks = _Looks(limits)
    if integer:
        highs.cbMipInterrupt += looks
    else:
        most = WORK.iterations(limits.remaining, highs.getNumRow())
        highs.setOptionValue("simplex_iteration_limit", int(min(most, MOST_ITERATIONS)))
    try:
        back = watch(highs.run, limits, highs.cancelSolve)
    finally:
        if integer:
            highs.cbMipInterrupt -= looks
    if back is None:
        return False
    info = highs.getInfo()
    if integer:
        units = WORK.integer(looks.seen, info.simplex_iteration_count, highs.getNumCol())
        if looks.seen >= looks.most:
            limits.note(Termination.WORK_LIMIT)
    else:
        units = WORK.linear(info.simplex_iteration_count, highs.getNumRow())
    limits.spend(units)
    return True


class _Looks:
    """The interrupt callback of an integer program: it counts, ends on a budget and tells."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.seen, self.told_s = limits, 0, -math.inf
        self.most = WORK.looks(limits.remaining)

    def __call__(self, event: Any) -> None:
        self.seen += 1
        # HiGHS keeps the flag from one run to the next
        event.data_in.user_interrupt = self.seen >= self.most or self.limits.interrupted.is_set()
        now = time.monotonic()
        if now - self.told_s < PROGRESS_S:
            return
        found, proven = event.data_out.mip_primal_bound, event.data_out.mip_dual_bound
        if math.isfinite(proven):  # the first bound is told at once, however short the search
            self.told_s = now
        self.limits.progress(
            "HiGHS",
            found if math.isfinite(found) else None,
            proven if math.isfinite(proven) else None,
        )


def _settings(model: LinearModel, limits: Limits, options: Options) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "output_flag": False,
        "threads": 1,
        "random_seed": options.seed % 2**31,
        # The default stops 0.01 % short of the optimum and calls it optimal.
        "mip_rel_gap": options.gap,
        "mip_abs_gap": 1e-9,
        "allow_unbounded_or_infeasible": False,
    }
    if math.isfinite(limits.seconds_left):
        settings["time_limit"] = limits.seconds_left
    if options.tolerance:
        for kind in ("primal_feasibility", "dual_feasibility", "mip_feasibility"):
            settings[f"{kind}_tolerance"] = options.tolerance
    if not options.presolve:
        settings["presolve"] = "off"
    if options.target is not None and model.integer.any():
        settings["objective_target"] = options.target
    return settings


def translate(model: LinearModel) -> Any:
    """Return the model as HiGHS takes it."""
    import highspy

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


def _result(model: LinearModel, highs: Any, solver: str, limits: Limits, *, ran: bool) -> Solved:
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
        ends = (kinds.kTimeLimit, kinds.kInterrupt, kinds.kIterationLimit)
        termination = why_stopped(limits) if status in ends or not ran else Termination.ERROR
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
