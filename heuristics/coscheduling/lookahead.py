"""Look-ahead with EcoSched's score: each action is simulated to the end before one is chosen.

The policy knows what EcoSched knows: power, run times relative to the fastest mode, and completed
jobs. It assumes that every job runs on its fastest GPU count as long as the mean of the completed
jobs. It starts the action from which EcoSched's greedy choice then leads to the least energy. The
default of τ is twice the fastest run time, because EcoSched's own default causes most of the energy
that EcoSched could still save.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from optgap.heuristics.coscheduling.ecosched import (
    Regrets,
    best_action,
    phase_one,
    regrets,
    weight_of,
)
from optgap.heuristics.coscheduling.engine import Action, CoschedulingState, replay
from optgap.heuristics.coscheduling.parameters import LookaheadParams
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.times import slack_s

WINDOW, BREADTH = 20, 24
"""Largest numbers of waiting jobs in the window, and of actions that are simulated to the end."""
EQUAL = 1e-9
"""Relative difference below which energies count as equal, so that the first action wins."""
LEAST_LEFT = 0.3
"""Least share of its expected run time that a running job is assumed to have left."""

Plan = tuple[tuple[int, int], ...]


def lookahead(problem: CoschedulingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Simulate EcoSched to the end of the window at each event; see `LookaheadParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    tau = LookaheadParams(**given).tau
    if not tau >= 0:
        raise InputError("lookahead", "tau", tau, "a slow-down of at least 0")
    return replay(problem, _Player(problem, tau).choose, limits)


class _Player:
    """Simulator of EcoSched's greedy choice; all jobs last as long as the mean completed job."""

    def __init__(self, problem: CoschedulingProblem, tau: float) -> None:
        times = phase_one(problem, "auto")
        pairs = list(zip(problem.applications, times, strict=True))
        self.problem, self.weight = problem, weight_of(problem, None)
        self.kept = [regrets(app, tau, t) for app, t in pairs]
        # by application and GPU count: relative run time, and W beyond its GPUs' idle power
        self.modes = [
            {
                m.gpu_count: (t / min(ts), m.power_w - problem.idle_w * m.gpu_count)
                for m, t in zip(app.modes, ts, strict=True)
            }
            for app, ts in pairs
        ]
        self.running: dict[int, tuple[float, int]] = {}
        self.fastest: list[float] = []

    @property
    def mean_s(self) -> float:
        """Mean run time of completed jobs on their fastest GPU count, s; 1 before any has ended."""
        return sum(self.fastest) / len(self.fastest) if self.fastest else 1.0

    def choose(self, state: CoschedulingState) -> Action:
        """Return the action that leads to the least energy, the first of equals."""
        for job in [job for job in self.running if job not in state.running]:
            start, count = self.running.pop(job)
            self.fastest.append((state.time_s - start) / self.mode(job, count)[0])
        jobs = state.waiting[:WINDOW]
        actions = self.actions(self.offers(jobs), state)
        chosen: Plan = actions[0] if actions else ()
        if len(actions) > 1:
            running = self.left(state)
            played = [(self.played(jobs, running, action), action) for action in actions]
            least = min(energy for energy, _ in played)
            most = least + EQUAL * abs(least)
            chosen = min(action for energy, action in played if energy <= most)
        self.running.update({job: (state.time_s, count) for job, count in chosen})
        return chosen

    def mode(self, job: int, count: int) -> tuple[float, float]:
        """Return the relative run time of a job, and its power above idle GPUs, W."""
        return self.modes[self.problem.jobs[job]][count]

    def offers(self, jobs: Sequence[int]) -> list[tuple[int, Regrets]]:
        """Return the jobs with the modes that are kept."""
        return [(job, self.kept[self.problem.jobs[job]]) for job in jobs]

    def left(self, state: CoschedulingState) -> list[tuple[float, int]]:
        """Return the expected remaining time of each running job, s, and its GPUs."""
        found = []
        for job, (start, count) in zip(state.running, state.started, strict=True):
            expected = self.mode(job, count)[0] * self.mean_s
            elapsed = state.time_s - start if self.fastest else 0.0
            found.append((max(expected - elapsed, LEAST_LEFT * expected), count))
        return found

    def actions(
        self, offers: Sequence[tuple[int, Regrets]], state: CoschedulingState
    ) -> list[Plan]:
        """Return the actions of least score; longer ones extend the best of the shorter ones."""
        ranked: list[tuple[float, Plan]] = []
        level: list[tuple[float, int, Plan]] = [(0.0, 0, ())]
        for size in range(1, state.free_domains + 1):
            longer: dict[frozenset[tuple[int, int]], tuple[float, int, Plan]] = {}
            for total, used, plan in level:
                for job, modes in offers:
                    if any(job == other for other, _ in plan):
                        continue
                    for count, regret in modes:
                        if used + count <= state.free_gpus:
                            key = frozenset((*plan, (job, count)))
                            entry = (total + regret, used + count, (*plan, (job, count)))
                            longer.setdefault(key, entry)
            scored = sorted(
                (
                    total / size + self.weight * (state.free_gpus - used) / self.problem.gpus,
                    plan,
                    total,
                    used,
                )
                for total, used, plan in longer.values()
            )
            ranked += [(score, plan) for score, plan, _, _ in scored[:BREADTH]]
            level = [(total, used, plan) for _, plan, total, used in scored[:BREADTH]]
        return [plan for _, plan in sorted(ranked)[:BREADTH]]

    def played(
        self, jobs: Sequence[int], running: Sequence[tuple[float, int]], action: Plan
    ) -> float:
        """Return the energy from now to the end, J."""
        problem, mean_s = self.problem, self.mean_s
        ends = list(running)
        heapq.heapify(ends)
        free = problem.gpus - sum(count for _, count in ends)
        now, last, cost = 0.0, max((end for end, _ in ends), default=0.0), 0.0
        waiting = list(jobs)
        step: Sequence[tuple[int, int]] = action
        while True:
            for job, count in step:
                relative, watts = self.mode(job, count)
                lasts = relative * mean_s
                cost += watts * lasts
                heapq.heappush(ends, (now + lasts, count))
                last, free = max(last, now + lasts), free - count
                waiting.remove(job)
            if not waiting:
                return cost + problem.idle_w * problem.gpus * last
            now, count = heapq.heappop(ends)
            free += count
            while ends and ends[0][0] <= now + slack_s(now):
                free += heapq.heappop(ends)[1]
            places, step = problem.numa - len(ends), ()
            if free and places > 0:
                step = best_action(self.offers(waiting), free, places, self.weight, problem.gpus)
