"""The placement of least power, with proof where there is time for one."""

from __future__ import annotations

import math

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends import cpsat
from optgap.solvers.consolidation.bounds import Proof, prove
from optgap.solvers.consolidation.branching import MOST_LEVELS, Tree
from optgap.solvers.consolidation.compact import Compact, fits
from optgap.solvers.consolidation.dive import dive_to
from optgap.solvers.consolidation.filling import fill_to
from optgap.solvers.consolidation.levels import (
    Levels,
    closed_bound,
    counted,
    levels,
    server_limit,
)
from optgap.solvers.consolidation.neighbours import Neighbours
from optgap.solvers.consolidation.outcomes import CLOSE, closed, outcome
from optgap.solvers.consolidation.packing import QUANTUM_W, Packing, packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import LARGE, applies, squeeze_to

SEARCH_SHARE, SEARCH_S = 0.25, 2.0
"""Of the time limit, and seconds per hundred tasks, spent on annealing before any proof."""
MANY = 100
SHORT_S, TIED_S, FRAMED_S, LONG_S, QUICK_S, SQUEEZE_S = 0.3, 0.1, 1.5, 2.0, 0.4, 1.5
"""Seconds per hundred tasks on given counts of GPUs by level: before branching without and with
gangs, that with frames, where there are many tasks, otherwise at once, and after a first proof."""
COARSE, COARSE_ROWS, COARSE_S = (3, 6, 10), (6,), 0.3
"""Where there are many levels, whose counts are seldom met, they are merged into so many, with
memory alone and with more rows; seconds per hundred tasks for each."""
FILLINGS = 20
"""Placements that are made GPU by GPU before any search."""
FAR, FAR_S = 1e-2, 0.2
"""Relative gap beyond which a placement with gangs is annealed before branching, so that little is
branched on; seconds per hundred tasks for that."""
COMPACT_GPUS, COMPACT_TASKS = 16, 48
"""GPUs and tasks up to which the compact model may end sooner than branching, where memory alone
limits GPUs."""
TURN_S, TURN_LONGER, COMPACT_LONGER = 0.1, 2.0, 3.0
"""Seconds of the first turn of branching then, how much longer either turn is each time, and the
compact model's than that of branching."""
MOST_BRANCHED, SLICE_S, LAID, FEW_SERVERS = 600, 2.5, 2.0, 5
"""Tasks up to which counts are branched on; seconds per hundred before neighbours have their turn,
and how much later where there are layouts ; servers up to which they have none."""

AGAIN, AGAIN_S, AGAIN_CLOSES_S = 0.8, 20.0, 0.5
"""Of the time left, and seconds per hundred tasks, for counts that no placement was found for; less
where the compact model may deny them."""


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
    own = _levels(pack)
    branched = applies(pack, own) and pack.tasks <= MOST_BRANCHED and search.best is not None
    fill_to(pack, search, 0.0, limits, seed, FILLINGS)
    if branched and len(own.quanta) > MOST_LEVELS:
        proof = _coarse(pack, search, limits, seed)
    else:
        proof = _squeeze(pack, search, limits, _before(pack) if branched else QUICK_S, seed)
    if branched and pack.gang and search.watts > proof.watts * (1 + FAR):
        search.improve(
            limits, min(FAR_S * pack.tasks / 100, SEARCH_SHARE * limits.remaining), proof.watts
        )
    if branched and not closed(search, proof):
        proof = _branch(pack, own, search, proof, limits, workers, seed)
    else:
        proof = _otherwise(pack, search, proof, limits, seed)
    termination = limits.stop or Termination.COMPLETED
    impossible = False
    if not closed(search, proof) and limits.stop is None:
        proof, termination, impossible = _close(pack, search, proof, limits, workers, seed)
    if impossible:
        return Outcome(None, Status.INFEASIBLE, Termination.COMPLETED)
    return outcome(pack, search, proof, termination)


def _before(pack: Packing) -> float:
    """Seconds per hundred tasks on given counts, before they are branched on."""
    alone = len(pack.rows) == 1
    if not (alone or pack.gang):  # GPUs hold two or three tasks, no fluid: ways down find more
        return SHORT_S
    if pack.tasks > LARGE:
        return LONG_S
    many = max(1.0, pack.tasks / MANY)  # a linear program takes longer by more than that
    if pack.gang and pack.tasks <= 2 * MANY:
        return many * (FRAMED_S if alone and pack.tasks > MANY else TIED_S)
    return many * SHORT_S


def _levels(pack: Packing) -> Levels:
    """Each task's own cost a level, where counts are branched on."""
    return levels(pack, MOST_BRANCHED) if pack.tasks <= MOST_BRANCHED else levels(pack)


def _branch(
    pack: Packing,
    own: Levels,
    search: Search,
    proof: Proof,
    limits: Limits,
    workers: int,
    seed: int,
) -> Proof:
    """Counts of GPUs, then servers, branched on; by turns with a few servers at a time.

    Where memory alone limits a few GPUs, by turns with the compact model.
    """
    many = proof.counts[0] > FEW_SERVERS * int(pack.server_gpus[0])
    tree = Tree(pack, own, proof.counts, search, seed)
    tree.whole = limits
    neighbours = Neighbours(pack, search, seed)
    share = math.inf if tree.ended else SLICE_S * pack.tasks / 100
    if tree.layouts is not None and not tree.few:
        share *= LAID
    try:
        if _small(tree):
            proof = _by_turns(tree, proof, limits, workers, seed)
        _go_on(tree, neighbours if many else None, proof, limits, share)
    finally:
        tree.close()
    if limits.stop is None and not closed(search, proof):
        closes = fits(pack, tree.root.box.high[-1], levels(pack))
        longest = (AGAIN_CLOSES_S if closes else AGAIN_S) * pack.tasks / 100
        tree.retry(limits.within(min(AGAIN * limits.remaining, longest)))
    watts = min(tree.bound, search.watts)
    if watts > proof.watts:
        proof = Proof(watts, "columns, branched on counts of GPUs and on servers", proof.counts)
    return proof


