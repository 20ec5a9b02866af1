"""Thousands of tasks: filling beside the annealing that smaller problems begin with, in one run.

    python benchmarks/consolidation_thousands.py [--size 5000] [--seeds 2] [--limit 30]

Synthetic tasks of mixed κ and GPU count, 150 W per server. Both are
measured against the same bound.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import optgap
from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30.0)
    arguments = parser.parse_args()
    optgap.solve(mixed(seed=99, size=50, capacity="mean"), "filling", time_limit=30)  # compile
    print(f"{'capacity':>8} {'seed':>4} {'filling':>9} {'gap':>8} {'annealing':>9} {'gap':>8}")
    for capacity in ("none", "mean"):
        for seed in range(arguments.seeds):
            problem = mixed(seed=seed, size=arguments.size, capacity=capacity)
            ours = optgap.solve(problem, "filling", time_limit=120)
            began = time.perf_counter()
            incumbent, rng = Incumbent(instance_of(problem)), np.random.default_rng(seed)
            construct(incumbent, Limits(arguments.limit), rng, 3)
            anneal(incumbent, Limits(arguments.limit), ours.bound or 0.0, rng)
            spent = time.perf_counter() - began
            least = ours.bound or 1.0
            gaps = [100 * (watts / least - 1) for watts in (ours.objective or 0.0, incumbent.watts)]
            print(
                f"{capacity:>8} {seed:>4} {ours.seconds:>7.2f} s {gaps[0]:>6.3f} % "
                f"{spent:>7.1f} s {gaps[1]:>6.3f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
