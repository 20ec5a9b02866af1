"""What jobs can do at the same time, and schedules made of that: free restarts, counts of GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.elastic import ElasticProblem, Kind
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.snapshot import undominated
from optgap.solvers.elastic.pareto import pareto

Joint = tuple[int, ...]
"""The configuration of each job, an index into `Tables.index`, −1 for none."""

DEARER = 1e-12
"""Relative: a state of `best_joint` that is so little dearer than another gives way to it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A joint configuration from `start_s` to `end_s`, times since the first submission."""

    joint: Joint
    start_s: float
    end_s: float


class Tables:
    """The configurations of each job that keep the limit and that no other beats.

    Parameters
    ----------
    submit_s: (J,) since the first submission.
    rate: by job (Z,) shares of its work per second.
    gpus, watts: by job (Z,).
    index: by job, (count, clock) indices of each configuration in the problem.
    fastest_s: (J,) alone.
    """

    def __init__(self, problem: ElasticProblem) -> None:
        self.problem = problem
        self.size = len(problem)
        self.submit_s = problem.jobs.submit_s - problem.jobs.submit_s[0]
        self.rate: list[Floats] = []
        self.gpus: list[Ints] = []
        self.watts: list[Floats] = []
        self.index: list[list[tuple[int, int]]] = []
        for j, c in enumerate(problem.jobs.of_class.tolist()):
            k, f = np.nonzero(
                np.isfinite(problem.time_s[c]) & (problem.power_w[c] <= problem.power_allowed_w)
            )
            t, n, w = problem.time_s[c, k, f], problem.counts[k], problem.power_w[c, k, f]
            keep = undominated(t, n.astype(float), w)
            self.rate.append(1 / (t[keep] * problem.jobs.iterations[j]))
            self.gpus.append(n[keep].astype(np.int64))
            self.watts.append(w[keep])
            self.index.append(list(zip(k[keep].tolist(), f[keep].tolist(), strict=True)))
        self.fastest_s = np.array([1 / r.max() for r in self.rate])

    def alone(self, job: int) -> Joint:
        """One job at its fastest."""
        pick = [-1] * self.size
        pick[job] = int(self.rate[job].argmax())
        return tuple(pick)

    def price(self, active: Iterable[int], worth: Floats) -> tuple[float, Joint]:
        """The joint configuration that does most worth of work per second, and how much at most."""
        jobs = [j for j in sorted(active) if worth[j] > 0]
        pick = [-1] * self.size
        if not jobs:
            return 0.0, tuple(pick)
        values = [worth[j] * self.rate[j] for j in jobs]
        picks = best_joint(
            np.cumsum([0, *(len(v) for v in values)]),
            np.concatenate(values),
            np.concatenate([self.gpus[j] for j in jobs]),
            np.concatenate([self.watts[j] for j in jobs]),
            self.problem.gpus,
            min(self.problem.power_allowed_w, 1e300),
        )
        for j, z in zip(jobs, picks.tolist(), strict=True):
            pick[j] = z
        total = math.fsum(worth[j] * self.rate[j][pick[j]] for j in jobs if pick[j] >= 0)
        return total * (1 + 2 * len(jobs) * DEARER), tuple(pick)

    def segments(self, steps: Sequence[Step]) -> list[tuple[int, float, float, int, int, int, int]]:
        """Rows of an `ElasticSolution`; steps that follow on one another are one."""
        rows = []
        zero = float(self.problem.jobs.submit_s[0])
        for j in range(self.size):
            begun, last = -1.0, -1.0
            held = -1
            for step in (*steps, Step((-1,) * self.size, math.inf, math.inf)):
                z = step.joint[j]
                if held >= 0 and (z != held or step.start_s != last):
                    k, f = self.index[j][held]
                    n = int(self.problem.counts[k])
                    rows.append((j, zero + begun, zero + last, int(Kind.RUN), n, f, -1))
                    held = -1
                if z >= 0 and held < 0:
                    begun, held = step.start_s, z
                last = step.end_s if z >= 0 else last
        return rows


@compiled
def best_joint(first: Any, value: Any, gpus: Any, watts: Any, capacity: int, limit: float) -> Any:
    """One configuration per job, or none, of most value within both capacities.

    As good as the best up to `DEARER` of it for every job.
    """
    size = len(first) - 1
    used, power, cost = np.zeros(1, np.int64), np.zeros(1), np.zeros(1)
    parents, picks = [], []
    for j in range(size):
        total = len(used) * (first[j + 1] - first[j] + 1)
        new_used, new_power = np.empty(total, np.int64), np.empty(total)
        new_cost = np.empty(total)
        parent, pick = np.empty(total, np.int64), np.empty(total, np.int64)
        m = 0
        for s in range(len(used)):
            new_used[m], new_power[m], new_cost[m] = used[s], power[s], cost[s]
            parent[m], pick[m] = s, -1
            m += 1
            for z in range(first[j], first[j + 1]):
                if used[s] + gpus[z] <= capacity and power[s] + watts[z] <= limit:
                    new_used[m], new_power[m] = used[s] + gpus[z], power[s] + watts[z]
                    new_cost[m], parent[m], pick[m] = cost[s] - value[z], s, z - first[j]
                    m += 1
        slack = DEARER * np.abs(new_cost[:m]).max()
        keep = pareto(new_used[:m], new_power[:m], new_cost[:m], np.arange(m + 1), slack)
        used, power, cost = new_used[keep], new_power[keep], new_cost[keep]
        parents.append(parent[keep])
        picks.append(pick[keep])
    where = np.argmin(cost)
    answer = np.empty(size, np.int64)
    for j in range(size - 1, -1, -1):
        answer[j] = picks[j][where]
        where = parents[j][where]
    return answer


def completions(tables: Tables, steps: Sequence[Step]) -> float:
    """Σ over jobs of the end of the last step that they run in, s."""
    ends = [0.0] * tables.size
    for step in steps:
        for j, z in enumerate(step.joint):
            if z >= 0:
                ends[j] = max(ends[j], step.end_s)
    return math.fsum(ends)


def listed(tables: Tables) -> list[Step]:
    """The best of three list schedules: shortest remaining first one by one, most progress of all
    together, and most progress relative to what is left."""
    made = [_listed(tables, rule) for rule in ("shortest", "most", "least left")]
    return min(made, key=lambda steps: completions(tables, steps))


def _listed(tables: Tables, rule: str) -> list[Step]:
    """From event to event the joint configuration of most worth."""
    left = np.ones(tables.size)
    now, arrived, steps = 0.0, 0, []
    while left.any():
        while arrived < tables.size and tables.submit_s[arrived] <= now:
            arrived += 1
        coming = float(tables.submit_s[arrived]) if arrived < tables.size else math.inf
        active = np.flatnonzero(left[:arrived])
        if not len(active):
            now = coming
            continue
        rest = left[active] * tables.fastest_s[active]
        worth = np.zeros(tables.size)
        if rule == "shortest":
            worth[active[rest.argmin()]] = 1.0
        else:
            worth[active] = tables.fastest_s[active] if rule == "most" else 1 / left[active]
        joint = tables.price(active.tolist(), worth)[1]
        runs = {j: float(tables.rate[j][z]) for j, z in enumerate(joint) if z >= 0}
        first = min(runs, key=lambda j: left[j] / runs[j])
        end = min(now + left[first] / runs[first], coming)
        steps.append(Step(joint, now, end))
        for j, rate in runs.items():
            left[j] = max(0.0, left[j] - rate * (end - now))
        if end < coming:
            left[first] = 0.0
        left[left < 1e-12] = 0.0
        now = end
    return steps
