"""What prices of GPUs and power over time prove, whatever they are.

With prices λ(t) ≥ 0 (s per GPU and s) and μ(t) ≥ 0 (s per W and s) the limits need not be kept:
every job then chooses its own GPUs, clocks and completion so that completion plus payments is
least, and Σ of these minus what all GPUs and all power would have cost is a lower bound on
Σ completions. See ``docs/elastic-bounds.md`` for the proof, and ``prices.py`` for good prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.compiled import compiled, floats
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.snapshot import undominated
from optgap.solvers.backends.safe import outwards

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
        time_s, gpus, watts = map(floats, np.concatenate(rows, axis=1))
        energy = problem.cap == "energy"
        limit = problem.energy_budget_j if energy else problem.power_limit_w
        return cls(
            problem, edges, np.array(first), time_s, gpus, watts,
            float(problem.gpus), limit, energy,
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

    `worth` is what each job's work is worth where it is bounded, (J,), s; `by`, where restarts are
    charged, the least completion plus payments of a job that completes in a piece, and after the
    last, (J, K+1), s.
    """

    bound: float
    gpu_s: Floats
    joules: Floats
    tail_j: float
    worth: Floats
    by: Floats | None = None


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
    return Evaluated(proven(setting, total, gpu_price, power_price), gpu_s, joules, tail, worth)


def proven(setting: Setting, total: float, gpu_price: Floats, power_price: Floats) -> float:
    """Σ of the jobs' least, s, less what all GPUs and all power would have cost; rounded down."""
    length = np.diff(setting.edges)
    terms = [*(setting.capacity * gpu_price * length).tolist()]
    if setting.energy:
        terms.append(float(power_price[-1]) * setting.limit)
    elif math.isfinite(setting.limit):
        terms += (setting.limit * power_price * length).tolist()
    return outwards([total, *(-paid * (1 + ROUND) for paid in terms)])


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
def tail_gains(first: Any, time_s: Any, watts: Any, values: Any, tail_price: float) -> Any:
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
def after_last(
    last: Any, start: Any, earliest: Any, value: Any, gained: Any, size: Any, tail: Any, share: Any
) -> Any:
    """The least completion plus payments of a job that completes after the last piece; by which
    value and completion. Only values whose gain is at most a second per second are used.

    `gained` until the last edge; `share` of `size` and of all other terms is taken off.
    """
    from_here = max(last, earliest)
    over = max(0.0, from_here - max(last, start))
    top, top_v = -np.inf, -1
    for v in range(len(tail)):
        if tail[v] <= 1.0:
            now = from_here + value[v] - gained[v] - tail[v] * over
            now -= share * (from_here + value[v] + size[v] + tail[v] * over)
            if now > top:
                top, top_v = now, v
    if top == -np.inf:  # no value is low enough: nothing paid, nothing gained
        top = from_here
    return top, top_v, from_here


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
    tail, tail_pick = tail_gains(first, time_s, watts, values, tail_price)
    gpu_s, joules, worth = np.zeros(pieces), np.zeros(pieces), np.zeros(len(submit))
    total, tail_j = 0.0, 0.0
    before = np.empty(many)
    for j in range(len(submit)):
        c = of_class[j]
        start = submit[j]
        earliest = start + least[j]
        before[:] = 0.0
        value = values[c] * iterations[j]
        best, best_v, best_end = np.inf, 0, start
        k = np.searchsorted(edges, start, side="right") - 1
        k = max(k, 0)
        while k < pieces:
            low, high = max(edges[k], start), edges[k + 1]
            if high > earliest:
                from_here = max(low, earliest)
                top, top_v, top_end = -np.inf, 0, high
                for v in range(many):
                    u = value[v]
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
        top, top_v, end = after_last(
            edges[pieces], start, earliest, value, before, before, tail[c], ROUND * (k + 2)
        )
        if top < best:
            best, best_v, best_end = top, top_v, end
        total += best - ROUND * (abs(total) + abs(best))
        if best_v < 0:
            continue
        worth[j] = value[best_v]
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
