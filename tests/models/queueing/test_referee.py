"""What the referee of queues says, to the last GPU and to the edge of its slack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from optgap.models.queueing import Jobs, QueueingProblem, QueueingSolution
from optgap.models.queueing.problem import STARVED_S
from optgap.models.queueing.referee import SHORT_S, queue_length
from optgap.models.result import Violation

Pairs = Sequence[tuple[int, int]]
NEVER = math.nan


def problem(*rows: tuple[float, float, int], patience: Any = math.inf, **more: Any) -> Any:
    """Jobs a, b, … of (arrival, seconds, GPUs) on two nodes of four GPUs."""
    jobs = Jobs.of(
        [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows],
        names="abcdefgh"[: len(rows)], patience_s=patience,
    )  # fmt: skip
    return QueueingProblem.of(jobs, **{"nodes": 2, "gpus_per_node": 4, **more})


def plan(
    problem: QueueingProblem, *parts: tuple[float, Pairs], ends: Sequence[float] | None = None
) -> QueueingSolution:
    """Per job its start and the nodes that it holds; its end as it should be, unless given."""
    start = np.array([start for start, _ in parts])
    held = [pair for _, pairs in parts for pair in pairs]
    at = np.cumsum([0, *(len(pairs) for _, pairs in parts)])
    end = start + problem.jobs.duration_s[: len(start)] if ends is None else np.array(ends)
    node, gpus = (np.array([pair[k] for pair in held], dtype=np.int64) for k in (0, 1))
    return QueueingSolution(start, end, at, node, gpus)


def check(problem: QueueingProblem, *parts: tuple[float, Pairs], **ends: Any) -> list[Violation]:
    return problem.check(plan(problem, *parts, **ends))


def test_there_is_a_start_and_a_place_for_each_job() -> None:
    two, one = problem((0, 5, 1), (0, 5, 1)), (0.0, [(0, 1)])
    assert check(two, one) == [Violation("number of jobs", "schedule", 1, 2)]
    made = plan(two, one, one)
    for starts, places in ((1, 3), (3, 3), (2, 2), (2, 4)):
        other = QueueingSolution(
            np.zeros(starts), np.full(starts, 5.0), np.arange(places), made.held_node,
            made.held_gpus,
        )  # fmt: skip
        assert two.check(other) == [Violation("number of jobs", "schedule", starts, 2)]
    assert two.check(made) == []


def test_jobs_start_between_arrival_and_the_end_of_their_patience() -> None:
    """The slack is a microsecond."""
    made = problem((1000, 1000, 1), patience=[50.0])
    for start in (1000.0, 1000 - 9e-7, 1050.0, 1050 + 9e-7):
        assert check(made, (start, [(0, 1)])) == []
    for never in (math.inf, -math.inf):  # only NaN stands for a job that does not start
        assert check(made, (never, [(0, 1)]))
    early, late = 1000 - 1.1e-6, 1050 + 1.1e-6
    assert check(made, (early, [(0, 1)])) == [
        Violation("start_s not before arrival", "job a", early, 1000.0)
    ]
    assert check(made, (late, [(0, 1)])) == [
        Violation("start_s within patience", "job a", late, 1050.0)
    ]


@pytest.mark.parametrize("off", [9e-7, -9e-7, 1.1e-6, -1.1e-6, 100.0, -100.0, NEVER, math.inf])
def test_a_job_runs_for_its_duration(off: float) -> None:
    made = problem((0, 10, 1), (1000, 1000, 1))
    parts = [(0.0, [(0, 1)]), (1000.0, [(0, 1)])]
    found = check(made, *parts, ends=[10.0, 2000 + off])
    if abs(off) < 1e-6:
        assert found == []
    else:
        (broken,) = found
        assert (broken.constraint, broken.where, broken.limit) == ("run time", "job b", 1000.0)
        assert broken.found == pytest.approx(1000 + off, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(
    ("gpus", "pairs", "shown", "wanted"),
    [
        (3, [(1, 3)], "", ""),
        (4, [(1, 4)], "", ""),
        (5, [(1, 4), (0, 1)], "", ""),
        (5, [(0, 1), (1, 4)], "", ""),
        (8, [(0, 4), (1, 4)], "", ""),
        (3, [(1, 2)], "2", "3"),
        (3, [(1, 4)], "4", "3"),
        (3, [(1, 2), (0, 1)], "2+1", "3"),
        (3, [], "none", "3"),
        (5, [(0, 5)], "5", "4+1"),
        (5, [(0, 3), (1, 2)], "3+2", "4+1"),
        (8, [(0, 4), (1, 3)], "4+3", "4+4"),
        (4, [(0, 4), (1, 1)], "4+1", "4"),
    ],
)
def test_a_job_has_whole_nodes_and_what_is_left_on_one_more(
    gpus: int, pairs: Pairs, shown: str, wanted: str
) -> None:
    made = problem((0, 5, 1), (0, 5, gpus))
    expected = [Violation("GPUs per node", "job b", shown, wanted)] if shown else []
    assert check(made, (5.0, [(0, 1)]), (0.0, pairs)) == expected


HELD, ONCE = "GPUs held", "each node once"
THREE = [(0, 10, 3), (0, 10, 2), (0, 10, 1)]
FULL, NONE = [(0, 4)], []


@pytest.mark.parametrize(
    ("rows", "parts", "broken"),
    [
        *(([(0, 5, 2)], [(0.0, [(k, 2)])], [("node", "job a", k, 1)]) for k in (-1, 2, 5)),
        ([(0, 5, 6)], [(0.0, [(1, 4), (2, 2)])], [("node", "job a", 2, 1)]),
        ([(0, 5, 6)], [(0.0, [(1, 4), (1, 2)])], [("different nodes", "job a", 2, ONCE)]),
        # what a job that never starts would hold does not matter
        *(([(0, 5, 4)] * 2, [(0.0, FULL), (NEVER, held)], []) for held in (FULL, NONE)),
        (THREE, [(0.0, [(0, 3)]), (5.0, [(1, 2)]), (5.0, [(0, 1)])], []),
        (THREE, [(0.0, [(1, 3)]), (5.0, [(1, 2)]), (20.0, [(0, 1)])],
         [(HELD, "node 1 at 5 s", 5, 4)]),
        # what ends when another starts has left
        *(([(0, 10, 4)] * 2, [(0.0, FULL), (at, FULL)], []) for at in (10.0, 10 - 9e-7)),
        ([(0, 10, 4)] * 2, [(0.0, FULL), (10 - 1.2e-6, FULL)], [(HELD, "node 0 at 10 s", 8, 4)]),
        ([(0, 10, 4)] * 4, [(0.0, FULL), (0.0, [(1, 4)])] * 2,
         [(HELD, "node 0 at 0 s", 8, 4), (HELD, "node 1 at 0 s", 8, 4)]),
    ],
)  # fmt: skip
def test_no_node_holds_more_than_it_has(rows: Any, parts: Any, broken: list[Any]) -> None:
    assert check(problem(*rows), *parts) == [Violation(*one) for one in broken]


def test_a_node_with_too_much_is_told_once() -> None:
    found = check(problem(*THREE), (0.0, [(1, 3)]), (5.0, [(1, 2)]), (5.0, [(1, 1)]))
    assert [(v.where, v.found) for v in found] in ([("node 1 at 5 s", 5)], [("node 1 at 5 s", 6)])


def test_by_count_only_the_number_of_gpus_matters() -> None:
    made = problem((0, 10, 5), (0, 10, 3), (0, 10, 2), placement="count")
    nowhere: Pairs = []
    assert check(made, (0.0, nowhere), (0.0, [(7, 9)]), (10.0, nowhere)) == []
    found = check(made, (0.0, nowhere), (0.0, nowhere), (9.0, nowhere))
    assert found == [Violation("GPUs held", "cluster at 9 s", 10, 8)]
    assert check(made, (0.0, nowhere), (NEVER, nowhere), (0.0, nowhere)) == []


# -- numbers -------------------------------------------------------------------------------


def example(**more: Any) -> QueueingProblem:
    """Two nodes of four GPUs: waits 0, 8 and 20 s; d gives up after 15 s, e stays for ever."""
    rows = [(10, 20, 4), (12, 40, 6), (12, 5, 1), (14, 9, 8), (14, 9, 8)]
    patience = [math.inf, math.inf, math.inf, 15.0, math.inf]
    return problem(*rows, patience=patience, **more)  # type: ignore[no-any-return]


EXAMPLE: list[tuple[float, Pairs]] = [
    (10.0, [(0, 4)]), (30.0, [(0, 4), (1, 2)]), (20.0, [(1, 1)]), (NEVER, []), (NEVER, [])
]  # fmt: skip


def test_metrics_are_as_worked_out_by_hand() -> None:
    made = example()
    assert check(made, *EXAMPLE) == []
    found = made.evaluate(plan(made, *EXAMPLE))
    waits = np.array([0.0, 18.0, 8.0])
    slowdowns = np.array([1.0, 58 / 40, 1.3])
    span, work = 60.0, 80 + 240 + 5
    metrics = dict(found.metrics)
    over_time = {name: metrics.pop(name) for name in list(metrics) if "fragment" in name}
    assert found.objective == pytest.approx(26 / 3)
    assert metrics == pytest.approx(
        {
            "mean_wait_s": 26 / 3,
            "mean_jct_s": 91 / 3,
            "makespan_s": span,
            "utilisation": work / (8 * span),
            "throughput_per_h": 3600 * 3 / span,
            "wait_variance_s2": waits.var(),
            "wait_variance_min2": waits.var() / 3600,
            "wait_p50_s": 8.0,
            "wait_p95_s": 17.0,
            "wait_p99_s": 17.8,
            "wait_max_s": 18.0,
            "jct_p50_s": 20.0,
            "jct_p95_s": 20 + 0.9 * 38,
            "jct_p99_s": 20 + 0.98 * 38,
            "jct_max_s": 58.0,
            "jobs": 5,
            "jobs_started": 3,
            "success_rate": 0.6,
            "starved": 1,
            "mean_wait_all_s": 41 / 4,
            "jain_wait": 26**2 / (3 * (waits**2).sum()),
            "jain_slowdown": slowdowns.sum() ** 2 / (3 * (slowdowns**2).sum()),
            # b for 18 s, c for 8, d for 15 and e from 14 s to the end
            "queue_mean": (18 + 8 + 15 + 56) / span,
            "queue_max": 4,
        }
    )
    assert SHORT_S == 10.0
    # b is first in line until 30 s: 6 of 8 GPUs are asked for, 4 are free; then d and e want 8
    assert over_time["fragmentation_blocked"] == 0
    # from 20 to 25 s c has one of node 1; from 30 s on b has two of them
    waiting = 70 - 12
    assert over_time["fragmentation_partial"] == pytest.approx((5 * 1 + 40 * 1) / waiting)


def test_whole_nodes_and_the_rest_beside_them_are_what_a_job_of_several_nodes_waits_for() -> None:
    """Three nodes: one free, and one GPU free on each other. Six GPUs are four and two: blocked."""
    rows = [(0, 10, 3), (0, 10, 3), (1, 5, 6)]
    parts = [(0.0, [(1, 3)]), (0.0, [(2, 3)]), (10.0, [(0, 4), (1, 2)])]
    made = problem(*rows, nodes=3)
    assert made.evaluate(plan(made, *parts)).metrics["fragmentation_blocked"] == pytest.approx(1)
    # two on one of them are enough
    looser = problem((0, 10, 3), (0, 10, 2), (1, 5, 6), nodes=3)
    parts[1] = (0.0, [(2, 2)])
    assert looser.evaluate(plan(looser, *parts)).metrics["fragmentation_blocked"] == 0
    # one that wants all of an idle cluster is not blocked, though it waits
    idle = problem((0, 5, 8))
    found = idle.evaluate(plan(idle, (3.0, [(0, 4), (1, 4)]))).metrics
    assert found["fragmentation_blocked"] == found["fragmentation_partial"] == 0
    assert found["queue_mean"] == pytest.approx(3 / 8)
    # nor is anyone in line who starts at once
    at_once = idle.evaluate(plan(idle, (0.0, [(0, 4), (1, 4)]))).metrics
    assert (at_once["queue_max"], at_once["queue_mean"]) == (0, 0)


def test_the_first_in_line_is_who_came_first() -> None:
    """b asks for four GPUs of two and two, c for one; both came with a."""
    made = problem((0, 10, 2), (0, 5, 4), (0, 5, 1), (0, 10, 2))
    parts = [(0.0, [(0, 2)]), (10.0, [(0, 4)]), (10.0, [(1, 1)]), (0.0, [(1, 2)])]
    assert made.evaluate(plan(made, *parts)).metrics["fragmentation_blocked"] == pytest.approx(1)
    made = problem((0, 10, 2), (0, 10, 2), (0, 5, 4), (0, 5, 1))
    parts = [parts[0], parts[3], parts[1], parts[2]]
    assert made.evaluate(plan(made, *parts)).metrics["fragmentation_blocked"] == pytest.approx(1)


def test_a_job_that_would_fit_but_for_the_nodes_is_blocked() -> None:
    """a and b leave two GPUs on each node; c asks for four from 1 s on, and gets them at 10 s."""
    made = problem((0, 10, 2), (0, 12, 2), (1, 5, 4))
    parts = [(0.0, [(0, 2)]), (0.0, [(1, 2)]), (10.0, [(0, 4)])]
    found = made.evaluate(plan(made, *parts)).metrics
    assert found["fragmentation_blocked"] == pytest.approx(1)
    assert found["fragmentation_partial"] == pytest.approx(1)
    counted = problem((0, 10, 2), (0, 12, 2), (1, 5, 4), placement="count")
    found = counted.evaluate(plan(counted, *parts)).metrics
    assert found["fragmentation_blocked"] == 0
    # a leaves two GPUs on node 0, of which b takes one; one on each node is none for d
    made = problem((0, 10, 2), (0, 10, 1), (0, 10, 3), (1, 5, 2))
    parts = [(0.0, [(0, 2)]), (0.0, [(0, 1)]), (0.0, [(1, 3)]), (10.0, [(0, 2)])]
    assert made.evaluate(plan(made, *parts)).metrics["fragmentation_blocked"] == pytest.approx(1)


def test_the_objective_is_the_one_asked_for() -> None:
    for goal, value in (("mean_jct", 91 / 3), ("makespan", 60.0)):
        made = example(goal=goal)
        assert made.evaluate(plan(made, *EXAMPLE)).objective == pytest.approx(value)


def test_starving_is_waiting_for_more_than_the_limit_in_vain_or_not() -> None:
    long = STARVED_S
    for wait, patience, starved in ((long, long, 0), (long + 1, long, 1), (long, long + 1, 1),
                                    (long + 1, long + 1, 2)):  # fmt: skip
        made = problem((0, 10, 4), (0, 10, 4), (0, 5, 1), patience=[math.inf, patience, math.inf])
        parts: list[tuple[float, Pairs]] = [(wait, [(0, 4)]), (NEVER, []), (0.0, [(0, 1)])]
        assert made.evaluate(plan(made, *parts)).metrics["starved"] == starved


def test_no_slowdown_is_below_one_and_throughput_is_no_whole_number() -> None:
    made = problem((0, 5, 1), (0, 21, 1))
    found = made.evaluate(plan(made, (0.0, [(0, 1)]), (0.0, [(0, 1)]))).metrics
    assert found["jain_wait"] == found["jain_slowdown"] == 1
    assert found["throughput_per_h"] == pytest.approx(7200 / 21)


def test_an_early_start_within_the_slack_is_no_negative_wait() -> None:
    made = problem((1000, 1000, 1), (1000, 5, 1))
    found = made.evaluate(plan(made, (1000 - 2e-6, [(0, 1)]), (1000.0, [(0, 1)]))).metrics
    assert found["mean_wait_s"] == 0


def test_where_nothing_starts_there_is_only_the_number_of_jobs() -> None:
    made = problem((0, 5, 1), (0, 5, 1))
    found = made.evaluate(plan(made, (NEVER, []), (NEVER, [])))
    assert found.objective == 0
    assert dict(found.metrics) == {"jobs": 2, "jobs_started": 0, "success_rate": 0.0}


def test_the_queue_changes_when_jobs_start_and_give_up() -> None:
    made = example()
    solution = plan(made, *EXAMPLE)
    time, length = queue_length(made, solution)
    assert list(zip(time.tolist(), length.tolist(), strict=True)) == [
        (10, 0), (12, 2), (14, 4), (20, 3), (29, 2), (30, 1)
    ]  # fmt: skip


def test_no_job_starts_later_than_makes_sense() -> None:
    made = problem((1000, 1000, 1))
    assert check(made, (1000 + 1e12, [(0, 1)])) == []
    (found,) = check(made, (1064 + 1e12, [(0, 1)]))
    assert found == Violation("start_s not too late", "job a", 1064 + 1e12, 1000 + 1e12)
    assert check(made, (1e19, [(0, 1)]))
