"""A bound that scales: GPUs and watts are bought at prices that change over time.

Any prices give a bound (``lagrangian.py``). These begin with what GPUs and power are worth by
the completions of the best one-machine bound, or of a schedule, and are raised where more is bought
than there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.area import SAFE, alone, best_mixture, closed_form, least_shares
from optgap.solvers.elastic.lagrangian import Evaluated, Setting, evaluate


@dataclass(frozen=True, slots=True)
class PricesTuning:
    """Settings that work well; any settings give a valid bound.

    Parameters
    ----------
    values: of an iteration, tried per class; fine: how many times as many in the end.
    pieces: of constant prices per job, from `fewest_pieces` to `most_pieces` in all.
    rounds: of the ascent; `rounds_of_many` for more than `many_jobs`, and after that
        `rounds_charged` with restarts charged, for `few`.
    free_share: of a budget, for prices with free restarts where these are charged after that.
    floor: of the dearest price at first: what none is less than.
    step: the first, relative; times `shrink` after `patience` rounds without a relative gain of
        `gain`, until it is below `least_step`.
    few: jobs whose restarts are charged even when time is up, and which begin with the prices of
        a schedule.
    """

    values: int = 64
    fine: int = 4
    pieces: int = 8
    fewest_pieces: int = 160
    most_pieces: int = 480
    rounds: int = 400
    many_jobs: int = 3000
    rounds_of_many: int = 120
    rounds_charged: int = 100
    free_share: float = 0.7
    floor: float = 1e-3
    step: float = 0.5
    shrink: float = 0.6
    patience: int = 6
    gain: float = 1e-7
    least_step: float = 1e-4
    few: int = 120


TUNING = PricesTuning()


def first_prices(
    problem: ElasticProblem, pieces: int, ends_s: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Edges and prices from the completions of the best one-machine bound, or those given.

    One second more of the whole machine at t would let every job that ends after t in the same
    busy period end that much earlier: their number is the price of all GPUs and power then.
    """
    weight, _, ends = best_mixture(problem)
    ends = np.sort(ends if ends_s is None else ends_s)
    work = problem.jobs.iterations * least_shares(problem, weight)[problem.jobs.of_class]
    starts, stops = _busy(problem.jobs.submit_s, work)
    last = float(ends[-1])
    slack = max(1.0, float(np.median(problem.least_jct_s)))
    horizon = 1.15 * last + 2 * slack
    edges = np.linspace(0.0, horizon, pieces + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    stop = np.zeros(pieces)
    for a, b in zip(starts, stops, strict=True):
        stop = np.where((middle >= a) & (middle < b), b, stop)
    later = np.searchsorted(ends, stop, side="right") - np.searchsorted(ends, middle)
    waiting = np.where(stop > 0, np.maximum(later, 0), 0).astype(float)
    gpu = weight * waiting / problem.gpus
    limit = problem.power_limit_w
    power = (1 - weight) * waiting / limit if math.isfinite(limit) and limit > 0 else 0 * gpu
    return edges, gpu, power


def _busy(submit: Floats, work: Floats) -> tuple[list[float], list[float]]:
    """Begins and ends of the busy periods of one machine."""
    starts: list[float] = []
    stops: list[float] = []
    now = -math.inf
    for t, w in zip(submit.tolist(), work.tolist(), strict=True):
        if t > now:
            if starts:
                stops.append(now)
            starts.append(t)
            now = t
        now += w
    stops.append(now)
    return starts, stops


@dataclass
class Ascent:
    """Prices on the way up, and the best bound seen.

    Each round moves prices by how far what is bought is off what is there: a blend of the
    relative excess (which finds the size) and the plain supergradient (which finds zero).
    """

    setting: Setting
    gpu: Floats
    power: Floats
    limits: Limits = field(default_factory=Limits)
    best: float = -math.inf
    best_gpu: Floats | None = None
    best_power: Floats | None = None
    worth: Floats | None = None

    def seen(self, per: int) -> Evaluated:
        """Return what these prices prove."""
        self.limits.spend(self.setting.work(per))
        return evaluate(self.setting, self.gpu, self.power, per)

    def look(self, per: int = TUNING.values) -> Evaluated:
        """Evaluate, and remember what is best."""
        seen = self.seen(per)
        if seen.bound > self.best:
            self.best = seen.bound
            self.best_gpu, self.best_power = self.gpu.copy(), self.power.copy()
            self.worth = seen.worth
        return seen

    def step(self, seen: Evaluated, size: float) -> None:
        """New prices."""
        length = np.diff(self.setting.edges)
        self.gpu = _moved(self.gpu, seen.gpu_s / (self.setting.capacity * length) - 1, size)
        if not math.isfinite(self.setting.limit):
            self.power = np.zeros(len(length))
        else:
            ratio = seen.joules / (max(self.setting.limit, 1e-9) * length) - 1
            self.power = _moved(self.power, ratio, size)

    def back(self) -> None:
        """Go on from the best prices."""
        if self.best_gpu is not None and self.best_power is not None:
            self.gpu, self.power = self.best_gpu.copy(), self.best_power.copy()


def _moved(price: Floats, excess: Floats, size: float) -> Floats:
    level = max(float(price.max()), 1e-12)
    bounded = np.clip(excess, -1.0, 1.0)
    grown = price * np.exp(size * bounded) + 0.02 * size * level * bounded
    return np.maximum(grown, 0.0)


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
    ends_s: Floats | None = None,
) -> Bounded:
    """Return the best bound of prices from one machine's, or a schedule's, completions."""
    size = len(problem)
    tuned = TUNING
    many = pieces or min(tuned.most_pieces, max(tuned.fewest_pieces, tuned.pieces * size))
    turns = rounds or (tuned.rounds if size <= tuned.many_jobs else tuned.rounds_of_many)
    turns = max(1, round(turns * limits.effort))
    submitted = math.fsum(problem.jobs.submit_s.tolist())
    ascent = replace(_ascent(problem, many, ends_s), limits=limits)
    best, worth = -math.inf, problem.least_jct_s
    stopped = limits.stop
    if stopped is None:
        charged = not problem.overhead.free
        share = tuned.free_share if charged else 1.0
        part = limits.within(share * limits.remaining)
        stopped = _climb(ascent, turns, part, submitted, size)
        ascent.back()
        ascent.look(TUNING.fine * TUNING.values)
        worth = worth if ascent.worth is None else ascent.worth
        if charged:
            ascent = _charging(ascent, turns, limits, submitted, size)
        stopped = stopped or limits.stop
        best = outwards([ascent.best, -submitted]) / size
    bound, by = max((best, "prices of GPUs and power over time"), closed_form(problem))
    return Bounded(max(0.0, bound * (1 - SAFE)), by, worth, many, stopped)


