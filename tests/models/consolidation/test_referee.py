"""What the referee of tasks that are all present says, to the last watt, byte and megahertz."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from strategies_consolidation import EVEN

import optgap
from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
    GpuKind,
    PowerLine,
    Server,
    Task,
)
from optgap.models.consolidation.problem import Rules
from optgap.models.consolidation.tasks import LATEST_S
from optgap.models.result import Violation
from optgap.models.times import slack_s

ROOMY = replace(EVEN, memory_gb=32.0)


def problem(tasks: list[Task], kind: GpuKind = ROOMY, **rules: Any) -> ConsolidationProblem:
    """Two servers of two GPUs, of 100 W and 70 W."""
    servers = [Server((0, 0), 100.0), Server((0, 0), 70.0)]
    return ConsolidationProblem.of([kind], servers, tasks, rules=Rules(**rules), period_s=10.0)


def plan(*places: tuple[int, ...], **mhz: float) -> ConsolidationSolution:
    """Task k on places[k]; every GPU at 1000 MHz unless g0, g1, … says otherwise."""
    used = sorted({g for gpus in places for g in gpus})
    return ConsolidationSolution.of(
        [Assignment(k, gpus) for k, gpus in enumerate(places)],
        [Clock(g, mhz.get(f"g{g}", 1000.0)) for g in used],
    )


def small(count: int, **more: Any) -> list[Task]:
    return [Task(f"t{k}", 1.0, **more) for k in range(count)]


def test_numbers_that_are_none_are_told_with_the_last_that_is() -> None:
    three = problem(small(3))
    for task in (-1, 3, 9):
        made = ConsolidationSolution.of([Assignment(task, (0,))], [Clock(0, 1000.0)])
        assert three.check(made) == [Violation("task number", f"task {task}", task, 2)]
    for gpu in (-1, 4, 9):
        made = ConsolidationSolution.of([Assignment(0, (gpu,))], [])
        assert three.check(made) == [Violation("GPU number", "task t0", gpu, 3)]
        made = replace(plan((0,)), clocks=(Clock(0, 1000.0), Clock(gpu, 1000.0)))
        assert three.check(made) == [Violation("GPU number", "frequencies_mhz", gpu, 3)]
    assert three.check(plan((3,), (2,))) == []


def test_a_task_has_one_place_from_the_start_and_a_gpu_one_clock() -> None:
    twice = ConsolidationSolution.of([Assignment(0, (0,)), Assignment(0, (1,))], [])
    assert problem(small(1)).check(twice) == [Violation("places per task", "task 0", 2, 1)]
    late = ConsolidationSolution.of([Assignment(0, (0,), 5.0)], [Clock(0, 1000.0)])
    assert problem(small(1)).check(late) == [Violation("start_s", "task 0", 5.0, 0)]
    made = replace(plan((0,), (1,)), clocks=(Clock(0, 900.0), Clock(0, 1000.0), Clock(1, 1000.0)))
    found = problem(small(2)).check(made)
    assert found == [Violation("clocks per GPU", "frequencies_mhz", 3, 1)]


@pytest.mark.parametrize(
    ("gpus", "broken"),
    [
        ((0, 1), []),
        ((), [Violation("different GPUs (7)", "task t0", 0, 2)]),
        ((1,), [Violation("different GPUs (7)", "task t0", 1, 2)]),
        ((0, 0), [Violation("different GPUs (7)", "task t0", 1, 2)]),
        ((0, 0, 1), [Violation("different GPUs (7)", "task t0", 2, 2)]),
        ((1, 2), [Violation("servers of a task", "task t0", 2, 1)]),
    ],
)
def test_a_task_has_as_many_gpus_as_it_asks_for_in_one_server(
    gpus: tuple[int, ...], broken: list[Violation]
) -> None:
    assert problem(small(1, gpus=2)).check(plan(gpus)) == broken
    if len(set(gpus)) == len(gpus) == 2:  # over servers, too, where the rules say so
        assert problem(small(1, gpus=2), gang="free").check(plan(gpus)) == []


def test_one_byte_more_than_the_memory_is_refused() -> None:
    full = [Task("a", 20.0), Task("b", 12.0)]
    assert problem(full).check(plan((0,), (0,))) == []
    over = [Task("a", 20.0), Task("b", 12.000000001)]
    found = problem(over).check(plan((3,), (3,)))
    assert found == [Violation("memory in GB (8)", "server 1, GPU 1", 32.000000001, 32.0)]


@pytest.mark.parametrize(("capacity", "share"), [("mean", 50.0), ("peak", 80.0)])
def test_a_millionth_of_a_percent_over_the_limit_is_refused(capacity: str, share: float) -> None:
    """Means of 50 % and 40 %, peaks of 80 % and 40 %, the limit their sum."""
    series = ([20.0, 80.0], [40.0, 40.0])
    tasks = [Task(f"t{k}", 1.0, util_percent=np.array(one)) for k, one in enumerate(series)]
    limit = share + 40
    for enough in (limit, limit + 1):
        fits = problem(tasks, capacity=capacity, limit_percent=enough)
        assert fits.check(plan((0,), (0,))) == []
    tight = problem(tasks, capacity=capacity, limit_percent=limit - 1e-6)
    over = Violation(f"{capacity} utilisation in %", "server 0, GPU 0", limit, limit - 1e-6)
    assert tight.check(plan((0,), (0,))) == [over]


def test_means_are_rounded_to_a_millionth_of_a_percent() -> None:
    """1.5 millionths each are 2 of the 3 that there are."""
    tasks = small(2, util_percent=np.array([1e-6, 2e-6]))
    (found,) = problem(tasks, capacity="mean", limit_percent=3e-6).check(plan((0,), (0,)))
    assert found.found == 4e-6


def test_series_are_held_against_one_another_sample_by_sample() -> None:
    """The last sample goes on until the task ends: a is there for three, not for a fourth."""
    a = Task("a", 1.0, util_percent=np.array([10.0, 60.0]), duration_s=30.0)
    for late, broken in (
        ([20.0, 40.0, 40.0, 100.0], []),
        ([20.0, 40.000001, 40.0, 100.0], [(100.000001, 1)]),
        ([20.0, 40.0, 41.0, 100.0], [(101.0, 2)]),
        ([95.0, 45.0, 55.0, 100.0], [(115.0, 2)]),
        ([95.0, 50.0, 50.0, 50.0], [(110.0, 1)]),
    ):
        both = problem([a, Task("b", 1.0, util_percent=np.array(late))], capacity="slot")
        assert both.check(plan((1,), (1,))) == [
            Violation("utilisation in %", f"server 0, GPU 1, sample {at}", found, 100.0)
            for found, at in broken
        ]


def test_a_task_that_ends_within_a_sample_is_there_for_all_of_it() -> None:
    a = Task("a", 1.0, util_percent=np.array([60.0, 60.0, 60.0]), duration_s=20.5)
    b = Task("b", 1.0, util_percent=np.array([40.0, 40.0, 50.0]))
    (found,) = problem([a, b], capacity="slot").check(plan((0,), (0,)))
    assert (found.found, found.where) == (110.0, "server 0, GPU 0, sample 2")
    whole = problem([replace(a, duration_s=20.0 + 5e-9), b], capacity="slot")
    assert whole.check(plan((0,), (0,))) == []


def test_clocks_are_those_of_the_gpu() -> None:
    lax = small(1, kappa=2.0)
    for mhz in (500.0, 1000.0, 500.0 - 1e-7, 1000.0 + 1e-7):
        assert problem(lax).check(plan((0,), g0=mhz)) == []
    for mhz in (499.99, 1000.01):
        found = problem(lax).check(plan((2,), g2=mhz))
        assert found == [Violation("clock in MHz (13)", "server 1, GPU 0", mhz, "500 to 1000")]
    steps = replace(ROOMY, frequencies_mhz=(500.0, 800.0, 1000.0))
    assert problem(lax, steps).check(plan((0,), g0=800.0)) == []
    assert [v.found for v in problem(lax, steps).check(plan((0,), g0=810.0))] == [810.0]
    found = problem(lax).check(replace(plan((0,)), clocks=()))
    assert found == [Violation("clock (13)", "server 0, GPU 0", "none", "one")]
    none = replace(plan((0,), (1,)), clocks=())
    assert len(problem(small(2)).check(none)) == 2
    found = problem(lax).check(replace(plan((0,)), clocks=(Clock(0, 1000.0), Clock(2, 700.0))))
    assert found == [Violation("clock of a GPU without tasks", "server 1, GPU 0", 700.0, 0)]


def test_a_clock_that_stretches_a_resident_too_far_is_refused() -> None:
    """κ = 1.25 is kept at 800 MHz with β = 1, and with β = 2 of its own at 900 MHz."""
    pair = [Task("a", 1.0, kappa=1.25), Task("b", 1.0, kappa=1.25, beta=2.0)]
    assert problem(pair).check(plan((0,), (1,), g0=800.0, g1=900.0)) == []
    found = problem(pair).check(plan((0,), (1,), g0=799.0, g1=894.0))
    assert [(v.constraint, v.where, v.limit) for v in found] == [
        ("κ of a (14)", "server 0, GPU 0", 1.25),
        ("κ of b (14)", "server 0, GPU 1", 1.25),
    ]
    assert [v.found for v in found] == pytest.approx([1000 / 799, (1000 / 894) ** 2], rel=1e-8)
    # at the highest clock nothing is asked of anyone; just below it κ = 1 is broken
    strict = problem(small(1, kappa=1.0))
    assert strict.check(plan((0,), g0=1000.0)) == []
    assert [v.constraint for v in strict.check(plan((0,), g0=999.9))] == ["κ of t0 (14)"]
    assert [v.found for v in problem(pair[:1]).check(plan((0,), g0=799.999))] == [
        pytest.approx(1.2500016, rel=1e-7)
    ]


def test_power_and_what_it_is_made_of_are_as_worked_out_by_hand() -> None:
    """GPU 0 at 800 MHz draws 90 W for b (a: 90), GPU 1 at 1000 MHz 110 W, GPU 2 at 500 60 W."""
    tasks = [
        Task("a", 1.0, kappa=2.0),
        Task("b", 1.0, kappa=2.0, power=PowerLine(50.0, 0.05)),
        Task("c", 1.0, gpus=2, kappa=2.0),
        Task("d", 1.0, kappa=2.0),
    ]
    made = plan((0,), (0,), (0, 1), (2,), g0=800.0, g1=1000.0, g2=500.0)
    assert problem(tasks).check(made) == []
    found = problem(tasks).evaluate(made)
    assert found.objective == pytest.approx(90 + 110 + 60 + 170)
    watts = {"power_w": 430.0, "gpu_power_w": 260.0, "server_power_w": 170.0}
    used = {"gpus": 3, "servers": 2, "tasks_run": 4, "tasks_per_gpu": 5 / 3}
    assert dict(found.metrics) == pytest.approx({**watts, **used, "mean_clock_mhz": 2300 / 3})
    one = problem(tasks).evaluate(plan((3,), g3=600.0))
    assert one.metrics["servers"] == 1
    assert one.objective == pytest.approx(70 + 70)
    slow = problem(tasks).evaluate(plan((3,), (3,), g3=600.0))
    assert slow.objective == pytest.approx(80 + 70)
    nothing = problem(tasks).evaluate(ConsolidationSolution.of([], []))
    assert nothing.objective == 0
    assert set(nothing.metrics.values()) == {0}


# -- schedules over time that cannot be, and cost less than any that can -------------------


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
    there = [Assignment(k, (0,), at) for k in range(5)]
    made = ConsolidationSolution.of(there, [Clock(0, 1e9, at)])
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
    first = tuple(replace(clock, mhz=1e9) for clock in good.clocks)
    bad = replace(good, clocks=first + tuple(replace(c, time_s=after) for c in good.clocks))
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
    for at in (0.0, 700.0):
        stays = [*good.assignments, replace(first, gpus=(4,), start_s=at)]
        found = constraints(problem, ConsolidationSolution.of(stays, good.clocks))
        assert "a stay of some length" in found
    assert found == {"a stay of some length"}


def test_the_order_of_a_solution_built_by_hand_hides_no_stay() -> None:
    problem = five(0.0)
    good = apart(problem, 0.0)
    crowded = Assignment(0, (1,), 300.0)
    for assignments in ((crowded, *good.assignments), (*good.assignments, crowded)):
        made = ConsolidationSolution(assignments, good.clocks)
        assert constraints(problem, made) == {"memory in GB (8)"}
