"""Certified gaps on the Alibaba cluster: offline placement, policies and bounds by load.

    python benchmarks/placement_bounds.py [--goal power] [--loads 0.3,0.5,0.7,0.85] [--seed 0]

Per load: the bound of pooled nodes and the pattern bound with their seconds, the best offline
placement with its gap, and every named policy with its gap to the pattern bound.
"""

from __future__ import annotations

import argparse
import platform
import resource

import optgap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--goal", default="power")
    parser.add_argument("--loads", default="0.3,0.5,0.7,0.85")
    parser.add_argument("--policies", default="pwr,fgd,pwr+fgd,greedy-exact,bestfit")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    policies = arguments.policies.split(",")
    print(f"{platform.machine()}, Python {platform.python_version()}, goal {arguments.goal}")
    for load in map(float, arguments.loads.split(",")):
        problem = optgap.generate("placement", seed=arguments.seed, load=load, goal=arguments.goal)
        report(problem, load, policies, arguments.seed)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


def report(problem: object, load: float, policies: list[str], seed: int) -> None:
    """Print one load's block."""
    print(f"\nload {load:g}: {problem}")
    bounded = optgap.bound(problem, "bound-patterns", seed=seed)
    offline = optgap.solve(problem, "patterns", seed=seed)
    if bounded.bound is None or offline.bound is None:
        print(f"  no bound: {bounded.status} {bounded.message}")
        return
    print(f"  bound-patterns {bounded.bound:>14.1f} {bounded.seconds:7.1f} s")
    pooled = optgap.bound(problem, "bound-pooled", seed=seed)
    if pooled.bound is not None:
        print(f"  bound-pooled   {pooled.bound:>14.1f} {pooled.seconds:7.1f} s")
    rows = [("patterns (offline)", offline)]
    rows += [(name, optgap.run(problem, name, seed=seed)) for name in policies]
    for name, result in rows:
        failed = int(result.metrics.get("failed_tasks", 0))
        if result.objective is None:
            print(f"  {name:<20} {result.status}")
            continue
        gap = 100 * abs(result.objective - offline.bound) / abs(offline.bound)
        shown = f"{failed} tasks failed" if failed else f"gap {gap:6.3f} %"
        print(f"  {name:<20} {result.objective:>14.1f} {result.seconds:7.1f} s   {shown}")


if __name__ == "__main__":
    main()