def _go_on(
    tree: Tree, neighbours: Neighbours | None, proof: Proof, limits: Limits, share: float
) -> None:
    """Branch until nothing is left, by turns with neighbours; each turn takes longer."""
    while limits.stop is None and not closed(tree.search, proof) and (tree.open() or tree.again()):
        tree.run(limits.within(share))
        if neighbours and tree.open() and limits.stop is None and tree.choosing is None:
            neighbours.run(limits.within(0.6 * share), tree.bound * (1 + CLOSE))
        share *= 1.5


def _small(tree: Tree) -> bool:
    """Whether the compact model may end sooner than branching: not where GPUs hold few tasks."""
    pack = tree.pack
    gpus = tree.root.box.high[-1] * int(pack.server_gpus[0])
    few = gpus <= COMPACT_GPUS and pack.tasks <= COMPACT_TASKS
    return few and pack.gang and len(pack.rows) == 1


def _by_turns(tree: Tree, proof: Proof, limits: Limits, workers: int, seed: int) -> Proof:
    """Branching and the compact model, each turn longer, until either ends."""
    share = TURN_S
    while tree.open() and limits.stop is None and not closed(tree.search, proof):
        tree.run(limits.within(share))
        if tree.open() and limits.stop is None:
            turn = limits.within(COMPACT_LONGER * share)
            proof, _, _ = _close(tree.pack, tree.search, proof, turn, workers, seed)
        share *= TURN_LONGER
    return proof


def _otherwise(pack: Packing, search: Search, proof: Proof, limits: Limits, seed: int) -> Proof:
    """Closed forms, servers by level, annealing and dives: where counts do not fix the power."""
    if not closed(search, proof):
        proof = prove(pack, search, limits, seed, quick=True)
    limits.progress("search", search.watts, proof.watts)
    if not closed(search, proof) and limits.stop is None:
        _squeeze(pack, search, limits, SQUEEZE_S, seed)
    if not closed(search, proof):
        search.improve(limits, _seconds(pack, limits), proof.watts)
        limits.progress("search", search.watts, proof.watts)
    if not closed(search, proof) and limits.stop is None:
        proof = prove(pack, search, limits.within(0.4 * min(limits.remaining, 3600)), seed)
    if not closed(search, proof) and limits.stop is None:
        dive_to(pack, search, proof.watts, limits.within(0.3 * min(limits.remaining, 600)), seed)
    return proof


def _counted(pack: Packing, limits: Limits) -> Proof:
    """The closed bound of all levels."""
    own = _levels(pack)
    counts = counted(pack, own, limits)
    return Proof(closed_bound(pack, own, counts), "GPUs counted by level", counts)


def _coarse(pack: Packing, search: Search, limits: Limits, seed: int) -> Proof:
    """Placements with given counts by levels that are merged; the closed bound of all levels."""
    proof = _counted(pack, limits)
    for most in COARSE if len(pack.rows) == 1 else COARSE_ROWS:
        if limits.stop is None and not closed(search, proof):
            merged = levels(pack, most)
            share = min(COARSE_S * pack.tasks / 100, SEARCH_SHARE * limits.remaining)
            near = counted(pack, merged, limits)
            squeeze_to(pack, merged, near, search, limits.within(share), seed)
            limits.progress("counts by merged levels", search.watts, proof.watts)
    return proof


def _squeeze(pack: Packing, search: Search, limits: Limits, seconds: float, seed: int) -> Proof:
    """Placements with given counts of GPUs by level, the cheapest counts first; the closed bound.

    Parameters
    ----------
    seconds: per hundred tasks.
    """
    own, proof = _levels(pack), _counted(pack, limits)
    open_gap = not closed(search, proof) and limits.stop is None
    if search.best is not None and open_gap and applies(pack, own):
        share = min(seconds * pack.tasks / 100, SEARCH_SHARE * limits.remaining)
        squeeze_to(pack, own, proof.counts, search, limits.within(share), seed)
        limits.progress("counts by level", search.watts, proof.watts)
    return proof


def _seconds(pack: Packing, limits: Limits) -> float:
    own = SEARCH_S * min(20.0, pack.tasks / 100)
    return min(own, SEARCH_SHARE * limits.remaining)


def _close(
    pack: Packing, search: Search, proof: Proof, limits: Limits, workers: int, seed: int
) -> tuple[Proof, Termination, bool]:
    """The compact model, as large as it may be; annealing where it would be too large."""
    from ortools.sat.python import cp_model

    own = levels(pack)
    servers = len(pack.server_w)
    counts: tuple[int, ...] | None = None
    if pack.uniform:
        same = len(proof.counts) == len(own.quanta)
        counts = proof.counts if same else counted(pack, own, limits)
    if counts is not None and search.best is not None:
        needed = closed_bound(pack, own, counts)  # a better bound may be for other counts
        servers = server_limit(pack, needed, search.watts, max([1, *counts[:1]]))
    if not fits(pack, servers, own):
        search.improve(limits, min(limits.remaining, 6 * SEARCH_S * pack.tasks / 100), proof.watts)
        done = closed(search, proof)
        return (
            proof,
            (Termination.COMPLETED if done else limits.stop or Termination.COMPLETED),
            False,
        )
    compact = Compact(pack, own, servers, counts)
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
    done = closed(search, proof)
    termination = Termination.COMPLETED if done else cpsat.terminated(answer.status, limits)
    return proof, termination, infeasible
