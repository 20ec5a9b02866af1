"""Zeus (You et al., NSDI 2023): the clock of a job that costs least, in energy and time.

Cost of a clock f: η_z·energy + (1 − η_z)·MAXPOWER·time, per iteration at the GPUs requested.
"""

from __future__ import annotations

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Ints


def zeus_clocks(problem: ElasticProblem, zeus_eta: float) -> Ints:
    """(J,) argmin over F of (η_z·P + (1 − η_z)·P_max)·T_iter at the GPUs requested.

    MAXPOWER is the job's power at the highest clock; the higher clock of equals.
    """
    jobs = problem.jobs
    k = np.searchsorted(problem.counts, jobs.requested)
    power = problem.power_w[jobs.of_class, k]
    cost = (zeus_eta * power + (1 - zeus_eta) * power[:, -1:]) * problem.time_s[jobs.of_class, k]
    last = cost.shape[1] - 1 - cost[:, ::-1].argmin(axis=1)
    return np.asarray(last, dtype=np.int64)
