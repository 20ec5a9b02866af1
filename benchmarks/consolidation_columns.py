"""How far does branch-and-price on columns prove, beside the compact model?

Prints for synthetic tasks of mixed κ and GPU count, per capacity and gang rule, how many of the
seeds `columns` and `exact` prove within the limit, and their median seconds.

    python benchmarks/consolidation_columns.py [--sizes 20,40] [--seeds N] [--limit SECONDS]
"""

from __future__ import annotations

import argparse
import time
from typing import get_args

import numpy as np

from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, ConsolidationProblem, Gang
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.solvers.consolidation import METHODS

RIVALS = ("columns", "exact")


def timed(problem: ConsolidationProblem, method: str, limit: float) -> tuple[float, Outcome]:
    """Seconds of one method, and what it gave."""
    function = METHODS[method].load()
    started = time.perf_counter()
    outcome = function(problem, limits=Limits(limit), seed=0)
    return time.perf_counter() - started, outcome


def row(size: int, capacity: Capacity, gang: Gang, seeds: int, limit: float) -> str:
    """One line: proven of all, median seconds and largest gap of each."""
    cells = []
    problems = [mixed(seed=s, size=size, capacity=capacity, gang=gang) for s in range(seeds)]
    for method in RIVALS:
        runs = [timed(problem, method, limit) for problem in problems]
        proven = sum(outcome.status == "optimal" for _, outcome in runs)
        gaps = [o.claimed / o.bound - 1 for _, o in runs if o.claimed and o.bound]
        median = float(np.median([seconds for seconds, _ in runs]))
        cells.append(f"{proven:6}/{seeds} {median:8.2f} s {100 * max(gaps):8.2f} %")
    return f"{size:5}  {capacity:6} {gang:7}" + "".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="20,40")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=3.0)
    options = parser.parse_args()
    for method in RIVALS:  # compile, or fetch what is compiled already
        timed(mixed(seed=0, size=8), method, 5.0)
    print("tasks  rule   gang   " + "".join(f"{name:>28}" for name in RIVALS))
    for size in map(int, options.sizes.split(",")):
        for capacity in get_args(Capacity):
            for gang in get_args(Gang):
                print(row(size, capacity, gang, options.seeds, options.limit), flush=True)


if __name__ == "__main__":
    main()
