"""Bounds from prices of GPUs and power over time, valid for any prices.

With prices λ(t) ≥ 0 (s per GPU and s) and μ(t) ≥ 0 (s per W and s) the limits need not be kept:
every job then chooses its own GPUs, clocks and completion so that completion plus payments is
least, and Σ of these minus what all GPUs and all power would have cost is a lower bound on
Σ completions. Where starts are charged, each job also pays for every change of its GPU count: while
it restarts on n GPUs it holds them, at idle power, and does no work. See ``docs/elastic-bounds.md``
for the proof, and ``prices.py`` for good prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.compiled import compiled, floats
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.times import slack_s
from optgap.models.work import ELASTIC
from optgap.solvers.backends.safe import outwards
from optgap.solvers.elastic.snapshot import undominated

ROUND = 4 * 2.0**-52
"""Relative: more than the few operations behind one number round by."""


@dataclass(frozen=True, eq=False)
class Setting:
    """Data that do not change between prices.

    Configurations come in groups between which a change is charged: one per GPU count; where starts
    are free, all are one group, without overhead and without a floor.

    Parameters
    ----------
    edges: (K+1,) where the pieces of constant prices begin and end, s; free of charge after.
    first: (C, N+1) where the configurations of a class in each group begin.
    time_s, gpus, watts: of configurations that no other of the group beats.
    counts: (N,) GPUs of a group, and idle_w: (N,) W that they draw while a job restarts; both 0
        where starts are free.
    overhead_s: (N,) what the referee asks of a start in each group, s.
    earliest_s: (J,) when a job can be done at best, its first start included, s.
    capacity: GPUs; limit: W, infinite for none.
    """

    problem: ElasticProblem
    edges: Floats
    first: Ints
    time_s: Floats
    gpus: Floats
    watts: Floats
    counts: Floats
    idle_w: Floats
    overhead_s: Floats
    earliest_s: Floats
    capacity: float
    limit: float

    @classmethod
    def of(cls, problem: ElasticProblem, edges: Floats, charged: bool = False) -> Setting:
        """Return the setting of a problem and its pieces; `charged` tells if starts take time."""
        every = range(len(problem.counts))
        groups = [[k] for k in every] if charged else [list(every)]
        classes, first, rows = range(len(problem.classes)), [0], []
        for c in classes:
            for group in groups:
                k, f = np.nonzero(np.isfinite(problem.time_s[c, group]))
                t, w = problem.time_s[c, group][k, f], problem.power_w[c, group][k, f]
                n = problem.counts[group][k].astype(float)
                keep = undominated(t, t * n, t * w)
                rows.append(np.stack([t, n, w])[:, keep])
                first.append(first[-1] + len(keep))
        time_s, gpus, watts = map(floats, np.concatenate(rows, axis=1))
        many = len(groups)
        table = np.array([first[c * many :][: many + 1] for c in classes])
        counts, overhead = np.zeros(1), np.zeros(1)
        if charged:
            counts = problem.counts.astype(float)
            overhead = _overheads(problem, float(edges[-1]))
        return cls(
            problem, edges, table, time_s, gpus, watts, counts, problem.idle_w * counts, overhead,
            _earliest(problem, groups, overhead), float(problem.gpus),
            problem.power_limit_w,
        )  # fmt: skip

    def work(self, per: int) -> float:
        """Units of work of one bound at given prices, with so many values of an iteration."""
        pieces, groups = len(self.edges) - 1, len(self.counts)
        begun = np.searchsorted(self.edges, self.problem.jobs.submit_s)
        steps = groups * int((pieces - np.minimum(begun, pieces)).sum())
        return ELASTIC.prices(per, pieces, len(self.time_s), steps)

    def values(self, gpu_price: Floats, power_price: Floats, per: int) -> Floats:
        """Return (C, V) values of an iteration worth trying at these prices, s.

        At its best a job gains one second of completion per second of work at the margin, so
        that an iteration is worth about (1 + λn + μP)·T_iter.
        """
        top_gpu, top_power = float(gpu_price.max()), float(power_price.max())
        rows = []
        for first in self.first:
            part = slice(int(first[0]), int(first[-1]))
            t, n, w = self.time_s[part], self.gpus[part], self.watts[part]
            low = 0.3 * float(t.min())
            high = 1.5 * float(((1 + top_gpu * n + top_power * w) * t).min())
            rows.append(np.geomspace(low, max(high, 4 * low), per))
        return np.array(rows)


def starts_s(problem: ElasticProblem) -> Floats:
    """Return (N,) what the referee asks at least of a start on each count, s."""
    jobs, submit_s = problem.jobs, problem.jobs.submit_s
    slowest = np.where(np.isfinite(problem.time_s), problem.time_s, 0.0).max(axis=(1, 2))
    longest = problem.overhead.seconds(int(problem.counts[-1]))
    one_by_one = float((slowest[jobs.of_class] * jobs.iterations + longest).sum())
    span = float(submit_s[-1] - submit_s[0])
    # nobody waits for longer than all do together where jobs run one by one
    return _overheads(problem, float(submit_s[-1]) + len(problem) * (span + one_by_one))


def _overheads(problem: ElasticProblem, horizon_s: float) -> Floats:
    """Return (N,) what the referee asks at least of a start on each count before the horizon, s."""
    paid = np.array([problem.overhead.seconds(int(n)) for n in problem.counts])
    return np.maximum(paid - 2 * float(slack_s(horizon_s)), 0.0)


def _earliest(problem: ElasticProblem, groups: list[list[int]], overhead_s: Floats) -> Floats:
    """Return (J,) no job is done sooner: a start, and all its work at the fastest clock."""
    time_s = np.where(np.isfinite(problem.time_s), problem.time_s, np.inf).min(axis=2)
    fastest = np.stack([time_s[:, group].min(axis=1) for group in groups], axis=1)
    jobs = problem.jobs
    least = overhead_s[None, :] + jobs.iterations[:, None] * fastest[jobs.of_class]
    found: Floats = jobs.submit_s + least.min(axis=1) * (1 - ROUND)
    return found


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A bound and what it would take: (K,) GPU-s and J bought in each piece, none after the last.

    `worth` is what each job's work is worth where it is bounded, (J,), s.
    """

    bound: float
    gpu_s: Floats
    joules: Floats
    worth: Floats


