"""Clock of jobs whose scheduler chooses none: a common one under the power limit, or Zeus's.

Zeus (You et al., NSDI 2023) takes the clock of a job that costs least in energy and time:
η_z·energy + (1 − η_z)·MAXPOWER·time, per iteration at the GPUs requested. The base of
elastic schedulers at a common clock is here, too; these give GPU counts from scratch at each event.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from optgap.heuristics.elastic.parameters import ClockParams, ZeusParams
from optgap.models.compiled import floats
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.errors import InputError


class Clock:
    """Clock of jobs whose scheduler chooses none.

    Every job runs at the `frequency` of the options (0: the highest), or at the clock that
    minimises Zeus's cost at the GPUs it requests. If the power limit would be passed, a common
    ceiling cuts all clocks. If the lowest ceiling is not enough, the last jobs of the order wait.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        owner: str,
        options: ClockParams | ZeusParams,
    ) -> None:
        self.problem, self.counted_w = problem, problem.counted_w
        self.limit_w = problem.power_allowed_w
        self.fewer = np.full(problem.time_s.shape[:2], -1, dtype=np.int64)
        if isinstance(options, ZeusParams):
            self.wanted = zeus_clocks(problem, options.zeus_eta)
            return
        clocks, frequency = problem.frequencies_mhz, options.frequency
        index = len(clocks) - 1
        if frequency:
            index = int(np.argmin(np.abs(clocks - frequency)))
            if abs(clocks[index] - frequency) > 1e-6:
                shown = f"0, or one of {clocks[0]:g} to {clocks[-1]:g} MHz that is in the problem"
                raise InputError(owner, "frequency", frequency, shown)
        self.wanted = np.full(len(problem), index, dtype=np.int64)

    def settle(self, state: ElasticState, count: Ints, order: Ints) -> Ints:
        """Return frequencies within the limit, (A,); `count` becomes −1 for jobs that must wait."""
        jobs, of_class = state.jobs, state.of_class
        clock = self.wanted[jobs].copy()
        if math.isfinite(self.limit_w):
            asked, held = count.copy(), np.full(len(jobs), -1.0)
            govern(
                of_class, count, clock, order, watts=self.counted_w, locked=held, fewer=self.fewer,
                limit=self.limit_w,
            )  # fmt: skip
            if (count < 0).all() and (asked >= 0).any():
                self._alone(state, asked, order, count, clock=clock)
        return clock

    def _alone(
        self, state: ElasticState, asked: Ints, order: Ints, count: Ints, *, clock: Ints
    ) -> None:
        """Run the first job that asked for GPUs at the highest count and frequency that fit.

        Power need not rise with either, so lowering both may end with nothing."""
        a = next(a for a in order.tolist() if asked[a] >= 0)
        c, k = int(state.of_class[a]), int(asked[a])
        fits = np.isfinite(self.problem.time_s[c]) & (self.counted_w[c] <= self.limit_w)
        able = np.flatnonzero(fits.any(axis=1))
        below = able[able <= k]
        count[a] = below[-1] if len(below) else able[0]
        clocks = np.flatnonzero(fits[count[a]])
        below = clocks[clocks <= self.wanted[state.jobs[a]]]
        clock[a] = below[-1] if len(below) else clocks[0]

    def requested(self) -> Ints:
        """Return the index of the count that each job requests, or the highest allowed, shape (J,).

        A job that needs more than the whole limit on its requested GPUs would never run, so it
        gets the most GPUs that it can run on.
        """
        problem = self.problem
        jobs = problem.jobs
        k = np.searchsorted(problem.counts, jobs.requested)
        least = np.where(np.isfinite(problem.time_s), self.counted_w, np.inf).min(axis=2)
        for j in np.flatnonzero(least[jobs.of_class, k] > self.limit_w).tolist():
            fits = np.flatnonzero(least[jobs.of_class[j]] <= self.limit_w)
            below = fits[fits <= k[j]]
            k[j] = below[-1] if len(below) else fits[0]
        return np.asarray(k, dtype=np.int64)


