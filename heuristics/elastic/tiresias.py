"""Tiresias (Gu et al., NSDI 2019): not elastic, preemptive, without knowledge of durations.

Jobs are in queues by attained service, GPUs × seconds, the least first. Inside a queue, 2D-LAS
puts running jobs first, then sorts by first start and submission; 2D-Gittins sorts by the index
of the services of completed jobs, `gittins_index`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.heuristics.elastic.parameters import TiresiasParams, TiresiasZeusParams
from optgap.heuristics.elastic.shared_clock import Clock
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.models.times import slack_s

QUANTUM_GPU_S = 3250.0
"""Horizon Δ of the Gittins index."""


def tiresias(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run Tiresias; `given` is as in `TiresiasParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    return _run(problem, limits, "tiresias", chosen(TiresiasParams, given, "tiresias"))


def tiresias_zeus(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run Tiresias with each job at Zeus's clock; `given` is as in `TiresiasZeusParams`."""
    return _run(problem, limits, "tiresias+zeus", chosen(TiresiasZeusParams, given, "tiresias"))


def _run(
    problem: ElasticProblem,
    limits: Limits,
    owner: str,
    options: TiresiasParams | TiresiasZeusParams,
) -> Outcome:
    thresholds = (options.threshold_1, options.threshold_2)
    if not (thresholds[0] > 0 and (thresholds[1] == 0 or thresholds[1] > thresholds[0])):
        raise InputError("tiresias", "thresholds", thresholds, "positive, ascending GPU-s")
    queues = np.array([t for t in thresholds if t > 0])
    clock = Clock(problem, owner, options)
    return simulate(problem, Tiresias(problem, clock, queues, options.discipline), limits)


def gittins_index(services: Floats, attained: float) -> float:
    """Return #{r ≤ Δ} / Σ min(r, Δ) over the remaining services r of past jobs that got further."""
    later = services[services > attained]
    if not len(later):
        return 0.0
    rest = later - attained
    return float((rest <= QUANTUM_GPU_S).sum() / np.minimum(rest, QUANTUM_GPU_S).sum())


class Tiresias:
    """Two-dimensional scheduling as a policy of the engine."""

    def __init__(
        self,
        problem: ElasticProblem,
        clock: Clock,
        thresholds: Floats,
        discipline: str,
    ) -> None:
        self.problem, self.clock, self.discipline = problem, clock, discipline
        self.thresholds = thresholds
        self.settings = Settings(making="repack")
        self.wanted = clock.requested()
        size = len(problem)
        self.first_start = np.full(size, np.inf)
        self.services: list[float] = []
        self.before: dict[int, float] = {}

    def decide(self, state: ElasticState) -> Decision:
        """Sort the jobs into queues, then run in that order the jobs that fit."""
        jobs, gpus = state.jobs, self.problem.counts[self.wanted[state.jobs]]
        self._note_ends(state)
        held = state.held_s[jobs]
        queue = self._queues(gpus, held + slack_s(state.time_s))
        running = state.count >= 0
        if self.discipline == "gittins" and self.services:
            past = np.array(self.services)
            # jobs that left a queue at its threshold have the same service, but for rounding
            attained = np.round(gpus * held, 6).tolist()
            index = [gittins_index(past, a) for a in attained]
            order = np.lexsort((np.arange(len(jobs)), -np.array(index), queue))
        else:
            first = np.where(np.isfinite(self.first_start[jobs]), self.first_start[jobs], 1e300)
            order = np.lexsort((np.arange(len(jobs)), first, ~running, queue))
        count = np.full(len(jobs), -1, dtype=np.int64)
        free = self.problem.gpus
        for a in order.tolist():
            if gpus[a] <= free:
                count[a] = self.wanted[jobs[a]]
                free -= int(gpus[a])
        clock = self.clock.settle(state, count, order)
        started = jobs[(count >= 0) & ~np.isfinite(self.first_start[jobs])]
        self.first_start[started] = state.time_s
        self.before = dict(zip(jobs.tolist(), (gpus * held).tolist(), strict=True))
        return Decision(count, clock, order, self._wake(state, gpus, held, count))

    def _queues(self, gpus: Ints, held: Floats) -> Ints:
        """Return the number of thresholds that each job has passed; a threshold just met counts."""
        return np.asarray(((gpus * held)[:, None] >= self.thresholds[None, :]).sum(axis=1))

    def _note_ends(self, state: ElasticState) -> None:
        """Record the total services of completed jobs, on which the Gittins index depends."""
        if self.discipline != "gittins":
            return
        now = set(state.jobs.tolist())
        for job in self.before:
            if job not in now:
                n = int(self.problem.counts[self.wanted[job]])
                self.services.append(round(n * float(state.held_s[job]), 6))

    def _wake(self, state: ElasticState, gpus: Ints, held: Floats, count: Ints) -> float:
        """Return the time at which a running job passes its next threshold, s."""
        running = count >= 0
        attained = gpus * held
        wake = math.inf
        if running.any():
            a, n = attained[running], gpus[running]
            passed = n * (held[running] + slack_s(state.time_s))
            ahead = np.where(
                self.thresholds[None, :] > passed[:, None],
                self.thresholds[None, :] - a[:, None],
                np.inf,
            ).min(axis=1)
            wake = state.time_s + float((ahead / n).min())
        return wake
