"""FGD (Weng et al., USENIX ATC 2023): least growth of the cluster's fragmentation.

A task asks for the share ū/100 of each of its GPUs. F_n(M), milli-GPU, is the free capacity of
server n that tasks drawn from the typical classes M cannot use. It is all free capacity if too few
GPUs have a class's share, else the capacity left on the GPUs below that share. The score of a
place is trunc(100·sigmoid(−ΔF_n)), ΔF_n in GPUs; ties go to the lowest index.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from optgap.heuristics.consolidation.engine import simulate
from optgap.heuristics.consolidation.packing import admitted
from optgap.heuristics.consolidation.parameters import PackingParams
from optgap.heuristics.consolidation.state import Choice, ConsolidationState
from optgap.models.compiled import compiled
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.models.limits import Limits
from optgap.models.result import Outcome

COVERED = 0.95
"""Share of the tasks that the typical classes cover, most frequent first."""


def typical(problem: ConsolidationProblem) -> tuple[IntArray, FloatArray]:
    """Return (M, 2) classes of whole-percent shares (milli-GPU) and GPU counts, and popularity."""
    counts = Counter(
        (max(10, round(int(mean) / 1e6) * 10), t.gpus)
        for mean, t in zip(problem.mean_micro, problem.tasks, strict=True)
    )
    ranked = sorted(counts.items(), key=lambda item: (-item[1], -item[0][0], -item[0][1]))
    kept, covered = [], 0
    for item in ranked:
        kept.append(item)
        covered += item[1]
        if covered >= COVERED * len(problem):
            break
    classes = np.array([key for key, _ in kept], dtype=np.int64)
    return classes, np.array([count for _, count in kept]) / covered


@compiled
def fragmentation(free: IntArray, classes: IntArray, popularity: FloatArray) -> float:
    """Return F_n(M), the free milli-GPU that tasks of the typical classes cannot use."""
    total = 0.0
    for m in range(len(classes)):
        share, need = classes[m, 0], classes[m, 1]
        enough = lost = whole = 0
        for value in free:
            whole += value
            if value >= share:
                enough += 1
            else:
                lost += value
        total += popularity[m] * (lost if enough >= need else whole)
    return total


@compiled
def scored(
    free: IntArray,
    room: IntArray,
    first: IntArray,
    share: int,
    need: int,
    classes: IntArray,
    popularity: FloatArray,
) -> tuple[FloatArray, IntArray]:
    """Return the score of each server and its best GPU; −1 if the task does not fit.

    A task of several GPUs gets the first GPUs that have room.
    """
    servers = len(first) - 1
    scores = np.full(servers, -1.0)
    gpus = np.full(servers, -1, dtype=np.int64)
    for i in range(servers):
        lo, hi = first[i], first[i + 1]
        count = 0
        for g in range(lo, hi):
            count += room[g]
        if count < need:
            continue
        own = free[lo:hi].copy()
        before = fragmentation(own, classes, popularity)
        if need > 1:
            left = need
            for g in range(lo, hi):
                if room[g] and left > 0:
                    own[g - lo] -= share
                    left -= 1
            change = (before - fragmentation(own, classes, popularity)) / 1000.0
            scores[i] = np.trunc(100.0 / (1.0 + np.exp(-change)))
            continue
        for g in range(lo, hi):
            if not room[g]:
                continue
            own[g - lo] -= share
            change = (before - fragmentation(own, classes, popularity)) / 1000.0
            own[g - lo] += share
            score = np.trunc(100.0 / (1.0 + np.exp(-change)))
            if score > scores[i]:
                scores[i], gpus[i] = score, g
    return scores, gpus


def fgd(problem: ConsolidationProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run FGD; `given` is as in `PackingParams`.

    The rule looks at servers one by one, even if a task's GPUs may be on several servers.
    """
    options = PackingParams(**given)
    u_max = options.u_max
    classes, popularity = typical(problem)

    def decide(state: ConsolidationState, task: int) -> Choice:
        room = admitted(state, task, u_max)
        free = np.maximum(0, np.rint((u_max * 1e6 - state.mean_micro) / 1e5)).astype(np.int64)
        share = round(int(problem.mean_micro[task]) / 1e5)
        need = problem.tasks[task].gpus
        scores, gpus = scored(
            free, room.astype(np.int64), state.first_gpu, share, need, classes, popularity
        )
        best = int(np.argmax(scores))
        if scores[best] < 0:
            if problem.rules.gang == "free" and int(room.sum()) >= need:
                return tuple(np.flatnonzero(room)[:need].tolist())
            return None
        if need == 1:
            return (int(gpus[best]),)
        own = np.arange(state.first_gpu[best], state.first_gpu[best + 1])
        return tuple(own[room[own]][:need].tolist())

    return simulate(problem, decide, limits)
