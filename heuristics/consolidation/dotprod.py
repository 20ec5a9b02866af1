"""DotProd: the server whose free resources have the smallest dot product with the request.

Rank: Σ_k (free_k/max_k)·(request_k/max_k) over k = mean utilisation and memory, max_k the largest
server's; the least is taken as CATS says, though Tetris (Grandl et al., SIGCOMM 2014) takes the
largest. Within the server the GPUs are chosen as by BestFit.
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
    """Run DotProd; `given` as in `PackingParams`."""
    options = PackingParams(**given)
    decide = by_rank(lambda free, request: free @ request, options.u_max)
    return simulate(problem, decide, limits)
