"""Diving: columns of the linear program are fixed one after another until all tasks are covered."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.branching import Node
from optgap.solvers.consolidation.branch_and_price.feasibility import pack_usage
from optgap.solvers.consolidation.branch_and_price.tree import SearchState
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.config import DEFAULT, DivingParams
from optgap.solvers.consolidation.numerics import SLACK_W, CountBox, Counts, IntArray

WHOLE = 1e-5
"""Distance at which a λ counts as integer, looser than `INTEGRALITY`: these are sums of columns."""


class Diving:
    """Dives to integer counts, and to higher ones; a task's GPUs may be in any servers."""

    before_proof = False

    def __init__(self, params: DivingParams = DEFAULT.diving) -> None:
        self.params = params
        self.dives = 0

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Dive to the counts a few times, randomised after the first dive."""
        for _ in range(self.params.dives_per_counts):
            if not state.realised(counts) and limits.stop is None:
                self._dive(state, counts, limits)

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One dive to higher counts."""
        self._dive(state, state.richer_counts(), limits)

    def _dive(self, state: SearchState, counts: Counts, limits: Limits) -> None:
        master, rng = state.generation.master, state.rng if self.dives else None
        self.dives += 1
        most = master.watts(counts) + SLACK_W
        usage = dive(state.generation, CountBox.up_to(counts), most, limits, rng)
        if usage is not None:
            state.incumbent.offer(pack_usage(master, usage))


def dive(
    generation: ColumnGeneration,
    box: CountBox,
    most: float,
    limits: Limits,
    rng: np.random.Generator | None = None,
    assignment: IntArray | None = None,
) -> IntArray | None:
    """An integer λ of the master's columns for at most `most` W; None where the dive fails.

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
            if fraction.max() <= WHOLE:
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
