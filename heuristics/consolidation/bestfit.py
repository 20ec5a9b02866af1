"""BestFit: the server, then the GPU, with least free capacity after the task is placed.

The rank is Σ_k ½·(free_k − request_k)/max_k over k = mean utilisation and memory, max_k the largest
server's; the least wins. A GPU is feasible if memory fits and mean utilisation stays within u_max.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.packing import by_rank
from optgap.heuristics.consolidation.parameters import PackingParams
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def bestfit(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run BestFit; `given` is as in `PackingParams`."""
    options = PackingParams(**given)
    decide = by_rank(lambda free, request: 0.5 * (free - request).sum(axis=1), options.u_max)
    return simulate(problem, decide, limits)
