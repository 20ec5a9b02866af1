"""Textbook formulation with the current placement, from which at most K tasks may move.

moved_i ≥ 1 − y_inh  for every GPU h of node n that task i has now (1 − x_in without GPUs)
Σ_i moved_i ≤ K,  x_in = 0 where i may not go
"""

from __future__ import annotations

from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.migrations import MigrationProblem
from optgap.solvers.backends import solve
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.formulation import Formulation
from optgap.solvers.placement.formulation import Placing, program
from optgap.solvers.placement.milp import TOLERANCE

LARGE = 10**7
"""Least amount that exceeds the tolerances of the integer program."""


class MigrationModel:
    """Formulation that is written once and solved for any K.

    Raises
    ------
    Stopped: if a limit ends the work.
    """

    def __init__(self, migration: MigrationProblem, limits: Limits | None = None) -> None:
        made = program(migration.problem, limits)
        m, current = made.m, migration.current
        for (i, n), x in made.x.items():
            if not migration.may_go(i, n):
                m.fix(x, 0)
        moved = []
        for i in range(len(migration.problem.tasks)):
            here = int(current.node[i])
            stays = [made.y[i, here, h] for h in current.gpus(i)] or [made.x[i, here]]
            if not migration.movable[i]:
                for y in stays:
                    m.fix(y, 1)
                continue
            left = m.binary(f"moved_{i}")
            moved.append(left)
            for k, y in enumerate(stays):
                m.row(f"left_{i}_{k}", left + y >= 1)
        _further(made, migration)
        self.most = len(moved)
        if moved:
            m.row("migrations", m.sum(moved) <= self.most)
        self.written = Formulation(m, made.placement)

    def solve(
        self, most: int, limits: Limits, seed: int
    ) -> tuple[PlacementSolution | None, float | None]:
        """Return the best placement with at most `most` migrations, and a proven bound, W.

        The bound is on the power of the problem's devices. A missing result is None.
        """
        model = self.written.linear
        if self.most:
            limit = self.written.row_names.index("migrations")
            model.row_upper[limit] = float(min(most, self.most))
        solved = solve(model, backend="highs", limits=limits, seed=seed, tolerance=TOLERANCE)
        bound = solved.bound
        if bound is not None:
            bound = max(0.0, bound - solver_slack(model, TOLERANCE))
        solution = None
        if solved.values is not None:
            solution = self.written.solution(solved.values.tolist())
        return solution, bound


def _further(made: Placing, migration: MigrationProblem) -> None:
    """Add rows for further resources of nodes; only moves check amounts in bytes."""
    m, further = made.m, migration.further
    open_to = [n for n in range(len(migration.problem.cluster)) if not migration.closed[n]]
    for n in open_to:
        for r, name in enumerate(further.names):
            asks = {i: int(a) for i, a in enumerate(further.asks[:, r]) if a and (i, n) in made.x}
            if asks and max(asks.values()) < LARGE and sum(asks.values()) > further.capacity[r, n]:
                used = m.sum(a * made.x[i, n] for i, a in asks.items())
                m.row(f"further_{name}_{n}", used <= int(further.capacity[r, n]))
