"""A bound on the power that at most K migrations can reach, for every K at once.

Let S_n be the tasks of node n that stay. Arrivals never lower a node's power, and a task of whole
GPUs needs idle ones wherever it goes, so that with λ_k the least that these cost

    P ≥ Σ_n P_n(S_n) + Σ_{k moved} λ_k.

Each node's saving by m departures is at most s_n(m), GPUs and CPU packages added up as if either
could choose its m tasks alone; the concave majorants of the s_n, merged by slope, bound what K
departures save together. It is tight for small K, where room for arrivals is plenty.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.migrations import MigrationProblem
from optgap.solvers.placement.migrations.state import NOTHING, State

ROUNDING = 1e-9
"""Relative: what floating-point sums may have added to a bound, taken off again."""


class DepartureBound:
    """`at(K)` bounds the power after at most K migrations.

    Parameters
    ----------
    migration: the problem.
    """

    def __init__(self, migration: MigrationProblem) -> None:
        state = State(migration)
        self.now_w = migration.problem.evaluate(migration.current).metrics["power_w"]
        landing = _least_landing(state)
        slopes: list[float] = []
        for n in range(len(migration.problem.cluster)):
            slopes += _majorant(_savings(state, n, landing))
        self.saved_w: FloatArray = np.concatenate([[0.0], np.cumsum(sorted(slopes, reverse=True))])

    def at(self, most: int) -> float:
        """A lower bound in W for at most so many migrations."""
        saved = float(self.saved_w[min(most, len(self.saved_w) - 1)])
        return self.now_w - saved - (ROUNDING * abs(self.now_w) if saved else 0.0)


def _least_landing(state: State) -> FloatArray:
    """(T,) λ_k in W: what the GPUs of a task of whole GPUs cost more than idle ones at least."""
    tasks, problem = state.tasks, state.migration.problem
    full, idle = state.nodes["gpu_full_w"], state.nodes["gpu_idle_w"]
    more = np.asarray(full - idle)
    least = np.zeros(len(tasks))
    known: dict[int, float] = {}
    for k in np.flatnonzero(tasks.gpu_milli == 1000).tolist():
        allowed = state.allowed(k)
        if id(allowed) not in known:
            some = allowed & (problem.cluster.gpus > 0)
            known[id(allowed)] = float(more[some].min()) if some.any() else 0.0
        here = int(state.node[k])  # it may also take other GPUs of its own node
        least[k] = tasks.num_gpu[k] * min(known[id(allowed)], float(more[here]))
    return least


def _savings(state: State, n: int, landing: FloatArray) -> list[float]:
    """s_n(0), s_n(1), …: W saved by the departure of so many tasks of node `n`, at most."""
    movable = state.migration.movable
    here = [k for k in sorted(state.on[n]) if movable[k]]
    node = state.nodes[n]
    more = float(node["gpu_full_w"] - node["gpu_idle_w"])
    gpus = [0.0] + [-np.inf] * len(here)
    done: set[int] = set()
    for g in range(int(node["gpus"])):
        on = [k for k in sorted(state.on[n]) if state.mask[k] >> g & 1]
        if not on or on[0] in done or not all(movable[k] for k in on):
            continue
        done.update(on)
        freed = 1 if len(on) > 1 else int(state.tasks.num_gpu[on[0]])
        gain = freed * more - sum(float(landing[k]) for k in on)
        if gain > NOTHING:
            for m in range(len(here), len(on) - 1, -1):
                gpus[m] = max(gpus[m], gpus[m - len(on)] + gain)
    now = state.cpu_power(n, int(state.free_cpu[n]))
    cpu = sorted((int(state.tasks.cpu_milli[k]) for k in here), reverse=True)
    free = accumulate(cpu, initial=int(state.free_cpu[n]))
    best = list(accumulate(gpus, max))
    return [b + now - state.cpu_power(n, f) for b, f in zip(best, free, strict=True)]


def _majorant(savings: list[float]) -> list[float]:
    """The slopes of the least concave function above, in falling order."""
    hull: list[tuple[int, float]] = []
    for m, value in enumerate(savings):
        while len(hull) > 1:
            (m0, v0), (m1, v1) = hull[-2:]
            if (v1 - v0) * (m - m1) > (value - v1) * (m1 - m0):
                break
            hull.pop()
        hull.append((m, value))
    slopes: list[float] = []
    for (m0, v0), (m1, v1) in pairwise(hull):
        slope = (v1 - v0) / (m1 - m0)
        if slope > NOTHING:
            slopes += [slope] * (m1 - m0)
    return slopes