def evaluate(setting: Setting, gpu_price: Floats, power_price: Floats, per: int) -> Evaluated:
    """Return the bound on Σ completions, s, at these prices."""
    jobs = setting.problem.jobs
    values = setting.values(gpu_price, power_price, per)
    pieces = len(gpu_price)
    gpu_s, joules, worth = np.zeros(pieces), np.zeros(pieces), np.zeros(len(jobs))
    total = 0.0
    for c in np.unique(jobs.of_class).tolist():
        total = _class(
            setting.edges, setting.first[c], setting.time_s, setting.gpus, setting.watts,
            setting.counts, setting.idle_w, setting.overhead_s, values[c], gpu_price, power_price,
            np.flatnonzero(jobs.of_class == c), jobs.submit_s, jobs.iterations,
            setting.earliest_s, total, gpu_s, joules, worth,
        )  # fmt: skip
    bound = proven(setting, total, gpu_price, power_price)
    return Evaluated(bound, gpu_s, joules, worth)


def proven(setting: Setting, total: float, gpu_price: Floats, power_price: Floats) -> float:
    """Σ of the jobs' least, s, less what all GPUs and all power would have cost; rounded down."""
    length = np.diff(setting.edges)
    terms = [*(setting.capacity * gpu_price * length).tolist()]
    if math.isfinite(setting.limit):
        terms += (setting.limit * power_price * length).tolist()
    return outwards([total, *(-paid * (1 + ROUND) for paid in terms)])


