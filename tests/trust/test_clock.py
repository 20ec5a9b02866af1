"""By whatever clock a problem is told, it is the same: schedules, objectives, bounds, faults.

A long run (``HYPOTHESIS_PROFILE=fuzz``) tries thousands of problems per family.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trust.agreement import CLOSE, examples, problems
from trust.clock import (
    EPOCH_S,
    FAULTS,
    broken,
    faulty,
    later,
    parts,
    problem_of,
    rows,
    same_schedule,
    with_a_far_job,
)

import optgap
from optgap.models.errors import InputError
from optgap.models.result import Result
from optgap.models.times import Timed
from optgap.registry import FAMILIES

SMALL: dict[str, dict[str, Any]] = {
    "consolidation": {"max_tasks": 4, "goal": "energy", "capacities": ("none", "mean", "peak")},
    "coscheduling": {"max_jobs": 4},
    "elastic": {"max_jobs": 4},
    "queueing": {"max_jobs": 6},
}
FEWER = {"elastic": {"max_jobs": 3, "free": True}}
"""For exact methods."""
BESIDE_S = 16.0
"""A clock that has hardly begun: no time of a fault is below 0 on it."""
TIES = ("exact-window", "opt_repack")
"""Policies that solve what is equally good in any order: their objective counts."""


def ran(problem: Any, policy: str | Callable[..., Any]) -> Result | None:
    try:
        return optgap.run(problem, policy, seed=1)
    except InputError:  # another objective than it treats
        return None


def agree(one: Result, other: Result) -> None:
    assert (other.status, other.termination) == (one.status, one.termination)
    if one.objective is not None:
        assert other.objective == pytest.approx(one.objective, rel=CLOSE, abs=CLOSE)
    if one.bound is not None:
        assert other.bound == pytest.approx(one.bound, rel=CLOSE, abs=CLOSE)


def first_that_fits(state: Any) -> list[int]:
    return next(([job] for job in state.waiting if state.fits(job)), [])


def one_at_a_time(state: Any) -> list[tuple[int, int]]:
    job = state.waiting[0]
    count = state.problem.application(job).fastest.gpu_count
    return [] if state.running else [(job, count)]


def the_first_job(view: Any) -> dict[int, tuple[int, float]]:
    """Alone, on the fewest GPUs, at the lowest clock."""
    job = view.jobs[0]
    return {job: (view.job_class(job).counts[0], float(view.problem.frequencies_mhz[0]))}


def alone(task: int, state: Any) -> list[int] | None:
    room = state.fits(task) & (state.count == 0)
    for server in range(len(state.problem.servers)):
        free = [g for g in range(len(room)) if room[g] and state.problem.gpu_server[g] == server]
        if len(free) >= state.problem.tasks[task].gpus:
            return free[: state.problem.tasks[task].gpus]
    return None


OWN = {
    "consolidation": alone,
    "coscheduling": one_at_a_time,
    "elastic": the_first_job,
    "queueing": first_that_fits,
}


def test_every_family_has_times() -> None:
    timed = {name for name in FAMILIES if isinstance(optgap.generate(name), Timed)}
    assert timed == set(FAMILIES)


@pytest.mark.parametrize("family", SMALL)
def test_policies_do_not_look_at_the_clock_and_ones_own_are_shown_that_of_the_problem(
    family: str,
) -> None:
    @examples(12)
    @given(problem=problems(family, **SMALL[family]))
    def check(problem: Any) -> None:
        moved, seen = later(problem, EPOCH_S), []

        def own(*given: Any) -> Any:
            seen.append(given[-1].time_s)
            return OWN[family](*given)  # type: ignore[operator]

        for policy in (*FAMILIES[family].policies, own):
            one, other = ran(problem, policy), ran(moved, policy)
            if one is None or other is None:
                assert one is other, policy
                continue
            agree(one, other)
            if policy not in TIES and one.solution is not None:
                same_schedule(rows(problem, one.solution), rows(moved, other.solution), EPOCH_S)
        assert max(seen) >= EPOCH_S

    check()


@pytest.mark.parametrize("family", SMALL)
def test_methods_do_not_look_at_the_clock(family: str) -> None:
    @examples(2)
    @given(problem=problems(family, **{**SMALL[family], **FEWER.get(family, {})}))
    def check(problem: Any) -> None:
        moved = later(problem, EPOCH_S)
        for method in FAMILIES[family].methods:
            try:
                one = optgap.solve(problem, method, time_limit=60)
            except InputError:
                with pytest.raises(InputError):
                    optgap.solve(moved, method, time_limit=60)
                continue
            agree(one, optgap.solve(moved, method, time_limit=60))

    check()


@pytest.mark.parametrize("family", SMALL)
def test_faults_are_seen_by_any_clock_and_beside_any_other_job(family: str) -> None:
    @examples(15)
    @given(
        problem=problems(family, **SMALL[family]),
        policy=st.sampled_from(list(FAMILIES[family].policies)[:4]),
        fault=st.sampled_from(FAULTS),
        number=st.integers(0, 20),
        by_s=st.sampled_from((0.001, 0.01, 0.125, 1.0)),
    )
    def check(problem: Any, policy: str, fault: str, number: int, by_s: float) -> None:
        verdicts, count = [], 0
        for told in (
            later(problem, BESIDE_S),
            later(problem, EPOCH_S),
            with_a_far_job(later(problem, BESIDE_S)),
        ):
            result = ran(told, policy)
            if result is None or result.solution is None:
                return
            count = count or parts(told, result.solution)
            wrong = faulty(told, result.solution, fault, number % count, by_s)
            verdicts.append(broken(told, wrong))
        assert verdicts[1:] == [verdicts[0]] * 2

    check()


def brief(family: str, seconds: float) -> dict[str, Any]:
    """A small problem, as a document, whose first job lasts so long."""
    document: dict[str, Any] = optgap.generate(family, seed=1, **FAMILIES[family].tiny).to_json()
    if family == "queueing":
        document["jobs"]["duration_s"][0] = seconds
    elif family == "coscheduling":
        document["applications"][document["jobs"][0]]["modes"][0]["runtime_s"] = seconds
    elif family == "consolidation":
        document["tasks"][0]["duration_s"] = seconds
    else:
        rate = min(map(min, document["classes"][document["jobs"]["class"][0]]["time_s"]))
        document["jobs"]["iterations"][0] = seconds / rate
    return document


@pytest.mark.parametrize("family", SMALL)
def test_what_is_shorter_than_times_can_be_told_apart_is_refused(family: str) -> None:
    problem_of(brief(family, 1.001e-6))
    for seconds in (9e-7, 1e-9):
        with pytest.raises(InputError, match="at least 1e-06"):
            problem_of(brief(family, seconds))
