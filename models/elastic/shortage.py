"""Why jobs cannot all finish: a budget of energy below what they need at the least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.shortage import short

if TYPE_CHECKING:
    from optgap.models.elastic.problem import ElasticProblem


def why_not(problem: ElasticProblem, jobs: Sequence[int]) -> str:
    """The energy that these jobs need on their thriftiest configurations, beyond the budget."""
    if problem.cap != "energy":
        return ""
    joules = np.where(np.isfinite(problem.time_s), problem.time_s * problem.power_w, np.inf)
    least = joules.min(axis=(1, 2))
    needed = math.fsum(
        float(least[problem.jobs.of_class[k]] * problem.jobs.iterations[k]) for k in jobs
    )
    return short("energy", needed * (1 - 1e-6), problem.energy_budget_j, "J")
