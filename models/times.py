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
"""Largest difference between times that count as equal, s."""
ROUNDING = 2.0**-51
"""The same relative to the time itself: two to four of the last digits that a float has."""
SHORTEST_S = TOLERANCE_S
"""The least that anything may last, s."""
LATEST_S = 1e12
"""The latest time in a schedule after the problem's first event, s: later, rounding hides too much,
and 30,000 years are a slip of units."""

Seconds = TypeVar("Seconds", float, NDArray[np.float64])


def slack_s(time_s: Seconds) -> Seconds:
    """Return the largest difference from `time_s`, the later time, that counts as equal, s."""
    slack: Seconds = TOLERANCE_S + ROUNDING * abs(time_s)
    return slack


def freed_s(start_s: Seconds, end_s: Seconds) -> Seconds:
    """Return when a run from `start_s` to `end_s` has made room for a run that starts at its end.

    This is earlier by the slack of equal times, but by no more than half of the run. So two short
    runs at the same time are noticed, and nothing ends before it has started.
    """
    freed = end_s - np.minimum(slack_s(end_s), (end_s - start_s) / 2)
    later: Seconds = np.maximum(freed, np.nextafter(start_s, end_s))
    return later


def shown(time_s: float) -> str:
    """Write a time in s: six digits, or the seconds of a clock that counts from 1970."""
    return f"{time_s:g}" if abs(time_s) < 1e6 else f"{time_s:.10g}"


UNITS = ((2 * 86_400.0, 86_400.0, "days"), (2 * 3600.0, 3600.0, "h"), (0.0, 1.0, "s"))
"""Units of time: least seconds for the unit, seconds in the unit, and its name."""


def unit_of(time_s: float) -> tuple[float, str]:
    """Return the unit for times of up to `time_s`: its seconds and its name."""
    return next((unit_s, unit) for least, unit_s, unit in UNITS if time_s >= least)


def span(time_s: float) -> str:
    """Write a duration in s, h or days."""
    unit_s, unit = unit_of(time_s)
    return f"{time_s / unit_s:,.4g} {unit}"


@runtime_checkable
class Timed(Protocol):
    """A problem whose jobs come at given times."""

    @property
    def epoch_s(self) -> float:
        """Time of the first event, s."""

    def moved(self, by_s: float) -> Self:
        """Return the problem with every time later by `by_s`."""


def from_first_event(problem: Any, solution: Any) -> tuple[Any, Any]:
    """Return problem and solution with times counted from the problem's first event."""
    if not isinstance(problem, Timed) or not problem.epoch_s:
        return problem, solution
    return problem.moved(-problem.epoch_s), solution.moved(-problem.epoch_s)
