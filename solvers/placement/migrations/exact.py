"""Textbook formulation with the current placement, from which at most K tasks may move.

moved_i ≥ 1 − y_inh  for every GPU h of node n that task i has now (1 − x_in without GPUs)
Σ_i moved_i ≤ K,  x_in = 0 where i may not go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.migrations import MigrationProblem
from optgap.solvers.backends import solve
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.formulation import Formulation, Stopped
from optgap.solvers.placement.formulation import Placing, program
from optgap.solvers.placement.milp import TOLERANCE

UNITS = 10.0
"""Work for each number of migrations."""
LARGE = 10**7
"""Least amount that exceeds the tolerances of the integer program."""


def exact(
    migration: MigrationProblem, grid: Iterable[int], limits: Limits, seed: int
) -> Iterator[tuple[int, PlacementSolution | None, float | None]]:
    """Yield each number of migrations, the best placement that it reaches, and a bound, W.

    The bound is on the power of the problem's devices. A missing result is None.
    """
    try:
        made = program(migration.problem, limits)
    except Stopped:
        return
    m, current, moved = made.m, migration.current, []
    for (i, n), x in made.x.items():
        if not migration.may_go(i, n):
            m.fix(x, 0)
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
    if moved:
        m.row("migrations", m.sum(moved) <= len(moved))
    written = Formulation(m, made.placement)
    model = written.linear
    for most in grid:
        if limits.stop:
            return
        if moved:
            limit = written.row_names.index("migrations")
            model.row_upper[limit] = float(min(most, len(moved)))
        share = limits.within(UNITS * limits.effort)
        solved = solve(model, backend="highs", limits=share, seed=seed, tolerance=TOLERANCE)
        values, bound = solved.values, solved.bound
        yield (
            most,
            None if values is None else written.solution(values.tolist()),
            None if bound is None else max(0.0, bound - solver_slack(model, TOLERANCE)),
        )


def _further(made: Placing, migration: MigrationProblem) -> None:
    """Add rows for further resources of nodes; only moves check amounts in bytes."""
    m, further = made.m, migration.further
    movable = np.flatnonzero(migration.movable).tolist()
    open_to = [migration.allowed[k] for k in movable]
    for n in np.flatnonzero(np.any(open_to, axis=0)).tolist() if open_to else ():
        for r, name in enumerate(further.names):
            asks = {i: int(a) for i, a in enumerate(further.asks[:, r]) if a and (i, n) in made.x}
            if asks and max(asks.values()) < LARGE and sum(asks.values()) > further.capacity[r, n]:
                used = m.sum(a * made.x[i, n] for i, a in asks.items())
                m.row(f"further_{name}_{n}", used <= int(further.capacity[r, n]))