def bound_prices(
    problem: ElasticProblem, *, limits: Limits, seed: int, pieces: int = 0, rounds: int = 0
) -> Outcome:
    """Return the Lagrangian bound; stopped early, the best one so far.

    Parameters
    ----------
    pieces: pieces of constant prices; 0: by the number of jobs.
    rounds: rounds of the ascent; 0: by the number of jobs.
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


def _ascent(problem: ElasticProblem, pieces: int, ends_s: Floats | None) -> Ascent:
    edges, gpu, power = first_prices(problem, pieces, ends_s)
    setting = Setting.of(problem, edges)
    if not math.isfinite(setting.limit):
        power = np.zeros(len(gpu))
    floor = TUNING.floor
    gpu = np.maximum(gpu, floor * max(float(gpu.max()), 1.0 / problem.gpus))
    if math.isfinite(setting.limit):
        power = np.maximum(power, floor * max(float(power.max()), 1.0 / max(setting.limit, 1e-9)))
    return Ascent(setting, gpu, power)


def _charging(free: Ascent, turns: int, limits: Limits, submitted: float, size: int) -> Ascent:
    """On from prices for free restarts; few jobs are charged even when time is up."""
    setting = free.setting
    ascent = replace(free, setting=Setting.of(setting.problem, setting.edges, charged=True))
    few = size <= TUNING.few
    if few or limits.stop is None:
        ascent.look(TUNING.fine * TUNING.values)
    if few and limits.stop is None:
        most = max(1, round(TUNING.rounds_charged * limits.effort))
        _climb(ascent, min(turns, most), limits, submitted, size)
        ascent.back()
        ascent.look(TUNING.fine * TUNING.values)
    return ascent


def _climb(
    ascent: Ascent, turns: int, limits: Limits, submitted: float, count: int
) -> Termination | None:
    """Rounds of shrinking steps, back to the best prices where they lead nowhere."""
    size, stale = TUNING.step, 0
    ascent.limits = limits
    for _ in range(turns):
        stopped = limits.stop
        if stopped is not None:
            return stopped
        before = ascent.best
        seen = ascent.look()
        limits.progress("prices", None, (ascent.best - submitted) / count)
        stale = 0 if ascent.best > before + TUNING.gain * abs(before) else stale + 1
        if stale >= TUNING.patience:
            ascent.back()
            seen = ascent.seen(TUNING.values)
            size, stale = size * TUNING.shrink, 0
            if size < TUNING.least_step:
                return None
        ascent.step(seen, size)
    return None
