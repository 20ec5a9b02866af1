"""One decision, proven optimal: ours against the same knapsack as a MILP in HiGHS.

    python benchmarks/elastic_snapshot.py

Jobs × 8 GPU counts × 30 clocks (synthetic V100 pool); both stop at a relative gap of 1e-6.
"""

from __future__ import annotations

import time

import numpy as np

from optgap.models.elastic import presets
from optgap.models.elastic.snapshot import Choices, Snapshot, horizon
from optgap.models.limits import Limits
from optgap.solvers.elastic.snapshot import solve
from optgap.solvers.elastic.snapshot_milp import milp

GAP = 1e-6


def snapshot(jobs: int, gpus: int) -> Snapshot:
    """Jobs at random stages of their work."""
    problem = presets.day(seed=0, size=jobs, gpus=gpus, pool="v100")
    done = np.random.default_rng(0).uniform(0.05, 1, jobs)
    left, of_class = problem.jobs.iterations * done, problem.jobs.of_class
    wait = horizon(problem, of_class, left)
    return Snapshot(Choices.of(problem), of_class, left, gpus, problem.power_limit_w, wait)


def main() -> None:
    """Print both times and their ratio."""
    solve(snapshot(20, 32), GAP)
    print(f"{'jobs':>5} {'GPUs':>5} {'ours s':>8} {'HiGHS s':>8} {'ratio':>7} {'our gap':>9}")
    for jobs, gpus in ((30, 64), (100, 128), (300, 256), (1000, 1024)):
        item = snapshot(jobs, gpus)
        t = time.perf_counter()
        ours = solve(item, GAP)
        seconds = time.perf_counter() - t
        if jobs <= 300:
            t = time.perf_counter()
            other = milp(item, limits=Limits(60), gap=GAP)
            rival = time.perf_counter() - t
            same = abs(other.objective / ours.objective - 1) < 1e-5
            shown = f"{rival:8.2f} {rival / seconds:7.1f}" + ("" if same else " not equal")
        else:
            shown = f"{'-':>8} {'-':>7}"
        proven = f"{ours.gap:9.1e}" if ours.proven else "unproven"
        print(f"{jobs:5d} {gpus:5d} {seconds:8.3f} {shown} {proven}")


if __name__ == "__main__":
    main()
