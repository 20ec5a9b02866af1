"""Hard bin packing instances: Falkenauer, "A hybrid grouping genetic algorithm", J. Heur. 1996."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import (
    ConsolidationProblem,
    GpuKind,
    PowerLine,
    Server,
    Task,
)


def draw_class(kind: str, rng: np.random.Generator) -> tuple[float, list[float]]:
    """Bin capacity and item sizes of one instance.

    Uniform: integers from 20 to 100 in bins of 150. Triplets: a first item from 38 to 49, a
    second from 25 to half of what is left, and the rest of a bin of 100, to one decimal.
    """
    count = int(kind[1:])
    if kind[0] == "u":
        return 150.0, [float(size) for size in rng.integers(20, 101, count)]
    sizes: list[float] = []
    for _ in range(count // 3):
        first = int(rng.integers(380, 491))
        rest = 1000 - first
        second = int(rng.integers(250, rest // 2 + 1))
        sizes += [first / 10, second / 10, (rest - second) / 10]
    return 100.0, [sizes[k] for k in rng.permutation(count)]


def bin_packing(*, seed: int, kind: str) -> ConsolidationProblem:
    """A bin packing problem: the fewest GPUs, each in a server of its own."""
    capacity, sizes = draw_class(kind, np.random.default_rng(seed))
    gpu = GpuKind(memory_gb=capacity, power=PowerLine(1.0, 0.0))
    return ConsolidationProblem.of(
        [gpu],
        [Server((0,))] * len(sizes),
        [Task(f"t{k + 1}", size, duration_s=1.0) for k, size in enumerate(sizes)],
    )
