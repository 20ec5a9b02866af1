"""What `exact` proves within a budget of work: sizes, capacity rules, gangs, seeds.

    python benchmarks/consolidation_proofs.py [--sizes 32,64] [--capacities none,mean,slot]
                                              [--gangs server,free] [--seeds 5] [--units 10]
                                              [--kappas 4] [--gpus-per-server 8]

Synthetic tasks of mixed κ and GPU count (preset `mixed`), 150 W per server; with `--kappas 0` each
task has a κ of its own. A line per set of instances: how many were proven, and the work in units
and the gap of the median and of the worst. No figure depends on the machine.
"""

from __future__ import annotations

import argparse
import itertools
import statistics

import optgap
from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.models.result import Status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="32,64")
    parser.add_argument("--capacities", default="none,mean,slot")
    parser.add_argument("--gangs", default="server,free")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--units", type=float, default=10.0)
    parser.add_argument("--kappas", type=int, default=4)
    parser.add_argument("--gpus-per-server", type=int, default=8)
    arguments = parser.parse_args()
    columns = ("tasks", "capacity", "gang", "proven", "median", "worst", "median gap", "worst")
    print("  ".join(f"{name:>10}" for name in columns))
    given = {"kappas": arguments.kappas, "gpus_per_server": arguments.gpus_per_server}
    sizes = [int(part) for part in arguments.sizes.split(",")]
    rules = arguments.capacities.split(","), arguments.gangs.split(",")
    for size, capacity, gang in itertools.product(sizes, *rules):
        units, gaps, proven = [], [], 0
        for seed in range(arguments.seeds):
            problem = mixed(seed=seed, size=size, capacity=capacity, gang=gang, **given)
            limits = Limits(work=arguments.units)
            result = optgap.solve(problem, "exact", limits=limits)
            units.append(limits.spent)
            gaps.append(100 * (result.gap or 0.0))
            proven += result.status is Status.OPTIMAL
        cells = (
            size, capacity, gang, f"{proven}/{arguments.seeds}",
            f"{statistics.median(units):.2f}", f"{max(units):.2f}",
            f"{statistics.median(gaps):.3f} %", f"{max(gaps):.3f} %",
        )  # fmt: skip
        print("  ".join(f"{cell:>10}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
