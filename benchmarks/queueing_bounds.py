"""How good are the queueing bounds, and how long does a proof take?

Prints for a dozen jobs on 2 x 8 GPUs, over seeds and per objective, seconds until CP-SAT has proven
the optimum, and what share of it each bound reaches; then, as the stream grows, the mean wait that
the time-indexed program proves beside prices, and that of the best schedule it met; then bounds,
their time and the gap of every policy at 1,000 jobs, and the bound at 100,000.

    python benchmarks/queueing_bounds.py [--quick | --growth]
    python benchmarks/queueing_bounds.py --certified count --seeds 0-9

The second prints how far above its own bound the best schedule of `time-indexed` is, stream by
stream, on the mean wait and on the mean JCT.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from optgap.heuristics.queueing import POLICIES
from optgap.models.limits import Limits
from optgap.models.queueing.presets import mixed, small
from optgap.models.queueing.problem import Goal, Placement
from optgap.models.result import Outcome
from optgap.solvers.queueing import METHODS

GOALS: tuple[Goal, ...] = ("mean_wait", "mean_jct", "makespan")
BOUNDS = ("time-indexed", "bound-prices", "bound-area")
SEEDS = 20


def timed(method: str, problem: object, **params: float) -> tuple[float, Outcome]:
    """Seconds of one method, and what it gave."""
    started, limits = time.perf_counter(), Limits(effort=params.pop("effort", 1.0))
    outcome = METHODS[method].load()(problem, limits=limits, seed=0, **params)
    return time.perf_counter() - started, outcome


def dozen(seeds: int) -> None:
    print(f"12 jobs on 2 x 8 GPUs, {seeds} seeds; median (least) share of the optimum")
    print("objective   proven  median s   most s   " + "".join(f"{name:>18}" for name in BOUNDS))
    for goal in GOALS:
        seconds, proven = [], 0
        shares: dict[str, list[float]] = {name: [] for name in BOUNDS}
        for seed in range(seeds):
            problem = small(seed=seed, goal=goal)
            spent, outcome = timed("exact", problem)
            seconds.append(spent)
            proven += outcome.status == "optimal"
            best = outcome.claimed or 0.0
            for name in BOUNDS:
                bound = timed(name, problem)[1].bound or 0.0
                shares[name].append(bound / best if best else 1.0)
        cells = [f"{np.median(s):.3f} ({min(s):.3f})" for s in shares.values()]
        print(
            f"{goal:10} {proven:4}/{seeds} {np.median(seconds):9.2f} {max(seconds):8.2f}   "
            + "".join(f"{cell:>18}" for cell in cells)
        )


def growth() -> None:
    print("\nmean wait, s        prices  time-indexed  schedule  above  periods")
    for placement in ("count", "node"):
        for size in (50, 200, 1000, 20_000):
            problem = mixed(seed=0, size=size, placement=placement)
            prices = timed("bound-prices", problem)[1].bound or 0.0
            _, found = timed("time-indexed", problem)
            bound, value = found.bound or 0.0, found.claimed or 0.0
            print(
                f"{placement:6} {size:6} jobs {prices:8,.0f} {bound:13,.1f} {value:9,.1f} "
                f"{value / bound - 1 if bound else 0.0:6.1%} {found.info['periods']:8}",
                flush=True,
            )


def certified(placement: Placement, seeds: list[int], effort: float, jobs: int) -> None:
    timed("time-indexed", mixed(seed=99, placement=placement, size=70))  # compiled
    print(f"{jobs} jobs, placement {placement}; seconds  bound  schedule   wait    JCT  cells")
    gaps = []
    for seed in seeds:
        problem = mixed(seed=seed, placement=placement, size=jobs)
        spent, found = timed("time-indexed", problem, effort=effort)
        bound, value = found.bound or 0.0, found.claimed or 0.0
        run = float(problem.jobs.duration_s.mean())
        gaps.append((value / bound - 1 if bound else 0.0, (value - bound) / (bound + run)))
        print(
            f"seed {seed:4} {spent:8.1f} {bound:9.1f} {value:9.1f} "
            f"{gaps[-1][0]:7.1%} {gaps[-1][1]:6.2%} {found.info['cells']:6}",
            flush=True,
        )
    wait, jct = np.median(np.array(gaps), axis=0)
    print(f"median {wait:.1%} on the mean wait, {jct:.2%} on the mean JCT")


def thousand() -> None:
    for goal in GOALS:
        problem = mixed(seed=0, size=1000, goal=goal)
        print(f"\n{problem.summary}")
        best = 0.0
        for name in BOUNDS[2:]:
            seconds, outcome = timed(name, problem)
            best = max(best, outcome.bound or 0.0)
            print(f"{name:14} {outcome.bound or 0:12,.0f} s by {outcome.bound_by}, {seconds:.2f} s")
        for name, entry in POLICIES.items():
            value = entry.load()(problem, limits=Limits(), seed=0).claimed
            print(f"{name:14} {value:12,.0f} s {100 * (value / best - 1):9.1f} % above the bound")


def many() -> None:
    problem = mixed(seed=0, size=100_000)
    print(f"\n{problem.summary}")
    for name in BOUNDS[2:]:
        seconds, outcome = timed(name, problem)
        print(f"{name:14} {outcome.bound or 0:12,.0f} s by {outcome.bound_by}, {seconds:.2f} s")
    for name in ("fifo", "shortest", "hps", "easy"):
        started = time.perf_counter()
        outcome = POLICIES[name].load()(problem, limits=Limits(), seed=0)
        print(f"{name:14} {outcome.claimed:12,.0f} s in {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five seeds, and a dozen jobs only")
    parser.add_argument("--growth", action="store_true", help="only as the stream grows")
    parser.add_argument("--certified", choices=("count", "node"), help="of this placement")
    parser.add_argument("--seeds", default="0-9", help="of its streams, as 0-9 or 3")
    parser.add_argument("--effort", type=float, default=1.0, help="work for each of them")
    parser.add_argument("--jobs", type=int, default=200, help="in each of them")
    options = parser.parse_args()
    if options.certified:
        first, _, last = options.seeds.partition("-")
        seeds = list(range(int(first), int(last or first) + 1))
        certified(options.certified, seeds, options.effort, options.jobs)
        raise SystemExit
    if options.growth:
        growth()
        raise SystemExit
    dozen(5 if options.quick else SEEDS)
    if not options.quick:
        growth()
        thousand()
        many()
