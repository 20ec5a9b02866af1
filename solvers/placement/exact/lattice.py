"""Values that the objective of a counted formulation can take, where those are whole multiples.

Costs are floats: popularities p_m of a trace are ratios of counts, a user's may be anything. Where
some scale K makes all of them integers (power in W; the common denominator of the p_m), a bound can
be raised to the next value on that lattice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from optgap.solvers.backends.linear import LinearModel

LARGEST = 1e13
"""Objectives stay below this: far inside 64 bits, exact as floats."""
SLACK = 1e-6
"""Bounds come from floating-point solvers: one that is above a value by no more than this,
relative to its size, is taken to mean that value."""
DENOMINATORS = 20_000
"""Common denominators of popularities are looked for up to here."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The values offset + step·i / scale, i whole.

    Parameters
    ----------
    off: by how much integers that costs are taken for may put the objective too high, in its own
        unit.
    """

    scale: float
    offset: float
    step: int
    off: float

    def raised(self, bound: float) -> float:
        """A lower bound, raised to the next value that the objective can take."""
        scaled = (bound - self.offset) * self.scale
        slack = SLACK * max(1.0, abs(scaled), abs(bound * self.scale))
        least = math.ceil((scaled - slack) / self.step) * self.step
        return max(bound, least / self.scale + self.offset - self.off)


def common_denominator(values: Iterable[float]) -> int | None:
    """The smallest integer up to `DENOMINATORS` that makes all values integers, or None."""
    numbers = np.array(list(values), dtype=np.float64)
    candidates = np.arange(1, DENOMINATORS + 1, dtype=np.float64)
    near = np.ones(len(candidates), dtype=np.bool_)
    for number in numbers:
        products = candidates * number
        near &= np.abs(products - np.rint(products)) < 1e-9 * np.maximum(1.0, candidates)
    found = np.flatnonzero(near)
    return int(candidates[found[0]]) if found.size else None


def lattice(model: LinearModel, denominator: int | None) -> Lattice | None:
    """The values of a minimisation, None where no scale makes all costs integers.

    Parameters
    ----------
    denominator: the popularities'.
    """
    reach = max(1.0, float(np.abs(model.cost) @ np.maximum(np.abs(model.lower), model.upper)))
    scales = [10.0**j * n for n in (1, denominator or 1) for j in range(7)]
    for scale in sorted(set(scales)):
        scaled = model.cost * scale
        if scale * reach > LARGEST:
            break
        whole = np.rint(scaled)
        if (np.abs(scaled - whole) <= 1e-10 * np.abs(scaled)).all():
            step = math.gcd(*(int(cost) for cost in whole)) or 1
            sizes = np.maximum(np.abs(model.lower), model.upper)
            off = float(np.abs(scaled - whole) @ sizes) / scale
            return Lattice(scale, model.offset, step, off)
    return None