@compiled
def _gains(
    edges: Any, first: Any, time_s: Any, gpus: Any, watts: Any, counts: Any, idle_w: Any,
    overhead_s: Any, values: Any, gpu_price: Any, power_price: Any,
) -> Any:  # fmt: skip
    """Return the highest gain of a second by group and piece, (N, K, V), its configuration,
    and what a start at the beginning of the piece loses at least.

    A second gains no less than in a restart there, so that the restart costs no less than nothing.
    A start up to a piece away loses the overhead at the least loss of a second from a piece before
    to an overhead after.
    """
    many, pieces, tried = len(counts), len(gpu_price), len(values)
    gain = np.zeros((many, pieces, tried))
    which = np.full((many, pieces, tried), -1, np.int32)
    charge = np.zeros((many, pieces, tried))
    low = np.empty(tried)
    for n in range(many):
        for k in range(pieces):
            floor = gpu_price[k] * counts[n] + power_price[k] * idle_w[n]
            gain[n, k, :] = -floor * (1.0 - ROUND)
            for z in range(first[n], first[n + 1]):
                speed = 1.0 / time_s[z]
                cost = gpu_price[k] * gpus[z] + power_price[k] * watts[z]
                for v in range(tried):
                    now = values[v] * speed * (1.0 + ROUND) - cost * (1.0 - ROUND)
                    if now > gain[n, k, v]:
                        gain[n, k, v] = now
                        which[n, k, v] = z
        for k in range(pieces):
            last = edges[k + 1] + overhead_s[n]
            if overhead_s[n] <= 0.0 or last >= edges[pieces]:
                break  # what a second is worth after the last piece is not asked
            low[:] = np.inf
            i = max(k - 1, 0)
            while i < pieces and edges[i] <= last:
                paid = gpu_price[i] * counts[n] + power_price[i] * idle_w[n]
                for v in range(tried):
                    lost = gain[n, i, v] + paid - ROUND * (abs(gain[n, i, v]) + paid)
                    low[v] = min(low[v], lost)
                i += 1
            for v in range(tried):
                charge[n, k, v] = max(0.0, low[v] * overhead_s[n] * (1.0 - ROUND))
    return gain, which, charge


@compiled
def _least(
    edges: Any, gain: Any, charge: Any, tail: Any, value: Any, start: Any, earliest: Any
) -> Any:
    """Return the least completion plus payments of a job, rounded down, its value and completion.

    A job that completes at C within piece k has paid at least u − S(C) for any value u of its
    work, S(C) being the gains until C: linear in C within a piece, so that the two ends count.
    State: the group it runs in, or none. It changes at edges only, at the charge there; idling
    costs nothing.
    """
    many, pieces, tried = gain.shape
    best, best_v, best_end = np.inf, -1, start
    so_far = np.full((many, tried), -np.inf)
    idle, size = np.zeros(tried), np.zeros(tried)
    k = max(np.searchsorted(edges, start, side="right") - 1, 0)
    while k < pieces:
        low, high = max(edges[k], start), edges[k + 1]
        for n in range(many):
            for v in range(tried):
                so_far[n, v] = max(so_far[n, v], idle[v] - charge[n, k, v])
        if high > earliest:
            from_here = max(low, earliest)
            top, top_v, top_end = -np.inf, 0, high
            for v in range(tried):
                here, there, large = idle[v], idle[v], 0.0
                for n in range(many):
                    rate = gain[n, k, v]
                    here = max(here, so_far[n, v] + rate * (from_here - low))
                    there = max(there, so_far[n, v] + rate * (high - low))
                    large = max(large, abs(rate))
                a, b = from_here + value[v] - here, high + value[v] - there
                worse = min(a, b)
                # sums of as many terms as there are pieces
                terms = abs(high) + value[v] + size[v] + large * (high - low)
                worse -= ROUND * (2 * k + 6) * terms
                if worse > top:
                    top, top_v = worse, v
                    top_end = from_here if a < b else high
            if top < best:
                best, best_v, best_end = top, top_v, top_end
        for v in range(tried):
            large = 0.0
            for n in range(many):
                so_far[n, v] += gain[n, k, v] * (high - low)
                idle[v] = max(idle[v], so_far[n, v])
                large = max(large, abs(gain[n, k, v]) * (high - low) + charge[n, k, v])
            size[v] += large
        k += 1
    # completions after the last piece: only values whose gain is at most a second per second
    last, top, top_v = edges[pieces], -np.inf, -1
    from_here = max(last, earliest)
    over = max(0.0, from_here - max(last, start))
    for v in range(tried):
        if tail[v] <= 1.0:
            now = from_here + value[v] - idle[v] - tail[v] * over
            now -= ROUND * (2 * k + 6) * (from_here + value[v] + size[v] + tail[v] * over)
            if now > top:
                top, top_v = now, v
    if top == -np.inf:  # no value is low enough: nothing paid, nothing gained
        top = from_here
    if top < best:
        best, best_v, best_end = top, top_v, from_here
    return best, best_v, best_end


