"""The textbook formulation with the current placement in it: at most K tasks may leave it.

moved_i ≥ 1 − y_inh  for every GPU h of node n that task i has now (1 − x_in without GPUs)
Σ_i moved_i ≤ K,  Σ_i x_in ≤ room of n,  x_in = 0 where i may not go
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.migrations import MigrationProblem
from optgap.solvers.backends import solve
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.formulation import Formulation
from optgap.solvers.placement.formulation import program
from optgap.solvers.placement.milp import TOLERANCE


@dataclass(frozen=True, slots=True)
class Found:
    """What the integer program came to for one K.

    Parameters
    ----------
    solution: the best placement found, or None.
    bound: proven, W; None without.
    """

    solution: PlacementSolution | None
    bound: float | None


class MigrationModel:
    """The formulation, written once and solved for any K.

    Raises
    ------
    Stopped: at a limit.
    """

    def __init__(self, migration: MigrationProblem, limits: Limits | None = None) -> None:
        made = program(migration.problem, limits)
        m, current = made.m, migration.current
        on: dict[int, list[Any]] = defaultdict(list)
        for (i, n), x in made.x.items():
            on[n].append(x)
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
        for n, xs in on.items():
            if len(xs) > migration.room[n]:
                m.row(f"room_{n}", m.sum(xs) <= int(migration.room[n]))
        self.most = len(moved)
        if moved:
            m.row("migrations", m.sum(moved) <= self.most)
        self.written = Formulation(m, made.placement)

    def solve(self, most: int, limits: Limits, seed: int) -> Found:
        """The least power with at most `most` migrations."""
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
        return Found(solution, bound)
