"""PowerFlow's decision, Eq. 18-19, as a convex program (CVXPY): prices of a GPU and of a watt.

Each job's configurations may be mixed in shares x_jc ≥ 0, waiting for H s being one of them:

    min Σ_j Σ_c JCT_jc·x_jc  with  Σ_c x_jc = 1,  Σ n_c·x_jc ≤ G,  Σ P_c·x_jc ≤ limit (Eq. 18-19).

The multipliers of the last two are what one more GPU and one more watt would save, s per GPU and
s per W. The solver's optimum is not taken at its word: whatever prices λ, μ ≥ 0 it gives, weak
duality bounds the optimum by

    Σ_j min_c (JCT_jc + λ·n_c + μ·P_c) − λ·G − μ·limit,

which is added up here. `optgap.solvers.elastic.formulation` has the same equations without shares.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.elastic.area import SAFE, closed_form
from optgap.solvers.elastic.snapshot import Choices, Snapshot

NOTHING = 1e-6
"""Least worth of all GPUs, or all watts, if short, relative to the jobs' times."""


class Prices(NamedTuple):
    """Lower bound on Σ remaining times, s, and what one more GPU and one more W would save, s."""

    bound: float
    gpu_s: float
    watt_s: float


class Table(NamedTuple):
    """One row per pair of a job and a way to run it, waiting last of each job's."""

    job: Ints
    JCT: Floats
    n: Floats
    P: Floats


def table_of(snapshot: Snapshot) -> Table:
    """Return the table of a decision, in which jobs may wait."""
    c, H, parts = snapshot.choices, snapshot.wait_s, []
    for j, (k, left) in enumerate(zip(snapshot.of_class, snapshot.remaining, strict=True)):
        own = slice(int(c.first[k]), int(c.first[k + 1]))
        columns = (left * c.time_s[own], c.gpus[own], c.watts[own])
        full = (np.append(x, last) for x, last in zip(columns, (H, 0.0, 0.0), strict=True))
        parts.append((np.full(own.stop - own.start + 1, j), *full))
    return Table(*map(np.concatenate, zip(*parts, strict=True)))


def relaxation(
    problem: ElasticProblem, *, limits: Limits, seed: int, at_s: float = -1.0
) -> Outcome:
    """Return the prices of one decision, and its bound; closed forms bound the whole problem.

    Parameters
    ----------
    at_s: the moment, s after the first submission: jobs submitted by then have done nothing yet,
        and later ones are left out; −1 for the last submission.

    Raises
    ------
    InputError: for a moment before any job is there.
    """
    submitted = problem.jobs.submit_s
    moment = float(submitted.max()) if at_s == -1 else problem.epoch_s + at_s
    jobs = np.flatnonzero(submitted <= moment)
    if not len(jobs):
        raise InputError("relaxation", "at_s", at_s, "-1, or s after the first submission")
    of_class, left = problem.jobs.of_class[jobs], problem.jobs.iterations[jobs]
    prices = relaxed(Snapshot.of(problem, Choices.of(problem), of_class, left))
    bound, by = closed_form(problem)
    info = {
        "at_s": moment - problem.epoch_s,
        "jobs": len(jobs),
        "decision_s": prices.bound / len(jobs),
        "gpu_s": prices.gpu_s,
        "kilowatt_s": 1000 * prices.watt_s,
    }
    return Outcome(
        None, Status.BOUND_ONLY, limits.stop or Termination.COMPLETED, bound=bound * (1 - SAFE),
        bound_by=by, info=info,
        message=f"of the decision over {len(jobs)} jobs: another GPU saves {prices.gpu_s:,.0f} s "
        f"together at most, another kW {1000 * prices.watt_s:,.0f} s",
    )  # fmt: skip


def relaxed(snapshot: Snapshot) -> Prices:
    """Return a proven bound on the decision, and the prices of its GPUs and watts."""
    table = table_of(snapshot)
    gpu, watt = _multipliers(table, snapshot)
    # what an interior point leaves of a price where nothing is short
    least = NOTHING * float(np.median(table.JCT)) * len(snapshot.remaining)
    gpu = gpu if gpu * snapshot.gpus > least else 0.0
    watt = watt if watt and watt * snapshot.limit_w > least else 0.0
    return Prices(_dual(table, snapshot, gpu, watt), gpu, watt)


def _multipliers(table: Table, snapshot: Snapshot) -> tuple[float, float]:
    """Return λ and μ by CVXPY, in units of the median time, all GPUs and the whole limit."""
    cp: Any = import_module("cvxpy")  # whose functions carry no types
    sparse: Any = import_module("scipy.sparse")
    size, jobs = len(table.job), len(snapshot.remaining)
    G, limit_w, unit_s = snapshot.gpus, snapshot.limit_w, float(np.median(table.JCT))
    of = sparse.csr_matrix((np.ones(size), (table.job, np.arange(size))), (jobs, size))
    x = cp.Variable(size, nonneg=True)
    gpus_18 = (table.n / G) @ x <= 1
    power_19 = (table.P / limit_w) @ x <= 1
    limited = math.isfinite(limit_w)
    rules = [of @ x == 1, gpus_18, *([power_19] if limited else [])]
    program = cp.Problem(cp.Minimize((table.JCT / unit_s) @ x), rules)
    try:
        program.solve(solver="CLARABEL")
    except cp.error.SolverError:  # prices of nothing are prices, too: the bound is theirs
        return 0.0, 0.0
    watt = _price(power_19) * unit_s / limit_w if limited else 0.0
    return _price(gpus_18) * unit_s / G, watt


def _price(rule: Any) -> float:
    """Return the multiplier of a constraint; 0 where the solver has none."""
    found = float(np.asarray(0.0 if rule.dual_value is None else rule.dual_value).reshape(-1)[0])
    return max(0.0, found) if math.isfinite(found) else 0.0


def _dual(table: Table, snapshot: Snapshot, gpu: float, watt: float) -> float:
    """Weak duality, see above; less what floating point may have added."""
    reduced = table.JCT + gpu * table.n + watt * table.P
    least = np.full(len(snapshot.remaining), np.inf)
    np.minimum.at(least, table.job, reduced)
    paid = gpu * snapshot.gpus + (watt * snapshot.limit_w if watt else 0.0)
    total = math.fsum(least.tolist()) - paid
    return total - 1e-12 * (float(np.abs(least).sum()) + paid)
