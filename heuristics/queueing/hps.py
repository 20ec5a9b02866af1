"""HPS, the Hybrid Priority Scheduler (HPS/PBS/SBS): the highest score among the jobs that fit.

    Score = Base · Aging · Penalty
    Base = 1/(1 + t/3600)        t the run time, s
    Penalty = 1/(1 + n/4)        n the GPUs
    Aging = aging_boost · min(wait/max_wait_time, 1) if wait > aging_threshold, else 1

As printed Aging drops to a third at 300 s and is 1 again at 900 s. ``hps_fixed`` has the same ends
and rises steadily between them:

    Aging = 1 + (aging_boost − 1) · clip(x, 0, 1)
    x = (wait − aging_threshold)/(max_wait_time − aging_threshold)

Neither lets large jobs through a steady stream of small ones; ``reserve_after_s`` does: once the
oldest job has waited longer, only jobs start that end before it could start at the earliest.
"""

from __future__ import annotations

import math
from typing import Any

from optgap.heuristics.queueing.parameters import HpsParams
from optgap.heuristics.queueing.rule import HPS, Rule, require, rounded, simulate
from optgap.models.compiled import inner
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.models.times import TOLERANCE_S


def hps(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """HPS as printed; `given` as in `HpsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    rule = _rule("hps", chosen(HpsParams, given, "hps"), fixed=False)
    return simulate(problem, rule, limits=limits, label="hps")


def hps_fixed(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """HPS with an aging factor that never falls; otherwise as `hps`."""
    rule = _rule("hps_fixed", chosen(HpsParams, given, "hps_fixed"), fixed=True)
    return simulate(problem, rule, limits=limits, label="hps_fixed")


def _rule(who: str, options: HpsParams, fixed: bool) -> Rule:
    threshold, boost = options.aging_threshold, options.aging_boost
    full, reserve = options.max_wait_time, options.reserve_after_s
    require(who, "aging_threshold", threshold, 0 <= threshold < 1e12, "seconds, at least 0")
    require(who, "aging_boost", boost, 0 < boost < 1e6, "a positive factor")
    require(who, "max_wait_time", full, threshold < full < 1e12, "more than the threshold")
    require(who, "reserve_after_s", reserve, 0 <= reserve < 1e12, "seconds, or 0 for never")
    return Rule(
        HPS,
        threshold=float(threshold),
        boost=float(boost),
        full=float(full),
        fixed=fixed,
        reserve=float(reserve) or math.inf,
    )


@inner
def aging(rule: Rule, wait: float) -> float:
    """The aging factor: as printed, or repaired to rise steadily."""
    if rule.fixed:
        share = (wait - rule.threshold) / (rule.full - rule.threshold)
        return 1 + (rule.boost - 1) * min(max(share, 0.0), 1.0)
    if wait > rule.threshold + TOLERANCE_S:
        return rule.boost * min(wait / rule.full, 1.0)
    return 1.0


@inner
def most_aged(rule: Rule, longest: float, shortest: float) -> float:
    """The largest aging factor of waits between two."""
    most = max(aging(rule, longest), aging(rule, shortest))
    if shortest <= rule.threshold + TOLERANCE_S:
        most = max(most, 1.0)
    return most


@inner
def hps_score(n: int, estimate: float, age: float) -> float:
    """Base × Aging × Penalty, rounded; `age` is the aging factor."""
    return rounded(age / (1 + estimate / 3600) / (1 + n / 4))
