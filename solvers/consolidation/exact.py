"""The placement of least power, with proof where there is time for one."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import cpsat
from optgap.solvers.consolidation.bounds import Proof, prove
from optgap.solvers.consolidation.compact import Compact, fits
from optgap.solvers.consolidation.dive import dive_to
from optgap.solvers.consolidation.levels import closed_bound, counted, levels, server_limit
from optgap.solvers.consolidation.packing import QUANTUM_W, Packing, packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import applies, squeeze_to

CLOSE = 5e-7
"""Relative: what rounding costs to QUANTUM_W may leave between equal numbers."""
SEARCH_SHARE, SEARCH_S = 0.25, 2.0
"""Of the time limit, and seconds per hundred tasks, spent on annealing before any proof."""
QUICK_S, SQUEEZE_S = 0.4, 1.5
"""Seconds per hundred tasks on given counts of GPUs by level: at once, and after a first proof."""


def exact(problem: ConsolidationProblem, *, limits: Limits, seed: int, workers: int = 0) -> Outcome:
    """Search, bound, and close what is left between them with the compact model.

    Parameters
    ----------
    workers: CP-SAT's threads; 0 for one per core, and no fewer than eight, which search in
        different ways.
    """
    pack = packing(problem)
    search = Search(pack, seed)
    search.build(limits)
    proof = _squeeze(pack, search, limits, QUICK_S, seed)
    if not _closed(search, proof):
        proof = prove(pack, search, limits, seed, quick=True)
    limits.progress("search", search.watts, proof.watts)
    if not _closed(search, proof) and limits.stop is None:
        _squeeze(pack, search, limits, SQUEEZE_S, seed)
    if not _closed(search, proof):
        search.improve(limits, _seconds(pack, limits), proof.watts)
        limits.progress("search", search.watts, proof.watts)
    if not _closed(search, proof) and limits.stop is None:
        proof = prove(pack, search, limits.within(0.4 * min(limits.remaining, 3600)), seed)
    if not _closed(search, proof) and limits.stop is None:
        dive_to(pack, search, proof.watts, limits.within(0.3 * min(limits.remaining, 600)), seed)
    termination = limits.stop or Termination.COMPLETED
    impossible = False
    if not _closed(search, proof) and limits.stop is None:
        proof, termination, impossible = _close(pack, search, proof, limits, workers, seed)
    if impossible:
        return Outcome(None, Status.INFEASIBLE, Termination.COMPLETED)
    return outcome(pack, search, proof, termination)


def _squeeze(pack: Packing, search: Search, limits: Limits, seconds: float, seed: int) -> Proof:
    """Placements with given counts of GPUs by level, the cheapest counts first; the closed bound.

    Parameters
    ----------
    seconds: per hundred tasks.
    """
    own = levels(pack)
    counts = counted(pack, own, limits)
    proof = Proof(closed_bound(pack, own, counts), "GPUs counted by level", counts)
    open_gap = not _closed(search, proof) and limits.stop is None
    if search.best is not None and open_gap and applies(pack, own):
        share = min(seconds * pack.tasks / 100, SEARCH_SHARE * limits.remaining)
        squeeze_to(pack, own, counts, search, limits.within(share), seed)
        limits.progress("counts by level", search.watts, proof.watts)
    return proof


def _seconds(pack: Packing, limits: Limits) -> float:
    own = SEARCH_S * min(20.0, pack.tasks / 100)
    return min(own, SEARCH_SHARE * limits.remaining)


def _closed(search: Search, proof: Proof) -> bool:
    return search.watts <= proof.watts * (1 + CLOSE)


def _close(
    pack: Packing, search: Search, proof: Proof, limits: Limits, workers: int, seed: int
) -> tuple[Proof, Termination, bool]:
    """The compact model, as large as it may be; annealing where it would be too large."""
    from ortools.sat.python import cp_model

    own = levels(pack)
    servers = len(pack.server_w)
    if pack.uniform and search.best is not None:
        servers = server_limit(pack, proof.watts, search.watts, max(1, sum(proof.counts[:1])))
    if not fits(pack, servers, own):
        search.improve(limits, min(limits.remaining, 6 * SEARCH_S * pack.tasks / 100), proof.watts)
        done = _closed(search, proof)
        return (
            proof,
            (Termination.COMPLETED if done else limits.stop or Termination.COMPLETED),
            False,
        )
    compact = Compact(pack, own, servers, proof.counts if pack.uniform else None)
    known = search.watts
    if search.best is not None:
        compact.only_better(known)
    answer, found = compact.run(limits, proof.watts, workers or max(8, cpsat.cores()), seed)
    if found is not None:
        search.offer(found)
    none = answer.status == cp_model.INFEASIBLE
    infeasible = none and search.best is None
    watts = 0.0 if answer.bound is None else answer.bound * QUANTUM_W * (1 - 1e-12)
    if none and not infeasible:  # nothing better, up to what rounding takes away
        watts = known - (compact.gpus + compact.servers + 2) * QUANTUM_W
    # with a limit on the objective, a bound beyond it is one for what is better alone
    watts = min(watts, known)
    if watts > proof.watts:
        proof = Proof(watts, f"compact model, {cpsat.solver_name()}", proof.counts)
    done = _closed(search, proof)
    termination = Termination.COMPLETED if done else cpsat.terminated(answer.status, limits)
    return proof, termination, infeasible


def outcome(pack: Packing, search: Search, proof: Proof, termination: Termination) -> Outcome:
    """What search and proof amount to."""
    places = search.places
    info = {"bound_gpus": int(proof.counts[0]) if proof.counts else 0}
    if places is None:
        status = Status.BOUND_ONLY if proof.watts > 0 else Status.NO_SOLUTION
        return Outcome(None, status, termination, bound=proof.watts, bound_by=proof.by, info=info)
    done = _closed(search, proof)
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
