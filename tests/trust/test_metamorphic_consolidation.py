"""Consolidation told in another way: what must not change does not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trust.agreement import CLOSE, agree, examples, no_worse, optimum, solved

import optgap
from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine
from optgap.models.consolidation.problem import Capacity


def retold(problem: ConsolidationProblem, **changes: object) -> ConsolidationProblem:
    """The same problem with other kinds, servers, tasks, period_s or rules."""
    given: dict[str, object] = {
        "kinds": problem.kinds,
        "servers": problem.servers,
        "tasks": problem.tasks,
        "rules": problem.rules,
        "period_s": problem.period_s,
        **changes,
    }
    kinds, servers, tasks = (given.pop(key) for key in ("kinds", "servers", "tasks"))
    return ConsolidationProblem.of(
        kinds,  # type: ignore[arg-type]
        servers,  # type: ignore[arg-type]
        tasks,  # type: ignore[arg-type]
        goal=problem.objective.goal,
        **given,  # type: ignore[arg-type]
    )


@examples(6)
@given(problem=consolidation_problems(), data=st.data())
def test_the_order_of_tasks_servers_and_gpus_does_not_matter(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    servers = [
        replace(server, gpus=tuple(data.draw(st.permutations(server.gpus))))
        for server in data.draw(st.permutations(problem.servers))
    ]
    tasks = data.draw(st.permutations(problem.tasks))
    agree(solved(problem, "exact"), solved(retold(problem, servers=servers, tasks=tasks), "exact"))


def thousandfold(line: PowerLine) -> PowerLine:
    return PowerLine(1000 * line.static_w, 1000 * line.slope_w_per_mhz)


@examples(6)
@given(problem=consolidation_problems())
def test_watts_in_another_unit(problem: ConsolidationProblem) -> None:
    other = retold(
        problem,
        kinds=[replace(kind, power=thousandfold(kind.power)) for kind in problem.kinds],
        servers=[replace(server, static_w=1000 * server.static_w) for server in problem.servers],
        tasks=[
            replace(task, power=None if task.power is None else thousandfold(task.power))
            for task in problem.tasks
        ],
    )
    agree(solved(problem, "exact"), solved(other, "exact"), 1000.0)


@examples(6)
@given(problem=consolidation_problems())
def test_memory_in_another_unit(problem: ConsolidationProblem) -> None:
    other = retold(
        problem,
        kinds=[replace(kind, memory_gb=4 * kind.memory_gb) for kind in problem.kinds],
        tasks=[replace(task, memory_gb=4 * task.memory_gb) for task in problem.tasks],
    )
    agree(solved(problem, "exact"), solved(other, "exact"))


@examples(6)
@given(problem=consolidation_problems(), data=st.data())
def test_another_server_may_sleep(problem: ConsolidationProblem, data: st.DataObject) -> None:
    spare = data.draw(st.sampled_from(problem.servers))
    wider = retold(problem, servers=[*problem.servers, spare])
    no_worse(optimum(wider, "exact"), optimum(problem, "exact"))


@examples(6)
@given(problem=consolidation_problems())
def test_a_kind_of_gpu_that_no_server_has_changes_nothing(problem: ConsolidationProblem) -> None:
    kinds = [*problem.kinds, GpuKind("frugal", 80.0, PowerLine(1.0, 0.0))]
    agree(solved(problem, "exact"), solved(retold(problem, kinds=kinds), "exact"))


@examples(6)
@given(problem=consolidation_problems(capacities=("slot", "peak")))
def test_a_weaker_capacity_rule_costs_no_more(problem: ConsolidationProblem) -> None:
    order: tuple[Capacity, ...] = ("none", "slot", "peak")
    optima = []
    for capacity in order:
        try:
            other = retold(problem, rules=replace(problem.rules, capacity=capacity))
        except optgap.InputError:  # a task alone is beyond the limit
            optima.append(None)
        else:
            optima.append(optimum(other, "exact"))
    for weak, strong in pairwise(optima):
        no_worse(weak, strong)


@examples(6)
@given(problem=consolidation_problems(goal="energy", capacities=("none", "mean", "peak")))
def test_seconds_in_another_unit_scale_bound_and_energy(problem: ConsolidationProblem) -> None:
    other = retold(
        problem,
        period_s=8 * problem.period_s,
        rules=replace(problem.rules, wake_s=8 * problem.rules.wake_s),
        tasks=[
            replace(task, submit_s=8 * task.submit_s, duration_s=8 * task.duration_s)
            for task in problem.tasks
        ],
    )
    one, two = (optgap.bound(p, "bound-energy").bound for p in (problem, other))
    assert one is not None
    assert two == pytest.approx(8 * one, rel=CLOSE)
    for policy in ("first", "bestfit"):
        runs = [optgap.run(p, policy).objective for p in (problem, other)]
        if runs[0] is not None:
            assert runs[1] == pytest.approx(8 * runs[0], rel=CLOSE)
