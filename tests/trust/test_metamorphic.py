"""What must not change does not, when a problem is told in another way: changes of its document."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import placement_problems
from strategies_consolidation import consolidation_problems
from strategies_coscheduling import coscheduling_problems
from strategies_elastic import elastic_problems
from strategies_queueing import queueing_problems, stream
from trust.agreement import CLOSE, agree, examples, no_worse, optimum, solved
from trust.clock import changed, problem_of

import optgap
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.result import Status

Document = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Change = Callable[[Document, Draw], Document]


def scaled(document: Document, factor: float, names: Sequence[str]) -> Document:
    """A document with every number below one of these names times `factor`."""
    return changed(document, lambda value: factor * value, names)


def shuffled(columns: dict[str, list[Any]], draw: Draw) -> dict[str, list[Any]]:
    """Columns of a table with their rows in another order."""
    order = draw(st.permutations(range(len(next(iter(columns.values()))))))
    return {name: [column[k] for k in order] for name, column in columns.items()}


def retold(problem: Any, change: Change, draw: Draw) -> Any:
    return problem_of(change(copy.deepcopy(problem.to_json()), draw))


def placement_in_another_order(document: Document, draw: Draw) -> Document:
    return {**document, **{name: shuffled(document[name], draw) for name in ("tasks", "nodes")}}


def a_task_of_nothing(document: Document, draw: Draw) -> Document:
    for name, column in document["tasks"].items():
        column.append({"name": "nothing", "gpu_spec": ""}.get(name, 0))
    return document


def coscheduling_in_another_order(document: Document, draw: Draw) -> Document:
    names = [name for name in ("jobs", "release_s") if document.get(name)]
    return {**document, **shuffled({name: document[name] for name in names}, draw)}


def one_more(*names: str) -> Change:
    return lambda document, _: {**document, **{name: document[name] + 1 for name in names}}


def consolidation_in_another_order(document: Document, draw: Draw) -> Document:
    servers = [{**s, "count": 1} for s in document["servers"] for _ in range(s["count"])]
    servers = [{**s, "gpus": draw(st.permutations(s["gpus"]))} for s in servers]
    tasks = draw(st.permutations(document["tasks"]))
    return {**document, "servers": draw(st.permutations(servers)), "tasks": tasks}


def another_server(document: Document, draw: Draw) -> Document:
    spare = {**draw(st.sampled_from(document["servers"])), "count": 1}
    return {**document, "servers": [*document["servers"], spare]}


def a_kind_that_no_server_has(document: Document, draw: Draw) -> Document:
    frugal = {**document["kinds"][0], "name": "frugal", "static_w": 1.0, "slope_w_per_mhz": 0.0}
    return {**document, "kinds": [*document["kinds"], {**frugal, "memory_gb": 80.0}]}


def a_weaker_capacity_rule(document: Document, draw: Draw) -> Document:
    return {**document, "capacity": {"peak": "slot", "slot": "none"}[document["capacity"]]}


def elastic_in_another_order(document: Document, draw: Draw) -> Document:
    order = draw(st.permutations(range(len(document["classes"]))))
    jobs = shuffled(document["jobs"], draw)
    jobs["class"] = [order.index(k) for k in jobs["class"]]
    return {**document, "classes": [document["classes"][k] for k in order], "jobs": jobs}


def iterations_of_half_the_length(document: Document, draw: Draw) -> Document:
    return scaled(scaled(document, 0.5, ["time_s"]), 2.0, ["iterations"])


def more_power(document: Document, draw: Draw) -> Document:
    return {**document, "p_max_w": 1.5 * document["p_max_w"]}


def twice_the_gpus(document: Document, draw: Draw) -> Document:
    """The limit stays: η·G·P_max."""
    return {**document, "gpus": 2 * document["gpus"], "p_max_w": document["p_max_w"] / 2}


def a_clock_that_is_slower_and_hungrier(document: Document, draw: Draw) -> Document:
    document["frequencies_mhz"].insert(0, document["frequencies_mhz"][0] / 2)
    for kind in document["classes"]:
        for times, watts in zip(kind["time_s"], kind["power_w"], strict=True):
            times.insert(0, 2 * max(times))
            watts.insert(0, 1.1 * max(watts))
    return document


def queue_in_another_order(document: Document, draw: Draw) -> Document:
    return {**document, "jobs": shuffled(document["jobs"], draw)}


def every_gpu_cut_in_two(document: Document, draw: Draw) -> Document:
    return scaled(document, 2, ["gpus", "gpus_per_node"])


def gpus_that_are_only_counted(document: Document, draw: Draw) -> Document:
    return {**document, "placement": "count"}


class Case(NamedTuple):
    """A change after which the least objective is what it was, or no higher."""

    problems: st.SearchStrategy[Any]
    change: Change
    methods: tuple[str, ...]
    helps: bool = False


PLACEMENT = placement_problems(goals=("power",), max_nodes=2, max_tasks=4, max_gpus=3)
COSCHEDULING = coscheduling_problems(max_jobs=4)
CONSOLIDATION = consolidation_problems()
TIMES = ("submit_s", "duration_s", "period_s", "wake_s")
ELASTIC = elastic_problems(max_jobs=2, max_clocks=2, free=True)
"""Few jobs, whose restarts are free: what every order can be tried of."""
QUEUEING = queueing_problems()
EXACT, ORACLE, ALL = ("exact",), ("oracle",), ("exhaustive",)
STRICT = consolidation_problems(capacities=("slot", "peak"))
QUICKEST = coscheduling_problems(goals=("makespan",), max_jobs=3)
ON_NODES = queueing_problems(max_jobs=3).map(lambda problem: replace(problem, placement="node"))

CASES = [
    Case(placement_problems(max_tasks=5, max_gpus=3), placement_in_another_order, EXACT),
    Case(PLACEMENT, a_task_of_nothing, EXACT),
    Case(COSCHEDULING, coscheduling_in_another_order, ORACLE),
    Case(QUICKEST, one_more("gpus", "numa"), ALL, helps=True),
    Case(CONSOLIDATION, consolidation_in_another_order, EXACT),
    Case(CONSOLIDATION, lambda d, _: scaled(d, 4, ["memory_gb"]), EXACT),
    Case(CONSOLIDATION, another_server, EXACT, helps=True),
    Case(CONSOLIDATION, a_kind_that_no_server_has, EXACT),
    Case(STRICT, a_weaker_capacity_rule, EXACT, helps=True),
    Case(ELASTIC, elastic_in_another_order, ALL),
    Case(ELASTIC, iterations_of_half_the_length, ALL),
    Case(ELASTIC, lambda d, _: scaled(d, 1000.0, ["power_w", "p_max_w", "idle_w"]), ALL),
    Case(ELASTIC, more_power, ALL, helps=True),
    Case(ELASTIC, twice_the_gpus, ALL, helps=True),
    Case(ELASTIC, a_clock_that_is_slower_and_hungrier, ALL),
    Case(QUEUEING, queue_in_another_order, EXACT + ALL),
    Case(QUEUEING, every_gpu_cut_in_two, EXACT),
    Case(queueing_problems(max_nodes=1), one_more("nodes"), ALL, helps=True),
    Case(ON_NODES, gpus_that_are_only_counted, ALL, helps=True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.change.__name__)
def test_the_optimum_is_that_of_the_same_problem_told_in_another_way(case: Case) -> None:
    @examples(6)
    @given(problem=case.problems, data=st.data())
    def hold(problem: Any, data: st.DataObject) -> None:
        other = retold(problem, case.change, data.draw)
        for method in case.methods:
            if case.helps:
                no_worse(optimum(other, method), optimum(problem, method))
            else:
                agree(solved(problem, method), solved(other, method))

    hold()


@examples(12)
@given(problem=PLACEMENT)
def test_an_idle_node_adds_what_it_draws_at_most(problem: Any) -> None:
    """More room is never worse by more than the new node's idle power."""
    document = problem.to_json()
    spare = {"name": "spare", "cpu_milli": 64_000, "memory_mib": 16_384, "gpus": 0, "model": ""}
    for name, column in document["nodes"].items():
        column.append(spare[name])
    document["ranks"].append(len(document["ranks"]))
    before, after = solved(problem, "exact"), solved(problem_of(document), "exact")
    if before.status is Status.OPTIMAL:
        idle = problem.power.cpu_w(64_000, 64_000)
        assert after.objective <= before.objective + idle + CLOSE * abs(before.objective)


