"""Bounds on the power that at most K migrations can reach: by departures, and exact ones.

Arrivals never lower a node's power, and a task of c whole GPUs needs c idle ones wherever it goes:
c w_k W at least, with w_k the least that a GPU costs more than an idle one where k may go. So node
by node m departures save at most s_n(m), GPUs and CPU packages added up as if either could choose
its m tasks alone. The concave majorants of the s_n, merged by slope, bound what K departures save
together.

The exact ones are of the textbook formulation with the current placement:

moved_i ≥ 1 − y_inh  for every GPU h of node n that task i has now (1 − x_in without GPUs)
Σ_i moved_i ≤ K,  x_in = 0 where i may not go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement import PlacementSolution
from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.migrations import MigrationProblem
from optgap.solvers.backends import solve
from optgap.solvers.backends.safe import solver_slack
from optgap.solvers.formulation import Formulation, Stopped
from optgap.solvers.placement.formulation import Placing, program
from optgap.solvers.placement.migrations.state import State
from optgap.solvers.placement.milp import TOLERANCE

UNITS = 10.0
"""Work for each number of migrations."""
LARGE = 10**7
"""Least amount that exceeds the tolerances of the integer program."""


def saved_w(state: State) -> FloatArray:
    """Return the most that 0, 1, 2, … migrations can save, W, up to the number of tasks."""
    slopes = [slope for n in range(len(state.on)) for slope in _majorant(_savings(state, n))]
    saved = np.zeros(len(state.tasks) + 1)
    saved[1 : len(slopes) + 1] = sorted(slopes, reverse=True)
    return np.asarray(np.cumsum(saved))


def _savings(state: State, n: int) -> list[float]:
    """Return s_n(0), s_n(1), …, W."""
    node, tasks = state.nodes[n], state.tasks
    here = [k for k in sorted(state.on[n]) if state.migration.movable[k]]
    more = float(node["gpu_full_w"] - node["gpu_idle_w"])
    best = np.zeros(len(here) + 1)
    for on in state.groups(n):
        gain = more
        if tasks.gpu_milli[on[0]] == 1000:
            gain = int(tasks.num_gpu[on[0]]) * max(0.0, more - _least_more(state, on[0]))
        best[len(on) :] = np.maximum(best[len(on) :], best[: -len(on)] + gain)
    cpu = sorted((int(tasks.cpu_milli[k]) for k in here), reverse=True)
    free = accumulate(cpu, initial=int(state.free_cpu[n]))
    cpus = [state.cpu_power(n, milli) for milli in free]
    return [gpus + cpus[0] - now for gpus, now in zip(best.tolist(), cpus, strict=True)]


def _least_more(state: State, k: int) -> float:
    """Return w_k, W; task k may also take other GPUs of its own node."""
    where = state.migration.allowed[k] & (state.migration.problem.cluster.gpus > 0)
    where[state.node[k]] = True
    return float((state.nodes["gpu_full_w"] - state.nodes["gpu_idle_w"])[where].min())


def _majorant(savings: list[float]) -> list[float]:
    """Return the slopes of the least concave function above, in falling order."""
    slopes: list[float] = []
    while len(slopes) + 1 < len(savings):
        here, value = len(slopes), savings[len(slopes)]
        rates = [(v - value) / m for m, v in enumerate(savings[here + 1 :], 1)]
        slope = max(0.0, *rates)
        farthest = max(m for m, rate in enumerate(rates, 1) if rate == max(rates))
        slopes += [slope] * farthest
    return slopes


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
