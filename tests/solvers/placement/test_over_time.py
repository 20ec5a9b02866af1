"""Bounds over time: below every schedule that there is, and tight where demand is constant."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import timed_placement_problems
from trust.agreement import examples

from optgap.models.limits import Limits
from optgap.models.placement import OverTime, PlacementProblem, PlacementSolution
from optgap.models.placement.presets import small
from optgap.models.result import Status
from optgap.solvers.placement import METHODS
from optgap.solvers.placement.over_time.bounding import bound_over_time
from optgap.solvers.placement.over_time.demand import Demand
from optgap.solvers.placement.patterns import bound_patterns


def places(problem: PlacementProblem, k: int) -> Iterator[tuple[int, int]]:
    """Every node and set of GPUs for a task, whatever else runs."""
    wanted = int(problem.tasks.num_gpu[k])
    for node, gpus in enumerate(problem.cluster.gpus.tolist()):
        for chosen in itertools.combinations(range(gpus), wanted):
            yield node, sum(1 << g for g in chosen)


def schedules(problem: PlacementProblem, delays: list[float]) -> Iterator[PlacementSolution]:
    """Every placement of all tasks, each so much later than it is submitted."""
    start = problem.tasks.submit_s + np.array(delays)
    options = [list(places(problem, k)) for k in range(len(problem.tasks))]
    for choice in itertools.product(*options):
        nodes, masks = zip(*choice, strict=True)
        yield PlacementSolution.of_arrays(np.array(nodes), np.array(masks), start)


@examples(14)
@given(
    problem=timed_placement_problems(max_nodes=2, max_tasks=3, max_gpus=2),
    delays=st.lists(st.sampled_from((0.0, 0.5, 2.0)), min_size=3, max_size=3),
)
def test_no_schedule_of_all_tasks_is_below_the_bound(
    problem: PlacementProblem, delays: list[float]
) -> None:
    assume(problem.over_time is not None)
    assert problem.over_time is not None
    waits = problem.over_time.waits
    given = [delay if waits else 0.0 for delay in delays][: len(problem.tasks)]
    found = bound_over_time(problem, limits=Limits(), seed=0)
    sign = 1 if problem.objective.described.sense == "min" else -1
    best = None
    for solution in schedules(problem, given):
        if not problem.check(solution):
            value = problem.evaluate(solution).objective
            best = value if best is None else sign * min(sign * best, sign * value)
    if best is None:
        return
    assert found.status is Status.BOUND_ONLY
    assert sign * found.bound <= sign * best + 1e-9 * abs(best)


@pytest.mark.parametrize("goal", ["energy", "mean_weighted"])
def test_tasks_that_all_come_and_leave_together_are_bounded_as_if_they_stayed(goal: str) -> None:
    still = small(seed=1, size=6)
    count = len(still.tasks)
    tasks = replace(still.tasks, submit_s=np.full(count, 5.0), duration_s=np.full(count, 10.0))
    at_once = replace(still, objective=replace(still.objective, goal=goal).at_a_moment)
    timed = PlacementProblem.of(
        still.cluster, tasks, still.workload, still.ranks, still.power,
        replace(still.objective, goal=goal), over_time=OverTime("reject"),
    )  # fmt: skip
    want = bound_patterns(at_once, limits=Limits(), seed=0).bound
    found = bound_over_time(timed, limits=Limits(), seed=0).bound
    assert want is not None
    assert found is not None
    if goal == "energy":  # in watts, and what is in use is counted whole as well
        most = METHODS["exact"].load()(at_once, limits=Limits(), seed=0)
        assert most.status is Status.OPTIMAL
        assert want * 10.0 * (1 - 2e-3) <= found <= most.claimed * 10.0
    else:
        assert found == pytest.approx(want, rel=2e-3)
    later = bound_over_time(timed.moved(1.7e9), limits=Limits(), seed=0).bound
    assert later == pytest.approx(found, rel=1e-5)


def test_more_moments_are_looked_at_where_demand_changes() -> None:
    still = small(seed=1, size=10)
    still = replace(still, power=replace(still.power, cpu_rule="eq1"))  # nothing counted whole
    count = len(still.tasks)
    submit = np.arange(count) * 60.0
    tasks = replace(still.tasks, submit_s=submit, duration_s=np.full(count, 600.0))
    timed = PlacementProblem.of(
        still.cluster, tasks, still.workload, still.ranks, still.power, over_time=OverTime()
    )
    found = bound_over_time(timed, limits=Limits(), seed=0, tolerance=1e-4)
    demand = Demand.of(timed)
    exact = 0.0  # a static bound for every moment
    for event in np.flatnonzero(demand.lasts_s > 0).tolist():
        running = demand.running(event)
        at_once = still.subset(running.tolist()) if len(running) else None
        bound = bound_patterns(at_once, limits=Limits(), seed=0).bound if at_once else None
        assert bound is not None  # somebody runs from the first to the last event
        exact += demand.lasts_s[event] * bound
    assert found.bound is not None
    assert found.info["moments"] > 8
    assert found.bound >= 0.995 * exact


def test_tasks_that_do_not_fit_together_are_proven_not_to_and_when() -> None:
    still = small(seed=0, size=40)
    tasks = still.tasks.take([k for k in range(40) for _ in range(6)])
    count = len(tasks)
    tasks = replace(tasks, submit_s=np.arange(count) * 1.0, duration_s=np.full(count, 1e4))
    for queue, status in (("reject", Status.INFEASIBLE), ("fifo", Status.BOUND_ONLY)):
        timed = PlacementProblem.of(
            still.cluster, tasks, still.workload, still.ranks, still.power,
            over_time=OverTime(queue),  # type: ignore[arg-type]
        )  # fmt: skip
        found = bound_over_time(timed, limits=Limits(), seed=0)
        assert found.status is status
        assert ("cannot be placed together at" in found.message) == (queue == "reject")


@examples(6)
@given(
    problem=timed_placement_problems(max_nodes=2, max_tasks=3, max_gpus=2, queues=("reject",)),
    data=st.data(),
)
def test_prices_found_for_all_tasks_bound_a_part_of_them_as_well(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    size = data.draw(st.integers(1, len(problem.tasks)))
    part = problem.subset(range(size))
    sign = 1 if problem.objective.described.sense == "min" else -1
    found: dict[str, object] = {}
    bound_over_time(problem, limits=Limits(), seed=0, found=found)
    shared = bound_over_time(part, limits=Limits(), seed=0, found=found)
    alone = bound_over_time(part, limits=Limits(), seed=0)
    assert shared.status is alone.status
    if alone.bound is None or shared.bound is None:
        return
    assert sign * shared.bound >= sign * alone.bound - 3e-3 * abs(alone.bound)
    best = None
    for solution in schedules(part, [0.0] * size):
        if not part.check(solution):
            value = part.evaluate(solution).objective
            best = value if best is None else sign * min(sign * best, sign * value)
    if best is not None:
        assert sign * shared.bound <= sign * best + 1e-9 * abs(best)
