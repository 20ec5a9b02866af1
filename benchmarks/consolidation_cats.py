"""CATS online: 5,000 tasks on 2,000 GPUs, beside a plain-Python Algorithm 1 in the same run.

    python benchmarks/consolidation_cats.py [--tasks 5000] [--gpus 2000] [--compared 60]

All tasks are present; the transcription decides for the last `compared` tasks, in the state that
the fast one had, and has to agree.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from optgap.heuristics.consolidation.cats import Cats
from optgap.heuristics.consolidation.parameters import CatsParams
from optgap.heuristics.consolidation.state import ConsolidationState
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import mixed


def plain(problem: ConsolidationProblem, state: ConsolidationState, task: int) -> int | None:
    """Algorithms 1 and 2 for a task of one GPU, with lists."""
    own = problem.tasks[task].util_percent.tolist()
    best, chosen = float("inf"), None
    for g in range(len(problem.places)):
        if state.free_bytes[g] < problem.memory[task] or not state.count[g]:
            continue
        total = [0.0] * len(own)
        for resident in state.residents(g):
            for t, u in enumerate(problem.tasks[resident].util_percent.tolist()):
                total[t] += u
        a, b = sum(total) / len(total), sum(own) / len(own)
        ab = sum((x - a) * (y - b) for x, y in zip(total, own, strict=True))
        aa = sum((x - a) ** 2 for x in total)
        bb = sum((y - b) ** 2 for y in own)
        rho = ab / (aa * bb) ** 0.5 if aa > 1e-12 and bb > 1e-12 else 0.0
        score = 0.5 * rho - 0.5 * abs(a - b) / 100
        if rho <= 1e-9 and a + b <= 100 + 1e-7 and score < best - 1e-12:
            best, chosen = score, g
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=5000)
    parser.add_argument("--gpus", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=120)
    parser.add_argument("--compared", type=int, default=60)
    arguments = parser.parse_args()
    problem = mixed(
        seed=1,
        size=arguments.tasks,
        servers=arguments.gpus // 8,
        capacity="none",
        samples=arguments.samples,
    )
    policy, state = Cats(CatsParams()), ConsolidationState(problem)
    small = ConsolidationState(mixed(seed=0, size=3))
    small.put(0, policy.decide(small, 0) or ())
    policy.decide(small, 1)  # compile
    fast, slow, checked, agreed = [], [], 0, 0
    for task in range(len(problem)):
        started = time.perf_counter()
        gpus = policy.decide(state, task)
        fast.append(time.perf_counter() - started)
        late = task >= len(problem) // 2 and checked < arguments.compared
        if late and problem.tasks[task].gpus == 1 and task % 20 == 0:
            started = time.perf_counter()
            other = plain(problem, state, task)
            slow.append(time.perf_counter() - started)
            checked += 1
            awake = gpus is not None and state.count[gpus[0]] > 0
            agreed += (other == gpus[0]) if awake and gpus else other is None
        if gpus is not None:
            state.put(task, gpus)
    print(f"{len(problem)} tasks, {len(problem.places)} GPUs, {arguments.samples} samples")
    print(
        f"ours  {1e3 * float(np.mean(fast)):8.3f} ms per decision, worst {1e3 * max(fast):.2f} ms"
    )
    print(f"plain {1e3 * float(np.mean(slow)):8.3f} ms per decision; {agreed}/{checked} agree")
    print(f"ratio {float(np.mean(slow) / np.mean(fast)):8.1f} x")


if __name__ == "__main__":
    main()
