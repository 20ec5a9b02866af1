"""What a search and a proof amount to."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.bounds import Proof
from optgap.solvers.consolidation.packing import Packing
from optgap.solvers.consolidation.search import Search

CLOSE = 5e-7
"""Relative: what rounding costs to QUANTUM_W may leave between equal numbers."""


def closed(search: Search, proof: Proof) -> bool:
    return search.watts <= proof.watts * (1 + CLOSE)


def outcome(pack: Packing, search: Search, proof: Proof, termination: Termination) -> Outcome:
    """What search and proof amount to."""
    places = search.places
    info = {"bound_gpus": int(proof.counts[0]) if proof.counts else 0}
    if places is None:
        status = Status.BOUND_ONLY if proof.watts > 0 else Status.NO_SOLUTION
        return Outcome(None, status, termination, bound=proof.watts, bound_by=proof.by, info=info)
    done = closed(search, proof)
    bound = min(proof.watts, search.watts) if done else proof.watts
    return Outcome(
        pack.solution(places),
        Status.OPTIMAL if done else Status.FEASIBLE,
        Termination.COMPLETED if done else termination,
        claimed=math.fsum([search.watts]),
        bound=bound,
        bound_by=proof.by,
        info={**info, "annealing_watts": float(np.round(search.watts, 6))},
    )
