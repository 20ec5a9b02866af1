"""The textbook formulation with the current placement in it: at most K tasks may leave it.

moved_k ≥ 1 − y_kng  for every GPU g of node n that task k has now (1 − a_kn without GPUs)
Σ_k moved_k ≤ K,  Σ_k a_kn ≤ room of n,  a_kn = 0 where k may not go
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.migrations import MigrationProblem
from optgap.models.result import Termination
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearModel
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.placement.exact.milp import TOLERANCE, PlainModel


@dataclass(frozen=True, slots=True)
class Found:
    """What the integer program came to for one K.

    Parameters
    ----------
    solution: the best placement found, or None.
    bound: proven, W; None without.
    termination: why it stopped.
    """

    solution: PlacementSolution | None
    bound: float | None
    termination: Termination


class MigrationModel:
    """The formulation, built once and solved for any K."""

    def __init__(self, migration: MigrationProblem) -> None:
        self.migration = migration
        self.plain = PlainModel(migration.problem)
        builder, current = self.plain.builder, migration.current
        self.moved: list[int] = []
        by_task: dict[int, list[tuple[int, int]]] = defaultdict(list)
        by_node: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for (k, n), a in self.plain.on_node.items():
            by_task[k].append((n, a))
            by_node[n].append((a, 1.0))
        for k in range(len(migration.problem.tasks)):
            here = int(current.node[k])
            stays = [self.plain.on_gpu[k, here, g] for g in current.gpus(k)]
            stays = stays or [self.plain.on_node[k, here]]
            if not migration.movable[k]:
                for y in stays:
                    builder.row([(y, 1.0)], 1, 1)
                continue
            moved = builder.variable(upper=1, integer=True)
            self.moved.append(moved)
            for y in stays:
                builder.row([(moved, 1.0), (y, 1.0)], lower=1)
            barred = [(a, 1.0) for n, a in by_task[k] if not migration.may_go(k, n)]
            if barred:
                builder.row(barred, upper=0)
        for n, on in by_node.items():
            if len(on) > migration.room[n]:
                builder.row(on, upper=float(migration.room[n]))
        self.limit = builder.row([(m, 1.0) for m in self.moved], upper=float(len(self.moved)))
        self.model: LinearModel = builder.build()

    def solve(self, most: int, limits: Limits, seed: int) -> Found:
        """The least power with at most `most` migrations."""
        model = self.model
        model.row_upper[self.limit] = float(min(most, len(self.moved)))
        solved = solve(model, backend="highs", limits=limits, seed=seed, tolerance=TOLERANCE)
        bound = solved.bound
        if bound is not None:
            bound = max(0.0, bound - solver_slack(model, TOLERANCE))
        solution = None
        if solved.values is not None:
            solution = self.plain.decode(np.asarray(solved.values))
        return Found(solution, bound, solved.termination)
