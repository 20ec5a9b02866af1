"""How far schedules over time are above their bound, where tasks may move and where none may.

    python benchmarks/consolidation_over_time.py [--size 40] [--limit 60]
        [--instances none:206,mean:206] [--staying]

Preset ``pai``; energy in MJ. Times are CPU time of the process; the limit is wall time.
"""

from __future__ import annotations

import argparse
import time

import optgap
from optgap.models.consolidation.presets import pai


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--instances", default="", help="capacity:seed, in commas")
    parser.add_argument("--staying", action="store_true", help="no task moves")
    given = parser.parse_args()
    default = "none:206,none:1,none:2,none:0,none:3,none:4,mean:206,mean:1,mean:2,mean:3,mean:4"
    named = given.instances or (default if given.size < 500 else "mean:0,none:0")
    moving = not given.staying
    optgap.solve(pai(seed=9, size=16, migration=moving), "hindsight", schedules=20)  # compile
    print(f"{'instance':>10} {'bound':>7} {'energy':>7} {'gap':>7} {'CPU':>7}")
    for instance in named.split(","):
        capacity, seed = instance.split(":")
        problem = pai(seed=int(seed), size=given.size, capacity=capacity, migration=moving)  # type: ignore[arg-type]
        began = time.process_time()
        found = optgap.solve(problem, "hindsight", time_limit=given.limit)
        spent = time.process_time() - began
        bound, energy = found.bound or 0.0, found.objective or float("inf")
        print(
            f"{instance:>10} {bound / 1e6:>7.2f} {energy / 1e6:>7.2f} "
            f"{100 * (energy / bound - 1):>5.1f} % {spent:>5.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
