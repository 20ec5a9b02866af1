"""Exact consolidation beside the printed formulation on CBC, in the same run.

    python benchmarks/consolidation_exact.py [--sizes 16,32] [--seeds 3] [--limit 20]
                                             [--capacity none]

Synthetic tasks of mixed κ and GPU count, 150 W per server. Where the limit ended CBC its time
counts as a lower bound of the ratio (">"), and its placement as nothing but feasible.
"""

from __future__ import annotations

import argparse
import statistics

import optgap
from optgap.models.consolidation.presets import mixed
from optgap.models.result import Status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="16,32")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--capacity", choices=("none", "mean", "slot", "peak"), default="none")
    arguments = parser.parse_args()
    optgap.solve(mixed(seed=99, size=8), "exact", time_limit=20)  # compile
    print(f"{'tasks':>5} {'seed':>4} {'exact':>9} {'gap':>8} {'CBC':>9} {'gap':>8} {'ratio':>9}")
    for size in (int(part) for part in arguments.sizes.split(",")):
        ratios = []
        for seed in range(arguments.seeds):
            problem = mixed(seed=seed, size=size, capacity=arguments.capacity)
            ours = optgap.solve(problem, "exact", time_limit=arguments.limit)
            theirs = optgap.solve(problem, "printed", backend="cbc", time_limit=arguments.limit)
            both = (ours, theirs)
            if all(r.status is Status.OPTIMAL for r in both):
                values = [r.objective for r in both if r.objective is not None]
                if max(values) - min(values) > 2e-6 * max(values):
                    raise SystemExit(f"optima differ: {values}")
            ratios.append(theirs.seconds / ours.seconds)
            sign = " " if theirs.status is Status.OPTIMAL else ">"
            gaps = [" none" if r.gap is None else f"{100 * r.gap:.2f} %" for r in both]
            print(
                f"{size:>5} {seed:>4} {ours.seconds:>7.2f} s {gaps[0]:>8} {theirs.seconds:>7.2f} s "
                f"{gaps[1]:>8} {sign}{ratios[-1]:>6.1f} x",
                flush=True,
            )
        print(f"{size:>5} median ratio {statistics.median(ratios):.1f} x")


if __name__ == "__main__":
    main()
