"""The event loop: exact progress, no time steps, the same for every policy.

A policy is asked at every submission, completion and end of a profiling window, and when it
asked to be woken. It names a GPU count and a clock for every active job; the engine finds
places, charges restarts, and works out when each job will be done if nothing changes.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from optgap.models.compiled import UP_TO, interpreted
from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind, Segment
from optgap.models.elastic.arrays import Ints
from optgap.models.elastic.referee import profile_of_power, within_limit
from optgap.models.elastic.simulation.cluster import Cluster
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Policy
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination
from optgap.models.times import slack_s

MOST_IDLE = 10_000
"""Events in a row at which nothing was done since the last and nobody came or went: an error."""
PAUSE_S = 1.0
"""A job that goes on elsewhere, on as many GPUs, after a shorter pause than this has been moved."""


class Simulation:
    """One run of a policy; `run` gives its outcome."""

    def __init__(self, problem: ElasticProblem, policy: Policy, limits: Limits) -> None:
        self.problem, self.policy, self.limits = problem, policy, limits
        self.settings = policy.settings
        size = len(problem)
        self.now = 0.0
        self.release_s = problem.jobs.submit_s + self.settings.prerun_s
        self.upcoming = 0
        self.active = np.zeros(0, dtype=np.int64)
        self.left = problem.jobs.iterations.astype(float).copy()
        self.since = np.zeros(size)  # progress counts from here on
        self.speed = np.zeros(size)
        self.count = np.full(size, -1, dtype=np.int64)
        self.clock = np.zeros(size, dtype=np.int64)
        self.place = np.full(size, -1, dtype=np.int64)
        self.begun = np.zeros(size)  # start of the segment now open
        self.ready = np.zeros(size)  # end of the restart
        self.held_from = np.zeros(size)
        self.last_end = [-math.inf] * size  # of the last segment, and what it held
        self.last_held = [(-1, -1)] * size
        self.held_s = np.zeros(size)
        self.window_end = np.full(size, np.inf)
        self.finish = np.full(size, np.inf)
        self.profiled = np.zeros((size, len(problem.counts)), dtype=np.bool_)
        self.seen = np.zeros(
            (size, len(problem.counts), len(problem.frequencies_mhz)), dtype=np.bool_
        )
        self.sweep_speed = (1.0 / problem.time_s).mean(axis=2)
        self.sweep_w = problem.counted_w.max(axis=2)
        self.cluster = Cluster(problem)
        self.segments: list[Segment] = []
        self.events = self.migrations = self.unplaced = self.windows = 0
        self.idle_events = 0

    # -- the loop -------------------------------------------------------------------------

    def run(self) -> Outcome:
        """To the last completion, or until the limits say stop."""
        with interpreted(len(self.problem) <= UP_TO.elastic_jobs):
            return self._run()

    def _run(self) -> Outcome:
        wake = math.inf
        stopped: Termination | None = None
        size = len(self.problem)
        while self.upcoming < size or len(self.active):
            stopped = self.limits.stop
            if stopped is not None:
                break
            self._advance(wake)
            self._notice()
            self._complete()
            self._submit()
            if not len(self.active):
                wake = math.inf
                continue
            decision = self.policy.decide(self._state())
            self._apply(decision)
            wake = max(decision.wake_s, self.now + slack_s(self.now))
            self.events += 1
        return self._outcome(stopped)

    def _advance(self, wake: float) -> None:
        """To the next event."""
        ends = (self.finish[self.active], self.window_end[self.active])
        times = np.concatenate([[wake], *ends, self.release_s[self.upcoming : self.upcoming + 1]])
        following = float(times.min())
        if not math.isfinite(following):
            raise RuntimeError(f"nothing runs at {self.now} s, and nobody is to come")
        # what happens at the same time is one event, and the last of it is now
        until = following + slack_s(following)
        submitted = int(np.searchsorted(self.release_s, until, side="right"))
        last = [self.release_s[submitted - 1]] if submitted > self.upcoming else []
        self.now = max(self.now, float(times[times <= until].max()), *last)

    def _notice(self) -> None:
        """Raise where a policy goes on deciding, and nothing gets done."""
        jobs = self.active
        coming = self.upcoming < len(self.problem) and self.release_s[self.upcoming] <= self.now
        working = (self.speed[jobs] > 0) & (self.since[jobs] < self.now)
        self.idle_events = 0 if coming or working.any() else self.idle_events + 1
        if self.idle_events > MOST_IDLE:
            raise RuntimeError(f"nothing gets done at {self.now} s, whatever the policy decides")

    def _complete(self) -> None:
        """Jobs that are done, and windows that have ended."""
        jobs = self.active
        done = self.finish[jobs] <= self.now
        for job in jobs[done].tolist():
            self._flush(job, float(self.finish[job]))
            self.left[job] = 0.0
            self._drop(job)
        if done.any():
            self.active = jobs = jobs[~done]
        ended = self.window_end[jobs] <= self.now
        for job in jobs[ended].tolist():
            self._pause(job)
            self.profiled[job, self.count[job]] = True
            self.seen[job, self.count[job]] = True
            self.window_end[job] = np.inf
            self._set_speed(job)

    def _submit(self) -> None:
        first = self.upcoming
        while self.upcoming < len(self.problem) and self.release_s[self.upcoming] <= self.now:
            job = self.upcoming
            least = int(self.problem.classes[self.problem.jobs.of_class[job]].counts[0])
            self.seen[job, np.searchsorted(self.problem.counts, least)] = True
            if self.settings.prerun_s > 0:
                span = float(self.problem.jobs.submit_s[job]), float(self.release_s[job])
                self.segments.append(Segment(job, *span, Kind.PRERUN, least))
            self.upcoming += 1
        if self.upcoming > first:
            self.active = np.append(self.active, np.arange(first, self.upcoming))

    def _state(self) -> ElasticState:
        jobs = self.active
        of_class = self.problem.jobs.of_class[jobs]
        passed = np.maximum(0.0, self.now - self.since[jobs])
        remaining = np.maximum(self.left[jobs] - passed * self.speed[jobs], 1e-9)
        count = self.count[jobs]
        keep = np.isfinite(self.window_end[jobs])
        held = np.where(count >= 0, self.now - self.held_from[jobs], 0.0)
        worked = np.isinf(self.window_end[jobs]) & (count >= 0) & (passed > 0)
        self.seen[jobs[worked], count[worked], self.clock[jobs[worked]]] = True
        total = self.held_s.copy()
        total[jobs] += held
        return ElasticState(
            self.problem,
            self.now,
            jobs,
            of_class,
            remaining,
            count.copy(),
            self.clock[jobs].copy(),
            np.where(keep, count, -1),
            np.where(keep, self.sweep_w[of_class, count], 0.0),
            self.seen,
            total,
        )

    # -- one job --------------------------------------------------------------------------

    def _settle(self, job: int) -> None:
        """Count the progress made until now."""
        passed = self.now - self.since[job]
        if passed > 0 and self.speed[job] > 0:
            self.left[job] = max(0.0, self.left[job] - passed * self.speed[job])
            self.since[job] = self.now

    def _flush(self, job: int, end: float) -> None:
        """Close the open segment at `end`."""
        k = int(self.count[job])
        if k < 0:
            return
        n, place = int(self.problem.counts[k]), int(self.place[job])
        start, ready = float(self.begun[job]), float(self.ready[job])
        if end > start:
            self.last_end[job], self.last_held[job] = end, (k, place)
        if start < ready:
            stop = min(ready, end)
            if stop > start:
                self.segments.append(Segment(job, start, stop, Kind.RESTART, n, -1, place))
            start = stop
        if end > start:
            window = math.isfinite(self.window_end[job])
            kind, clock = (Kind.PROFILE, -1) if window else (Kind.RUN, int(self.clock[job]))
            self.segments.append(Segment(job, start, end, kind, n, clock, place))
        self.begun[job] = end

    def _pause(self, job: int) -> None:
        """Close the open segment now, and count the progress made."""
        self._flush(job, self.now)
        self._settle(job)

    def _drop(self, job: int) -> None:
        """Release everything that the job holds."""
        self.held_s[job] += self.now - self.held_from[job]
        self.cluster.release(job)
        self.count[job] = -1
        self.speed[job] = 0.0
        self.finish[job] = np.inf
        self.window_end[job] = np.inf

    def _set_speed(self, job: int) -> None:
        """Iterations per second from `since` on, and when the job will be done."""
        c, k = int(self.problem.jobs.of_class[job]), int(self.count[job])
        self.since[job] = max(self.now, float(self.ready[job]))
        if math.isfinite(self.window_end[job]):
            self.speed[job] = self.sweep_speed[c, k]
        else:
            self.speed[job] = 1.0 / self.problem.time_s[c, k, self.clock[job]]
        self.finish[job] = self.since[job] + self.left[job] / self.speed[job]

    # -- decisions ------------------------------------------------------------------------

    def _apply(self, decision: Decision) -> None:
        """Take away, give, restart, and change clocks."""
        jobs, count = self.active, decision.count
        old = self.count[jobs]
        changed = np.flatnonzero(count != old)
        for a in changed[old[changed] >= 0].tolist():
            job = int(jobs[a])
            self._pause(job)
            self._drop(job)
        if decision.places is not None:
            self._put(decision, changed)
        else:
            self._find(decision, changed)
        same = np.flatnonzero((count == old) & (count >= 0) & (decision.clock != self.clock[jobs]))
        for a in same.tolist():
            job = int(jobs[a])
            if not math.isfinite(self.window_end[job]):
                if self.ready[job] <= self.now:
                    self._pause(job)
                self.clock[job] = decision.clock[a]
                self._set_speed(job)
        self._windows()

    def _put(self, decision: Decision, changed: Ints) -> None:
        """Places as the policy says; jobs of the same size may be elsewhere now."""
        jobs, places = self.active, decision.places or ()
        shifted = [
            a
            for a in np.flatnonzero(decision.count >= 0).tolist()
            if self.count[jobs[a]] == decision.count[a]
            and self.cluster.known.get(places[a], -1) != self.place[jobs[a]]
        ]
        for a in shifted:
            job = int(jobs[a])
            self._pause(job)
            self._drop(job)
        for a in sorted({*changed.tolist(), *shifted}):
            if decision.count[a] >= 0:
                n = int(self.problem.counts[decision.count[a]])
                self.cluster.put_at(int(jobs[a]), n, places[a])
                self._begin(a, decision, moved=a in shifted)

    def _find(self, decision: Decision, changed: Ints) -> None:
        """Places for jobs whose count has changed, in the order of the decision."""
        jobs, counts = self.active, self.problem.counts
        wanted = changed[decision.count[changed] >= 0]
        if decision.order is None:
            ranked = wanted[np.lexsort((wanted, -decision.count[wanted]))]
        else:
            rank = np.empty(len(jobs), dtype=np.int64)
            rank[decision.order] = np.arange(len(jobs))
            ranked = wanted[np.argsort(rank[wanted], kind="stable")]
        cluster = self.cluster
        cluster.moved[:] = False
        cluster.fixed[jobs] = np.isfinite(self.window_end[jobs])
        fresh = []
        for position, a in enumerate(ranked.tolist()):
            job = int(jobs[a])
            if not cluster.start(job, int(counts[decision.count[a]]), self.settings.making):
                self.unplaced += 1
                if self.settings.strict_order:
                    decision.count[ranked[position:]] = -1
                    break
                decision.count[a] = -1
                continue
            fresh.append((job, a))
        started = {job for job, _ in fresh}
        for job in np.flatnonzero(cluster.moved).tolist():
            if job not in started and self.count[job] >= 0:
                self._move(job)
        for _, a in fresh:
            self._begin(a, decision)

    def _begin(self, a: int, decision: Decision, moved: bool = False) -> None:
        """Start a job on its new GPUs."""
        job = int(self.active[a])
        k = int(decision.count[a])
        place = self.cluster.place(job)
        if self.now - self.last_end[job] < PAUSE_S - slack_s(self.now):
            before = self.last_held[job]
            moved = moved or (before[0] == k and before[1] != place)
        self.count[job], self.clock[job] = k, decision.clock[a]
        self.place[job] = place
        self.begun[job] = self.held_from[job] = self.now
        cost = self.problem.overhead.seconds(int(self.problem.counts[k]), moved)
        self.ready[job] = self.now + cost
        self.window_end[job] = np.inf
        self._set_speed(job)

    def _move(self, job: int) -> None:
        """Move a job to another place with as many GPUs."""
        place = self.cluster.place(job)
        if place == self.place[job]:
            return
        self._pause(job)
        left = self.window_end[job] - self.now
        self.place[job] = place
        self.begun[job] = self.now
        n = int(self.problem.counts[self.count[job]])
        cost = self.problem.overhead.seconds(n, moved=True)
        self.ready[job] = self.now + cost
        if math.isfinite(left):
            self.window_end[job] = self.ready[job] + left
        self._set_speed(job)
        self.migrations += 1

    def _windows(self) -> None:
        """Start profiling where a job is on a count that is new to it, if the limit allows."""
        jobs = self.active
        running = jobs[self.count[jobs] >= 0]
        if self.settings.profile_s <= 0:  # a window without length: known from now on
            self.seen[running, self.count[running]] = True
            return
        fresh = running[
            ~self.profiled[running, self.count[running]] & np.isinf(self.window_end[running])
        ]
        if not len(fresh):
            return
        room = math.inf
        c, k = self.problem.jobs.of_class, self.count
        if self.settings.strict:
            held_w = self.problem.counted_w[c[running], k[running], self.clock[running]]
            sweep_w = self.sweep_w[c[running], k[running]]
            watts = np.where(np.isfinite(self.window_end[running]), sweep_w, held_w)
            room = self.problem.power_allowed_w - float(watts.sum())
        for job in fresh.tolist():
            more = self.sweep_w[c[job], k[job]]
            more -= self.problem.counted_w[c[job], k[job], self.clock[job]]
            if more > room:
                continue  # put off until there is room for it
            room -= more
            if self.ready[job] <= self.now:
                self._pause(job)
            self.window_end[job] = max(self.now, float(self.ready[job])) + self.settings.profile_s
            self._set_speed(job)
            self.windows += 1

    # -- the end --------------------------------------------------------------------------

    def _outcome(self, stopped: Termination | None) -> Outcome:
        for job in self.active[self.count[self.active] >= 0].tolist():
            self._flush(job, self.now)  # of jobs that still run when the limits said stop
        if not self.segments:
            return Outcome(None, Status.NO_SOLUTION, stopped or Termination.COMPLETED)
        solution = ElasticSolution.of(
            self.segments, list(self.cluster.known), self.settings.switch_off
        )
        solution = declared(self.problem, solution)
        left = len(self.problem) - self.upcoming + len(self.active)
        done = len(self.problem) - left
        info: dict[str, float | int | str] = {
            "events": self.events,
            "migrations": self.migrations,
            "unplaced": self.unplaced,
            "profiling_windows": self.windows,
        }
        return Outcome(
            solution,
            Status.FEASIBLE,
            stopped or Termination.COMPLETED,
            info=info,
            message=f"stopped after {done} of {len(self.problem)} jobs" if left else "",
        )


def declared(problem: ElasticProblem, solution: ElasticSolution) -> ElasticSolution:
    """Return the same, with the limit that it keeps where that is above the problem's own."""
    if within_limit(problem, solution):
        return solution
    peak = float(profile_of_power(problem, solution)[1].max())
    return replace(solution, power_limit_w=peak * (1 + 1e-9))


def simulate(problem: ElasticProblem, policy: Policy, limits: Limits) -> Outcome:
    """Run a policy to the end of the jobs."""
    return Simulation(problem, policy, limits).run()