@examples(6)
@given(problem=consolidation_problems(goal="energy", capacities=("none", "mean", "peak")))
def test_seconds_in_another_unit_scale_bound_and_energy(problem: Any) -> None:
    other = problem_of(scaled(problem.to_json(), 8, TIMES))
    one, two = (optgap.bound(p, "bound-over-time", rounds=1).bound for p in (problem, other))
    assert one is not None
    assert two == pytest.approx(8 * one, rel=CLOSE)
    for policy in ("first", "bestfit"):
        runs = [optgap.run(p, policy).objective for p in (problem, other)]
        if runs[0] is not None:
            assert runs[1] == pytest.approx(8 * runs[0], rel=CLOSE)


def twice(problem: Any, later: float) -> Any:
    """The same elastic jobs, and the same again some time later."""
    document = problem.to_json()
    again = copy.deepcopy(document["jobs"])
    again["name"] = [f"{name}'" for name in again["name"]]
    again["submit_s"] = [later + time for time in again["submit_s"]]
    document["jobs"] = {name: column + again[name] for name, column in document["jobs"].items()}
    return problem_of(document)


@examples(5)
@given(problem=ELASTIC)
def test_a_trace_that_repeats_after_all_are_done_has_the_same_mean(problem: Any) -> None:
    once, again = (solved(p, "exhaustive") for p in (problem, twice(problem, 2.0**14)))
    assert again.objective == pytest.approx(once.objective, rel=CLOSE)


