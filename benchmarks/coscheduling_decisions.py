"""How long one decision takes: EcoSched as a knapsack, against trying every action.

    python benchmarks/coscheduling_decisions.py [--rounds 30]

The window is full and the node empty, which is when there is most to choose from. The rival is
the enumeration that the score's definition suggests; both must choose the same action. The
targets are 0.5 ms for 17 jobs on 4 GPUs, the paper's figure, and 20 ms for 64 on 8.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import optgap
from optgap.heuristics.coscheduling.ecosched import best_action, phase_one, regrets, weight_of

CASES = ((17, 4, 2), (64, 8, 2), (64, 8, 4))
MOST_ENUMERATED = 300_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    print(f"{platform.machine()}, Python {platform.python_version()}, best of {rounds}")
    print(
        f"{'jobs':>5} {'GPUs':>5} {'K':>2} {'τ':>6} {'ours (ms)':>10} {'all (ms)':>10} {'ratio':>8}"
    )
    for jobs, gpus, numa in CASES:
        problem = optgap.generate("coscheduling", seed=0, size=jobs, gpus=gpus, numa=numa)
        times = phase_one(problem, "perfect")
        for tau in (0.14, 100.0):
            kept = [
                regrets(app, tau, t) for app, t in zip(problem.applications, times, strict=True)
            ]
            offers = [(job, kept[a]) for job, a in enumerate(problem.jobs)]
            weight = weight_of(problem, None)
            arguments = (offers, gpus, numa, weight, gpus)
            ours = fastest(rounds, lambda a=arguments: best_action(*a))
            line = f"{jobs:>5} {gpus:>5} {numa:>2} {tau:>6g} {ours:>10.3f}"
            if len(offers) ** numa > MOST_ENUMERATED:
                print(f"{line} {'too many':>10}")
                continue
            every = fastest(1, lambda a=arguments: enumerate_all(*a))
            same = score(best_action(*arguments), *arguments)
            assert abs(same - score(enumerate_all(*arguments), *arguments)) < 1e-9
            print(f"{line} {every:>10.3f} {every / ours:>8.1f}")


def fastest(rounds: int, work: Callable[[], Any]) -> float:
    """The best time of some rounds, ms."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return 1000 * best


def score(action: Any, offers: Any, free: int, places: int, weight: float, gpus: int) -> float:
    """Eq. 1 of an action."""
    regret = {(job, g): r for job, modes in offers for g, r in modes}
    used = sum(g for _, g in action)
    return sum(regret[pair] for pair in action) / len(action) + weight * (free - used) / gpus


def enumerate_all(offers: Any, free: int, places: int, weight: float, gpus: int) -> Any:
    """The action of least score, of all there are."""
    best, chosen = float("inf"), None
    for size in range(1, places + 1):
        for picked in combinations(offers, size):
            for modes in product(*(modes for _, modes in picked)):
                used = sum(g for g, _ in modes)
                if used > free:
                    continue
                found = sum(r for _, r in modes) / size + weight * (free - used) / gpus
                if found < best:
                    best = found
                    chosen = [(job, g) for (job, _), (g, _) in zip(picked, modes, strict=True)]
    return chosen


if __name__ == "__main__":
    main()
