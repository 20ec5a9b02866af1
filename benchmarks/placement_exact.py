"""Exact placement of small clusters, against the textbook MILP on HiGHS and CBC in the same run.

    python benchmarks/placement_exact.py [--sizes 3x12,8x40] [--goals power,fragmentation]
                                         [--seeds 2] [--limit 60]

Nodes are drawn from the Alibaba cluster by type, tasks from its Default workload until they ask
for 60 to 85 % of the GPUs. Per size, goal and method: seconds (mean over the seeds), how many
were proven optimal, the mean gap of objective to bound, and how many times longer than `exact`
it took; ">" where the time limit ended it, so that it would have taken longer still.
"""

from __future__ import annotations

import argparse
import os
import platform
from dataclasses import replace

import numpy as np

import optgap
from optgap.models.placement import PlacementObjective, PlacementProblem, TargetWorkload
from optgap.models.placement.alibaba import NODE_TYPES
from optgap.models.placement.making import cluster_of, trace_of_classes
from optgap.models.placement.objective import Goal
from optgap.models.result import Result, Status

METHODS: dict[str, tuple[str, dict[str, str]]] = {
    "exact": ("exact", {}),
    "milp (HiGHS)": ("milp", {"backend": "highs"}),
    "milp (CBC)": ("milp", {"backend": "cbc"}),
}
LOADS = (0.60, 0.85)


def draw(nodes: int, tasks: int, seed: int) -> PlacementProblem:
    """A cluster and tasks that ask for 60 to 85 % of its GPUs and at most 85 % of its CPUs."""
    rng = np.random.default_rng([nodes, tasks, seed])
    trace = trace_of_classes()
    share = np.array([row[4] for row in NODE_TYPES]) / sum(row[4] for row in NODE_TYPES)
    while True:
        counts = rng.multinomial(nodes, share)
        rows = [(*row[:4], int(n)) for row, n in zip(NODE_TYPES, counts, strict=True) if n]
        cluster = cluster_of(rows)
        chosen = trace.take(rng.integers(len(trace), size=tasks).tolist())
        load = chosen.demand_milli.sum() / cluster.gpu_capacity_milli
        cpu = chosen.cpu_milli.sum() / cluster.cpu_milli.sum()
        if not LOADS[0] <= load <= LOADS[1] or cpu > LOADS[1]:
            continue
        if (chosen.num_gpu > cluster.gpus.max()).any():
            continue
        problem = PlacementProblem.of(
            cluster,
            chosen,
            TargetWorkload.from_tasks(trace),
            name=f"{nodes} x {tasks}, seed {seed}",
            origin="Alibaba cluster-trace-gpu-v2023 (counts)",
        )
        if not problem.never_fits:
            return problem


def run(problem: PlacementProblem, method: str, limit: float) -> Result:
    name, params = METHODS[method]
    return optgap.solve(problem, name, time_limit=limit, **params)


def report(size: str, goal: Goal, results: dict[str, list[Result]]) -> None:
    """Print the rows of one size and goal."""
    base = sum(result.seconds for result in results["exact"])
    for method, found in results.items():
        seconds = sum(result.seconds for result in found)
        proven = sum(r.status in (Status.OPTIMAL, Status.INFEASIBLE) for r in found)
        gaps = [result.gap for result in found if result.gap is not None]
        gap = f"{100 * float(np.mean(gaps)):8.3f} %" if len(gaps) == len(found) else "    none  "
        sign = " " if proven == len(found) else ">"
        print(
            f"{size:>7} {goal:<14} {method:<13} {seconds / len(found):8.2f} s "
            f"{proven:>3}/{len(found)} {gap} {sign}{seconds / base:9.1f} x",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="3x12,5x24,8x40")
    parser.add_argument("--goals", default="power,fragmentation,weighted,accepted_gpu")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0)
    arguments = parser.parse_args()
    methods = ["exact", *(m for m in arguments.methods.split(",") if m != "exact")]
    versions = ", ".join(f"{k} {v}" for k, v in _versions().items())
    print(f"{platform.machine()}, {os.cpu_count()} cores, {versions}, limit {arguments.limit:g} s")
    print(
        f"{'size':>7} {'goal':<14} {'method':<13} {'time':>10} proven {'gap':>9} {'of exact':>11}"
    )
    for size in arguments.sizes.split(","):
        nodes, tasks = (int(part) for part in size.split("x"))
        problems = [draw(nodes, tasks, seed) for seed in range(arguments.seeds)]
        for goal in arguments.goals.split(","):
            asked = [replace(p, objective=PlacementObjective(goal)) for p in problems]
            results = {m: [run(p, m, arguments.limit) for p in asked] for m in methods}
            _agree(results)
            report(size, goal, results)


def _agree(results: dict[str, list[Result]]) -> None:
    """Proven optima of one problem are one number."""
    for same in zip(*results.values(), strict=True):
        proven = [r.objective for r in same if r.status is Status.OPTIMAL and r.objective]
        if proven and max(proven) - min(proven) > 2e-5 * max(proven):
            raise SystemExit(f"methods disagree: {[(r.method, r.objective) for r in same]}")


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("ortools", "highspy", "cbcbox", "pulp")}


if __name__ == "__main__":
    main()
