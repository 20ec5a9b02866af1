"""A bound that scales: GPUs and watts are bought at prices that change over time.

With prices λ(t) ≥ 0 (s per GPU and s) and μ(t) ≥ 0 (s per W and s) the limits need not be kept:
every job then chooses its own GPUs, clocks and completion so that completion plus payments is
least, and Σ of these minus what all GPUs and all power would have cost is a lower bound on
Σ completions, whatever the prices. See ``docs/elastic-bounds.md`` for the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.snapshot import undominated
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.area import SAFE, alone, best_mixture
from optgap.solvers.elastic.joint import Tables, order_of
from optgap.solvers.elastic.prefixes import Prefixes, Priced

VALUES = 64
"""Values of an iteration that are tried per class."""
FINE = 4
"""How many times as many in the end."""
MOST_ORDERED = 120
"""Jobs up to which the prices of an order of completions are a start."""
ROUND = 4 * 2.0**-52
"""Relative: more than the few operations behind one number round by."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What does not change between prices.

    Parameters
    ----------
    edges: (K+1,) where the pieces of constant prices begin and end, s; free of charge after.
    first, time_s, gpus, watts: undominated configurations by class, as in `Choices`.
    capacity: GPUs; limit: W, or J in all with `energy`; infinite for none.
    energy: the limit is one on energy, and its price the same at all times.
    """

    problem: ElasticProblem
    edges: Floats
    first: Ints
    time_s: Floats
    gpus: Floats
    watts: Floats
    capacity: float
    limit: float
    energy: bool

    @classmethod
    def of(cls, problem: ElasticProblem, edges: Floats) -> Setting:
        """From a problem and the pieces."""
        first, rows = [0], []
        for c in range(len(problem.classes)):
            k, f = np.nonzero(np.isfinite(problem.time_s[c]))
            t, n, w = problem.time_s[c, k, f], problem.counts[k].astype(float), problem.power_w
            keep = undominated(t, t * n, t * w[c, k, f])
            rows.append(np.stack([t, n, w[c, k, f]])[:, keep])
            first.append(first[-1] + len(keep))
        table = np.concatenate(rows, axis=1)
        energy = problem.cap == "energy"
        limit = problem.energy_budget_j if energy else problem.power_limit_w
        return cls(
            problem, edges, np.array(first), table[0], table[1], table[2], float(problem.gpus),
            limit, energy,
        )  # fmt: skip

    def values(self, gpu_price: Floats, power_price: Floats, per: int) -> Floats:
        """(C, V) values of an iteration worth trying at these prices, s.

        At its best a job gains one second of completion per second of work at the margin, so
        that an iteration is worth about (1 + λn + μP)·T_iter.
        """
        top_gpu, top_power = float(gpu_price.max()), float(power_price.max())
        rows = []
        for c in range(len(self.first) - 1):
            part = slice(int(self.first[c]), int(self.first[c + 1]))
            t, n, w = self.time_s[part], self.gpus[part], self.watts[part]
            low = 0.3 * float(t.min())
            high = 1.5 * float(((1 + top_gpu * n + top_power * w) * t).min())
            rows.append(np.geomspace(low, max(high, 4 * low), per))
        return np.array(rows)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A bound and what it would take: (K,) GPU-s and J bought in each piece.

    `worth` is what each job's work is worth where it is bounded, (J,), s.
    """

    bound: float
    gpu_s: Floats
    joules: Floats
    tail_j: float
    worth: Floats


