"""How long the slowest single decision takes, and all of them, in CPU time and compiled code.

    python benchmarks/decision_times.py [--arrivals 10866] [--seeds 3] [--size 5000] [--only NAME]

`node-value` (and PWR beside it) places 10,866 tasks on the 1,213 nodes of `alibaba`,
`least_added_energy` so many tasks of `pai`, `work-value` the 1,901 jobs of `day`. A smaller problem
runs first, so that nothing is compiled or loaded while it is timed. What is made once before the
first arrival is told apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import optgap
from optgap.heuristics.consolidation import least_added_energy
from optgap.heuristics.placement import engine
from optgap.models.placement.presets import alibaba
from optgap.solvers.elastic.most_worth import MostWorth

Timed = list[float]


def timed(decide: Callable[..., Any], seconds: Timed) -> Callable[..., Any]:
    """The same function, which notes the CPU time of each call."""

    def noted(*given: Any) -> Any:
        begun = time.process_time()
        found = decide(*given)
        seconds.append(time.process_time() - begun)
        return found

    return noted


@contextmanager
def replaced(owner: Any, name: str, other: Any) -> Iterator[None]:
    """`owner.name` is another one in here."""
    before = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


def one_by_one(seconds: Timed) -> Any:
    """The event loop of placement, a row at a call."""
    step = timed(engine.follow, seconds)

    def loop(run: Any, flow: Any, rows: int) -> bool:
        return all(step(run, flow, 1) for _ in range(rows))

    return replaced(engine, "follow", loop)


def each_choice(seconds: Timed) -> Any:
    """The decisions of `least_added_energy`."""
    before = least_added_energy.least_added
    return replaced(
        least_added_energy, "least_added", lambda *given: timed(before(*given), seconds)
    )


def each_event(seconds: Timed) -> Any:
    """The decisions of `work-value`."""
    return replaced(MostWorth, "decide", timed(MostWorth.decide, seconds))


def placement(seed: int, arrivals: int) -> optgap.Problem:
    """The first so many arrivals; at the end the cluster is full and some are turned away."""
    whole = alibaba(seed=seed, load=1.5)
    kept = whole.tasks.take(range(arrivals))
    return replace(whole, tasks=kept, name=f"alibaba, {arrivals} arrivals, seed {seed}")


def pai(seed: int, size: int) -> optgap.Problem:
    """So many tasks that share GPUs over time."""
    return optgap.generate("consolidation", "pai", seed=seed, size=size)


def told(problem: optgap.Problem, policy: str, watch: Callable[[Timed], Any]) -> None:
    """One row."""
    seconds: Timed = []
    with watch(seconds):
        begun = time.process_time()
        optgap.run(problem, policy)
        whole = time.process_time() - begun
    found = 1000 * np.array(seconds)
    print(
        f"{problem.name:36} {policy:20} {len(found):6} {np.median(found):8.3f} "
        f"{np.quantile(found, 0.99):8.3f} {found.max():8.3f} {sum(seconds):8.2f} {whole:8.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arrivals", type=int, default=10_866)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--size", type=int, default=5000, help="tasks of least_added_energy")
    parser.add_argument("--only", default="", help="policies with this in their name")
    given = parser.parse_args()
    arrivals, size = given.arrivals, given.size
    nodes = one_by_one, lambda seed: placement(seed, arrivals), placement(0, 2000)
    shared = each_choice, lambda seed: pai(seed, size), pai(0, 300)
    elastic = each_event, lambda seed: optgap.generate("elastic", "day", seed=seed)
    rows = {
        "pwr": nodes,
        "node-value": nodes,
        "least_added_energy": shared,
        "work-value": (*elastic, optgap.generate("elastic", "small", seed=0)),
    }
    print(
        f"{'problem':36} {'policy':20} {'number':>6} {'median':>8} {'99 %':>8} {'worst ms':>8} "
        f"{'all, s':>8} {'run, s':>8}"
    )
    for name, (watch, make, first) in rows.items():
        if given.only in name:
            optgap.run(first, name)
            for seed in range(200, 200 + given.seeds):
                told(make(seed), name, watch)


if __name__ == "__main__":
    main()
