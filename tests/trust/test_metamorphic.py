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
from trust.agreement import CLOSE, agree, examples, solved
from trust.clock import changed, problem_of

import optgap
from optgap.models.queueing import Jobs, QueueingProblem

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


def coscheduling_in_another_order(document: Document, draw: Draw) -> Document:
    names = [name for name in ("jobs", "release_s") if document.get(name)]
    return {**document, **shuffled({name: document[name] for name in names}, draw)}


def consolidation_in_another_order(document: Document, draw: Draw) -> Document:
    servers = [{**s, "count": 1} for s in document["servers"] for _ in range(s["count"])]
    servers = [{**s, "gpus": draw(st.permutations(s["gpus"]))} for s in servers]
    tasks = draw(st.permutations(document["tasks"]))
    return {**document, "servers": draw(st.permutations(servers)), "tasks": tasks}


def a_kind_that_no_server_has(document: Document, draw: Draw) -> Document:
    frugal = {**document["kinds"][0], "name": "frugal", "static_w": 1.0, "slope_w_per_mhz": 0.0}
    return {**document, "kinds": [*document["kinds"], {**frugal, "memory_gb": 80.0}]}


def elastic_in_another_order(document: Document, draw: Draw) -> Document:
    order = draw(st.permutations(range(len(document["classes"]))))
    jobs = shuffled(document["jobs"], draw)
    jobs["class"] = [order.index(k) for k in jobs["class"]]
    return {**document, "classes": [document["classes"][k] for k in order], "jobs": jobs}


def queue_in_another_order(document: Document, draw: Draw) -> Document:
    return {**document, "jobs": shuffled(document["jobs"], draw)}


class Case(NamedTuple):
    """A change after which the least objective is what it was."""

    problems: st.SearchStrategy[Any]
    change: Change
    method: str


COSCHEDULING = coscheduling_problems(max_jobs=4)
CONSOLIDATION = consolidation_problems()
TIMES = ("submit_s", "duration_s", "period_s")
ELASTIC = elastic_problems(max_jobs=2, max_clocks=2, free=True)
"""Few jobs, whose restarts are free: what every order can be tried of."""
QUEUEING = queueing_problems()

CASES = [
    Case(placement_problems(max_tasks=5, max_gpus=3), placement_in_another_order, "exact"),
    Case(COSCHEDULING, coscheduling_in_another_order, "oracle"),
    Case(CONSOLIDATION, consolidation_in_another_order, "exact"),
    Case(CONSOLIDATION, lambda d, _: scaled(d, 4, ["memory_gb"]), "exact"),
    Case(CONSOLIDATION, a_kind_that_no_server_has, "exact"),
    Case(ELASTIC, elastic_in_another_order, "exhaustive"),
    Case(ELASTIC, lambda d, _: scaled(d, 1000.0, ["power_w", "p_max_w", "idle_w"]), "exhaustive"),
    Case(QUEUEING, queue_in_another_order, "exact"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.change.__name__)
def test_the_optimum_is_that_of_the_same_problem_told_in_another_way(case: Case) -> None:
    @examples(6)
    @given(problem=case.problems, data=st.data())
    def hold(problem: Any, data: st.DataObject) -> None:
        other = retold(problem, case.change, data.draw)
        agree(solved(problem, case.method), solved(other, case.method))

    hold()


@examples(6)
@given(problem=consolidation_problems(goal="energy", capacities=("none", "mean", "peak")))
def test_seconds_in_another_unit_scale_bound_and_energy(problem: Any) -> None:
    other = problem_of(scaled(problem.to_json(), 8, TIMES))
    one, two = (optgap.bound(p, "bound-over-time", rounds=1).bound for p in (problem, other))
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