@compiled
def _bought(
    edges: Any, gain: Any, charge: Any, which: Any, watts: Any, gpus: Any, v: int, start: Any,
    end: Any, gpu_s: Any, joules: Any,
) -> None:  # fmt: skip
    """Add what the best way to this completion buys, by piece; restarts as if they ran."""
    many, pieces = gain.shape[0], gain.shape[1]
    came = np.full((many + 1, pieces), -1, np.int32)  # by which state; the last one is idle
    so_far = np.full(many + 1, -np.inf)
    so_far[many] = 0.0
    begin = max(np.searchsorted(edges, start, side="right") - 1, 0)
    k = begin
    while k < pieces and edges[k] < end:
        length = min(edges[k + 1], end) - max(edges[k], start)
        top = int(np.argmax(so_far))
        most = so_far[top]
        for n in range(many):
            stay = so_far[n] >= most - charge[n, k, v]
            came[n, k] = n if stay else top
            so_far[n] = max(so_far[n], most - charge[n, k, v]) + gain[n, k, v] * length
        came[many, k] = top
        so_far[many] = most
        k += 1
    state = int(np.argmax(so_far))
    while k > begin:
        k -= 1
        if state < many and which[state, k, v] >= 0:
            z = which[state, k, v]
            length = min(edges[k + 1], end) - max(edges[k], start)
            gpu_s[k] += gpus[z] * length
            joules[k] += watts[z] * length
        state = came[state, k]


@compiled
def _class(
    edges: Any, first: Any, time_s: Any, gpus: Any, watts: Any, counts: Any, idle_w: Any,
    overhead_s: Any, values: Any, gpu_price: Any, power_price: Any, own: Any, submit: Any,
    iterations: Any, earliest: Any, total: float, gpu_s: Any, joules: Any, worth: Any,
) -> Any:  # fmt: skip
    """Add the least cost of a class's jobs `own` to the total, s, rounded down; add what they
    buy to `gpu_s` and `joules`, and set their `worth`."""
    gain, which, charge = _gains(
        edges, first, time_s, gpus, watts, counts, idle_w, overhead_s, values, gpu_price,
        power_price,
    )  # fmt: skip
    tail = np.zeros(len(values))  # most that a second may gain after the last piece
    for z in range(first[0], first[-1]):
        for v in range(len(values)):
            tail[v] = max(tail[v], values[v] / time_s[z] * (1.0 + ROUND))
    for j in own:
        at, v, end = _least(
            edges, gain, charge, tail, values * iterations[j], submit[j], earliest[j]
        )
        total += at - ROUND * (abs(total) + abs(at))
        if v < 0:
            continue
        worth[j] = values[v] * iterations[j]
        _bought(edges, gain, charge, which, watts, gpus, v, submit[j], end, gpu_s, joules)
    return total
