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

import numpy as np

from optgap.solvers.consolidation.column_generation.master import Duals, RestrictedMaster
from optgap.solvers.consolidation.column_generation.pricing import Priced
from optgap.solvers.consolidation.numerics import BOUND_SAFETY


def dual_bound(duals: Duals, master: RestrictedMaster, priced: Priced) -> float:
    """Return a lower bound on Σ_q s_q·N_q + P·Z over all placements in the master's box, W."""
    width, box, gpus = master.instance.width, master.box, master.server_gpus
    covered = math.fsum((width * duals.tasks).tolist())
    excess = priced.upper - priced.gpu_prices
    above = excess > 0
    most, ratio = max(0.0, float(excess.max())), math.inf
    if (priced.gpu_prices[above] > 0).all():
        ratio = max([1.0, *(priced.upper[above] / priced.gpu_prices[above]).tolist()])
    paid = max(covered / ratio, covered - most * box.high[0])
    reduced = master.prices - np.append(duals.levels, gpus * duals.server_count)
    reduced[0] += duals.server_count
    ends = np.minimum(reduced * np.array(box.low), reduced * np.array(box.high))
    terms = [paid, -gpus * math.fsum(duals.servers.tolist()), *ends.tolist()]
    return math.fsum(terms) - BOUND_SAFETY * (math.fsum(abs(term) for term in terms) + covered)
