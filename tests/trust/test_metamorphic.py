"""What must not change does not, when a problem is told in another way."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import placement_problems, tasks_of
from strategies_coscheduling import coscheduling_problems
from trust.agreement import CLOSE, agree, solved

from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.placement import Cluster, PlacementProblem
from optgap.models.result import Status


def reordered(problem: PlacementProblem, order: list[int], nodes: list[int]) -> PlacementProblem:
    """The same tasks and nodes in another order."""
    cluster, tasks = problem.cluster, problem.tasks
    return PlacementProblem.of(
        Cluster.of(
            [cluster.names[k] for k in nodes],
            cluster.cpu_milli[nodes],
            cluster.memory_mib[nodes],
            cluster.gpus[nodes],
            [cluster.models[k] for k in nodes],
        ),
        tasks.take(order),
        problem.workload,
        None,
        problem.power,
        problem.objective,
        name=problem.name,
        origin=problem.origin,
    )


@settings(max_examples=25)
@given(problem=placement_problems(max_nodes=3, max_tasks=5, max_gpus=3), data=st.data())
def test_the_order_of_tasks_and_nodes_does_not_matter(
    problem: PlacementProblem, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(problem.tasks))))
    nodes = data.draw(st.permutations(range(len(problem.cluster))))
    other = reordered(problem, list(order), list(nodes))
    agree(solved(problem, "exact"), solved(other, "exact"))


@settings(max_examples=25)
@given(problem=placement_problems(goals=("power",), max_nodes=2, max_tasks=5, max_gpus=3))
def test_an_idle_node_adds_what_it_draws_at_most(problem: PlacementProblem) -> None:
    """More room is never worse by more than the new node's idle power."""
    cluster = problem.cluster
    wider = PlacementProblem.of(
        Cluster.of(
            [*cluster.names, "spare"],
            [*cluster.cpu_milli, 64_000],
            [*cluster.memory_mib, 16_384],
            [*cluster.gpus, 0],
            [*cluster.models, ""],
        ),
        problem.tasks,
        problem.workload,
        None,
        problem.power,
        problem.objective,
        name=problem.name,
        origin=problem.origin,
    )
    before, after = solved(problem, "exact"), solved(wider, "exact")
    if before.status is Status.OPTIMAL:
        idle = problem.power.cpu_w(64_000, 64_000)
        assert before.objective is not None
        assert after.objective is not None
        assert after.objective <= before.objective + idle + CLOSE * abs(before.objective)


@settings(max_examples=25)
@given(problem=placement_problems(goals=("power",), max_nodes=3, max_tasks=4, max_gpus=3))
def test_watts_in_another_unit(problem: PlacementProblem) -> None:
    power = problem.power
    scaled = replace(
        power,
        gpu_idle_w={k: 1000 * v for k, v in power.gpu_idle_w.items()},
        gpu_full_w={k: 1000 * v for k, v in power.gpu_full_w.items()},
        cpu=replace(power.cpu, idle_w=1000 * power.cpu.idle_w, full_w=1000 * power.cpu.full_w),
    )
    agree(solved(problem, "exact"), solved(replace(problem, power=scaled), "exact"), 1000.0)


@settings(max_examples=25)
@given(problem=placement_problems(goals=("power",), max_nodes=2, max_tasks=4, max_gpus=3))
def test_a_task_of_nothing_changes_nothing(problem: PlacementProblem) -> None:
    tasks = problem.tasks
    rows = [
        (
            int(tasks.cpu_milli[k]),
            int(tasks.memory_mib[k]),
            int(tasks.num_gpu[k]),
            int(tasks.gpu_milli[k]),
            tasks.task_class(k).gpu_spec,
        )
        for k in range(len(tasks))
    ]
    with_nothing = replace(problem, tasks=tasks_of([*rows, (0, 0, 0, 0, "")]))
    agree(solved(problem, "exact"), solved(with_nothing, "exact"))


def told_in(problem: CoschedulingProblem, time: float, power: float) -> CoschedulingProblem:
    """The same jobs in other units of time and power."""
    applications = tuple(
        replace(
            app,
            modes=tuple(
                replace(
                    mode,
                    runtime_s=time * mode.runtime_s,
                    power_per_gpu_w=power * mode.power_per_gpu_w,
                )
                for mode in app.modes
            ),
        )
        for app in problem.applications
    )
    releases = tuple(time * release for release in problem.releases)
    idle_w = power * problem.idle_w
    return replace(problem, applications=applications, releases=releases, idle_w=idle_w)


FACTORS = {"energy": (1, 1), "makespan": (1, 0), "edp": (2, 1)}
"""Powers of the units of time and power in each objective."""


@settings(max_examples=25)
@given(problem=coscheduling_problems(max_jobs=4), watt=st.sampled_from((1000.0, 0.001)))
def test_seconds_and_watts_in_other_units(problem: CoschedulingProblem, watt: float) -> None:
    in_time, in_power = FACTORS[problem.objective.goal]
    other = told_in(problem, 60.0, watt)
    agree(solved(problem, "oracle"), solved(other, "oracle"), 60.0**in_time * watt**in_power)


@settings(max_examples=25)
@given(problem=coscheduling_problems(max_jobs=4), data=st.data())
def test_the_order_of_jobs_does_not_matter(
    problem: CoschedulingProblem, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(problem.jobs))))
    jobs = tuple(problem.jobs[k] for k in order)
    releases = tuple(problem.releases[k] for k in order) if problem.releases else ()
    agree(
        solved(problem, "oracle"), solved(replace(problem, jobs=jobs, releases=releases), "oracle")
    )


@settings(max_examples=25)
@given(problem=coscheduling_problems(goals=("makespan",), max_jobs=3))
def test_another_gpu_and_domain_never_delay(problem: CoschedulingProblem) -> None:
    wider = replace(problem, gpus=problem.gpus + 1, numa=problem.numa + 1)
    before, after = solved(problem, "exhaustive"), solved(wider, "exhaustive")
    assert before.objective is not None
    assert after.objective is not None
    assert after.objective <= before.objective * (1 + CLOSE)
