"""Schedules over time that cannot be, and cost less than any that can: the referee refuses each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import optgap
from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
    GpuKind,
    Server,
    Task,
)
from optgap.models.consolidation.problem import Rules
from optgap.models.consolidation.tasks import LATEST_S
from optgap.models.times import slack_s

UNIX_S = 1.7e9
"""A time that counts from 1970."""


def five(at: float = UNIX_S, servers: int = 5, **rules: Any) -> ConsolidationProblem:
    """Five tasks of 20 GB and 600 s on servers of one GPU of 32 GB: no two share a GPU."""
    tasks = [
        Task(f"t{k}", 20.0, kappa=1.0, submit_s=at, duration_s=600.0, util_percent=np.array([50.0]))
        for k in range(5)
    ]
    return ConsolidationProblem.of(
        [GpuKind(beta=2.0)], [Server((0,))] * servers, tasks, goal="energy", period_s=600.0,
        rules=Rules(**rules),
    )  # fmt: skip


def apart(problem: ConsolidationProblem, start_s: float) -> ConsolidationSolution:
    """Each task on a GPU of its own, all at one time."""
    tasks = range(len(problem))
    return ConsolidationSolution.of(
        [Assignment(k, (k,), start_s) for k in tasks], [Clock(k, 1350.0, start_s) for k in tasks]
    )


def constraints(problem: ConsolidationProblem, solution: ConsolidationSolution) -> set[str]:
    return {violation.constraint for violation in problem.check(solution)}


@pytest.mark.parametrize("at", [0.0, UNIX_S])
def test_a_clock_far_outside_the_range_is_refused_when_it_is_set(at: float) -> None:
    # at 10⁹ MHz a task lasts no time by a clock that counts from 1970
    problem = five(at, servers=1)
    made = ConsolidationSolution.of(
        [Assignment(k, (0,), at) for k in range(5)], [Clock(0, 1e9, at)]
    )
    assert constraints(problem, made) == {"clock in MHz (13)"}
    assert not optgap.check(problem, made).feasible
    legal = replace(made, clocks=(Clock(0, 1350.0, at),))
    assert constraints(problem, legal) == {"memory in GB (8)"}


@pytest.mark.parametrize("later", [0.0, 0.25, 0.5, 1.0])
def test_no_legal_clock_hides_an_illegal_one_that_was_set_before(later: float) -> None:
    problem = five()
    good = apart(problem, UNIX_S)
    assert problem.check(good) == []
    after = UNIX_S + later * slack_s(UNIX_S)
    hidden = [
        *(replace(c, mhz=1e9) for c in good.clocks),
        *(replace(c, time_s=after) for c in good.clocks),
    ]
    bad = replace(good, clocks=tuple(hidden))
    assert constraints(problem, bad) == {"clock in MHz (13)"}


@pytest.mark.parametrize("wait", [1e19, 1.01 * LATEST_S])
def test_nothing_starts_and_no_clock_is_set_after_the_latest_time(wait: float) -> None:
    problem = five(waiting=True)
    late = apart(problem, UNIX_S + wait)
    assert constraints(problem, late) == {"time_s"}
    early = tuple(replace(clock, time_s=UNIX_S) for clock in late.clocks)
    assert constraints(problem, replace(late, clocks=early)) == {"start_s"}
    assert not optgap.check(problem, late).feasible


@pytest.mark.parametrize("wait", [0.0, 1e6, 1e9, 9e11])
def test_a_task_that_waits_for_long_costs_as_much_as_any_other(wait: float) -> None:
    problem = five(0.0, waiting=True)
    short = replace(problem, tasks=tuple(replace(t, duration_s=1e-4) for t in problem.tasks))
    for made in (problem, short):
        soon, late = (made.evaluate(apart(made, at)).objective for at in (0.0, wait))
        assert late == pytest.approx(soon, rel=1e-12)


def test_a_stay_of_no_length_is_refused() -> None:
    problem = five(0.0)
    good = apart(problem, 0.0)
    first = good.assignments[0]
    twice = ConsolidationSolution.of([*good.assignments, replace(first, gpus=(4,))], good.clocks)
    assert "a stay of some length" in constraints(problem, twice)
    after = [*good.assignments, replace(first, gpus=(4,), start_s=700.0)]
    assert constraints(problem, ConsolidationSolution.of(after, good.clocks)) == {
        "a stay of some length"
    }


def test_the_order_of_a_solution_built_by_hand_hides_no_stay() -> None:
    problem = five(0.0)
    good = apart(problem, 0.0)
    crowded = Assignment(0, (1,), 300.0)
    for assignments in ((crowded, *good.assignments), (*good.assignments, crowded)):
        made = ConsolidationSolution(assignments, good.clocks)
        assert constraints(problem, made) == {"memory in GB (8)"}
