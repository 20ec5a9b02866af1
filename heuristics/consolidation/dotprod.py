"""DotProd: the server whose free resources have the smallest dot product with the request.

Rank: Σ_k (free_k/max_k)·(request_k/max_k) over k = mean utilisation and memory, max_k the largest
server's; the least is taken as CATS says, or with ``dp_sign=-1`` the largest as Tetris (Grandl et
al., SIGCOMM 2014) does. Within the server the GPUs are chosen as by BestFit.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.consolidation.engine import run
from optgap.heuristics.consolidation.packing import by_rank
from optgap.heuristics.consolidation.parameters import DotProdParams
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome


def dotprod(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """DotProd.

    `given` as in `DotProdParams`.

    Raises
    ------
    InputError: for another `dp_sign` than these.
    """
    options = DotProdParams(**given)
    sign = options.dp_sign
    if sign not in (1, -1):
        raise InputError("dotprod", "dp_sign", sign, "1 or -1")
    decide = by_rank(lambda free, request: sign * (free @ request), options.u_max)
    return run(problem, decide, limits, options)
