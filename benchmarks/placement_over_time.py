"""Do the placement policies still save energy when tasks leave? And how fast are they then?

Prints, for the preset alibaba-time, over ten seeds and three loads: what each policy needs less
than FGD, in all and beyond the empty cluster (mean, least and most), and the share of the demand
over time that it turns away. Then seconds of CPU time of one run on 8,152 tasks, and on 200,000
tasks and 1,213 nodes, with everything compiled, and the largest memory.

    python benchmarks/placement_over_time.py [--seeds 10] [--quick]
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

import optgap
from optgap.heuristics.placement import POLICIES
from optgap.models.placement import PlacementProblem
from optgap.models.placement.presets_over_time import alibaba_time
from optgap.models.placement.timeline import rest_values

LOADS = (0.3, 0.6, 0.9)
SIZE = 20_000


def idle_j(problem: PlacementProblem) -> float:
    """What the cluster draws over the horizon where nothing runs."""
    assert problem.over_time is not None
    rest = rest_values(problem)
    return float((rest.cpu_w + rest.gpu_w).sum()) * problem.over_time.horizon_s


def energies(load: float, seed: int) -> dict[str, tuple[float, float, float]]:
    """Energy, the part beyond the empty cluster, J, and the share turned away, by policy."""
    problem = alibaba_time(seed=seed, size=SIZE, load=load)
    empty, found = idle_j(problem), {}
    for name in POLICIES:
        result = optgap.run(problem, name, seed=seed)
        assert result.objective is not None
        lost = 1 - float(result.metrics["grar_time"])
        found[name] = result.objective, result.objective - empty, lost
    return found


def savings(seeds: int) -> None:
    print(f"{SIZE:,} tasks in 14 days, seeds 0 to {seeds - 1}; less than fgd")
    print(f"{'load':>5} {'policy':14} {'in all':>22} {'beyond the empty cluster':>26} {'lost':>8}")
    for load in LOADS:
        runs = [energies(load, seed) for seed in range(seeds)]
        for name in POLICIES:
            cells = []
            for part in (0, 1):
                less = [100 * (1 - run[name][part] / run["fgd"][part]) for run in runs]
                cells.append(f"{np.mean(less):6.2f} % ({min(less):.1f} to {max(less):.1f})")
            lost = 100 * np.mean([run[name][2] for run in runs])
            print(f"{load:5g} {name:14} {cells[0]:>22} {cells[1]:>26} {lost:6.2f} %")


def speed(**settings: Any) -> None:
    problem = alibaba_time(seed=0, **settings)
    print(f"\n{problem.name}\npolicy          CPU s")
    for name in POLICIES:
        optgap.run(alibaba_time(seed=0, size=2000), name)
        started = time.process_time()
        POLICIES[name].load()(problem, limits=optgap.Limits(), seed=0)
        print(f"{name:14} {time.process_time() - started:6.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="8,152 tasks only")
    options = parser.parse_args()
    savings(options.seeds)
    speed()
    if not options.quick:
        speed(size=200_000, nodes=1213, days=3.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nlargest memory {peak:.0f} MB")
