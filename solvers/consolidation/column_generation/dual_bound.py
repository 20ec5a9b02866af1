"""What dual values prove, whatever the solver stopped at: Lagrange's bound and Farley's.

With duals π of the tasks, μ of the levels, ω of a server's GPUs and τ of the servers, a column S is
worth π(S) and pays the rent Σ_{q ≤ q(S)} μ_q. Pricing says what no column is worth more than, by
its dearest task. Where that is more than the rent, either all π are scaled down (Farley), or the
excess is paid for by as many GPUs as there may be (Lagrange). The better of the two counts, less
what sums of floating-point numbers may be off by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.solvers.consolidation.column_generation.space import CountBox
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, FloatArray


@dataclass(frozen=True, eq=False)
class Duals:
    """Of the rows of the restricted master, none below 0.

    Parameters
    ----------
    tasks: (L,) π. levels: (Q,) μ. seats: ω. servers: (N,) τ, or one 0 where there are no such rows.
    """

    tasks: FloatArray
    levels: FloatArray
    seats: float
    servers: FloatArray

    @classmethod
    def of_rows(cls, values: FloatArray, tasks: int, levels: int) -> Duals:
        """From the dual values of the master's rows, in their order."""
        values = np.maximum(values, 0.0)
        servers = values[tasks + levels + 1 :]
        return cls(
            values[:tasks],
            values[tasks : tasks + levels],
            float(values[tasks + levels]),
            servers if servers.size else np.zeros(1),
        )

    @property
    def rents(self) -> FloatArray:
        """(Q,) what a GPU of each level pays."""
        return np.cumsum(self.levels)


def dual_bound(
    duals: Duals,
    width: FloatArray,
    prices_w: FloatArray,
    server_gpus: int,
    box: CountBox,
    rents: FloatArray,
    worth: FloatArray,
) -> float:
    """A bound on Σ_q s_q·N_q + P·Z over all placements in the box, W.

    Parameters
    ----------
    width: (L,) GPUs of each task. prices_w: (Q+1,) s_q and P.
    rents, worth: (n,) of columns by their dearest task: what they pay, and what no such column is
        worth more than.
    """
    covered = math.fsum((width * duals.tasks).tolist())
    excess = worth - rents
    most = max(0.0, float(excess.max()))
    ratio = math.inf
    if (rents[excess > 0] > 0).all():
        ratio = max([1.0, *(worth[excess > 0] / rents[excess > 0]).tolist()])
    paid = max(covered / ratio, covered - most * box.high[0])
    reduced = prices_w - np.append(duals.levels, server_gpus * duals.seats)
    reduced[0] += duals.seats
    ends = np.minimum(reduced * np.array(box.low), reduced * np.array(box.high))
    tolls = server_gpus * math.fsum(duals.servers.tolist())
    terms = [paid, -tolls, *ends.tolist()]
    return math.fsum(terms) - BOUND_SAFETY * (math.fsum(abs(term) for term in terms) + covered)
