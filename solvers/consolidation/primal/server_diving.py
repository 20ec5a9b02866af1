"""Diving on servers: tasks of several GPUs are assigned by the linear program's solution.

Then columns are fixed, as in `diving`.
"""

from __future__ import annotations

import math

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.branching import Node, unassigned
from optgap.solvers.consolidation.branch_and_price.heuristic import SearchState
from optgap.solvers.consolidation.branch_and_price.packing import pack_usage
from optgap.solvers.consolidation.column_generation.generation import Relaxation
from optgap.solvers.consolidation.column_generation.master import RestrictedMaster
from optgap.solvers.consolidation.column_generation.space import CountBox, ServerAssignment
from optgap.solvers.consolidation.config import DEFAULT, Params
from optgap.solvers.consolidation.numerics import SLACK_W, Counts, FloatArray, IntArray
from optgap.solvers.consolidation.primal.diving import Dive


class ServerDiving:
    """Dives that start from the root and from the best node in turn."""

    before_proof = False

    def __init__(self, params: Params = DEFAULT) -> None:
        self.params, self.own = params, params.server_diving
        self.dives = 0

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Dive on columns with these counts and the node's assignment, a few times."""
        box, most = CountBox.up_to(counts), state.generation.master.watts(counts) + SLACK_W
        for _ in range(self.params.diving.dives_per_counts):
            if not state.realised(counts) and limits.stop is None:
                self._place(state, box, node.assignment, most, limits)
                self.dives += 1

    def improve(self, state: SearchState, limits: Limits) -> None:
        """Assign all tasks at a small loss, then dive on columns."""
        best, root = state.best[0], state.root
        start = best if self.dives % 2 else root
        limits = limits.within(self.own.dive_s * state.generation.instance.tasks / 100)
        gpus, servers = best.box.low[0], best.box.low[-1]
        # every fourth dive takes as many GPUs as the best node's linear program has
        most = max(gpus, best.rounded[0]) if self.dives % 4 == 0 else root.box.high[0]
        box = CountBox((gpus, *root.box.low[1:-1], servers), (most, *root.box.high[1:-1], servers))
        below = best.bound * (1 + self.own.first_loss)
        assignment = self._assign(state, box, start.assignment, below, limits)
        self.dives += 1
        if assignment is not None:
            self._place(state, box, assignment, state.cutoff, limits)

    def _place(
        self, state: SearchState, box: CountBox, assignment: ServerAssignment, most: float,
        limits: Limits
    ) -> None:  # fmt: skip
        """Dive on columns under an assignment, for a placement of at most `most` W."""
        dive = Dive(state.generation, limits, state.rng, float(self.dives > 0), self.params)
        usage = dive.usage(box, most, assignment=assignment)
        if usage is not None:
            state.incumbent.offer(pack_usage(state.generation.master, usage))

    def _assign(
        self, state: SearchState, box: CountBox, assignment: ServerAssignment, most: float,
        limits: Limits
    ) -> ServerAssignment | None:  # fmt: skip
        """Assign all tasks of several GPUs so that the linear program's value is at most `most` W.

        An assignment that exceeds `most` is taken back and forbidden. Where the value exceeds it
        then as well, `most` is raised to a little above the smaller of both values, at most to the
        cutoff; after `ServerDivingParams.assign_s` it is the cutoff. None where that is exceeded.
        """
        generation, master, params = state.generation, state.generation.master, self.own
        dearest = state.cutoff

        def relax() -> Relaxation:
            return generation.solve(limits, stop_bound=dearest, gap=params.lp_gap, quick=True)

        master.set_box(box)
        master.set_servers(assignment)
        before: tuple[ServerAssignment, list[tuple[int, int]]] | None = None
        other: tuple[float, ServerAssignment] | None = None
        wrong, patience = 0, limits.within(params.assign_s * generation.instance.tasks / 100)
        while limits.stop is None and wrong <= params.max_backtracks:
            if patience.stop is not None:
                most = dearest
            relaxed = relax()
            if relaxed.value > most and before is not None:
                wrong += 1
                other = (relaxed.value, master.assignment)
                master.set_servers(before[0].forbid(before[1]))
                before = None
                continue
            if relaxed.value > most:
                if min(relaxed.value, other[0] if other else math.inf) > dearest:
                    return None
                if other is not None and other[0] < relaxed.value:
                    master.set_servers(other[1])
                    relaxed = relax()
                most, wrong = relaxed.value * (1 + params.loss_growth), 0
            other = None
            rest = unassigned(generation.instance, master.assignment)
            if not rest.size:
                return master.assignment
            choice = self._servers(master, state.rng, relaxed.usage, rest)
            if not choice:
                return None
            before = (master.assignment, choice)
            master.set_servers(before[0].assign(choice))
        return None

    def _servers(
        self, master: RestrictedMaster, rng: np.random.Generator, usage: FloatArray, rest: IntArray
    ) -> list[tuple[int, int]]:
        """The (task, server) pairs to assign next: all clear ones, or else one that is drawn."""
        width, params, assignment = master.instance.width, self.own, master.assignment

        def drawn(shape: tuple[int, ...]) -> FloatArray:  # no randomness in the first dive
            return rng.uniform(0.5 if self.dives else 1.0, 1, shape)

        share = master.server_shares(usage)[rest]
        share[assignment.forbidden[rest]] = 0.0
        clear = np.flatnonzero(share.max(axis=1, initial=0.0) >= params.clear_share)
        if clear.size:
            return [(int(rest[k]), int(share[k].argmax())) for k in clear.tolist()]
        if share.size and share.max() >= params.least_share:
            k, server = divmod(int((share * drawn(share.shape)).argmax()), share.shape[1])
            return [(int(rest[k]), server)]
        task = int(rest[int(np.argmax(width[rest] * drawn(rest.shape)))])
        server, most = assignment.first_empty, master.box.high[-1]
        if server < most and not assignment.forbidden[task, server]:
            return [(task, server)]
        inside = master.column_server >= 0
        used = np.bincount(master.column_server[inside], usage[inside], minlength=master.servers)[
            :most
        ]
        room = master.server_gpus - used
        room[assignment.forbidden[task, : len(room)]] = -np.inf
        return [(task, int(room.argmax()))] if room.max() > -np.inf else []
