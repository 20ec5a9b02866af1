"""DotProd: the server whose free resources have the smallest dot product with the request.

The rank is Σ_k (free_k/max_k)·(request_k/max_k) over k = mean utilisation and memory, max_k that of
the largest server. The least rank wins as CATS says, though Tetris (Grandl et al., SIGCOMM 2014)
takes the largest. Within the server the policy chooses GPUs as BestFit does.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.packing import by_rank
from optgap.heuristics.consolidation.parameters import PackingParams
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def dotprod(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run DotProd; `given` is as in `PackingParams`."""
    options = PackingParams(**given)
    decide = by_rank(lambda free, request: free @ request, options.u_max)
    return simulate(problem, decide, limits)
