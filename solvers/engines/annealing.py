"""Simulated annealing: random moves, worse ones ever more rarely (Kirkpatrick et al. 1983).

A move that makes a value worse by δ is accepted with probability exp(−δ / T) (Metropolis et al.
1953). That is δ ≤ −T ln u for a u drawn from 0 to 1, so a move may be given up once it is worse
than this allows. The temperature T falls geometrically. Moves are compiled and made in batches, or
written in Python and made one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from optgap.models.compiled import inner
from optgap.models.limits import Limits

Random = npt.NDArray[np.int64]
State = TypeVar("State")

PRIME = 2147483647
"""2³¹ − 1: random numbers are Park and Miller's (1988), alike in both ways a kernel is run."""


def random_of(seed: int) -> Random:
    """Return the state of random numbers of a seed, for `draw`."""
    return np.array([1 + (seed * 48271 + 12345) % (PRIME - 1)], dtype=np.int64)


@inner
def draw(random: Random) -> float:
    """Return a random number, above 0 and below 1."""
    random[0] = random[0] * 48271 % PRIME
    number: float = random[0] / PRIME
    return number


@inner
def allowed(i: int, tries: int, hot: float, cold: float, u: float) -> float:
    """Return by how much move i of so many may be worse, at temperatures from `hot` to `cold`."""
    worse: float = -hot * (cold / hot) ** (i / tries) * np.log(u)
    return worse


def anneal(
    batch: Callable[[int, float, float], object],
    tries: int,
    heats: tuple[float, float],
    limits: Limits,
    *,
    chunk: int,
) -> int:
    """Make moves in batches while the limits allow it; return how many were made.

    Parameters
    ----------
    batch: makes so many moves, at temperatures from one to another, and counts its own work.
    heats: the first and the last temperature, above 0.
    chunk: moves between two looks at the limits.
    """
    done, (hot, cold) = 0, heats
    while done < tries and limits.stop is None:
        step = min(chunk, tries - done)
        first, last = (hot * (cold / hot) ** (k / tries) for k in (done, done + step))
        batch(step, first, last)
        done += step
    return done


def walk(
    state: State,
    value: float,
    neighbour: Callable[[State], tuple[State, float] | None],
    limits: Limits,
    *,
    tries: int,
    heats: tuple[float, float],
    rng: np.random.Generator,
    enough: float = -np.inf,
) -> tuple[State, float]:
    """Return the best state on a walk, and its value; no worse than the one it begins with.

    Parameters
    ----------
    neighbour: draws a state near another, with its value; None where it fails.
    heats: as for `anneal`.
    enough: the value at which the walk ends.
    """
    best = state, value
    for i in range(tries):
        if best[1] <= enough or limits.stop is not None:
            break
        found = neighbour(state)
        if found is None:
            continue
        worse = found[1] - value
        if worse <= 0 or worse < allowed(i, tries, *heats, rng.random()):
            state, value = found
            if value < best[1]:
                best = found
    return best
