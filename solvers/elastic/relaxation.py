"""The decision at one event as a convex program (CVXPY): a bound, and prices of GPUs and watts.

Each job's configurations may be mixed in shares x_jc ≥ 0, waiting being one of them:

    min Σ_j Σ_c JCT_jc·x_jc  with  Σ_c x_jc = 1,  Σ n_c·x_jc ≤ G,  Σ P_c·x_jc ≤ limit (Eq. 18-19).

The multipliers of the last two are what one more GPU and one more watt would save, s per GPU and
s per W. The solver's optimum is not taken at its word: whatever prices λ, μ ≥ 0 it gives, and
any unit vector u, weak duality bounds the optimum by

    Σ_j min_c (JCT_jc + λ·n_c + μ·(P_c + z·uᵀD_c)) − λ·G − μ·limit,

which is added up here. With z > 0 the limit is that of a second-order cone, P·x + z·‖D·x‖ ≤ limit:
kept with the confidence that z stands for when the powers' error has the covariance DᵀD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.snapshot import Snapshot

FORBIDDEN = 1e3
"""What waiting costs where nobody may, in times of the longest job."""
NOTHING = 1e-6
"""Of the jobs' times: what all GPUs, or all watts, are worth at least if they are short."""


@dataclass(frozen=True)
class Prices:
    """What a decision's resources are worth.

    Parameters
    ----------
    bound: lower bound on Σ remaining times, s.
    gpu_s: s saved by one more GPU.
    watt_s: s saved by one more W; 0 without a limit.
    """

    bound: float
    gpu_s: float
    watt_s: float


@dataclass(frozen=True)
class _Table:
    """One row per pair of a job and a way to run it, waiting last of each job's."""

    job: Ints
    cost: Floats
    gpus: Floats
    watts: Floats
    errors: Floats
    """(draws, rows) of D."""


def relaxed(snapshot: Snapshot, errors: Floats | None = None, z: float = 0.0) -> Prices:
    """A proven bound on the decision, and the prices of its GPUs and watts.

    Parameters
    ----------
    errors: (draws, Z) W by which the power of each configuration of the choices is off, divided
        by √(draws − 1); None for powers that are known.
    z: how many standard errors the limit is to be kept by.
    """
    table = _table(snapshot, errors)
    scale = float(np.median(table.cost))
    limited = math.isfinite(snapshot.limit_w)
    prices, direction = _solved(table, snapshot, z if limited else 0.0, scale)
    gpu, watt = max(0.0, prices[0]), max(0.0, prices[1]) if limited else 0.0
    # what an interior point leaves of a price where nothing is short
    least = NOTHING * scale * len(snapshot.remaining)
    gpu = gpu if gpu * snapshot.gpus > least else 0.0
    watt = watt if watt and watt * snapshot.limit_w > least else 0.0
    return Prices(_dual(table, snapshot, gpu, watt, z * direction), gpu, watt)


def _table(snapshot: Snapshot, errors: Floats | None) -> _Table:
    choices = snapshot.choices
    wait = snapshot.wait_s
    if not math.isfinite(wait):
        wait = FORBIDDEN * float(snapshot.remaining.max()) * float(choices.time_s.max())
    rows, jobs, costs = [], [], []
    for j, c in enumerate(snapshot.of_class.tolist()):
        own = np.arange(choices.first[c], choices.first[c + 1])
        rows.append(np.append(own, -1))
        jobs.append(np.full(len(own) + 1, j))
        costs.append(np.append(snapshot.remaining[j] * choices.time_s[own], wait))
    at = np.concatenate(rows)
    runs = at >= 0
    off = np.zeros((0, len(at))) if errors is None else np.where(runs, errors[:, at], 0.0)
    return _Table(
        np.concatenate(jobs), np.concatenate(costs), np.where(runs, choices.gpus[at], 0.0),
        np.where(runs, choices.watts[at], 0.0), off,
    )  # fmt: skip


def _solved(
    table: _Table, snapshot: Snapshot, z: float, scale: float
) -> tuple[tuple[float, float], Floats]:
    """Prices by CVXPY, and the direction u in which the powers' error is worst."""
    cp: Any = import_module("cvxpy")  # whose functions carry no types
    sparse: Any = import_module("scipy.sparse")
    size, jobs = len(table.job), len(snapshot.remaining)
    share = cp.Variable(size, nonneg=True)
    one = sparse.csr_matrix((np.ones(size), (table.job, np.arange(size))), (jobs, size))
    rules = [one @ share == 1, (table.gpus / snapshot.gpus) @ share <= 1]
    robust = z > 0 and len(table.errors) > 0
    if math.isfinite(snapshot.limit_w):
        power = (table.watts / snapshot.limit_w) @ share
        if robust:
            power = power + cp.norm((z / snapshot.limit_w * table.errors) @ share)
        rules.append(power <= 1)
    program = cp.Problem(cp.Minimize((table.cost / scale) @ share), rules)
    try:
        program.solve(solver="CLARABEL")
    except cp.error.SolverError:  # prices of nothing are prices, too: the bound is theirs
        return (0.0, 0.0), np.zeros(len(table.errors))
    found = [_number(rule.dual_value) for rule in rules[1:]] + [0.0]
    direction = np.zeros(len(table.errors))
    if robust and share.value is not None:
        worst = table.errors @ share.value
        direction = worst / max(float(np.linalg.norm(worst)), 1e-300)
    watt = found[1] * scale / snapshot.limit_w
    return (found[0] * scale / snapshot.gpus, watt), direction


def _number(value: Any) -> float:
    found = float(np.asarray(0.0 if value is None else value).reshape(-1)[0])
    return found if math.isfinite(found) else 0.0


def _dual(table: _Table, snapshot: Snapshot, gpu: float, watt: float, direction: Floats) -> float:
    """Weak duality, see above; less what floating point may have added."""
    watts = table.watts + direction @ table.errors
    reduced = table.cost + gpu * table.gpus + watt * watts
    least = np.full(len(snapshot.remaining), np.inf)
    np.minimum.at(least, table.job, reduced)
    paid = gpu * snapshot.gpus + (watt * snapshot.limit_w if watt else 0.0)
    total = math.fsum(least.tolist()) - paid
    return total - 1e-12 * (float(np.abs(least).sum()) + paid)
