"""Cost of single decisions of a schedule, compared with the exact optimum at that moment."""

from __future__ import annotations

import math

import numpy as np

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind
from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.referee import rates
from optgap.models.regret import Regret
from optgap.models.times import slack_s
from optgap.solvers.elastic.snapshot import Choices, Snapshot, solve

MOST_EVENTS = 400
"""Largest number of events that are judged, spread evenly over the schedule."""
MOST_STATES = 60_000
"""Largest number of states of one search; beyond it, the bound proven so far counts."""


def regrets(
    problem: ElasticProblem, solution: ElasticSolution, most: int = MOST_EVENTS
) -> list[Regret]:
    """Return by how much decisions exceed Eq. 18 over the jobs then active, mean s.

    Whenever something starts, the state of every job is compared with the optimum of that
    decision. Waiting jobs count for twice the longest remaining time of any job.
    """
    choices = Choices.of(problem)
    speed = rates(problem, solution)
    return [
        found
        for t in moments(solution, most).tolist()
        if (found := _regret(problem, solution, choices, speed, t)) is not None
    ]


def moments(solution: ElasticSolution, most: int) -> Floats:
    """Return times at which something starts, at most `most` of them, spread evenly."""
    found = np.unique(solution.start_s[solution.kind != Kind.PRERUN])
    if len(found) > most:
        found = found[np.unique(np.linspace(0, len(found) - 1, most).astype(int))]
    return np.asarray(found)


def _regret(
    problem: ElasticProblem,
    solution: ElasticSolution,
    choices: Choices,
    speed: Floats,
    t: float,
) -> Regret | None:
    jobs, left = active(problem, solution, speed, t)
    if not len(jobs):
        return None
    of_class = problem.jobs.of_class[jobs]
    snapshot = Snapshot.of(problem, choices, of_class, left)
    wait = snapshot.wait_s
    count, clock = _taken(problem, solution, jobs, t)
    times = np.where(count >= 0, left * problem.time_s[of_class, count, clock], wait)
    value = float(np.minimum(times, wait).sum())
    solved = solve(snapshot, 1e-4, MOST_STATES)
    if solved.chosen is None:
        return None
    best_count, best_clock = choices.configurations(solved.chosen)
    gain = times - np.where(
        best_count >= 0, left * problem.time_s[of_class, best_count, best_clock], wait
    )
    a = int(np.argmax(gain))
    cost = max(0.0, value - solved.objective) / len(jobs)
    name = problem.jobs.names[jobs[a]]
    return Regret(
        t,
        name,
        _words(problem, int(count[a]), int(clock[a])),
        _words(problem, int(best_count[a]), int(best_clock[a])),
        cost if math.isfinite(cost) else 0.0,
    )


def active(
    problem: ElasticProblem, solution: ElasticSolution, speed: Floats, t: float
) -> tuple[Ints, Floats]:
    """Return the jobs that may run at a time of a schedule, and the iterations that each has left.

    `speed` is the result of `rates` for the schedule.
    """
    done = np.bincount(
        solution.job,
        speed * np.clip(t - solution.start_s, 0, solution.end_s - solution.start_s),
        minlength=len(problem),
    )
    remaining = problem.jobs.iterations - done
    begins = problem.jobs.submit_s.copy()  # a job cannot run before the end of its pre-run
    before = solution.kind == Kind.PRERUN
    np.maximum.at(begins, solution.job[before], solution.end_s[before])
    there = (begins <= t + slack_s(t)) & (remaining > 1e-6 * problem.jobs.iterations)
    jobs = np.flatnonzero(there)
    return jobs, remaining[jobs]


def _taken(
    problem: ElasticProblem, solution: ElasticSolution, jobs: Ints, t: float
) -> tuple[Ints, Ints]:
    """Return count and frequency of each job from t on, shape (A,), or its next frequency."""
    count = np.full(len(problem), -1, dtype=np.int64)
    clock = np.full(len(problem), len(problem.frequencies_mhz) - 1, dtype=np.int64)
    until = t + slack_s(t)
    now = (solution.start_s <= until) & (solution.end_s > until)
    now &= solution.kind != Kind.PRERUN
    held = solution.job[now]
    count[held] = np.searchsorted(problem.counts, solution.gpus[now])
    runs = (solution.kind == Kind.RUN) & (solution.end_s > until)
    for s in np.flatnonzero(runs)[::-1].tolist():  # the earliest run from t on comes last
        clock[solution.job[s]] = solution.frequency[s]
    return count[jobs], clock[jobs]


def _words(problem: ElasticProblem, count: int, clock: int) -> str:
    if count < 0:
        return "wait"
    return f"{problem.counts[count]} GPUs at {problem.frequencies_mhz[clock]:g} MHz"
