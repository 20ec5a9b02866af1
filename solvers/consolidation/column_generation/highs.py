"""HiGHS as it is used here: one thread, silent, and never longer than the limits allow."""

from __future__ import annotations

import math
from typing import Any

from optgap.models.limits import Limits

DEVEX = 1
"""HiGHS's dual edge weights: exact ones are made anew for each node, at more than they save."""
LEAST_S = 0.05
"""What a linear program is given where time is up: short of that nothing comes of it."""


def quiet_highs() -> Any:
    """An empty program, of which nearly all entries will be ones: they are not scaled."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("simplex_dual_edge_weight_strategy", DEVEX)
    highs.setOptionValue("simplex_scale_strategy", 0)
    return highs


def solve_within(highs: Any, limits: Limits) -> Any:
    """Run a linear program until the limits' time is up, and where it is then."""
    most = math.inf
    if math.isfinite(limits.remaining):  # HiGHS counts over the life of its object
        most = highs.getRunTime() + max(LEAST_S, limits.remaining)
    highs.setOptionValue("time_limit", most)
    highs.run()
    return highs.getSolution()