def evaluate(setting: Setting, gpu_price: Floats, power_price: Floats, per: int) -> Evaluated:
    """The bound on Σ completions, s, at these prices."""
    problem = setting.problem
    values = setting.values(gpu_price, power_price, per)
    tail_price = float(power_price[-1]) if setting.energy else 0.0
    total, gpu_s, joules, tail, worth = _jobs(
        setting.edges, setting.first, setting.time_s, setting.gpus, setting.watts, values,
        gpu_price, power_price, tail_price, problem.jobs.submit_s, problem.jobs.of_class,
        problem.jobs.iterations, problem.least_jct_s,
    )  # fmt: skip
    length = np.diff(setting.edges)
    terms = [*(setting.capacity * gpu_price * length).tolist()]
    if setting.energy:
        terms.append(tail_price * setting.limit)
    elif math.isfinite(setting.limit):
        terms += (setting.limit * power_price * length).tolist()
    bound = outwards([total, *(-paid * (1 + ROUND) for paid in terms)])
    return Evaluated(bound, gpu_s, joules, tail, worth)


@compiled
def _gains(
    first: Any, time_s: Any, gpus: Any, watts: Any, values: Any, gpu_price: Any, power_price: Any
) -> Any:
    """(C, K, V) most that a second may gain in a piece, and which configuration gains it."""
    classes, pieces, many = len(first) - 1, len(gpu_price), values.shape[1]
    gain = np.zeros((classes, pieces, many))
    which = np.full((classes, pieces, many), -1, np.int32)
    for c in range(classes):
        for k in range(pieces):
            for z in range(first[c], first[c + 1]):
                speed = 1.0 / time_s[z]
                cost = gpu_price[k] * gpus[z] + power_price[k] * watts[z]
                for v in range(many):
                    now = values[c, v] * speed * (1.0 + ROUND) - cost * (1.0 - ROUND)
                    if now > gain[c, k, v]:
                        gain[c, k, v] = now
                        which[c, k, v] = z
    return gain, which


@compiled
def _tail_gains(first: Any, time_s: Any, watts: Any, values: Any, tail_price: float) -> Any:
    """(C, V) most that a second may gain after the last piece, and which configuration gains it."""
    classes, many = values.shape
    gain = np.zeros((classes, many))
    which = np.zeros((classes, many), np.int64)
    for c in range(classes):
        for z in range(first[c], first[c + 1]):
            for v in range(many):
                now = values[c, v] / time_s[z] * (1.0 + ROUND)
                now -= tail_price * watts[z] * (1.0 - ROUND)
                if now > gain[c, v]:
                    gain[c, v], which[c, v] = now, z
    return gain, which


@compiled
def _jobs(
    edges: Any, first: Any, time_s: Any, gpus: Any, watts: Any, values: Any, gpu_price: Any,
    power_price: Any, tail_price: float, submit: Any, of_class: Any, iterations: Any, least: Any,
) -> Any:  # fmt: skip
    """Σ over jobs of the least completion plus payments, rounded down, what they buy, and what
    their work is worth.

    A job that completes at C within piece k has paid at least u − S(C) for any value u of its
    work, S(C) being the gains until C: linear in C within a piece, so that the two ends count.
    """
    pieces, many = len(edges) - 1, values.shape[1]
    gain, which = _gains(first, time_s, gpus, watts, values, gpu_price, power_price)
    tail, tail_pick = _tail_gains(first, time_s, watts, values, tail_price)
    gpu_s, joules, worth = np.zeros(pieces), np.zeros(pieces), np.zeros(len(submit))
    total, tail_j = 0.0, 0.0
    before = np.empty(many)
    for j in range(len(submit)):
        c = of_class[j]
        start = submit[j]
        earliest = start + least[j]
        before[:] = 0.0
        best, best_v, best_end = np.inf, 0, start
        k = np.searchsorted(edges, start, side="right") - 1
        k = max(k, 0)
        while k < pieces:
            low, high = max(edges[k], start), edges[k + 1]
            if high > earliest:
                from_here = max(low, earliest)
                top, top_v, top_end = -np.inf, 0, high
                for v in range(many):
                    u = values[c, v] * iterations[j]
                    a = from_here + u - before[v] - gain[c, k, v] * (from_here - low)
                    b = high + u - before[v] - gain[c, k, v] * (high - low)
                    worse = min(a, b)
                    # sums of as many terms as there are pieces
                    worse -= ROUND * (k + 2) * (high + u + before[v] + gain[c, k, v] * (high - low))
                    if worse > top:
                        top, top_v = worse, v
                        top_end = from_here if a < b else high
                if top < best:
                    best, best_v, best_end = top, top_v, top_end
            for v in range(many):
                before[v] += gain[c, k, v] * (high - low)
            k += 1
        from_here = max(edges[pieces], earliest)
        top, top_v = -np.inf, 0
        for v in range(many):
            if tail[c, v] <= 1.0:
                u = values[c, v] * iterations[j]
                over = max(0.0, from_here - max(edges[pieces], start))
                now = from_here + u - before[v] - tail[c, v] * over
                now -= ROUND * (k + 2) * (from_here + u + before[v] + tail[c, v] * over)
                if now > top:
                    top, top_v = now, v
        if top == -np.inf:  # no value is low enough: nothing paid, nothing gained
            top, top_v = from_here, -1
        if top < best:
            best, best_v, best_end = top, top_v, from_here
        total += best - ROUND * (abs(total) + abs(best))
        if best_v < 0:
            continue
        worth[j] = values[c, best_v] * iterations[j]
        k = max(np.searchsorted(edges, start, side="right") - 1, 0)
        while k < pieces and edges[k] < best_end:
            z = which[c, k, best_v]
            if z >= 0:
                span = min(edges[k + 1], best_end) - max(edges[k], start)
                gpu_s[k] += gpus[z] * span
                joules[k] += watts[z] * span
            k += 1
        if best_end > edges[pieces]:
            z = tail_pick[c, best_v]
            tail_j += watts[z] * (best_end - max(edges[pieces], start))
    return total, gpu_s, joules, tail_j, worth


