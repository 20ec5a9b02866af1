"""Diving on servers: tasks of several GPUs are assigned by the linear program's solution.

Then columns are fixed, as in `diving`.
"""

from __future__ import annotations

from optgap.models.limits import Limits
from optgap.solvers.consolidation.branch_and_price.branching import Node, unassigned
from optgap.solvers.consolidation.branch_and_price.feasibility import pack_usage
from optgap.solvers.consolidation.branch_and_price.tree import Tree
from optgap.solvers.consolidation.numerics import SLACK_W, CountBox, Counts, FloatArray, IntArray
from optgap.solvers.consolidation.primal.diving import Diving, dive

CLEAR = 0.95
"""Share of a task in one server from which on it is assigned there without a draw."""
UNCLEAR = 0.05
"""Share below which no server is drawn; the widest task opens the next server instead."""


class ServerDiving(Diving):
    """Dives that start from the root and from the best node in turn."""

    def to_counts(self, tree: Tree, node: Node, counts: Counts, limits: Limits) -> None:
        """One dive on columns with these counts and the node's assignment."""
        box, most = CountBox.up_to(counts), tree.generation.master.watts(counts) + SLACK_W
        self._place(tree, box, node.assignment, most, limits)

    def improve(self, tree: Tree, limits: Limits) -> None:
        """Assign all tasks, then dive on columns."""
        best, root = tree.best, tree.root
        start = best if self.dives % 2 else root
        gpus, servers = best.box.low[0], best.box.low[-1]
        # every fourth dive takes as many GPUs as the best node's linear program has
        most = max(gpus, best.rounded[0]) if self.dives % 4 == 0 else root.box.high[0]
        box = CountBox((gpus, *root.box.low[1:-1], servers), (most, *root.box.high[1:-1], servers))
        assignment = self._assign(tree, box, start.assignment, limits)
        self.dives += 1
        if assignment is not None:
            self._place(tree, box, assignment, tree.incumbent.cutoff, limits)

    def _place(
        self, tree: Tree, box: CountBox, assignment: IntArray, most: float, limits: Limits
    ) -> None:
        """Dive on columns under an assignment, for a placement of at most `most` W."""
        rng = tree.rng if self.dives else None
        usage = dive(tree.generation, box, most, limits, rng, assignment)
        if usage is not None:
            tree.incumbent.offer(pack_usage(tree.generation.master, usage))

    def _assign(
        self, tree: Tree, box: CountBox, assignment: IntArray, limits: Limits
    ) -> IntArray | None:
        """All tasks of several GPUs assigned, a few after each linear program.

        None where its value exceeds the cutoff.
        """
        generation, master = tree.generation, tree.generation.master
        gap, cutoff = self.params.lp_gap, tree.incumbent.cutoff
        master.set_box(box)
        while limits.stop is None:
            master.set_servers(assignment)
            relaxed = generation.solve(limits, stop_bound=cutoff, gap=gap, quick=True)
            if relaxed.value > cutoff:
                return None
            rest = unassigned(generation.instance, assignment)
            if not rest.size:
                return assignment
            share = master.server_shares(relaxed.usage)
            choice = self._choice(tree, assignment, share, rest, box.high[-1])
            assignment = assignment.copy()
            for task, server in choice:
                assignment[task] = server
        return None

    def _choice(
        self, tree: Tree, assignment: IntArray, share: FloatArray, rest: IntArray, most: int
    ) -> list[tuple[int, int]]:
        """The (task, server) pairs to assign next: all clear ones, or else one that is drawn.

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
