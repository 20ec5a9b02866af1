"""Diving: columns of the linear program are fixed one after another until all tasks are covered.

Where tasks of several GPUs are in one server each, they are assigned to servers by the linear
program's solution first.
"""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.branching import unassigned
from optgap.solvers.consolidation.branch_and_price.feasibility import pack_usage
from optgap.solvers.consolidation.branch_and_price.tree import Tree
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.master import RestrictedMaster
from optgap.solvers.consolidation.numerics import (
    CountBox,
    FloatArray,
    IntArray,
)

NEAR = 1e-4
"""Relative gap at which a linear program is solved well enough to read shares of servers off it."""
WHOLE = 1e-5
"""Distance at which a λ counts as integer, looser than `INTEGRALITY`: these are sums of columns."""
CLEAR = 0.95
"""Share of a task in one server from which on it is assigned there without a draw."""
UNCLEAR = 0.05
"""Share below which no server is drawn; the widest task opens the next server instead."""


class Diving:
    """Dives from the root and from the best node in turn."""

    def __init__(self) -> None:
        self.dives = 0

    def __call__(self, tree: Tree, limits: Limits) -> None:
        """Assign all tasks, then dive on columns."""
        best, root = tree.best, tree.root
        start = best if self.dives % 2 else root
        gpus, servers = best.box.low[0], best.box.low[-1]
        # every fourth dive takes as many GPUs as the best node's linear program has
        most = max(gpus, best.rounded[0]) if self.dives % 4 == 0 else root.box.high[0]
        box = CountBox((gpus, *root.box.low[1:-1], servers), (most, *root.box.high[1:-1], servers))
        assignment = self._assign(tree, box, start.assignment, limits)
        rng = tree.rng if self.dives else None
        self.dives += 1
        if assignment is None:
            return
        generation, cutoff = tree.generation, tree.incumbent.cutoff
        usage = dive(generation, box, cutoff, limits, rng=rng, assignment=assignment)
        if usage is not None:
            tree.incumbent.offer(pack_usage(generation.master, usage))

    def _assign(
        self, tree: Tree, box: CountBox, assignment: IntArray, limits: Limits
    ) -> IntArray | None:
        """Return all tasks of several GPUs assigned, a few after each linear program.

        None where its value exceeds the cutoff.
        """
        generation, master = tree.generation, tree.generation.master
        cutoff = tree.incumbent.cutoff
        master.set_box(box)
        while limits.stop is None:
            master.set_servers(assignment)
            relaxed = generation.solve(limits, stop_bound=cutoff, gap=NEAR, quick=True)
            if relaxed.value > cutoff:
                return None
            rest = unassigned(generation.instance, assignment)
            if not rest.size:
                return assignment
            share = master.server_shares(relaxed.usage)
            choice = self._choice(tree, assignment, share, rest, most=box.high[-1])
            assignment = assignment.copy()
            for task, server in choice:
                assignment[task] = server
        return None

    def _choice(
        self, tree: Tree, assignment: IntArray, share: FloatArray, rest: IntArray, *, most: int
    ) -> list[tuple[int, int]]:
        """Return the (task, server) pairs to assign next: all clear ones, else a drawn one.

        Parameters
        ----------
        share: (L, N) of each task in each server. rest: tasks to assign. most: servers at most.
        """
        width = tree.generation.instance.width

        def drawn(values: FloatArray) -> int:  # no randomness in the first dive
            low = 0.5 if self.dives else 1.0
            return int((values * tree.rng.uniform(low, 1, values.shape)).argmax())

        clear = rest[share[rest].max(axis=1) >= CLEAR]
        if clear.size:
            return [(int(ell), int(share[ell].argmax())) for ell in clear.tolist()]
        if share[rest].max() >= UNCLEAR:
            k, server = divmod(drawn(share[rest]), share.shape[1])
            return [(int(rest[k]), server)]
        task, server = int(rest[drawn(width[rest].astype(float))]), int(assignment.max()) + 1
        return [(task, server if server < most else int(tree.rng.integers(most)))]


def tasks_left(master: RestrictedMaster, usage: IntArray) -> IntArray:
    """Return (L,) GPUs that each task still needs beside an integer λ."""
    left = master.instance.width.copy()
    for j in np.flatnonzero(usage).tolist():
        left[list(master.columns[j])] -= usage[j]
    return np.maximum(left, 0)


def dive(
    generation: ColumnGeneration,
    box: CountBox,
    most: float,
    limits: Limits,
    *,
    rng: np.random.Generator | None = None,
    assignment: IntArray | None = None,
) -> IntArray | None:
    """Return an integer λ of the master's columns for at most `most` W; None where the dive fails.

    The first linear program is solved to its optimum, the others until their value is at most
    `most`.

    Parameters
    ----------
    rng: multiplies fractions by factors from ½ to 1 before the column of the largest is fixed.
    assignment: of tasks to servers, if any.
    """
    master = generation.master
    master.set_box(box)
    master.set_servers(assignment)
    fixed: IntArray = np.zeros(0, dtype=np.int64)
    stop_value = -math.inf
    try:
        while True:
            relaxed = generation.solve(limits, stop_bound=most, stop_value=stop_value, quick=True)
            if limits.stop is not None or relaxed.value > most:
                return None
            stop_value = most
            used = np.maximum(relaxed.usage, 0.0)  # HiGHS may stop at an infeasible basis
            whole: IntArray = np.floor(used + WHOLE).astype(np.int64)
            fraction = used - whole
            if fraction.max() <= WHOLE or not tasks_left(master, whole).any():
                return whole
            drawn = 1.0 if rng is None else rng.uniform(0.5, 1, fraction.shape)
            whole[int(np.argmax(fraction * drawn))] += 1
            before = np.pad(fixed, (0, len(whole) - len(fixed)))
            fixed = np.maximum(before, whole)
            for j in np.flatnonzero(fixed > before).tolist():
                master.fix(j, int(fixed[j]))
    finally:
        for j in np.flatnonzero(fixed).tolist():
            master.fix(j, 0)