# -- prices -------------------------------------------------------------------------------


def first_prices(problem: ElasticProblem, pieces: int) -> tuple[Floats, Floats, Floats]:
    """Edges and prices from the best one-machine bound.

    One second more of the whole machine at t would let every job that ends after t in the same
    busy period end that much earlier: their number is the price of all GPUs and power then.
    """
    weight, _, ends = best_mixture(problem)
    order = np.argsort(ends)
    ends = ends[order]
    work = problem.jobs.iterations * _mixed(problem, weight)[problem.jobs.of_class]
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


def _mixed(problem: ElasticProblem, weight: float) -> Floats:
    from optgap.solvers.elastic.area import least_shares

    return least_shares(problem, weight)


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
    best: float = -math.inf
    best_gpu: Floats | None = None
    best_power: Floats | None = None
    worth: Floats | None = None

    def look(self, per: int = VALUES) -> Evaluated:
        """Evaluate, and remember what is best."""
        seen = evaluate(self.setting, self.gpu, self.power, per)
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
        elif self.setting.energy:
            excess = (float(seen.joules.sum()) + seen.tail_j) / self.setting.limit - 1
            moved = _moved(self.power[:1], np.array([excess]), size)
            self.power = np.full(len(length), float(moved[0]))
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
    order: Priced | None = None,
) -> Bounded:
    """The best bound of prices that begin with one machine's, or with those of an order."""
    size = len(problem)
    many = pieces or int(min(480, max(160, 8 * size)))
    turns = rounds or (400 if size <= 3000 else 120)
    submitted = math.fsum(problem.jobs.submit_s.tolist())
    starts = [] if order is None else [_of_order(problem, order, many)]
    ascents = [*starts, _ascent(problem, many)]
    best, worth = -math.inf, problem.least_jct_s
    stopped = limits.stop
    firsts = [ascent.look().bound for ascent in ascents if stopped is None]
    if firsts:
        ascent = ascents[int(np.argmax(firsts))]
        stopped = _climb(ascent, turns, limits, submitted, size)
        ascent.back()
        ascent.look(FINE * VALUES)
        best = outwards([ascent.best, -submitted]) / size
        worth = worth if ascent.worth is None else ascent.worth
    bound, by = max(
        (best, "prices of GPUs and power over time"),
        (best_mixture(problem)[1], "one machine, shortest first"),
        (alone(problem), "every job alone"),
    )
    return Bounded(max(0.0, bound * (1 - SAFE)), by, worth, many, stopped)


