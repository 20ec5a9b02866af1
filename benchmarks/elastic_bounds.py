"""The trace bounds: how far schedules are from them on few jobs, and prices on the day.

python benchmarks/elastic_bounds.py
"""

from __future__ import annotations

import statistics
import time
from itertools import product

from optgap.models.elastic import ElasticProblem, presets
from optgap.models.limits import Limits
from optgap.solvers.elastic import METHODS

SIX_JOB_SEEDS = 12
FEW_JOBS = (4, 5, 6)
FEW_JOB_SEEDS = 14


def timed(problem: ElasticProblem, method: str, **params: float) -> tuple[float, float]:
    """(bound in s, seconds)."""
    t = time.perf_counter()
    outcome = METHODS[method].load()(problem, limits=Limits(150), seed=0, **params)
    return float(outcome.bound or 0.0), time.perf_counter() - t


def certified() -> None:
    """Print how far from the bound hindsight is on few jobs, restarts charged, and CPU time."""
    gaps, seconds = [], []
    for size, seed in product(FEW_JOBS, range(FEW_JOB_SEEDS)):
        problem = presets.small(seed=seed, size=size, gpus=16, hours=0.2)
        t = time.process_time()
        found = METHODS["offline"].load()(problem, limits=Limits(30), seed=0)
        seconds.append(time.process_time() - t)
        gaps.append(problem.evaluate(found.solution).objective / found.bound - 1)
        print(f"{size:5d} jobs, seed {seed:2d}: {100 * gaps[-1]:5.2f} % in {seconds[-1]:.1f} s")
    within = sum(gap <= 0.02 for gap in gaps)
    print(
        f"{within} of {len(gaps)} within 2 %, median {100 * statistics.median(gaps):.2f} %, most "
        f"{100 * max(gaps):.2f} %; CPU time {max(seconds):.1f} s at most"
    )


def main() -> None:
    """Print bounds and times."""
    timed(presets.tiny(seed=0), "bound-prices")
    certified()
    few = presets.small(seed=0, size=12, gpus=8, hours=0.5, scale=0.05)
    bound, seconds = timed(few, "bound-prices")
    print(f"{len(few):5d} jobs bound-prices {bound:10.2f} s in {seconds:.2f} s")
    gaps = []
    for seed in range(SIX_JOB_SEEDS):
        six = presets.tiny(seed=seed, size=6)
        best = METHODS["exhaustive"].load()(six, limits=Limits(60), seed=0)
        value = six.evaluate(best.solution).objective
        gaps.append(value / timed(six, "bound-prices")[0] - 1)
    print(
        f"{len(gaps)} instances of 6 jobs, searched optimum over bound-prices: median "
        f"{100 * statistics.median(gaps):.1f} %, {100 * min(gaps):.1f} to {100 * max(gaps):.1f} %"
    )
    day = presets.day(seed=0)
    bound, seconds = timed(day, "bound-prices")
    print(f"{len(day):5d} jobs bound-prices {bound:10.2f} s in {seconds:.2f} s")


if __name__ == "__main__":
    main()
