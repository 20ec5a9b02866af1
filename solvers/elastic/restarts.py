"""What prices of GPUs and power over time prove where a (re)start costs time.

As `lagrangian.py`, but that each job also pays for every change of its GPU count: while it
restarts on n GPUs it holds them, at idle power, and does no work. The proof is in
``docs/elastic-bounds.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.compiled import compiled, floats
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.snapshot import undominated
from optgap.models.times import slack_s
from optgap.solvers.elastic.lagrangian import (
    ROUND,
    Evaluated,
    Setting,
    after_last,
    proven,
    tail_gains,
)


@dataclass(frozen=True, eq=False)
class Restarts:
    """What does not change between prices.

    Parameters
    ----------
    setting: pieces and limits; its configurations serve after the last piece.
    first: (C, N+1) where the configurations of a class on each count begin.
    time_s, watts: of configurations that no other with the same count beats.
    counts: (N,) GPUs; idle_w: (N,) W that they draw while a job restarts, 0 with a budget of
        energy.
    overhead_s: (N,) what the referee asks of a start on as many, s.
    earliest_s: (J,) when a job can be done at best, its first start included, s.
    """

    setting: Setting
    first: Ints
    time_s: Floats
    watts: Floats
    counts: Floats
    idle_w: Floats
    overhead_s: Floats
    earliest_s: Floats

    @classmethod
    def of(cls, setting: Setting) -> Restarts:
        """From a problem and the pieces."""
        problem = setting.problem
        first, rows = [0], []
        for c in range(len(problem.classes)):
            for k in range(len(problem.counts)):
                t, w = problem.time_s[c, k], problem.power_w[c, k]
                t, w = t[np.isfinite(t)], w[np.isfinite(t)]
                keep = undominated(t, t, t * w)
                rows.append(np.stack([t, w])[:, keep])
                first.append(first[-1] + len(keep))
        time_s, watts = map(floats, np.concatenate(rows, axis=1))
        counts = problem.counts.astype(float)
        overhead = _overheads(problem, float(setting.edges[-1]))
        many = len(counts)
        table = np.array([first[c * many :][: many + 1] for c in range(len(problem.classes))])
        idle = 0.0 if setting.energy else problem.idle_w
        return cls(
            setting, table, time_s, watts, counts, idle * counts, overhead,
            _earliest(problem, overhead),
        )  # fmt: skip

    def evaluate(self, gpu_price: Floats, power_price: Floats, per: int) -> Evaluated:
        """The bound on Σ completions, s, at these prices."""
        setting, jobs = self.setting, self.setting.problem.jobs
        values = setting.values(gpu_price, power_price, per)
        tail_price = float(power_price[-1]) if setting.energy else 0.0
        tail, tail_pick = tail_gains(
            setting.first, setting.time_s, setting.watts, values, tail_price
        )
        pieces = len(gpu_price)
        total, tail_j = 0.0, 0.0
        by = np.full((len(jobs), pieces + 1), np.inf)
        gpu_s, joules, worth = np.zeros(pieces), np.zeros(pieces), np.zeros(len(jobs))
        for c in range(len(self.first)):
            own = np.flatnonzero(jobs.of_class == c)
            if not len(own):
                continue
            gain, which = _gains(
                self.first[c], self.time_s, self.watts, self.counts, self.idle_w, values[c],
                gpu_price, power_price,
            )  # fmt: skip
            charge = _charges(
                setting.edges, gain, self.overhead_s, self.counts, self.idle_w, gpu_price,
                power_price,
            )  # fmt: skip
            for j in own.tolist():
                at, v, end = _least(
                    setting.edges, gain, charge, tail[c], values[c] * jobs.iterations[j],
                    float(jobs.submit_s[j]), float(self.earliest_s[j]), by[j],
                )  # fmt: skip
                total += at - ROUND * (abs(total) + abs(at))
                if v < 0:
                    continue
                worth[j] = values[c, v] * jobs.iterations[j]
                _bought(
                    setting.edges, gain[:, :, v], charge[:, :, v], which[:, :, v], self.watts,
                    self.counts, float(jobs.submit_s[j]), end, gpu_s, joules,
                )  # fmt: skip
                if end > setting.edges[-1]:
                    tail_j += setting.watts[tail_pick[c, v]] * (end - float(setting.edges[-1]))
        bound = proven(setting, total, gpu_price, power_price)
        return Evaluated(bound, gpu_s, joules, tail_j, worth, by)


def starts_s(problem: ElasticProblem) -> Floats:
    """(N,) what the referee asks at least of a start on each count, s."""
    jobs, submit_s = problem.jobs, problem.jobs.submit_s
    slowest = np.where(np.isfinite(problem.time_s), problem.time_s, 0.0).max(axis=(1, 2))
    longest = problem.overhead.seconds(int(problem.counts[-1]))
    one_by_one = float((slowest[jobs.of_class] * jobs.iterations + longest).sum())
    span = float(submit_s[-1] - submit_s[0])
    # nobody waits for longer than all do together where jobs run one by one
    return _overheads(problem, float(submit_s[-1]) + len(problem) * (span + one_by_one))


def _overheads(problem: ElasticProblem, horizon_s: float) -> Floats:
    """(N,) what the referee asks at least of a start on each count before the horizon, s."""
    paid = np.array([problem.overhead.seconds(int(n)) for n in problem.counts])
    return np.maximum(paid - 2 * float(slack_s(horizon_s)), 0.0)


def _earliest(problem: ElasticProblem, overhead_s: Floats) -> Floats:
    """(J,) no job is done sooner: a start, and all its work at the fastest clock."""
    fastest = np.where(np.isfinite(problem.time_s), problem.time_s, np.inf).min(axis=2)
    jobs = problem.jobs
    least = overhead_s[None, :] + jobs.iterations[:, None] * fastest[jobs.of_class]
    found: Floats = jobs.submit_s + least.min(axis=1) * (1 - ROUND)
    return found


@compiled
def _gains(
    first: Any, time_s: Any, watts: Any, counts: Any, idle_w: Any, values: Any, gpu_price: Any,
    power_price: Any,
) -> Any:  # fmt: skip
    """(N, K, V) most that a second on a count may gain in a piece, and which configuration.

    No less than what a restart there gains, so that the restart costs no less than nothing.
    """
    many, pieces, tried = len(counts), len(gpu_price), len(values)
    gain = np.zeros((many, pieces, tried))
    which = np.full((many, pieces, tried), -1, np.int32)
    for n in range(many):
        for k in range(pieces):
            held = gpu_price[k] * counts[n]
            floor = -(held + power_price[k] * idle_w[n]) * (1.0 - ROUND)
            gain[n, k, :] = floor
            for z in range(first[n], first[n + 1]):
                speed = 1.0 / time_s[z]
                cost = held + power_price[k] * watts[z]
                for v in range(tried):
                    now = values[v] * speed * (1.0 + ROUND) - cost * (1.0 - ROUND)
                    if now > gain[n, k, v]:
                        gain[n, k, v] = now
                        which[n, k, v] = z
    return gain, which


@compiled
def _charges(
    edges: Any, gain: Any, overhead_s: Any, counts: Any, idle_w: Any, gpu_price: Any,
    power_price: Any,
) -> Any:  # fmt: skip
    """(N, K, V) what a start at the beginning of a piece loses at least, and one up to a piece
    away: the overhead at the least loss of a second from a piece before to an overhead after.
    """
    many, pieces, tried = gain.shape
    charge = np.zeros((many, pieces, tried))
    low = np.empty(tried)
    for n in range(many):
        if overhead_s[n] <= 0.0:
            continue
        for k in range(pieces):
            last = edges[k + 1] + overhead_s[n]
            if last >= edges[pieces]:
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
    return charge


@compiled
def _least(
    edges: Any, gain: Any, charge: Any, tail: Any, value: Any, start: Any, earliest: Any, by: Any
) -> Any:
    """The least completion plus payments of a job, rounded down; by which value and completion.

    State: the count it runs on, or none. It changes at edges only, at the charge there; idling
    costs nothing. `by` gets the same of completions in each piece, and after the last.
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
            by[k] = top
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
    top, top_v, end = after_last(
        edges[pieces], start, earliest, value, idle, size, tail, ROUND * (2 * k + 6)
    )
    by[pieces] = top
    if top < best:
        best, best_v, best_end = top, top_v, end
    return best, best_v, best_end


@compiled
def _bought(
    edges: Any, gain: Any, charge: Any, which: Any, watts: Any, counts: Any, start: Any,
    end: Any, gpu_s: Any, joules: Any,
) -> Any:  # fmt: skip
    """Add what the best way to this completion buys, by piece; restarts as if they ran."""
    many, pieces = gain.shape
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
            stay = so_far[n] >= most - charge[n, k]
            came[n, k] = n if stay else top
            so_far[n] = max(so_far[n], most - charge[n, k]) + gain[n, k] * length
        came[many, k] = top
        so_far[many] = most
        k += 1
    state = int(np.argmax(so_far))
    while k > begin:
        k -= 1
        if state < many and which[state, k] >= 0:
            length = min(edges[k + 1], end) - max(edges[k], start)
            gpu_s[k] += counts[state] * length
            joules[k] += watts[which[state, k]] * length
        state = came[state, k]
