"""Makespan side by side with PyJobShop: the objective that both know.

    pip install pyjobshop
    python benchmarks/coscheduling_makespan.py [--sizes 17,25,60,200] [--limit 20] [--gpus 4]

Each job is a task with one mode per GPU count, and GPUs and NUMA domains are renewable resources.
Both get the same synthetic queue in ticks of 10 ms, the same time and eight workers. PyJobShop's
schedule is read back and checked by our referee. Ratios are PyJobShop's over ours.
"""

from __future__ import annotations

import argparse
import platform
import time
from typing import Any

import optgap
from optgap.models.coscheduling.gpus import placed

TICKS = 100
WORKERS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="17,25,60,200")
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--numa", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, {arguments.limit:g} s each")
    print(f"{'jobs':>5} {'':>10} {'makespan (s)':>13} {'bound (s)':>11} {'gap':>9} {'time (s)':>9}")
    for size in map(int, arguments.sizes.split(",")):
        problem = optgap.generate(
            "coscheduling",
            seed=arguments.seed,
            size=size,
            gpus=arguments.gpus,
            numa=arguments.numa,
            goal="makespan",
        )
        ours = optgap.solve(problem, "oracle", time_limit=arguments.limit, workers=WORKERS)
        mine = (ours.objective or 0.0, ours.bound or 0.0, ours.seconds)
        theirs = rival(problem, arguments.limit)
        for name, row in (("optgap", mine), ("PyJobShop", theirs)):
            objective, bound, seconds = row
            gap = 100 * (objective / bound - 1) if bound else float("inf")
            line = f"{size:>5} {name:>10} {objective:>13.2f} {bound:>11.2f} {gap:>8.4f}% "
            print(f"{line}{seconds:>9.2f}")
        ratio = f"{theirs[0] / mine[0]:>13.4f} {theirs[1] / mine[1]:>11.4f}"
        print(f"{size:>5} {'ratio':>10} {ratio} {'':>9} {theirs[2] / mine[2]:>9.2f}", flush=True)


def rival(problem: Any, limit: float) -> tuple[float, float, float]:
    """Makespan and bound in s by PyJobShop, and its time."""
    from pyjobshop import Model

    model = Model()
    gpus = model.add_renewable(capacity=problem.gpus)
    domains = model.add_renewable(capacity=problem.numa)
    counts = []
    for job in range(len(problem)):
        task = model.add_task(model.add_job())
        for mode in problem.application(job).modes:
            ticks = round(TICKS * mode.runtime_s)
            model.add_mode(task, [gpus, domains], ticks, [mode.gpu_count, 1])
            counts.append(mode.gpu_count)
    model.set_objective(weight_makespan=1)
    started = time.perf_counter()
    result = model.solve(time_limit=limit, display=False, num_workers=WORKERS)
    seconds = time.perf_counter() - started
    starts = [
        (job, counts[task.mode], task.start / TICKS) for job, task in enumerate(result.best.tasks)
    ]
    solution = placed(problem, starts)
    assert problem.check(solution) == []
    return problem.evaluate(solution).objective, result.lower_bound / TICKS, seconds


if __name__ == "__main__":
    main()
