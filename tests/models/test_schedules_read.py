"""Files of solutions: the keys that are promised, and what cannot be read, by its field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from strategies_consolidation import micro
from strategies_coscheduling import three_jobs
from strategies_queueing import five_jobs
from trust.agreement import outcome_of

from optgap.models.consolidation import Assignment, Clock, ConsolidationSolution
from optgap.models.coscheduling import CoschedulingSolution, JobRun
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields

PLACED = [Assignment(k, gpus) for k, gpus in enumerate(((0,), (0,), (1,)))]
RUNS = (JobRun(1, 0, 100, (0, 1, 2, 3)), JobRun(0, 100, 280, (0, 1)), JobRun(2, 100, 250, (2,)))
SOLVED: dict[str, tuple[Any, Any]] = {
    "assignments": (
        micro(),
        ConsolidationSolution.of(PLACED, [Clock(0, 1350.0), Clock(1, 1350.0)]),
    ),
    "schedule": (three_jobs(), CoschedulingSolution.of(RUNS)),
    "queue": (five_jobs(), outcome_of(five_jobs(), "fifo").solution),
}


def written(what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A solution's document, and the last entry of its schedule."""
    problem, solution = SOLVED[what]
    document = json.loads(json.dumps(solution.to_json(problem)))
    return document, document["schedule" if what == "queue" else what][-1]


def test_schedules_have_the_promised_keys() -> None:
    document, last = written("assignments")
    assert last == {"task": "t3", "gpus": [[0, 1]]}
    assert document["frequencies_mhz"] == [[1350.0, 1350.0], [0.0, 0.0]]
    keys = {"job", "app", "gpu_count", "start_s", "end_s", "gpu_index"}
    assert set(written("schedule")[1]) == keys


def test_starts_alone_are_enough_for_the_referee_of_queues() -> None:
    problem, _ = SOLVED["queue"]
    document, _ = written("queue")
    for entry in document["schedule"]:
        del entry["nodes"]
    assert problem.check(type(SOLVED["queue"][1]).from_json(Fields(document, "x"), problem)) == []


@pytest.mark.parametrize(
    ("what", "change", "said"),
    [
        ("assignments", {"task": "t9"}, "a task of the problem"),
        ("assignments", {"task": "t2"}, "t2 twice"),
        ("assignments", {"gpus": [[0, 7]]}, r"field assignments\[2\].gpus\[0\]"),
        ("assignments", {"gpus": [3]}, r"\[server, gpu\]"),
        ("schedule", {"job": 9}, "a job below 3"),
        ("schedule", {"job": 0}, "job 0 twice"),
        ("schedule", {"app": "Y"}, "'Z' for job 2"),
        ("schedule", {"gpu_count": 3}, "3 GPU indices"),
        ("schedule", {"start_s": -1}, "start_s"),
        ("queue", {"job": "x"}, "a job of the problem"),
        ("queue", {"job": "2"}, "job 2 twice"),
        ("queue", {"nodes": [[0]]}, "node, GPUs. pairs"),
        ("queue", {"start_s": -1}, "start_s"),
    ],
)
def test_what_cannot_be_read_is_named(what: str, change: dict[str, Any], said: str) -> None:
    problem, solution = SOLVED[what]
    document, last = written(what)
    last.update(change)
    with pytest.raises(InputError, match=said):
        type(solution).from_json(Fields(document, "x"), problem)