def govern(
    of_class: Ints,
    chosen: Ints,
    wanted: Ints,
    order: Ints,
    *,
    watts: Floats,
    locked: Floats,
    fewer: Ints,
    limit: float,
) -> float:
    """Cut clocks to a common ceiling, the highest under which the power limit holds; return W.

    If the lowest ceiling is not enough, jobs get fewer GPUs, the last of `order` first, and in
    the end none. `fewer`: (C, K) the next smaller count index, −1 for none. `locked`: (A,)
    power of jobs that keep theirs, −1 for the others. Changes `chosen` and `wanted` in place.
    """
    runs = np.flatnonzero(chosen >= 0)
    table, held, clock = watts[of_class[runs], chosen[runs]], locked[runs], wanted[runs]
    rows, power = np.arange(len(runs)), 0.0
    for ceiling in range(watts.shape[2] - 1, -1, -1):
        free = table[rows, np.minimum(clock, ceiling)]
        power = float(np.where(held >= 0, held, free).sum())
        if power <= limit:
            break
    np.minimum(wanted, ceiling, out=wanted)
    for a in order[::-1].tolist() if power > limit else ():
        c, f = of_class[a], wanted[a]
        while power > limit and chosen[a] >= 0 and locked[a] < 0:
            power -= watts[c, chosen[a], f]
            chosen[a] = fewer[c, chosen[a]]
            power += watts[c, chosen[a], f] if chosen[a] >= 0 else 0.0
    return power


def zeus_clocks(problem: ElasticProblem, zeus_eta: float) -> Ints:
    """Return argmin over F of (η_z·P + (1 − η_z)·P_max)·T_iter at the requested GPUs, shape (J,).

    MAXPOWER is the job's power at the highest frequency. Ties go to the higher frequency.
    """
    jobs = problem.jobs
    k = np.searchsorted(problem.counts, jobs.requested)
    power = problem.power_w[jobs.of_class, k]
    cost = (zeus_eta * power + (1 - zeus_eta) * power[:, -1:]) * problem.time_s[jobs.of_class, k]
    last = cost.shape[1] - 1 - cost[:, ::-1].argmin(axis=1)
    return np.asarray(last, dtype=np.int64)


class Elastic(ABC):
    """Base of elastic schedulers with a common frequency."""

    def __init__(self, problem: ElasticProblem, clock: Clock) -> None:
        self.problem, self.clock = problem, clock
        self.settings = Settings(making="least")
        self.least, self.following, clock.fewer = neighbours(problem.time_s)
        top = int(clock.wanted[0])
        time_s = problem.time_s[:, :, top]
        self.speed = floats(np.where(np.isfinite(time_s), 1.0 / time_s, 0.0))

    @abstractmethod
    def shares(self, state: ElasticState) -> tuple[Ints, Ints]:
        """Return count indices, (A,), and the order in which jobs keep GPUs under the limit."""

    def decide(self, state: ElasticState) -> Decision:
        """Decide from scratch at every event."""
        count, order = self.shares(state)
        clock = self.clock.settle(state, count, order)
        return Decision(count, clock)


def neighbours(time_s: Floats) -> tuple[Ints, Ints, Ints]:
    """Return the first count of each class, (C,), and the next and last, (C, K), −1 for none.

    `time_s` is (C, K, F), and infinite if a class may not run on a count.
    """
    allowed = np.isfinite(time_s[:, :, 0])
    following = np.full(allowed.shape, -1, dtype=np.int64)
    fewer = following.copy()
    for c, row in enumerate(allowed):
        index = np.flatnonzero(row)
        following[c, index[:-1]], fewer[c, index[1:]] = index[1:], index[:-1]
    return allowed.argmax(axis=1), following, fewer
