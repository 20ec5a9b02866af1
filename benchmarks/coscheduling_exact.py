"""Proven optima: the model without a clock against CP-SAT's intervals.

    python benchmarks/coscheduling_exact.py [--limit 10] [--data DIR]

Random queues on 4 and 8 GPUs with K = 2 and 4, and the authors' two main queues where DIR (or
$OPTGAP_DATA) has profiles/ecosched. The rival, in the same run and with the same time, is the
textbook model: optional intervals under two cumulatives with area cuts, without patterns and
lanes. With K = 4 there are no lanes: the first column is patterns, lists and intervals.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import numpy as np

import optgap
from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.limits import Limits
from optgap.solvers.coscheduling.intervals import Intervals
from optgap.solvers.coscheduling.lists import listed
from optgap.solvers.coscheduling.oracle import Bounded, _searched

sys.path.insert(0, str(Path(__file__).parent.parent))  # reproduction/ is no part of the package
from reproduction.ecosched import PLATFORMS, profiles, queue

CASES = (
    (17, 4, 2),
    (25, 4, 2),
    (60, 4, 2),
    (200, 4, 2),
    (60, 8, 2),
    (200, 8, 2),
    (60, 8, 4),
    (200, 8, 4),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", default=os.environ.get("OPTGAP_DATA", ""))
    arguments = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, {arguments.limit:g} s each")
    columns = f"{'energy (J)':>13} {'gap':>10} {'s':>6}"
    print(f"{'queue':>22} {columns} {columns.replace('energy (J)', ' intervals')}")
    data = Path(arguments.data) if arguments.data else None
    if data is not None and (data / profiles("H100")).is_file():
        for node in PLATFORMS:
            report(node.name, queue(node, data), arguments.limit)
    for jobs, gpus, numa in CASES:
        rng = np.random.default_rng(arguments.seed)
        report(f"{jobs} jobs, M={gpus}, K={numa}", random(jobs, gpus, numa, rng), arguments.limit)


def report(name: str, problem: CoschedulingProblem, limit: float) -> None:
    """Both on one problem."""
    ours = optgap.solve(problem, "oracle", time_limit=limit)
    limits = Limits(limit)
    fastest = [problem.application(job).fastest.gpu_count for job in range(len(problem))]
    start = listed(problem, fastest)
    rival = _searched(Intervals(problem, 0.0), start, Bounded(0.0, ""), limits, workers=0)
    gap = 100 * (rival.value / rival.led.bound - 1) if rival.led.bound else float("inf")
    print(
        f"{name:>22} {ours.objective or 0:>13.1f} {100 * (ours.gap or 0):>9.5f}% "
        f"{ours.seconds:>6.2f} {rival.value:>13.1f} {gap:>9.5f}% {limits.elapsed:>6.2f}",
        flush=True,
    )


def random(jobs: int, gpus: int, numa: int, rng: np.random.Generator) -> CoschedulingProblem:
    """Every job an application of its own, a tenth of the GPU counts missing."""
    pool = []
    for k in range(jobs):
        single, parallel = float(rng.uniform(20, 240)), float(rng.uniform(0, 1))
        loss, watts, fall = rng.uniform(0, 0.08), rng.uniform(100, 500), rng.uniform(0, 0.1)
        counts = [g for g in range(1, gpus + 1) if rng.random() < 0.9] or [1]
        modes = tuple(
            Mode(
                g,
                round(single * (1 - parallel + parallel / g + float(loss) * (g - 1)), 2),
                round(float(watts) * max(0.3, 1 - float(fall) * (g - 1)), 2),
            )
            for g in counts
        )
        pool.append(Application(f"a{k}", modes))
    idle_w = float(rng.choice([20, 43, 70]))
    return CoschedulingProblem.of(pool, gpus=gpus, numa=numa, idle_w=idle_w, name="random")


if __name__ == "__main__":
    main()
