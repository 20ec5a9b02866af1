"""Lists per node: what following a change comes to, against all lists scheduled again by Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_queueing import stream

from optgap.models.compiled import interpreted
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.presets import mixed
from optgap.solvers.queueing.list_schedule import held_gpus, stream_of
from optgap.solvers.queueing.node_annealing import NodeMoves, anneal_nodes
from optgap.solvers.queueing.node_lists import NONE, Lists, lists_of, take, trial_of


def lists_for(problem: QueueingProblem, seed: int = 0) -> Lists:
    """Lists in which jobs run one after the other, each on the first nodes with room."""
    made, jobs = stream_of(problem), problem.jobs
    lists = lists_of(made, problem.shape[0], np.array([seed + 1], dtype=np.int64))
    alone = jobs.arrival_s.max() + np.concatenate([[0.0], np.cumsum(jobs.duration_s)[:-1]])
    nodes = np.concatenate([np.arange(n) for n in np.diff(made.at)])
    take(lists, alone, nodes)
    return lists


def walked(lists: Lists, node: int) -> list[int]:
    """The places of a node's list."""
    found, h = [], int(lists.after[len(lists.job) + node])
    while h != NONE:
        found.append(h)
        h = int(lists.after[h])
    return found


def scheduled(problem: QueueingProblem, lists: Lists) -> np.ndarray:
    """When jobs start: the lists served from their heads, by no code of the module's."""
    queues = [[int(lists.job[h]) for h in walked(lists, k)] for k in range(problem.shape[0])]
    free = [[0.0] * problem.shape[1] for _ in queues]
    gpus = held_gpus(lists.stream).tolist()
    at, node = lists.stream.at.tolist(), lists.node.tolist()
    start = np.full(len(problem), np.nan)
    while any(queues):
        ready = [q[0] for q in queues if q]
        j = next(j for j in ready if all(queues[node[h]][0] == j for h in range(at[j], at[j + 1])))
        held = [(node[h], gpus[h]) for h in range(at[j], at[j + 1])]
        now = max(float(problem.jobs.arrival_s[j]), *(sorted(free[k])[n - 1] for k, n in held))
        for k, n in held:
            queues[k].pop(0)
            first = sorted(max(t, now) for t in free[k])
            free[k] = first[n:] + [now + float(problem.jobs.duration_s[j])] * n
        start[j] = now
    return start


def assert_consistent(problem: QueueingProblem, lists: Lists) -> None:
    start = scheduled(problem, lists)
    assert lists.start.tolist() == start.tolist()
    for k in range(problem.shape[0]):
        keys = lists.key[walked(lists, k)]
        assert (np.diff(keys) > 0).all()
    solution = QueueingSolution.of(
        problem, start, lists.stream.at, lists.node[: len(lists.job)], held_gpus(lists.stream)
    )
    assert {found.constraint for found in problem.check(solution)} <= {"start_s within patience"}
    objective = problem.value(start)
    if problem.objective.goal == "makespan":
        cost = len(start) * (objective + problem.jobs.arrival_s.min())
        cost += 1e-3 * (start - problem.jobs.arrival_s).sum()
    else:
        cost = (start - problem.jobs.arrival_s).sum()
    late = np.maximum(0.0, start - lists.stream.latest)
    if not late.any():
        assert lists.cost[0] == pytest.approx(cost, rel=1e-6, abs=1e-6)
    elif late.max() > 1:
        assert lists.cost[0] == pytest.approx(cost + 1e6 * late.sum(), rel=1e-3)


@pytest.mark.parametrize("doubt", [0.0, np.inf])
@given(seed=st.integers(0, 2000), moved=st.sampled_from((0.0, 1.7e9)))
def test_following_changes_gives_the_schedule_of_the_lists(
    doubt: float, seed: int, moved: float
) -> None:
    problem = stream(seed).moved(moved)
    lists = lists_for(problem, seed)
    moves = NodeMoves(reach=10, doubt=doubt)
    for heat in (1e9, 100.0, 0.0):
        anneal_nodes(lists, trial_of(lists), moves, heat, 200)
        assert_consistent(problem, lists)


def test_what_is_not_accepted_is_taken_back() -> None:
    problem = mixed(seed=1, size=60, nodes=4)
    lists = lists_for(problem)
    anneal_nodes(lists, trial_of(lists), NodeMoves(), 0.0, 30_000)
    before = [np.copy(array) for array in lists[1:-1]]
    lists.cost[0], cost = -1e9, float(lists.cost[0])
    accepted = anneal_nodes(lists, trial_of(lists), NodeMoves(), 1e-9, 300)
    lists.cost[0] += cost + 1e9
    if accepted == 0:
        assert all(np.array_equal(a, b) for a, b in zip(before, lists[1:-1], strict=True))
    assert_consistent(problem, lists)


@pytest.mark.parametrize("goal", ["makespan", "mean_wait"])
def test_many_changes_among_few_jobs_leave_nodes_in_one_order(goal: str) -> None:
    """Keys halve their distances, until jobs of several nodes might be told apart no more."""
    problem = mixed(seed=3, size=12, nodes=2, goal=goal)
    lists = lists_for(problem)
    for _ in range(4):
        anneal_nodes(lists, trial_of(lists), NodeMoves(), 1e9, 10_000)
        assert_consistent(problem, lists)


def test_python_and_machine_code_make_the_same_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optgap.models.compiled.loaded", lambda *_: False)
    problem, starts = mixed(seed=1, size=30, nodes=3), []
    for small_enough in (True, False):
        with interpreted(small_enough):
            lists = lists_for(problem)
            assert anneal_nodes(lists, trial_of(lists), NodeMoves(), 300.0, 400) > 30
            starts.append(lists.start.tolist())
    assert starts[0] == starts[1]
