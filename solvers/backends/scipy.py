"""SciPy's milp: a HiGHS of its own, linked statically."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.backends.linear import LinearModel, Options, Solved, normalised
from optgap.solvers.backends.watch import watch

OPTIMAL, LIMIT, INFEASIBLE = 0, 1, 2
"""`milp`'s status codes; 3 and 4 are unbounded and trouble."""
ABANDON_S = 1.0
"""After an interrupt: `milp` cannot be stopped, so there is nothing to wait for."""


def probe() -> None:
    """Import it."""
    import scipy.optimize  # noqa: F401


def solve(model: LinearModel, limits: Limits, options: Options) -> Solved:
    """Solve with `scipy.optimize.milp`, which knows neither seed, start nor interrupt."""
    import scipy
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    settings: dict[str, Any] = {"mip_rel_gap": options.gap}
    if math.isfinite(limits.remaining):
        settings["time_limit"] = max(limits.remaining, 1e-3)
    sign = 1.0 if model.sense == "min" else -1.0
    entries = (model.values, model.columns, model.starts)
    matrix: Any = csr_array(entries, shape=(model.rows, model.variables))
    rows = [LinearConstraint(matrix, model.row_lower, model.row_upper)] if model.rows else []

    call: Any = milp  # its options are typed as a closed dictionary

    def work() -> Any:
        return call(
            sign * model.cost,
            integrality=model.integer.astype(np.int64),
            bounds=Bounds(model.lower, model.upper),
            constraints=rows,
            options=settings,
        )

    answer = watch(work, limits, lambda: None, grace_s=ABANDON_S)
    solver = f"SciPy {scipy.__version__}"
    if answer is None:
        return normalised(
            model,
            solver=solver,
            proven=False,
            infeasible=False,
            values=None,
            bound=None,
            termination=limits.stop or Termination.TIME_LIMIT,
        )
    bound = answer.get("mip_dual_bound")
    if bound is None and answer.status == OPTIMAL:
        bound = answer.fun  # a linear program has no branch-and-bound tree to report on
    ended = Termination.COMPLETED if answer.status in (OPTIMAL, INFEASIBLE) else Termination.ERROR
    if answer.status == LIMIT:
        ended = limits.stop or Termination.TIME_LIMIT
    return normalised(
        model,
        solver=solver,
        proven=answer.status == OPTIMAL,
        infeasible=answer.status == INFEASIBLE,
        values=answer.x,
        bound=None if bound is None else sign * float(bound) + model.offset,
        termination=ended,
        message=str(answer.message) if ended is Termination.ERROR else "",
    )
