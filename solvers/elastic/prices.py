"""A bound that scales: GPUs and watts are bought at prices that change over time.

Any prices give a bound (``lagrangian.py``). These begin with what GPUs and power are worth by
the completions of the best one-machine bound, or of a schedule, and are raised where more is bought
than there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.area import SAFE, alone, best_mixture, closed_form
from optgap.solvers.elastic.lagrangian import Setting, evaluate
from optgap.solvers.engines.ascent import Ascended, Priced, ascend


@dataclass(frozen=True, slots=True)
class PricesTuning:
    """Settings that work well; any settings give a valid bound.

    Parameters
    ----------
    values: of an iteration, tried per class.
    pieces: of constant prices per job, from `fewest_pieces` to `most_pieces` in all.
    rounds: of an ascent, fewer where they take more than `work` units; `rounds_charged` with
        restarts charged, after that, for `few`.
    free_share: of a budget, for prices with free restarts where these are charged after that.
    floor: of the dearest price at first: what none is less than.
    few: jobs whose restarts are charged even when time is up, and which begin with the prices of
        a schedule.
    """

    values: int = 64
    pieces: int = 8
    fewest_pieces: int = 160
    most_pieces: int = 480
    rounds: int = 240
    work: float = 50.0
    rounds_charged: int = 100
    free_share: float = 0.7
    floor: float = 1e-3
    few: int = 120


TUNING = PricesTuning()


def first_prices(
    problem: ElasticProblem, pieces: int, ends_s: Floats | None = None
) -> tuple[Floats, Floats]:
    """Edges and `Market` prices from the completions of the best one-machine bound, or those given.

    One second more of the whole machine at t would let every job that has been submitted, and ends
    after t, end about that much earlier: their number is the price of all GPUs and power then.
    """
    weight, _, ends = best_mixture(problem)
    ends = np.sort(ends if ends_s is None else ends_s)
    slack = max(1.0, float(np.median(problem.least_jct_s)))
    edges = np.linspace(0.0, 1.15 * float(ends[-1]) + 2 * slack, pieces + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    submitted = np.searchsorted(problem.jobs.submit_s, middle, side="right")
    present = (submitted - np.searchsorted(ends, middle)).astype(float)
    prices = [weight * present]
    if math.isfinite(problem.power_limit_w):
        prices.append((1 - weight) * present)
    floored = [np.maximum(p, TUNING.floor * max(1.0, float(p.max()))) for p in prices]
    return edges, np.concatenate(floored)


class Market:
    """The bound at prices of all GPUs and of the whole limit on power, in s per s, by piece."""

    def __init__(self, setting: Setting, limits: Limits) -> None:
        self.setting, self.limits = setting, limits
        length = np.diff(setting.edges)
        self.offered = [setting.capacity * length]
        if math.isfinite(setting.limit):
            self.offered.append(max(setting.limit, 1e-9) * length)

    def evaluate(self, prices: Floats) -> Priced:
        """Return the bound, how much more is bought than offered, relative, and the worth."""
        self.limits.spend(self.setting.work(TUNING.values))
        pieces = len(self.setting.edges) - 1
        power = np.zeros(pieces)
        if len(self.offered) > 1:
            power = prices[pieces:] / max(self.setting.limit, 1e-9)
        gpu = prices[:pieces] / self.setting.capacity
        seen = evaluate(self.setting, gpu, power, TUNING.values)
        bought = zip((seen.gpu_s, seen.joules), self.offered, strict=False)
        slope = np.concatenate([taken / offered - 1 for taken, offered in bought])
        return Priced(seen.bound, slope, seen.worth)


@dataclass(frozen=True, eq=False)
class Bounded:
    """A bound on the mean completion − submission, s, and what each job's work is worth, s."""

    bound: float
    by: str
    worth: Floats
    pieces: int
    stopped: Termination | None


def bounded(
    problem: ElasticProblem,
    limits: Limits,
    pieces: int = 0,
    rounds: int = 0,
    *,
    ends_s: Floats | None = None,
) -> Bounded:
    """Return the best bound of prices from one machine's, or a schedule's, completions."""
    size, tuned = len(problem), TUNING
    many = pieces or min(tuned.most_pieces, max(tuned.fewest_pieces, tuned.pieces * size))
    turns = max(1, round((rounds or tuned.rounds) * limits.effort))
    work = math.inf if rounds else tuned.work * limits.effort
    submitted = math.fsum(problem.jobs.submit_s.tolist())

    def tell(bound: float) -> None:
        limits.progress("prices", None, (bound - submitted) / size)

    def climb(allowed: Limits, prices: Floats, rounds: int, charged: bool) -> Ascended:
        market = Market(Setting.of(problem, edges, charged), allowed)
        return ascend(market.evaluate, prices, allowed, rounds=rounds, work=work, tell=tell)

    best, worth, stopped = -math.inf, problem.least_jct_s, limits.stop
    if stopped is None:
        edges, prices = first_prices(problem, many, ends_s)
        charged, few = not problem.overhead.free, size <= tuned.few
        part = limits.within((tuned.free_share if charged else 1.0) * limits.remaining)
        found = climb(part, prices, turns, False)
        stopped = found.stopped
        if charged and (few or limits.stop is None):  # few are charged even when time is up
            most = max(1, round(tuned.rounds_charged * limits.effort)) if few else 0
            more = climb(limits, found.prices, min(turns, most), True)
            found = max(found, more, key=lambda ascended: ascended.bound)
        stopped = stopped or limits.stop
        best, worth = outwards([found.bound, -submitted]) / size, found.kept
    bound, by = max((best, "prices of GPUs and power over time"), closed_form(problem))
    return Bounded(max(0.0, bound * (1 - SAFE)), by, worth, many, stopped)


def bound_prices(
    problem: ElasticProblem, *, limits: Limits, seed: int, pieces: int = 0, rounds: int = 0
) -> Outcome:
    """Return the Lagrangian bound; stopped early, the best one so far.

    Parameters
    ----------
    pieces: pieces of constant prices; 0: by the number of jobs.
    rounds: rounds of the ascent; 0: 240, or fewer for thousands of jobs.
    """
    for name, value in (("pieces", pieces), ("rounds", rounds)):
        if value < 0 or value > 100_000:
            raise InputError("bound-prices", name, value, "0 to 100000")
    found = bounded(problem, limits, pieces, rounds)
    info = {
        "pieces": found.pieces,
        "one_machine_s": best_mixture(problem)[1],
        "alone_s": alone(problem),
    }
    return Outcome(
        None, Status.BOUND_ONLY, found.stopped or Termination.COMPLETED, bound=found.bound,
        bound_by=found.by, info=info,
    )  # fmt: skip
