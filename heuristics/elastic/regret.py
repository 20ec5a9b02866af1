"""Cost of single decisions of a schedule, compared with the exact optimum at that moment."""

from __future__ import annotations

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


def regrets(problem: ElasticProblem, solution: ElasticSolution) -> list[Regret]:
    """Return by how much decisions exceed Eq. 18 over the jobs then active, mean s.

    Whenever something starts, the state of every job is compared with the optimum of that
    decision. Waiting jobs count for twice the longest remaining time of any job.
    """
    choices, speed, found = Choices.of(problem), rates(problem, solution), []
    moments = np.unique(solution.start_s[solution.kind != Kind.PRERUN])
    kept = np.linspace(0, len(moments) - 1, min(len(moments), MOST_EVENTS)).astype(int)
    for t in moments[kept].tolist():
        jobs, left = active(problem, solution, speed, t)
        if not len(jobs):
            continue
        of_class = problem.jobs.of_class[jobs]
        snapshot = Snapshot.of(problem, choices, of_class, left)
        solved = solve(snapshot, 1e-4, MOST_STATES)
        assert solved.chosen is not None  # all may wait
        both = (taken(problem, solution, jobs, t), choices.configurations(solved.chosen))
        times, best = (
            np.where(k >= 0, left * problem.time_s[of_class, k, f], snapshot.wait_s)
            for k, f in both
        )
        a = int(np.argmax(times - best))
        chosen, better = (_words(problem, int(k[a]), int(f[a])) for k, f in both)
        cost = float(np.minimum(times, snapshot.wait_s).sum()) - solved.objective
        name = problem.jobs.names[jobs[a]]
        found.append(Regret(t, name, chosen, better, max(0.0, cost) / len(jobs)))
    return found


def active(
    problem: ElasticProblem, solution: ElasticSolution, speed: Floats, t: float
) -> tuple[Ints, Floats]:
    """Return the jobs that may run at a time of a schedule, and the iterations that each has left.

    `speed` is the result of `rates` for the schedule.
    """
    spans = np.clip(t - solution.start_s, 0, solution.end_s - solution.start_s)
    done = np.bincount(solution.job, speed * spans, minlength=len(problem))
    remaining = problem.jobs.iterations - done
    begins = problem.jobs.submit_s.copy()  # a job cannot run before the end of its pre-run
    before = solution.kind == Kind.PRERUN
    np.maximum.at(begins, solution.job[before], solution.end_s[before])
    there = (begins <= t + slack_s(t)) & (remaining > 1e-6 * problem.jobs.iterations)
    jobs = np.flatnonzero(there)
    return jobs, remaining[jobs]


def taken(
    problem: ElasticProblem, solution: ElasticSolution, jobs: Ints, t: float
) -> tuple[Ints, Ints]:
    """Return count and frequency of each job from t on, shape (A,), or its next frequency."""
    count = np.full(len(problem), -1, dtype=np.int64)
    clock = np.full(len(problem), len(problem.frequencies_mhz) - 1, dtype=np.int64)
    until = t + slack_s(t)
    now = (solution.start_s <= until) & (solution.end_s > until) & (solution.kind != Kind.PRERUN)
    count[solution.job[now]] = np.searchsorted(problem.counts, solution.gpus[now])
    runs = np.flatnonzero((solution.kind == Kind.RUN) & (solution.end_s > until))[::-1]
    clock[solution.job[runs]] = solution.frequency[runs]  # the earliest run from t on comes last
    return count[jobs], clock[jobs]


def _words(problem: ElasticProblem, count: int, clock: int) -> str:
    if count < 0:
        return "wait"
    return f"{problem.counts[count]} GPUs at {problem.frequencies_mhz[clock]:g} MHz"
