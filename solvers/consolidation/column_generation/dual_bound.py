"""The lower bound that dual values prove, optimal or not: Lagrange's or Farley's.

With duals π of the tasks, μ of the levels, ω of the server count and τ of the servers, a column S
of level q(S) has the reduced cost Σ_{q ≤ q(S)} μ_q + τ − π(S); the first sum is the *GPU price* of
its level. Pricing gives an upper limit on π(S) − τ for the columns of each dearest task. Where it
is above the GPU price, some reduced cost may be negative: then either all π are scaled down until
none is (Farley), or the excess is subtracted for as many GPUs as the box allows (Lagrange). The
larger bound is taken, less what sums of floating-point numbers may be off by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.numerics import BOUND_SAFETY, CountBox, FloatArray


@dataclass(frozen=True, eq=False)
class Duals:
    """Dual values of the restricted master's rows, W for each unit of the right-hand side; ≥ 0.

    Parameters
    ----------
    tasks: (L,) π of the covering rows. levels: (Q,) μ of the counts by level.
    server_count: ω of W·Z ≥ N_0. servers: (N,) τ of the servers' rows, or one 0 without such rows.
    """

    tasks: FloatArray
    levels: FloatArray
    server_count: float
    servers: FloatArray

    @classmethod
    def of_rows(cls, values: FloatArray, tasks: int, levels: int) -> Duals:
        """Return the duals in the order of the rows of `RestrictedMaster`."""
        values = np.maximum(values, 0.0)
        servers = values[tasks + levels + 1 :]
        return cls(
            values[:tasks],
            values[tasks : tasks + levels],
            float(values[tasks + levels]),
            servers if servers.size else np.zeros(1),
        )

    @property
    def gpu_prices(self) -> FloatArray:
        """(Q,) the dual price of a GPU of each level, Σ_{q ≤ level} μ_q."""
        return np.cumsum(self.levels)


def dual_bound(
    duals: Duals,
    width: FloatArray,
    prices_w: FloatArray,
    server_gpus: int,
    box: CountBox,
    gpu_prices: FloatArray,
    upper: FloatArray,
) -> float:
    """Return a lower bound on Σ_q s_q·N_q + P·Z over all placements in the box, W.

    Parameters
    ----------
    width: (L,) GPUs of each task. prices_w: (Q+1,) s_q and P.
    gpu_prices, upper: (n,) for the columns of each dearest task: their GPU price, and an upper
        limit on π(S) − τ.
    """
    covered = math.fsum((width * duals.tasks).tolist())
    excess = upper - gpu_prices
    most = max(0.0, float(excess.max()))
    ratio = math.inf
    if (gpu_prices[excess > 0] > 0).all():
        ratio = max([1.0, *(upper[excess > 0] / gpu_prices[excess > 0]).tolist()])
    paid = max(covered / ratio, covered - most * box.high[0])
    reduced = prices_w - np.append(duals.levels, server_gpus * duals.server_count)
    reduced[0] += duals.server_count
    ends = np.minimum(reduced * np.array(box.low), reduced * np.array(box.high))
    server_rows = server_gpus * math.fsum(duals.servers.tolist())
    terms = [paid, -server_rows, *ends.tolist()]
    return math.fsum(terms) - BOUND_SAFETY * (math.fsum(abs(term) for term in terms) + covered)
