"""Seconds per elastic policy on the 1,901-job day, and PowerFlow's time per event by size.

    python benchmarks/elastic_policies.py [--large]

CPU seconds of one core, compiled beforehand. ``--large`` adds 20,000 jobs on 4,096 GPUs.
"""

from __future__ import annotations

import sys
import time

from optgap.heuristics.elastic import POLICIES
from optgap.models.elastic import ElasticProblem, presets
from optgap.models.limits import Limits

TARGET_S = {"powerflow": 10.0, "afs": 5.0, "tiresias": 5.0, "gandiva": 5.0, "fifo": 5.0}
SIZES = ((200, 32), (400, 64), (800, 128), (1901, 256), (4000, 512))


def timed(problem: ElasticProblem, policy: str) -> tuple[float, float, int]:
    """(CPU seconds, wall seconds, events)."""
    run = POLICIES[policy].load()
    cpu, wall = time.process_time(), time.perf_counter()
    outcome = run(problem, limits=Limits(), seed=0)
    spent = time.process_time() - cpu, time.perf_counter() - wall
    return *spent, int(outcome.info["events"])


def main() -> None:
    """Print both tables."""
    warm = presets.small(seed=0)
    problem = presets.day(seed=0)
    print(f"{'policy':14} {'cpu s':>7} {'wall s':>7} {'events':>7} {'target s':>8}")
    for name, target in TARGET_S.items():
        timed(warm, name)
        cpu, wall, events = timed(problem, name)
        print(f"{name:14} {cpu:7.2f} {wall:7.2f} {events:7d} {target:8.0f}")
    print(f"\n{'jobs':>6} {'GPUs':>6} {'events':>7} {'ms per event':>12}")
    large = ((20_000, 4096),) if "--large" in sys.argv else ()
    for jobs, gpus in (*SIZES, *large):
        hours = 18.0 if jobs == 20_000 else 24.0
        cpu, _, events = timed(presets.day(seed=0, size=jobs, gpus=gpus, hours=hours), "powerflow")
        print(f"{jobs:6d} {gpus:6d} {events:7d} {1000 * cpu / events:12.3f}")


if __name__ == "__main__":
    main()
