"""Joint configurations of jobs, and schedules of these: free restarts, counts of GPUs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from optgap.models.elastic import ElasticProblem, Kind, Segment
from optgap.models.elastic.arrays import Floats, Ints
from optgap.solvers.backends.safe import EPS
from optgap.solvers.elastic.snapshot import Snapshot, solve, undominated

Joint = tuple[int, ...]
"""The configuration of each job, an index into `Tables.index`, −1 for none."""

Values = Mapping[int, Floats] | Sequence[Floats]
"""Worth per second of each configuration, (Z,), by job."""

DEARER = 1e-12
"""The relative gap up to which a joint configuration is proven the best."""


@dataclass(frozen=True, slots=True)
class Step:
    """A joint configuration from `start_s` to `end_s`, times since the first submission."""

    joint: Joint
    start_s: float
    end_s: float


class Kept(NamedTuple):
    """Counts, clocks, s per iteration, W and starts per second of configurations."""

    k: Ints
    f: Ints
    time_s: Floats
    watts: Floats
    starts: Floats


class Tables:
    """The configurations of each job that keep the limit and that no other beats.

    A profiling window is none of them: it counts at the clock that draws most and does the mean of
    all, so that the fastest clock beats it.

    Parameters
    ----------
    start_s: (N,) what a start on each GPU count takes, s; None where starts are free. Where they
        are not, only others with the same count beat a configuration, and starts are
        configurations that do no work.

    Attributes
    ----------
    submit_s: (J,) since the first submission.
    rate: by job (Z,) shares of its work per second.
    starts: by job (Z,) starts per second, 0 for configurations that do work.
    gpus, watts: by job (Z,).
    index: by job, (count, clock) indices of each configuration in the problem; the clock is −1 for
        starts.
    fastest_s: (J,) alone, without the start.
    """

    def __init__(self, problem: ElasticProblem, start_s: Floats | None = None) -> None:
        self.problem = problem
        self.size = len(problem)
        self.charged = start_s is not None
        self.longest_start_s = 0.0 if start_s is None else float(start_s.max())
        self.submit_s = problem.jobs.submit_s - problem.jobs.submit_s[0]
        self.rate: list[Floats] = []
        self.starts: list[Floats] = []
        self.gpus: list[Ints] = []
        self.watts: list[Floats] = []
        self.index: list[list[tuple[int, int]]] = []
        # a class without jobs may have none that keeps the limit
        kept = {c: _kept(problem, c, start_s) for c in np.unique(problem.jobs.of_class).tolist()}
        for iterations, c in zip(problem.jobs.iterations, problem.jobs.of_class, strict=True):
            own = kept[c]
            self.rate.append(1 / (own.time_s * iterations))
            self.starts.append(own.starts)
            self.gpus.append(problem.counts[own.k].astype(np.int64))
            self.watts.append(own.watts)
            self.index.append(list(zip(own.k.tolist(), own.f.tolist(), strict=True)))
        self.fastest_s = np.array([1 / r.max() for r in self.rate])

    def fastest(self, job: int) -> list[int]:
        """Return the configuration in which a job is fastest, and where it is charged its start."""
        best = int(self.rate[job].argmax())
        start = (self.starts[job] > 0) & (self.gpus[job] == self.gpus[job][best])
        return [best, *np.flatnonzero(start).tolist()]

    def only(self, job: int, configuration: int) -> Joint:
        """Return one job in a configuration."""
        pick = [-1] * self.size
        pick[job] = configuration
        return tuple(pick)

    def price(self, active: Iterable[int], values: Values) -> tuple[float, Joint]:
        """Return the joint configuration of most value per second, and how much that is at most.

        values: by job, (Z,) of each configuration.
        """
        pick = [-1] * self.size
        kept = {j: np.flatnonzero(values[j] > 0) for j in sorted(active)}
        jobs = [j for j, which in kept.items() if len(which)]
        if not jobs:
            return 0.0, tuple(pick)
        worth = [values[j][kept[j]] for j in jobs]
        sizes = [len(v) for v in worth]
        gpus, watts = (
            np.concatenate([t[j][kept[j]] for j in jobs]) for t in (self.gpus, self.watts)
        )
        values_ = np.concatenate(worth)
        together = Snapshot.of_worth(self.problem, sizes, values_, gpus=gpus, watts=watts)
        solved = solve(together, DEARER)
        assert solved.chosen is not None  # all may wait
        begins = accumulate(sizes, initial=0)
        for j, begin, z in zip(jobs, begins, solved.chosen.tolist(), strict=False):
            pick[j] = int(kept[j][z - begin]) if z >= 0 else -1
        most = max(float(v.max()) for v in worth)
        off = (4 * len(jobs) + 8) * EPS * len(jobs) * most
        return len(jobs) * most - solved.bound + off, tuple(pick)

    def segments(self, steps: Sequence[Step]) -> list[Segment]:
        """Return the segments of an `ElasticSolution`; steps in direct sequence are one."""
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
                    rows.append(Segment(j, zero + begun, zero + last, Kind.RUN, n, f))
                    held = -1
                if z >= 0 and held < 0:
                    begun, held = step.start_s, z
                last = step.end_s if z >= 0 else last
        return rows


def _kept(problem: ElasticProblem, c: int, start_s: Floats | None) -> Kept:
    """Return a class's configurations within the limit that no other beats; all counts for starts.

    Where starts are charged, only others with as many GPUs beat one.
    """
    k, f = np.nonzero(np.isfinite(problem.time_s[c]))
    t, watts = problem.time_s[c, k, f], problem.power_w[c, k, f]
    idle_w = problem.idle_w * problem.counts.astype(float)
    held = watts if start_s is None else np.maximum(watts, idle_w[k])
    fits = np.flatnonzero(held <= problem.power_allowed_w)
    counts = problem.counts[k].astype(float)
    groups = [fits] if start_s is None else [fits[k[fits] == n] for n in np.unique(k[fits])]
    rows = []
    for own in groups:
        keep = own[undominated(t[own], counts[own], watts[own])]
        rows.append(np.stack([k[keep], f[keep], t[keep], watts[keep], 0.0 * keep]))
        if start_s is not None:
            n = k[own[0]]
            rows.append(np.array([[n], [-1.0], [np.inf], [idle_w[n]], [1 / start_s[n]]]))
    k, f, t, watts, starts = np.concatenate(rows, axis=1)
    return Kept(k.astype(np.int64), f.astype(np.int64), t, watts, starts)


def waited(tables: Tables, steps: Sequence[Step]) -> float:
    """Return Σ over jobs of the end of the last step that they run in, less their submission, s."""
    return math.fsum([*ends(tables, steps), *(-tables.submit_s).tolist()])


def ends(tables: Tables, steps: Sequence[Step]) -> list[float]:
    """Return (J,) the end of the last step of each job, s after the first submission."""
    found = [0.0] * tables.size
    for step in steps:
        for j, z in enumerate(step.joint):
            if z >= 0:
                found[j] = max(found[j], step.end_s)
    return found


def by_worth(tables: Tables, worth: Floats) -> list[Step]:
    """Return, from event to event, the joint configuration that does most worth of work.

    worth: (J,) of each job's whole work.
    """
    floor = 1e-9 * float(np.abs(worth).max(initial=1e-9))  # no job waits for ever
    worth = np.maximum(worth, floor)
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
        joint = tables.price(active, {j: worth[j] * tables.rate[j] for j in active.tolist()})[1]
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
