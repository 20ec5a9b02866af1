"""Hard bin packing instances: Falkenauer, "A hybrid grouping genetic algorithm", J. Heur. 1996."""

from __future__ import annotations

import numpy as np

from optgap.models.errors import InputError, one_of

CLASSES = ("u120", "u250", "u500", "u1000", "t60", "t120", "t249", "t501")


def draw_class(kind: str, rng: np.random.Generator) -> tuple[float, list[float]]:
    """Bin capacity and item sizes of one instance.

    Uniform: integers from 20 to 100 in bins of 150. Triplets: a first item from 38 to 49, a
    second from 25 to half of what is left, and the rest of a bin of 100, to one decimal.

    Raises
    ------
    InputError: for a kind that is not u or t with a number, a multiple of three for triplets.
    """
    count = int(kind[1:]) if kind[1:].isdecimal() else 0
    if kind[:1] == "u" and 1 <= count <= 10_000:
        return 150.0, [float(size) for size in rng.integers(20, 101, count)]
    if kind[:1] != "t" or not 3 <= count <= 10_000 or count % 3:
        raise InputError("--set", "kind", kind, one_of(CLASSES))
    sizes: list[float] = []
    for _ in range(count // 3):
        first = int(rng.integers(380, 491))
        rest = 1000 - first
        second = int(rng.integers(250, rest // 2 + 1))
        sizes += [first / 10, second / 10, (rest - second) / 10]
    return 100.0, [sizes[k] for k in rng.permutation(count)]
