"""The counted formulation for CP-SAT, which knows integers only.

Costs are floats: popularities p_m of a trace are ratios of counts, a user's may be anything.
They are multiplied by a scale K. Where some K makes all of them integers (power in W; the
common denominator of the p_m) nothing is lost. Elsewhere they are rounded *down* in a
minimisation, so that CP-SAT's bound, divided by K, stays a bound; K is then as large as
64-bit sums allow, and what is lost is far below the tolerance of a proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement.arrays import FloatArray
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearModel, Solved

LARGEST = 1e13
"""Objectives stay below this: far inside 64 bits, exact as floats."""
SLACK = 1e-6
"""Bounds come from floating-point solvers: one that is above a value by no more than this,
relative to its size, is taken to mean that value."""
DENOMINATORS = 20_000
"""Common denominators of popularities are looked for up to here."""


@dataclass(frozen=True, slots=True)
class Integers:
    """A linear model with integer costs: `model`'s objective is scale·(true − offset).

    `exact`: the costs are integers; else they were rounded so that bounds hold. `off`: by how much
    integers that costs are taken for may put the objective too high, in its own unit.
    """

    model: LinearModel
    scale: float
    offset: float
    exact: bool
    step: int = 1
    off: float = 0.0

    def least(self, bound: float) -> int:
        """The least scaled objective that a lower bound on the true one allows."""
        scaled = (bound - self.offset) * self.scale
        if not self.exact:  # every unit of a column may have lost one by rounding down
            sizes = np.maximum(np.abs(self.model.lower), np.abs(self.model.upper))
            return math.floor(scaled - float(sizes.sum()))
        slack = SLACK * max(1.0, abs(scaled), abs(bound * self.scale))
        return math.ceil((scaled - slack) / self.step) * self.step

    def lattice(self, bound: float) -> float:
        """A lower bound, raised to the next value that the objective can take."""
        if not self.exact:
            return bound
        return max(bound, self.least(bound) / self.scale + self.offset - self.off)


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


def integers(model: LinearModel, denominator: int | None) -> Integers:
    """Scale a minimisation's costs to integers; `denominator` is the popularities'."""
    reach = _reach(model)
    scales = [10.0**j * n for n in (1, denominator or 1) for j in range(7)]
    for scale in sorted(set(scales)):
        scaled = model.cost * scale
        if scale * reach > LARGEST:
            break
        if (np.abs(scaled - np.rint(scaled)) <= 1e-10 * np.abs(scaled)).all():
            whole = replace(model, cost=np.rint(scaled), offset=0.0)
            step = math.gcd(*(int(cost) for cost in whole.cost)) or 1
            sizes = np.maximum(np.abs(model.lower), model.upper)
            off = float(np.abs(scaled - whole.cost) @ sizes) / scale
            return Integers(whole, scale, model.offset, exact=True, step=step, off=off)
    scale = 10.0 ** math.floor(math.log10(LARGEST / reach))
    rounded = replace(model, cost=np.floor(model.cost * scale), offset=0.0)
    return Integers(rounded, scale, model.offset, exact=False)


def _reach(model: LinearModel) -> float:
    """The largest size that the objective can take, at least 1."""
    return max(1.0, float(np.abs(model.cost) @ np.maximum(np.abs(model.lower), model.upper)))


def with_bound(whole: Integers, bound: float | None) -> LinearModel:
    """The scaled model with a row that says what is known about the objective."""
    model = whole.model
    if bound is None:
        return model
    columns = np.flatnonzero(model.cost)
    return replace(
        model,
        starts=np.append(model.starts, model.starts[-1] + len(columns)),
        columns=np.append(model.columns, columns),
        values=np.append(model.values, model.cost[columns]),
        row_lower=np.append(model.row_lower, whole.least(bound)),
        row_upper=np.append(model.row_upper, np.inf),
    )


def solve_integers(
    model: LinearModel,
    whole: Integers,
    limits: Limits,
    *,
    bound: float | None,
    start: FloatArray | None,
    seed: int,
    workers: int,
) -> Solved:
    """Solve `model` with CP-SAT by way of its integer form; all figures in the model's unit."""

    def unscale(value: float | None) -> float | None:
        return None if value is None else value / whole.scale + whole.offset

    def progress(phase: str, found: float | None, proven: float | None) -> None:
        limits.progress(phase, unscale(found), unscale(proven))

    own = replace(limits, progress=progress)
    solved = solve(
        with_bound(whole, bound),
        backend="cpsat",
        limits=own,
        start=start,
        seed=seed,
        workers=workers,
    )
    objective = None if solved.values is None else model.objective(solved.values)
    return replace(solved, objective=objective, bound=unscale(solved.bound))
