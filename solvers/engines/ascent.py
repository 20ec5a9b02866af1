"""Ascent over prices: Lagrangian bounds by supergradient steps.

Where constraints get prices instead of being kept, every price ≥ 0 gives a valid bound (Held and
Karp 1971). The bound is concave in the prices, and by how much each constraint is broken there is a
supergradient. A step need not raise the bound, so the best prices are remembered. A step follows a
running mean of the slopes (momentum, Polyak 1964), and each price moves by its share of the slopes
that it has seen (AdaGrad: Duchi, Hazan and Singer 2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optgap.models.limits import Limits
from optgap.models.result import Termination

Prices = npt.NDArray[np.float64]

LENGTHS = (0.5, 0.1, 0.02, 0.004)
"""Lengths of steps, one after another, relative to the highest of the first prices."""
MOMENTUM = 0.9
"""Share of the last direction in the next one."""
NEVER_SEEN = 1e-12
"""Sum of squared slopes of a price before the first step."""


class Priced(NamedTuple):
    """A bound at some prices, and how it changes with them.

    Parameters
    ----------
    bound: valid at these prices.
    slope: a supergradient, one number per price; all of about the same scale.
    kept: anything that the caller wants to know of the best prices.
    """

    bound: float
    slope: Prices
    kept: Any = None


class Ascended(NamedTuple):
    """The best of an ascent: its bound, prices and what was kept; and the limit that ended it."""

    bound: float
    prices: Prices
    kept: Any
    stopped: Termination | None


def ascend(
    evaluate: Callable[[Prices], Priced],
    prices: Prices,
    limits: Limits,
    *,
    rounds: int,
    scale: float | None = None,
    work: float = math.inf,
    tell: Callable[[float], None] = lambda bound: None,
) -> Ascended:
    """Return the best bound of an ascent from some prices, which are evaluated in any case.

    Each length of steps begins at the best prices so far and gets an equal share of the rounds.

    Parameters
    ----------
    evaluate: the bound at given prices; it counts its own work.
    rounds: steps at most; fewer where `work`, or what the limits leave, is not enough.
    scale: what `LENGTHS` are relative to; None for the highest price.
    work: units that the ascent may take, about.
    tell: called before each step with the best bound so far.
    """
    begun, allowed = limits.spent, min(work, limits.remaining)
    best, at, done = evaluate(prices), prices, 0
    cost = limits.spent - begun
    unit = float(prices.max()) if scale is None else scale
    for k, length in enumerate(LENGTHS):
        left = allowed - (limits.spent - begun)
        turns: float = rounds - done
        if cost > 0:
            turns = min(turns, max(0.0, left) / cost)
        now, prices = best, at
        seen, recent = np.full(len(prices), NEVER_SEEN), np.zeros(len(prices))
        for _ in range(int(turns / (len(LENGTHS) - k))):
            stopped = limits.stop
            if stopped is not None:
                return Ascended(best.bound, at, best.kept, stopped)
            tell(best.bound)
            seen += now.slope**2
            recent = MOMENTUM * recent + (1 - MOMENTUM) * now.slope
            prices = np.maximum(0.0, prices + length * unit * recent / np.sqrt(seen))
            before = limits.spent
            now = evaluate(prices)
            cost, done = limits.spent - before, done + 1
            if now.bound > best.bound:
                best, at = now, prices
    if done < rounds and allowed < work:  # fewer rounds, to fit what the limits left
        limits.note(Termination.WORK_LIMIT)
        return Ascended(best.bound, at, best.kept, Termination.WORK_LIMIT)
    return Ascended(best.bound, at, best.kept, limits.stop)
