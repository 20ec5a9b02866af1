"""Column generation: linear programs with more columns than anyone can list.

The restricted master is the program over the columns so far. Its dual values go to pricing, which
looks for columns of negative reduced cost and proves a dual bound on the whole program, whatever
the dual values are (Gilmore and Gomory 1961; Desaulniers, Desrosiers and Solomon 2005). The best
bound is kept, and the loop ends where it meets the master's value. Dual values between the best
ones so far and the master's steady the bound (*smoothing*, Wentges 1997); a round with these that
finds nothing is followed by one with the master's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from optgap.models.limits import Limits
from optgap.models.result import Termination

GAINED = 1e-6
"""A smoothed round gains something if it raises the bound by this share of the value."""
LITTLE = 1e-4
"""A round that raises the bound by less than this share of it brings little."""

D = TypeVar("D")
"""Dual values, in whatever form the program likes."""


@dataclass(frozen=True, eq=False)
class Solved(Generic[D]):
    """An optimum of the restricted master: its value and dual values."""

    value: float
    duals: D


@dataclass(frozen=True, eq=False)
class Pricing(Generic[D]):
    """The outcome of pricing.

    Parameters
    ----------
    bound: dual bound, valid however far pricing came. duals: the dual values that prove it.
    added: columns that are new in the master.
    """

    bound: float
    duals: D
    added: int


class Program(Protocol[D]):
    """A program whose columns are generated."""

    def solve_master(self, limits: Limits) -> Solved[D] | None:
        """Solve the restricted master; None where that was cut short."""

    def price(self, duals: D, limits: Limits) -> Pricing[D]:
        """Bound the whole program at these dual values, and add columns to the master."""

    def closed(self, value: float, bound: float) -> bool:
        """Tell whether the master's value and the best bound are close enough."""

    def escalate(self, closed: bool, limits: Limits) -> bool:
        """Go beyond the master, which is closed or has no column to add; False where it is done.

        For example add violated rows, search longer for columns, or raise a penalty.
        """


@dataclass(frozen=True, eq=False)
class Generated(Generic[D]):
    """The end of column generation.

    Parameters
    ----------
    bound: the best dual bound. duals: the dual values that prove it, None if it was given.
    rounds: how often columns were priced. stopped: the limit that ended it, or None.
    """

    bound: float
    duals: D | None
    rounds: int
    stopped: Termination | None


def unsmoothed(best: D, last: D) -> D:
    """Return the master's own dual values."""
    return last


def generate(
    program: Program[D],
    limits: Limits,
    *,
    bound: float = -math.inf,
    duals: D | None = None,
    smooth: Callable[[D, D], D] = unsmoothed,
    patience: int = 0,
    rounds: float = math.inf,
    tell: Callable[[float, float], None] = lambda value, bound: None,
) -> Generated[D]:
    """Generate columns until value and bound are close, or nothing is left to do.

    Parameters
    ----------
    bound, duals: what is known already.
    smooth: dual values between the best ones and the master's.
    patience: end after so many rounds in a row that bring little (*tailing off*); 0: never.
    rounds: rounds of pricing at most.
    tell: called after each round with the master's value and the best bound.
    """
    solved = program.solve_master(limits)
    done = slow = 0
    stuck = misled = False
    stopped = None
    while solved is not None and done < rounds:
        closed = program.closed(solved.value, bound)
        if closed or stuck:
            if not program.escalate(closed, limits):
                break
            solved, stuck, misled = program.solve_master(limits), False, True
            continue
        stopped = limits.stop
        if stopped is not None:
            break
        own, before = solved.duals, bound
        asked = own if misled or duals is None else smooth(duals, own)
        priced = program.price(asked, limits)
        done += 1
        if priced.bound > bound:
            bound, duals = priced.bound, priced.duals
        gained = bound > before + GAINED * abs(solved.value)
        stuck = asked is own and not priced.added
        misled = asked is not own and not (priced.added or gained)
        if priced.added:
            solved = program.solve_master(limits)
        tell(math.inf if solved is None else solved.value, bound)
        slow = slow + 1 if bound < before + LITTLE * abs(bound) else 0
        if slow >= patience > 0:
            break
    return Generated(bound, duals, done, limits.stop if solved is None else stopped)
