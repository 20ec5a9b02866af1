"""Bound on the power that at most K migrations can reach, for every K at once.

Arrivals never lower a node's power, and a task of c whole GPUs needs c idle ones wherever it goes:
c w_k W at least, with w_k the least that a GPU costs more than an idle one where k may go. So node
by node m departures save at most s_n(m), GPUs and CPU packages added up as if either could choose
its m tasks alone. The concave majorants of the s_n, merged by slope, bound what K departures save
together.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from optgap.models.placement.arrays import FloatArray
from optgap.solvers.placement.migrations.state import State


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
        slopes += [max(0.0, (v1 - v0) / (m1 - m0))] * (m1 - m0)
    return slopes