@examples(6)
@given(problem=elastic_problems(max_jobs=3, max_clocks=2))
def test_policies_run_it_again_as_before(problem: Any) -> None:
    # what `powerflow` learns from the first jobs would help it with the others
    for policy in ("fifo", "powerflow(profiles=perfect)"):
        once, again = (optgap.run(p, policy) for p in (problem, twice(problem, 2.0**16)))
        if once.objective is not None and problem.serves_all(once.solution):
            assert again.objective == pytest.approx(once.objective, rel=CLOSE)


def followed(one: QueueingProblem, two: QueueingProblem, later: float) -> list[QueueingProblem]:
    """A queue, the other's jobs on its cluster, and both, the second so much later."""
    gpus = np.minimum(two.jobs.gpus, one.nodes * one.gpus_per_node)
    second = replace(one, jobs=replace(two.jobs, gpus=gpus))
    names = tuple(f"{name}'" for name in two.jobs.names)
    moved = replace(second.jobs, arrival_s=later + second.jobs.arrival_s, names=names)
    names = [f.name for f in fields(Jobs) if f.name != "batches"]
    columns = [(getattr(one.jobs, name), getattr(moved, name)) for name in names]
    joined = [a + b if isinstance(a, tuple) else np.concatenate([a, b]) for a, b in columns]
    return [one, second, replace(one, jobs=Jobs(*joined))]


@examples(6)
@given(
    one=queueing_problems(goals=("mean_wait", "mean_jct"), max_jobs=3),
    two=queueing_problems(goals=("mean_wait",), max_jobs=3),
)
def test_a_queue_that_runs_empty_is_two_queues(one: QueueingProblem, two: QueueingProblem) -> None:
    problems = followed(one, two, 4096.0)
    *parts, whole = [solved(problem, "exact").objective for problem in problems]
    assert None not in parts
    sizes = [len(problem) for problem in problems[:2]]
    mean = math.fsum(n * float(v or 0.0) for n, v in zip(sizes, parts, strict=True)) / sum(sizes)
    assert whole == pytest.approx(mean, rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize("policy", ["fifo", "sjf", "easy", "shortest", "shortest-gpu"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_run_split_where_the_queue_is_empty_is_the_same_run(policy: str, seed: int) -> None:
    """Until the last job of the first part ends nothing of the second has come."""
    later = 2.0**24
    problems = followed(stream(seed), stream(seed + 10), later)
    one, two, whole = [optgap.run(problem, policy).solution.start_s for problem in problems]
    assert np.allclose(whole, np.concatenate([one, later + two]), equal_nan=True)
