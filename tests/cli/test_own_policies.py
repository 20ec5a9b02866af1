"""Policies from a user's file that answer with something else than what is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli, refused
from strategies_consolidation import micro
from strategies_coscheduling import three_jobs
from strategies_elastic import two_jobs

import optgap
from optgap.models.consolidation import GpuKind
from optgap.models.queueing import Jobs, QueueingProblem

PROBLEMS = {
    # 12, 10 and 6 GB on two servers of two GPUs
    "consolidation": lambda: micro(kind=GpuKind(memory_gb=16.0)),
    "coscheduling": three_jobs,
    "elastic": two_jobs,  # 4 GPUs of 1000, 1200 or 1400 MHz, at most 480 W
    "queueing": lambda: QueueingProblem.of(Jobs.of([0] * 3, [10] * 3, [4, 8, 8]), nodes=1),
}
EXPECTED = [
    ("consolidation", "1 / 0", "division by zero (own.py, line 2), expected GPU numbers"),
    ("consolidation", "'0'", "task t1: found ['0'], expected GPU numbers from 0 to 3"),
    ("consolidation", "4", "found [4], expected GPU numbers from 0 to 3"),
    ("consolidation", "True", "found [True], expected GPU numbers"),
    ("consolidation", "[0, 1]", "found [0, 1], expected 1 different GPUs"),
    ("consolidation", "0", "task t2: found 0, expected a GPU with room"),
    ("elastic", "1 / 0", "at 0 s: found ZeroDivisionError"),
    ("elastic", "7", "TypeError: 'int' object is not iterable, expected a dictionary"),
    ("elastic", "{}", "at 0 s: found nothing, expected a job to run"),
    ("elastic", "{9: (1, 1000.0)}", "found 9, expected a job that may run"),
    ("elastic", "{0: 1}", "job 0: found 1, expected (gpus, frequency_mhz)"),
    ("elastic", "{0: (3, 1000.0)}", "job 0: found 3, expected one of 1, 2, 4 GPUs"),
    ("elastic", "{0: ([1], 1000.0)}", "job 0: found [1], expected one of 1, 2, 4 GPUs"),
    ("elastic", "{0: (1, 1100.0)}", "job 0: found 1100.0, expected a clock, MHz"),
    ("elastic", "{0: (1, 'fast')}", "job 0: found (1, 'fast'), expected (gpus, frequency_mhz)"),
    ("elastic", "{0: (4, 1000.0), 1: (1, 1000.0)}", "found 5 GPUs, expected at most 4"),
    ("elastic", "{1: (4, 1400.0)}", "found 690 W, expected at most 480 W"),
    ("queueing", "1 / 0", "at 0 s: found ZeroDivisionError"),
    ("queueing", "7", "TypeError: 'int' object is not iterable, expected jobs to start"),
    ("queueing", "['a']", "found 'a', expected a job that waits"),
    ("queueing", "[3]", "found 3, expected a job that waits"),
    ("queueing", "[0, 0]", "found [0, 0], expected each job once"),
    ("queueing", "[2, 1]", "found [2, 1], expected jobs that can be placed in this order"),
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "own.py"


@pytest.mark.parametrize(("family", "answer", "said"), EXPECTED)
def test_an_answer_that_is_none_is_named(
    family: str, answer: str, said: str, file: Path, cli: Cli
) -> None:
    optgap.save(PROBLEMS[family](), "problem.json")
    file.write_text(f"def answer(*asked):\n    return {answer}\n")
    given = cli("run", "problem.json", "--policy", "own.py:answer", "-o", "solution.json")
    refused(given, said)
    assert given.err.startswith("optgap: policy answer: ")
    assert not Path("solution.json").exists()


@pytest.mark.parametrize("family", sorted(PROBLEMS))
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "class Own:\n    def __init__(self):\n        self.x = {}['y']\n",
            "constructor: found Key",
        ),
        ("class Own:\n    pass\n", "found no method"),
    ],
)
def test_a_class_that_cannot_be_asked_is_named(
    family: str, text: str, said: str, file: Path, cli: Cli
) -> None:
    optgap.save(PROBLEMS[family](), "problem.json")
    file.write_text(text)
    given = cli("run", "problem.json", "--policy", "own.py:Own", "-o", "solution.json")
    assert (given.code, given.err.count("\n")) == (2, 1)
    assert "policy Own" in given.err
    assert said in given.err


def test_the_view_of_training_jobs_has_what_the_policies_here_work_with(
    file: Path, cli: Cli
) -> None:
    """The least power at each moment: one GPU each at the lowest clock, 100 W and 120 W."""
    optgap.save(two_jobs(), "problem.json")
    file.write_text(
        "def least(view):\n"
        "    for job in view.jobs:\n"
        "        item = view.job_class(job)\n"
        "        assert view.power(job, 1, 1000.0) == item.power_w[0, 0]\n"
        "        assert view.time_per_iteration(job, 2, 1400.0) == item.time_s[1, 2]\n"
        "    assert set(view.running.values()) <= {(1, 1000.0)}\n"
        "    return dict.fromkeys(view.jobs, (1, 1000.0))\n"
    )
    given = cli("run", "problem.json", "--policy", "own.py:least", "--json", "result.json")
    assert given.code == 0, given.err
    metrics = json.loads(Path("result.json").read_text())["metrics"]
    assert metrics["makespan_s"] == pytest.approx(1000.0)
    assert metrics["peak_power_w"] == pytest.approx(220.0)
