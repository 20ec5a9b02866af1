"""Cost of single decisions of a policy, measured at the time of each decision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Regret:
    """One decision of a schedule or placement, beside the best one open at that moment.

    Everything up to `time` is as the policy left it; only this decision is judged, by what it
    adds to the problem's objective there and then (each family says over which horizon).

    Parameters
    ----------
    time: seconds, or the arrival's number where a problem has no clock.
    subject: the task or job that the decision was about.
    chosen, better: what was done, and the best that could have been, as a reader would say it.
    cost: how much more `chosen` adds to the objective than `better`, in its unit; 0 when none
        was better.
    """

    time: float
    subject: str
    chosen: str
    better: str
    cost: float
