"""Elastic policy of a user, which is asked at every event for GPU counts and clocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.heuristics.custom import Arrived, Own, by_clock
from optgap.models.elastic import ElasticProblem, JobClass
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.errors import NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.times import shown as in_words


@dataclass(frozen=True)
class View:
    """Cluster and jobs, as a user's policy sees them.

    Parameters
    ----------
    problem: cluster, classes, and the jobs that have been submitted.
    time_s: current time, s.
    jobs: numbers of the jobs that may run, in order of submission.
    remaining: iterations left, by job.
    running: (gpus, frequency_mhz) of the jobs that hold GPUs, by job.
    """

    problem: ElasticProblem
    time_s: float
    jobs: tuple[int, ...]
    remaining: Mapping[int, float]
    running: Mapping[int, tuple[int, float]]

    def job_class(self, job: int) -> JobClass:
        """Return the class of a job, with its tables of time and power."""
        return self.problem.classes[int(self.problem.jobs.of_class[job])]

    def time_per_iteration(self, job: int, gpus: int, frequency_mhz: float) -> float:
        """Return the time per iteration T_iter, s."""
        return float(self.problem.time_s[self._index(job, gpus, frequency_mhz)])

    def power(self, job: int, gpus: int, frequency_mhz: float) -> float:
        """Return the power of all GPUs of the job, W."""
        return float(self.problem.power_w[self._index(job, gpus, frequency_mhz)])

    def _index(self, job: int, gpus: int, frequency_mhz: float) -> tuple[int, int, int]:
        problem = self.problem
        k = int(np.searchsorted(problem.counts, gpus))
        f = int(np.searchsorted(problem.frequencies_mhz, frequency_mhz))
        return int(problem.jobs.of_class[job]), k, f


def run(
    problem: ElasticProblem,
    *,
    limits: Limits,
    seed: int,
    policy: Any,
    policy_params: Mapping[str, Any] | None = None,
    shown: ElasticProblem | None = None,
) -> Outcome:
    """Run a policy from outside the package.

    Parameters
    ----------
    policy: a class that is made with `policy_params` and has ``allocate(view)``; or a function
        ``allocate(view)``, which gets `policy_params` by keyword. The answer is a dictionary
        from jobs to (gpus, frequency_mhz); jobs left out wait.
    shown: the problem by its own clock, which the policy sees; `problem` without it.

    Raises
    ------
    InputError: naming the policy, the time and what was wrong.
    """
    own = Own(policy, policy_params, "allocate(view)")
    return simulate(problem, Adapter(problem, own, shown), limits)


class Adapter:
    """User's policy as a policy of the engine, with checks of its answers."""

    settings = Settings(making="least", switch_off=True)

    def __init__(self, problem: ElasticProblem, own: Own, shown: ElasticProblem | None) -> None:
        self.problem, self.own = problem, own
        seen, self.late_s = by_clock(problem, shown)
        self.arrived = Arrived(seen, problem.jobs.submit_s)

    def decide(self, state: ElasticState) -> Decision:
        """Ask the policy, and return its dictionary as arrays."""
        problem = self.problem
        jobs = state.jobs.tolist()
        running = {
            job: (int(problem.counts[k]), float(problem.frequencies_mhz[f]))
            for job, k, f in zip(jobs, state.count, state.clock, strict=True)
            if k >= 0
        }
        view = View(
            self.arrived.at(state.time_s),
            state.time_s + self.late_s,
            tuple(jobs),
            dict(zip(jobs, state.remaining.tolist(), strict=True)),
            running,
        )
        where = f"at {in_words(view.time_s)} s"
        expected = "a dictionary {job: (gpus, frequency_mhz)}"
        answer = self.own.ask(
            where, expected, view, read=lambda given: {} if given is None else dict(given)
        )
        return self._checked(answer, state, where)

    def _checked(self, answer: dict[Any, Any], state: ElasticState, where: str) -> Decision:
        problem = self.problem
        position = {job: a for a, job in enumerate(state.jobs.tolist())}
        count = np.full(len(position), -1, dtype=np.int64)
        clock = np.zeros(len(position), dtype=np.int64)
        for job, pair in answer.items():
            if job not in position:
                raise self.own.wrong(where, job, "a job that may run")
            try:
                gpus, frequency = pair
                frequency = float(frequency)
            except (TypeError, ValueError):
                expected = "(gpus, frequency_mhz)"
                raise self.own.wrong(f"{where}, job {job}", pair, expected) from None
            item = problem.classes[int(problem.jobs.of_class[job])]
            if gpus not in item.counts:
                shown = ", ".join(map(str, item.counts))
                raise self.own.wrong(f"{where}, job {job}", gpus, f"one of {shown} GPUs")
            near = np.flatnonzero(np.isclose(problem.frequencies_mhz, frequency))
            if not len(near):
                raise self.own.wrong(f"{where}, job {job}", frequency, "a clock, MHz")
            a = position[job]
            count[a] = int(np.searchsorted(problem.counts, gpus))
            clock[a] = int(near[0])
        used = int(problem.counts[count[count >= 0]].sum())
        if used > problem.gpus:
            raise self.own.wrong(where, NoQuote(f"{used} GPUs"), f"at most {problem.gpus}")
        self._powered(state, count, clock, where)
        return Decision(count, clock)

    def _powered(
        self, state: ElasticState, count: np.ndarray, clock: np.ndarray, where: str
    ) -> None:
        held = count >= 0
        c, k = state.of_class[held], count[held]
        watts = float(self.problem.power_w[c, k, clock[held]].sum())
        limit = self.problem.power_limit_w
        if watts > self.problem.power_allowed_w:
            raise self.own.wrong(where, NoQuote(f"{watts:g} W"), f"at most {limit:g} W")
        if not held.any() and self.problem.jobs.submit_s[-1] <= state.time_s:
            raise self.own.wrong(where, NoQuote("nothing"), "a job to run")
