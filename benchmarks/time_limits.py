"""How well every method keeps its time limit, on problems too large to finish in it.

    python benchmarks/time_limits.py [--limit SECONDS] [--family NAME]

A limit is kept when the method is back within 10 % and one second. Problems are the largest of
each family's list that the method accepts; "done" means that it needed no limit.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import optgap
from optgap.models.errors import InputError
from optgap.models.result import Termination
from optgap.registry import FAMILIES

HARD: dict[str, list[dict[str, Any]]] = {
    "placement": [{"preset": "alibaba"}, {"preset": "small", "size": 44}],
    "consolidation": [
        {"size": 2000},
        {"size": 128},
        {"size": 4, "servers": 2},
        {"preset": "pai", "size": 500},
    ],
    "coscheduling": [{"size": 200}, {"size": 40}, {"size": 6}],
    "elastic": [{"preset": "day"}, {"preset": "small"}, {"preset": "tiny"}],
    "queueing": [
        {"preset": "paper"},
        {"preset": "small", "size": 40},
        {"preset": "small", "size": 6},
    ],
}
"""Problems by family, the largest first; otherwise the default preset."""


def timed(problem: Any, method: str, limit: float) -> tuple[float, optgap.Result]:
    """Seconds until the method is back, and its result."""
    started = time.perf_counter()
    result = optgap.solve(problem, method, time_limit=limit)
    return time.perf_counter() - started, result


def row(family: str, method: str, limit: float) -> tuple[str, bool]:
    """One line of the table, and whether the limit was kept."""
    for params in HARD.get(family, [{}]):
        problem = optgap.generate(family, **params)
        try:
            seconds, result = timed(problem, method, limit)
        except InputError:
            continue
        kept = seconds <= 1.1 * limit + 1
        done = "done" if result.termination is Termination.COMPLETED else "stopped"
        bound = "-" if result.gap is None else f"{100 * result.gap:.2f} %"
        shown = " ".join(f"{k}={v}" for k, v in params.items())
        text = f"{family:14} {method:18} {shown:24} {seconds:7.2f} {done:8}"
        return f"{text} {result.status!s:12} {bound:>9}  {'' if kept else 'LATE'}", kept
    return f"{family:14} {method:18} takes none of the problems tried", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=2.0)
    parser.add_argument("--family", choices=list(FAMILIES))
    arguments = parser.parse_args()
    chosen = [arguments.family] if arguments.family else list(FAMILIES)
    print(f"limit {arguments.limit:g} s; kept up to {1.1 * arguments.limit + 1:.1f} s")
    print(
        f"{'family':14} {'method':18} {'problem':24} {'seconds':>7} {'':8} {'status':12} {'gap':>9}"
    )
    late = 0
    for family in chosen:
        for method in FAMILIES[family].methods:
            text, kept = row(family, method, arguments.limit)
            late += not kept
            print(text, flush=True)
    print(f"{late} late")
    return 0


if __name__ == "__main__":
    sys.exit(main())
