"""Proven bounds on power, from closed forms to small integer programs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.consolidation.generation import Generation
from optgap.solvers.consolidation.levels import (
    closed_bound,
    counted,
    level_bound,
    levels,
)
from optgap.solvers.consolidation.packing import Packing, packing
from optgap.solvers.consolidation.search import Search

MOST_GENERATED = 600
"""Tasks up to which columns are generated for a bound."""


@dataclass(frozen=True)
class Proof:
    """The best bound so far in W, who proved it, and counts of GPUs by level."""

    watts: float
    by: str
    counts: tuple[int, ...]


def prove(
    pack: Packing, search: Search, limits: Limits, seed: int, *, quick: bool = False
) -> Proof:
    """The bounds that scale: counts by level, servers by level, and columns where they are few.

    `search` says what counts would be enough to close the gap; `quick` leaves columns out.
    """
    own = levels(pack)
    counts = counted(pack, own, limits)
    proof = Proof(closed_bound(pack, own, counts), "GPUs counted by level", counts)
    if quick and pack.tasks > 2000:
        return proof
    if not quick and pack.tasks <= MOST_GENERATED and search.best is not None:
        hoped = _reached(pack, search, own.quanta, own.of)
        counts = counted(pack, own, limits.within(0.3 * min(limits.remaining, 3600)), hoped)
        proof = Proof(closed_bound(pack, own, counts), "GPUs counted by level", counts)
    if search.watts <= proof.watts * (1 + 1e-9):
        return proof
    share = limits.within(min(20.0, 0.5 * limits.remaining))
    found = level_bound(pack, own, counts, share, watts=search.watts, seed=seed)
    if found.watts > proof.watts:
        proof = Proof(found.watts, found.by, counts)
    if not quick and pack.tasks <= MOST_GENERATED:
        columns = column_bound(pack, search, limits.within(0.4 * min(limits.remaining, 3600)))
        if columns > proof.watts:
            proof = Proof(columns, "linear program over contents of a GPU", counts)
    return proof


def _reached(
    pack: Packing, search: Search, quanta: tuple[int, ...], of: np.ndarray
) -> tuple[int, ...]:
    """GPUs of each level or more in the best placement."""
    places = search.places or []
    tops = [max(int(of[ell]) for ell in tasks) for tasks in pack.contents(places).values()]
    return tuple(sum(top >= q for top in tops) for q in range(len(quanta)))


def column_bound(pack: Packing, search: Search, limits: Limits) -> float:
    """min Σ (cost + share of a server's static power)·λ, W: GPU columns know no servers."""
    share = float((pack.server_w / pack.server_gpus).min())
    generation = Generation(pack, np.arange(pack.tasks), pack.least_watts + share)
    if search.places is not None and pack.uniform:
        generation.add(pack.contents(search.places).values())
    return generation.run(limits).bound


def bound_levels(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """`levels.level_bound`, with counts in closed form."""
    pack = packing(problem)
    own = levels(pack)
    counts = counted(pack, own, limits)
    search = Search(pack, seed)
    if pack.tasks <= 2000:
        search.build(limits, tries=2)
    found = level_bound(pack, own, counts, limits, watts=search.watts, seed=seed)
    return bounded(found.watts, found.by, limits)


def bound_area(problem: ConsolidationProblem, *, limits: Limits, seed: int) -> Outcome:
    """`levels.closed_bound`."""
    pack = packing(problem)
    own = levels(pack)
    counts = counted(pack, own, limits)
    return bounded(closed_bound(pack, own, counts), "GPUs counted by level", limits)


def bounded(watts: float, by: str, limits: Limits) -> Outcome:
    """A bound and nothing else."""
    return Outcome(
        None,
        Status.BOUND_ONLY,
        limits.stop or Termination.COMPLETED,
        bound=watts,
        bound_by=by,
    )
