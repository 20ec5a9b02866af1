"""Tasks that take several nodes: all or none, on different ones, and at the same time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import tasks_of

import optgap
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields
from optgap.models.placement import Cluster, OverTime, PlacementProblem, PlacementSolution
from optgap.models.placement.presets import from_csv
from optgap.models.result import Status

CLUSTER = Cluster.of(["a", "b", "c"], [32_000] * 3, [4096] * 3, [2, 2, 2], ["G2"] * 3)


def problem(nodes: list[int], cluster: Cluster = CLUSTER, **rules: Any) -> PlacementProblem:
    """Tasks of two GPUs per node, one after another, each for 10 s."""
    count = len(nodes)
    times = {"submit_s": np.arange(count), "duration_s": [10.0] * count}
    tasks = tasks_of([(1000, 10, 2, 1000, "")] * count, nodes=nodes, **times)
    return PlacementProblem.of(cluster, tasks, over_time=OverTime(**{"horizon_s": 30.0, **rules}))


def solution(made: PlacementProblem, nodes: list[int], start: list[float]) -> PlacementSolution:
    mask = np.where(np.array(nodes) < 0, 0, 3)
    return PlacementSolution.of_arrays(np.array(nodes), mask, np.array(start))


def test_a_task_has_a_row_per_node_and_one_in_its_file() -> None:
    made = problem([1, 2])
    assert made.tasks.names == ("task-0", "task-1/1", "task-1/2")
    assert made.tasks.parts.tolist() == [1, 2, 2]
    document = made.to_json()
    assert document["tasks"]["name"] == ["task-0", "task-1"]
    assert document["tasks"]["nodes"] == [1, 2]
    again = PlacementProblem.from_json(Fields(json.loads(json.dumps(document)), "file"))
    assert again.to_json() == document
    assert again.tasks.gang.tolist() == [0, 1, 1]
    assert "nodes" not in problem([1, 1]).to_json()["tasks"]
    assert "2 tasks asking" in made.summary


@pytest.mark.parametrize(
    ("nodes", "start", "broken"),
    [
        ([0, 1, 2], [0, 1, 1], ""),
        ([0, 1, -1], [0, 1, 1], "all nodes of a task or none"),
        ([0, 1, 1], [0, 1, 1], "different nodes for a task"),
        ([0, 1, 2], [0, 1, 2], "one start for a task"),
        ([0, -1, -1], [0, 1, 1], ""),
    ],
)
def test_the_referee_sees_to_it(nodes: list[int], start: list[float], broken: str) -> None:
    made = problem([1, 2], queue="fifo")
    found = [violation.constraint for violation in made.check(solution(made, nodes, start))]
    assert broken in found if broken else not found


def test_metrics_count_tasks_not_rows() -> None:
    made = problem([2, 2], queue="reject")
    found = optgap.run(made, "firstfit")
    assert found.metrics["tasks"] == 2
    assert found.metrics["failed_tasks"] == 1
    assert found.metrics["used_gpu_milli"] == 4000
    assert found.solution.node.tolist()[2:] == [-1, -1]


def test_one_that_waits_lets_others_go_ahead_only_with_backfill() -> None:
    for queue, start in (("backfill", [0, 0, 10, 10, 2]), ("fifo", [0, 0, 10, 10, 10])):
        made = problem([2, 2, 1], queue=queue, horizon_s=40.0)
        assert optgap.run(made, "pwr").solution.start_s.tolist() == start


def test_more_nodes_than_there_are_never_fit() -> None:
    made = problem([4, 1])
    assert made.never_fits == (0, 1, 2, 3)
    found = optgap.bound(made)
    assert found.status is Status.INFEASIBLE
    assert found.message == "task task-0 (arrival 0) fits fewer than 4 nodes even when empty"
    assert str(optgap.conflict(made)).endswith("4 nodes asked, 3 could take a part")
    assert optgap.run(made, "pwr").metrics["never_fit_tasks"] == 1


def test_decisions_about_them_are_judged_with_their_other_nodes_taken() -> None:
    # one node is left for the third task: nothing better was open, on either side
    found = optgap.explain(problem([2, 1]), "random", methods="bound-over-time")
    assert not found.regrets


def test_where_tasks_stay_they_are_refused() -> None:
    still = tasks_of([(1000, 10, 1, 1000, "")], nodes=[2])
    with pytest.raises(InputError, match=r"tasks\.nodes: found 2, expected 1 where tasks do not"):
        PlacementProblem.of(CLUSTER, still)


def test_with_hindsight_one_of_several_nodes_waits_until_there_are_so_many() -> None:
    made = problem([2, 3, 2, 1], queue="backfill", horizon_s=50.0)
    found = optgap.solve(made, "hindsight", moves=200)  # the referee checks it
    start = found.solution.start_s
    assert sorted(set(start[2:5])) == [start[2]]
    assert found.metrics["failed_tasks"] == 0
    lost = optgap.solve(problem([2, 2], queue="reject"), "hindsight", moves=20)
    assert lost.status is Status.INFEASIBLE


@pytest.mark.parametrize("bad", [0, -1])
def test_a_number_of_nodes_is_at_least_one(bad: int) -> None:
    expected = rf"tasks\.nodes\[1\]: found {bad}, expected an integer of at least 1"
    with pytest.raises(InputError, match=expected):
        problem([1, bad])
    document = problem([1, 2]).to_json()
    document["tasks"]["nodes"][1] = bad
    with pytest.raises(InputError, match=expected):
        PlacementProblem.from_json(Fields(document, "file"))


def test_lists_of_tasks_say_how_many_nodes(tmp_path: Path) -> None:
    nodes, tasks = tmp_path / "nodes.csv", tmp_path / "tasks.csv"
    rows = "".join(f"{name},32000,4096,2,G2\n" for name in "abc")
    nodes.write_text(f"sn,cpu_milli,memory_mib,gpu,model\n{rows}")
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
    tasks.write_text(f"{head},submit_s,duration_s,nodes\nt0,1000,10,2,1000,3,10,2\n"
                     "t1,1000,10,1,500,1,5,\n")  # fmt: skip
    made = from_csv(nodes, tasks, seed=0)
    assert made.tasks.names == ("t1", "t0/1", "t0/2")
    assert made.tasks.submit_s.tolist() == [1, 3, 3]
    tasks.write_text(f"{head},nodes\nt0,1000,10,2,1000,2\n")
    with pytest.raises(InputError, match="row 2, column nodes: found 2, expected 1 where tasks do"):
        from_csv(nodes, tasks, seed=0)
