"""A user's own policy in the event loop."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies import placement_problems, tasks_of

import optgap
from optgap.heuristics.placement import CUSTOM, custom
from optgap.heuristics.placement.custom import PlacementState, Task
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, PlacementProblem
from optgap.models.result import Outcome, Termination

small_problems = placement_problems(max_nodes=6, max_tasks=20)


def run(problem: PlacementProblem, policy: Any, seed: int = 0, **params: Any) -> Outcome:
    outcome: Outcome = CUSTOM.load()(
        problem, limits=Limits(), seed=seed, policy=policy, policy_params=params
    )
    return outcome


@pytest.fixture
def cluster() -> PlacementProblem:
    """A T4 and a G2 node; a whole GPU, a share, CPU only, then two GPUs that only a T4 may be."""
    nodes = Cluster.of(["a", "b"], [4000, 8000], [1024, 1024], [1, 2], ["T4", "G2"])
    rows = [(1000, 0, 1, 1000, ""), (0, 512, 1, 400, ""), (5000, 0, 0, 0, "")]
    return PlacementProblem.of(nodes, tasks_of([*rows, (0, 0, 2, 1000, "T4")]), ranks=[1, 0])


def best_fit_gpu(task: Task, state: PlacementState) -> int | None:
    nodes = state.feasible(task)
    return int(nodes[0]) if nodes.size else None


class FirstFit:
    """The same as a class."""

    place = staticmethod(best_fit_gpu)


@given(problem=small_problems)
def test_feasible_is_what_the_referee_would_accept(problem: PlacementProblem) -> None:
    def probe(task: Task, state: PlacementState) -> int | None:
        nodes = state.feasible(task).tolist()
        by_rank = np.argsort(problem.ranks).tolist()
        assert nodes == [n for n in by_rank if state._why_not(task, n) is None]
        for n in nodes:
            assert len(state.gpus_for(task, n)) == task.num_gpu
        return int(state.rng.choice(nodes)) if nodes else None

    outcome = run(problem, probe)
    assert problem.check(outcome.solution) == []
    assert outcome.termination is Termination.COMPLETED


def test_a_node_may_be_named_and_gpus_listed(cluster: PlacementProblem) -> None:
    answers: list[Any] = ["b", (np.int64(1), np.array([1])), ("b", []), None]
    solution = run(cluster, lambda task, state: answers.pop(0)).solution
    assert solution.node.tolist() == [1, 1, 1, -1]
    assert [solution.gpus(k) for k in range(4)] == [(0,), (1,), (), ()]
    assert cluster.check(solution) == []


def test_a_share_given_a_node_alone_gets_the_fullest_gpu_that_fits() -> None:
    nodes = Cluster.of(["a"], [0], [0], [3], ["G2"])
    milli = [300, 600, 500, 300]
    problem = PlacementProblem.of(nodes, tasks_of([(0, 0, 1, m, "") for m in milli]))
    solution = run(problem, best_fit_gpu).solution
    # free: 700, 1000, 1000; then 100; then 100, 500; 300 goes to 500, not 1000
    assert [solution.gpus(k) for k in range(4)] == [(0,), (0,), (1,), (1,)]


def test_the_view_shows_what_is_free_and_asked_for(
    cluster: PlacementProblem,
) -> None:
    free: list[tuple[list[int], list[list[int]]]] = []
    asked: list[Task] = []

    def look(task: Task, state: PlacementState) -> int | None:
        asked.append(task)
        free.append((state.free_cpu_milli.tolist(), state.gpu_free_milli.tolist()))
        for array in (state.free_cpu_milli, state.free_memory_mib, state.gpu_free_milli):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7
        assert {**state.problem.to_json(), "tasks": 0} == {**cluster.to_json(), "tasks": 0}
        return best_fit_gpu(task, state)

    run(cluster, look)
    assert asked[1] == Task("task-1", 0, 512, 1, 400, "")
    assert asked[3].gpu_spec == "T4"
    assert free == [
        ([4000, 8000], [[1000, -1], [1000, 1000]]),
        ([4000, 7000], [[1000, -1], [0, 1000]]),
        ([4000, 7000], [[1000, -1], [0, 600]]),
        ([4000, 2000], [[1000, -1], [0, 600]]),
    ]


def test_random_numbers_come_from_the_seed(cluster: PlacementProblem) -> None:
    drawn: list[float] = []

    def draw(task: Task, state: PlacementState) -> None:
        drawn.append(state.rng.random())

    run(cluster, draw, seed=3)
    run(cluster, draw, seed=3)
    run(cluster, draw, seed=4)
    assert drawn[:4] == drawn[4:8] != drawn[8:]


def test_parameters_reach_the_class_and_the_function(cluster: PlacementProblem) -> None:
    class Fixed:
        def __init__(self, node: str = "a") -> None:
            self.node = node

        def place(self, task: Task, state: PlacementState) -> str | None:
            return self.node if task.cpu_milli == 1000 else None

    def fixed(task: Task, state: PlacementState, node: str = "a") -> str | None:
        return node if task.cpu_milli == 1000 else None

    for policy in (Fixed, fixed):
        assert run(cluster, policy).solution.node[0] == 0
        assert run(cluster, policy, node="b").solution.node[0] == 1


def test_a_stopped_run_keeps_what_was_placed(cluster: PlacementProblem) -> None:
    limits = Limits()

    def stop_at_second(task: Task, state: PlacementState) -> int:
        if task.name == "task-1":
            limits.interrupted.set()
        return 1

    outcome = custom.run(cluster, limits=limits, seed=0, policy=stop_at_second)
    assert outcome.termination is Termination.INTERRUPTED
    assert outcome.solution.node.tolist() == [1, 1, -1, -1]
    assert outcome.message == "stopped after 2 of 4 arrivals"


FITTING = "expected a node that fits the task"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (["c"], "arrival 0 (task task-0): found 'c', expected the name of a node"),
        ([2], "found 2, expected a node index from 0 to 1"),
        ([-1], "found -1, expected a node index from 0 to 1"),
        ([True], "found True, expected a node index or name"),
        ([1.0], "found 1.0, expected a node index or name"),
        ([[1]], "found [1], expected a node index or name"),
        ([(1,)], "found (1,), expected a node, (node, gpu_indices), or None"),
        ([(1, 0)], "found 0, expected a sequence of GPU indices"),
        ([(1, [2])], "found 2, expected GPU indices from 0 to 1"),
        ([(1, [-1])], "found -1, expected GPU indices from 0 to 1"),
        ([(1, ["0"])], "found '0', expected GPU indices from 0 to 1"),
        ([(1, [])], "found [], expected 1 different GPU indices"),
        ([(1, [0, 1])], "found [0, 1], expected 1 different GPU indices"),
        ([(1, [0]), (1, [0])], "arrival 1 (task task-1): found GPU 0 with 0 milli-GPU free"),
        ([0, 0], f"found node a with 0 fitting GPUs, {FITTING}: 1 with 400"),
        ([None, None, 0], f"node a with 4000 milli-vCPU free, {FITTING}: at"),
        ([None] * 3 + [1], f"node b with GPU model G2, {FITTING}: T4"),
        ([None] * 3 + [0], f"node a with 1 fitting GPUs, {FITTING}: 2 with"),
    ],
)
def test_an_answer_that_is_none_is_named_with_the_reason(
    cluster: PlacementProblem, answers: list[Any], message: str
) -> None:
    left = list(answers)
    with pytest.raises(InputError) as caught:
        run(cluster, lambda task, state: left.pop(0))
    assert str(caught.value).startswith(f"policy <lambda>: arrival {len(answers) - 1} ")
    assert message in str(caught.value)


def test_no_node_takes_more_than_1001_tasks_or_than_its_memory() -> None:
    nodes = Cluster.of(["a"], [0], [0], [0], [""])
    problem = PlacementProblem.of(nodes, tasks_of([(0, 0, 0, 0, "")] * 1003))
    assert int((run(problem, best_fit_gpu).solution.node == 0).sum()) == 1001
    with pytest.raises(InputError, match=r"arrival 1001 .* node a with 1001 tasks"):
        run(problem, lambda task, state: 0)
    nodes = Cluster.of(["a"], [1000], [1024], [0], [""])
    problem = PlacementProblem.of(nodes, tasks_of([(0, 1000, 0, 0, ""), (0, 25, 0, 0, "")]))
    with pytest.raises(InputError, match=r"node a with 24 MiB free, expected .* at least 25"):
        run(problem, lambda task, state: 0)


@pytest.mark.parametrize(
    ("policy", "params", "message"),
    [
        (FirstFit, {"alpha": 1}, "policy FirstFit: constructor: found TypeError"),
        (object(), {}, "policy object: found no method place"),
        (best_fit_gpu, {"alpha": 1}, "policy best_fit_gpu: arrival 0 (task task-0): found Type"),
    ],
)
def test_something_that_is_no_policy_is_named(
    cluster: PlacementProblem, policy: Any, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        run(cluster, policy, **params)
    assert message in str(caught.value)
    assert isinstance(caught.value.__cause__, TypeError) is bool(params)


def test_the_example_in_the_docstring_works() -> None:
    result = doctest.testmod(custom)
    assert result.attempted >= 4
    assert result.failed == 0


# -- where tasks leave -------------------------------------------------------------------


def test_a_policy_sees_the_time() -> None:
    nodes = Cluster.of(["a"], [8000], [1024], [2], ["T4"])
    times = {"submit_s": [7.0, 7.0, 9.0, 11.0], "duration_s": [4.0, 6.0, 1.0, 1.0]}
    tasks = tasks_of([(0, 0, 1, 1000, "")] * 4, **times)
    problem = PlacementProblem.of(nodes, tasks)
    seen: list[tuple[str, float, float, int]] = []

    def one_at_a_time(task: Task, state: PlacementState) -> int | None:
        assert np.isinf(state.problem.tasks.duration_s).all()
        free = int((state.gpu_free_milli == 1000).sum())
        seen.append((task.name, task.submit_s, state.time_s, free))
        return 0 if free == 2 else None

    assert optgap.run(problem, one_at_a_time).solution.node.tolist() == [0, -1, -1, 0]
    assert seen == [
        ("task-0", 0.0, 0.0, 2),
        ("task-1", 0.0, 0.0, 1),
        ("task-2", 2.0, 2.0, 1),
        ("task-3", 4.0, 4.0, 2),
    ]
