"""How fast are the placement policies?

Prints, for the Alibaba cluster under 130 % load: seconds of a full run with nothing compiled yet
and with everything compiled, peak memory, and how many times faster one decision is than in the
plain-Python transcription that the tests use (which keeps no scores between arrivals). Then time
per decision on a cluster 1, 4 and 16 times the size, and the wall time of a sweep.

    python benchmarks/placement_policies.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from optgap.heuristics.placement import POLICIES
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.presets import alibaba

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from transcriptions.pwr_fgd import SlowRun

NODES = 1213
LOAD = 1.3
RUNS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in POLICIES),
    ("pwr+fgd", {"alpha": 0.2}),
]
SLOW_ARRIVALS = 8
SEEDS = 10


def problem_of(seed: int, times: int = 1) -> PlacementProblem:
    """The Alibaba cluster, `times` as large, under `LOAD`."""
    return alibaba(seed=seed, size=times * NODES, load=LOAD, sampling="trace-first")


def seconds(problem: PlacementProblem, name: str, params: dict[str, Any]) -> float:
    """Wall time of one run."""
    function = POLICIES[name].load()
    started = time.perf_counter()
    function(problem, limits=Limits(), seed=0, **params)
    return time.perf_counter() - started


def child(name: str) -> None:
    """One policy in a process of its own: first run, best of three more, peak memory."""
    problem = problem_of(0)
    cold = seconds(problem, name, {})
    warm = min(seconds(problem, name, {}) for _ in range(3))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cold": cold, "warm": warm, "peak": peak, "arrivals": len(problem.tasks)}))


def fresh(name: str) -> dict[str, float]:
    """`child` with an empty cache of machine code."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--child", name],
            env={**os.environ, "NUMBA_CACHE_DIR": folder},
            capture_output=True,
            text=True,
            check=True,
        )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def plain(problem: PlacementProblem, name: str) -> float:
    """Seconds per decision of the plain-Python transcription, over the first arrivals."""
    run = SlowRun(problem, name)
    started = time.perf_counter()
    run.place_all(SLOW_ARRIVALS)
    return (time.perf_counter() - started) / SLOW_ARRIVALS


def policies_table() -> None:
    problem = problem_of(0)
    print(f"{problem.summary}")
    print("policy          cold s  warm s    MB  µs/decision  plain/ours")
    for name in POLICIES:
        found = fresh(name)
        each = found["warm"] / found["arrivals"]
        ratio = plain(problem, name) / each
        print(
            f"{name:14} {found['cold']:7.2f} {found['warm']:7.3f} {found['peak']:5.0f}"
            f" {1e6 * each:12.1f} {ratio:10.0f}x"
        )


def scaling_table() -> None:
    print("\nµs per decision by size of the cluster, and how it grows")
    for name in ("firstfit", "fgd", "pwr+fgd"):
        cells, first = [], 0.0
        for times in (1, 4, 16):
            problem = problem_of(0, times)
            if times == 1:
                seconds(problem, name, {})
            each = seconds(problem, name, {}) / len(problem.tasks)
            first = first or each
            cells.append(f"{times * NODES} nodes {1e6 * each:8.1f} ({each / first:5.1f}x)")
        print(f"{name:14} " + "   ".join(cells))


def all_policies(seed: int) -> int:
    """Every run of the sweep at one seed."""
    problem = problem_of(seed)
    for name, params in RUNS:
        seconds(problem, name, params)
    return len(problem.tasks)


def sweep() -> None:
    started = time.perf_counter()
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        arrivals = sum(pool.map(all_policies, range(SEEDS)))
    wall = time.perf_counter() - started
    print(f"\n{len(RUNS)} policies x {SEEDS} seeds, {len(RUNS) * arrivals} decisions,", end=" ")
    print(f"2 processes: {wall:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="leave the scaling table out")
    options = parser.parse_args()
    if options.child:
        child(options.child)
    else:
        policies_table()
        if not options.quick:
            scaling_table()
        sweep()