def bound_prices(
    problem: ElasticProblem, *, limits: Limits, seed: int, pieces: int = 0, rounds: int = 0
) -> Outcome:
    """The Lagrangian bound; stopped early, the best one so far.

    Parameters
    ----------
    pieces: pieces of constant prices; 0: by the number of jobs.
    rounds: rounds of the ascent; 0: by the number of jobs.
    """
    for name, value in (("pieces", pieces), ("rounds", rounds)):
        if value < 0 or value > 100_000:
            raise InputError("bound-prices", name, value, "0 to 100000")
    found = bounded(problem, limits, pieces, rounds, one_machine(problem, limits))
    info = {
        "pieces": found.pieces,
        "one_machine_s": best_mixture(problem)[1],
        "alone_s": alone(problem),
    }
    return Outcome(
        None, Status.BOUND_ONLY, found.stopped or Termination.COMPLETED, bound=found.bound,
        bound_by=found.by, info=info,
    )  # fmt: skip


def one_machine(problem: ElasticProblem, limits: Limits) -> Priced | None:
    """Prices of the order in which one machine would complete the jobs, if they are not many."""
    if len(problem) > MOST_ORDERED or problem.cap == "energy":
        return None
    ends = best_mixture(problem)[2]
    tables = Tables(problem)
    events = order_of(tables, np.maximum(ends - problem.epoch_s, tables.submit_s))
    return Prefixes(tables, limits).order(events)


def _of_order(problem: ElasticProblem, order: Priced, pieces: int) -> Ascent:
    """From the prices of an order's intervals, each in parts of about the same length."""
    longest = float(order.length_s.sum()) / pieces
    real = order.length_s > 1e-9 * longest
    parts = np.ceil(order.length_s[real] / longest).astype(int)
    edges = np.cumsum([problem.epoch_s, *np.repeat(order.length_s[real] / parts, parts)])
    gpu, power = (np.repeat(p[real], parts) for p in (order.gpu_price, order.power_price))
    return Ascent(Setting.of(problem, edges), np.maximum(gpu, 0.0), np.maximum(power, 0.0))


def _ascent(problem: ElasticProblem, pieces: int) -> Ascent:
    edges, gpu, power = first_prices(problem, pieces)
    setting = Setting.of(problem, edges)
    if not math.isfinite(setting.limit):
        power = np.zeros(len(gpu))
    elif setting.energy:
        # as if all of it were one machine: time per J of the whole budget
        power = np.full(len(gpu), float(problem.least_jct_s.sum()) / setting.limit)
    floor = 1e-3
    gpu = np.maximum(gpu, floor * max(float(gpu.max()), 1.0 / problem.gpus))
    if math.isfinite(setting.limit) and not setting.energy:
        power = np.maximum(power, floor * max(float(power.max()), 1.0 / max(setting.limit, 1e-9)))
    return Ascent(setting, gpu, power)


def _climb(
    ascent: Ascent, turns: int, limits: Limits, submitted: float, count: int
) -> Termination | None:
    """Rounds of shrinking steps, back to the best prices where they lead nowhere."""
    size, stale = 0.5, 0
    for _ in range(turns):
        stopped = limits.stop
        if stopped is not None:
            return stopped
        before = ascent.best
        seen = ascent.look()
        limits.progress("prices", None, (ascent.best - submitted) / count)
        stale = 0 if ascent.best > before + 1e-7 * abs(before) else stale + 1
        if stale >= 6:
            ascent.back()
            seen = evaluate(ascent.setting, ascent.gpu, ascent.power, VALUES)
            size, stale = size * 0.6, 0
            if size < 1e-4:
                return None
        ascent.step(seen, size)
    return None
