"""Times in seconds: told from a problem's first event, and the same within a microsecond.

Logs count seconds from 1970, and a relative tolerance of 1e-9 is then one of 1.7 s. So nothing
depends on when a problem begins:

* methods and policies get a problem moved to begin at 0, and what they return is moved back;
* two times are the same if they differ by `TOLERANCE_S` at most, and by what rounding makes of
  these two numbers. No other time of a problem, however late, widens that.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

TOLERANCE_S = 1e-6
"""By how much times that are the same may differ, s."""
ROUNDING = 2.0**-51
"""The same relative to the time itself: two to four of the last digits that a float has."""
SHORTEST_S = TOLERANCE_S
"""The least that anything may last, s."""
LATEST_S = 1e12
"""The latest time in a schedule after the problem's first event, s: later, rounding hides too much,
and 30,000 years are a slip of units."""

Seconds = TypeVar("Seconds", float, NDArray[np.float64])


def slack_s(time_s: Seconds) -> Seconds:
    """How far from `time_s`, the larger of two numbers compared, is still the same time, s."""
    slack: Seconds = TOLERANCE_S + ROUNDING * abs(time_s)
    return slack


def freed_s(start_s: Seconds, end_s: Seconds) -> Seconds:
    """When what runs from `start_s` to `end_s` has made room for what starts at its end.

    Earlier by as much as is the same time, but by no more than half of the time it runs: two that
    run at once are seen to, however short they are, and nothing ends before it has started.
    """
    freed = end_s - np.minimum(slack_s(end_s), (end_s - start_s) / 2)
    later: Seconds = np.maximum(freed, np.nextafter(start_s, end_s))
    return later


def shown(time_s: float) -> str:
    """A time in s for a person: six digits, or the seconds of a clock that counts from 1970."""
    return f"{time_s:g}" if abs(time_s) < 1e6 else f"{time_s:.10g}"


UNITS = ((2 * 86_400.0, 86_400.0, "days"), (2 * 3600.0, 3600.0, "h"), (0.0, 1.0, "s"))
"""From so many seconds on, time is shown in units of so many, called so."""


def unit_of(time_s: float) -> tuple[float, str]:
    """The unit that times of up to so long are shown in: how many seconds it has, and its name."""
    return next((unit_s, unit) for least, unit_s, unit in UNITS if time_s >= least)


def span(time_s: float) -> str:
    """How long something lasts, for a person: in s, h or days."""
    unit_s, unit = unit_of(time_s)
    return f"{time_s / unit_s:,.4g} {unit}"


@runtime_checkable
class Timed(Protocol):
    """A problem whose jobs come at given times."""

    @property
    def epoch_s(self) -> float:
        """When the first job comes, s."""

    def moved(self, by_s: float) -> Self:
        """The same problem, everything so much later."""


def from_first_event(problem: Any, solution: Any) -> tuple[Any, Any]:
    """A problem and its solution by a clock that begins with the problem's first event."""
    if not isinstance(problem, Timed) or not problem.epoch_s:
        return problem, solution
    return problem.moved(-problem.epoch_s), solution.moved(-problem.epoch_s)
