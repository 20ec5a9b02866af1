"""Cost of each start of a schedule: its rise of the bound on the whole schedule."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from optgap.models.coscheduling import (
    CoschedulingObjective,
    CoschedulingProblem,
    CoschedulingSolution,
    JobRun,
)
from optgap.models.coscheduling.remaining import remaining
from optgap.models.limits import Limits
from optgap.models.regret import Regret
from optgap.solvers.coscheduling.area import bound_area, least_cost_j
from optgap.solvers.coscheduling.patterns import patterns, prove

NOISE = 5e-6
"""Share of the bound below which a rise is the integer programs' tolerance."""


def regrets(problem: CoschedulingProblem, solution: CoschedulingSolution) -> list[Regret]:
    """Return a regret per start, in order of start.

    The cost is the rise of the pattern bound on the whole schedule from just after the previous
    start to just after this one, so it includes waiting in between. The costs add up to the
    difference between the schedule and the bound at time 0. The bound knows later jobs. For
    ``edp`` it is the bound on the energy times the bound on the makespan.
    """
    before = _bound(problem, [], 0.0)
    found = []
    for k, run in enumerate(solution.runs):
        after = _bound(problem, solution.runs[: k + 1], run.start_s)
        cost = max(0.0, after.value - before.value)
        if cost <= NOISE * abs(before.value):
            cost = 0.0
        name = problem.job_names[run.job]
        chosen = f"on {_gpus(run.gpu_count)}"
        better = before.counts.get(run.job)
        words = chosen
        if cost and better not in (None, run.gpu_count):
            words = f"on {_gpus(better or 0)}"
        elif cost:
            words = f"{chosen}, beside others or at another time"
        found.append(Regret(run.start_s, name, chosen, words, cost))
        before = after
    return found


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


@dataclass(frozen=True, slots=True)
class _Bound:
    """Bound on the objective, with the GPU count that it gives each job that has not started."""

    value: float
    counts: dict[int, int]


def _bound(problem: CoschedulingProblem, started: Sequence[JobRun], now_s: float) -> _Bound:
    """Bound all schedules that begin with the runs `started` and no other before `now_s`."""
    gone = {run.job for run in started}
    left = [job for job in range(len(problem)) if job not in gone]
    ends = max([run.end_s for run in started], default=0.0)
    spent = math.fsum(problem.cost_j(problem.mode(run.job, run.gpu_count)) for run in started)
    idle_w = problem.idle_w * problem.gpus
    if not left:
        return _Bound(problem.value(spent + idle_w * ends, ends), {})
    held = [(run.job, run.gpu_count, run.start_s) for run in started if run.end_s > now_s]
    rest = remaining(problem, left, held, now_s)
    again = math.fsum(rest.cost_j(rest.application(k).modes[0]) for k in range(len(held)))
    least, counts = {}, {}
    for goal in ("makespan", "energy"):
        part = dataclasses.replace(rest, objective=CoschedulingObjective(goal))
        least[goal], found = _least(part)
        counts = {job: found[len(held) + k] for k, job in enumerate(left)} if found else {}
    begins = now_s + rest.epoch_s
    makespan = max(ends, begins + least["makespan"])
    energy = spent - again + idle_w * begins + least["energy"]
    energy = max(energy, spent - again + idle_w * makespan + least_cost_j(rest))
    return _Bound(problem.value(energy, makespan), counts)


def _least(problem: CoschedulingProblem) -> tuple[float, list[int] | None]:
    allowed = patterns(problem)
    proof = None if allowed is None else prove(problem, allowed, Limits())
    area = bound_area(problem, limits=Limits(), seed=0).bound or 0.0
    return (area, None) if proof is None else (max(proof.bound, area), proof.counts)
