"""Policies from a user's file that answer with something else than what is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, refused, two_nodes_problem
from strategies_consolidation import micro
from strategies_coscheduling import three_jobs
from strategies_elastic import two_jobs

import optgap
from optgap.models.consolidation import GpuKind
from optgap.models.coscheduling import CoschedulingProblem
from optgap.models.queueing import Jobs, QueueingProblem

PROBLEMS = {
    "placement": two_nodes_problem,
    # 12, 10 and 6 GB on two servers of two GPUs
    "consolidation": lambda: micro(kind=GpuKind(memory_gb=16.0)),
    "coscheduling": three_jobs,
    "elastic": two_jobs,  # 4 GPUs of 1000, 1200 or 1400 MHz, at most 480 W
    "queueing": lambda: QueueingProblem.of(Jobs.of([0] * 3, [10] * 3, [4, 8, 8]), nodes=1),
}
EXPECTED = [
    ("placement", "1 / 0", "found ZeroDivisionError: division by zero (own.py, line 2)"),
    ("placement", "'nowhere'", "found 'nowhere', expected the name of a node"),
    ("consolidation", "1 / 0", "division by zero (own.py, line 2), expected GPU numbers"),
    ("consolidation", "'0'", "task t1: found ['0'], expected GPU numbers from 0 to 3"),
    ("consolidation", "4", "found [4], expected GPU numbers from 0 to 3"),
    ("consolidation", "True", "found [True], expected GPU numbers"),
    ("consolidation", "[0, 1]", "found [0, 1], expected 1 different GPUs"),
    ("consolidation", "0", "task t2: found 0, expected a GPU with room"),
    ("elastic", "1 / 0", "at 0 s: found ZeroDivisionError"),
    ("elastic", "7", "TypeError: 'int' object is not iterable, expected a dictionary"),
    ("elastic", "0", "TypeError: 'int' object is not iterable, expected a dictionary"),
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
    ("queueing", "7", "found 7, expected a list of jobs to start"),
    ("queueing", "0", "found 0, expected a list of jobs to start"),
    ("queueing", "__import__('numpy').int64(0)", "expected a list of jobs to start"),
    ("queueing", "'0'", "found '0', expected a list of jobs to start"),
    ("queueing", "[True]", "found True, expected a job that waits"),
    ("queueing", "(1 / 0 for _ in '1')", "ZeroDivisionError: division by zero, expected jobs"),
    ("coscheduling", "0", "found 0, expected a list of (job, gpu_count) pairs"),
    ("coscheduling", "(0, 1)", "found 0, expected (job, gpu_count) pairs"),
    ("coscheduling", "1 / 0", "ZeroDivisionError"),
    ("coscheduling", "[]", "nothing"),
    ("coscheduling", "[(0, 9)]", "one of 1, 2, 3, 4 GPUs"),
    ("coscheduling", "[(7, 1)]", "a job that waits"),
    ("coscheduling", "[(0, 1), (0, 1)]", "a job that waits, once"),
    ("coscheduling", "[(0, 4), (1, 1)]", "at most 0 GPUs"),
    ("coscheduling", "[(0, 1), (1, 1), (2, 1)]", "2 jobs"),
    ("queueing", "['a']", "found 'a', expected a job that waits"),
    ("queueing", "[3]", "found 3, expected a job that waits"),
    ("queueing", "[0, 0]", "found [0, 0], expected each job once"),
    ("queueing", "[2, 1]", "found [2, 1], expected jobs that can be placed in this order"),
]


@pytest.fixture
def file(here: Path) -> Path:
    return here / "own.py"


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
    ("body", "said"),
    [("def __init__(self): self.x = {}['y']", "constructor: found Key"), ("pass", "no method")],
)
def test_a_class_that_cannot_be_asked_is_named(
    family: str, body: str, said: str, file: Path, cli: Cli
) -> None:
    optgap.save(PROBLEMS[family](), "problem.json")
    file.write_text(f"class Own:\n    {body}\n")
    given = cli("run", "problem.json", "--policy", "own.py:Own", "-o", "solution.json")
    refused(given, "policy Own", said)


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


LEAVES = {
    "raise SystemExit": "SystemExit, an end of the interpreter (own.py, line 2)",
    "raise SystemExit(0)": "SystemExit, an end of the interpreter",
    "import sys; sys.exit('done')": "SystemExit, an end of the interpreter",
    "raise MemoryError": "MemoryError (own.py, line 2)",
    "raise KeyboardInterrupt": "KeyboardInterrupt (own.py, line 2)",
    "raise GeneratorExit": "GeneratorExit",
    "return answer(*asked)": "RecursionError: maximum recursion depth exceeded",
    "return (exit() for _ in '1')": "",
}


@pytest.mark.parametrize("body", LEAVES)
def test_a_policy_that_leaves_is_told_in_one_line_and_other_rows_stand(
    body: str, file: Path, cli: Cli
) -> None:
    file.write_text(f"def answer(*asked):\n    {body}\n")
    for family, problem in PROBLEMS.items():
        optgap.save(problem(), f"{family}.json")
        refused(cli("run", f"{family}.json", "--policy", "own.py:answer"), LEAVES[body])
    names = ("--policies", "own.py:answer,marble", "--methods", "bound-area")
    given = cli("compare", "coscheduling.json", *names, "--json", "-")
    assert (given.code, given.err.count("\n")) == (2, 1)
    rows = {row["method"]: row["status"] for row in json.loads(given.out)["rows"]}
    assert rows == {"bound-area": "bound_only", "own.py:answer": "error", "marble": "feasible"}


@pytest.mark.parametrize("family", ["consolidation", "queueing"])
def test_a_policy_that_serves_nothing_is_said_to_and_not_explained(
    family: str, file: Path, cli: Cli
) -> None:
    file.write_text("def answer(*asked):\n    return None\n")
    optgap.save(PROBLEMS[family](), "problem.json")
    given = cli("compare", "problem.json", "--policies", "own.py:answer")
    assert given.code == 0
    assert given.out.rstrip().endswith("own.py:answer: serves nothing")


@pytest.mark.parametrize("line", ["import sys; sys.exit(0)", "raise SystemExit", "raise OSError"])
def test_a_module_that_leaves_is_told_in_one_line(line: str, file: Path, cli: Cli) -> None:
    optgap.save(two_nodes_problem(), "problem.json")
    file.write_text(f"{line}\n")
    given = cli("run", "problem.json", "--policy", "own.py:answer")
    refused(given, "expected a module that can be imported")


TALKS = """
import ctypes, os, sys
print("at import")

def talks(task, state):
    print("placing", task.name)
    sys.stdout.write("and more\\n")
    os.write(1, b"from the system\\n")
    os.system("echo from a shell")
    ctypes.CDLL(None).puts(b"from C")
    return int(state.feasible(task)[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no libc to print with")
def test_what_a_policy_prints_goes_to_standard_error(file: Path) -> None:
    optgap.save(two_nodes_problem(), "problem.json")
    file.write_text(TALKS)
    asked = ("run", "problem.json", "--policy", "own.py:talks", "--json", "-")
    command = [sys.executable, "-m", "optgap", *asked]
    given = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(given.stdout)["schema"].startswith("optgap.")
    for words in ("at import", "placing t0", "and more", "from the system", "a shell", "from C"):
        assert words in given.stderr


LOOKS = {
    "queueing": "seen = (len(s.problem), len(s.problem.jobs), len(s.problem.jobs.names))\n"
    "    assert set(seen) == {1 + max((*s.waiting, *s.running))}\n"
    "    s.cluster.free[:] = 99\n"
    "    return s.waiting[:1] if not s.running else ()",
    "elastic": "assert len(s.problem) == len(s.problem.jobs.requested) == 1 + (s.time_s >= 10)\n"
    "    s.problem.jobs.iterations[:] = 1\n"
    "    for item in s.problem.classes: item.time_s[:] = 1e-3\n"
    "    return dict.fromkeys(s.jobs, (1, 1000.0))",
    "coscheduling": "assert len(s.problem) == len(s.problem.releases) == 1 + (s.time_s >= 10)\n"
    "    return [(job, 1) for job in s.waiting[:1]] if not s.running else []",
    "consolidation": "assert len(s.problem.tasks) == asked[0] + 1\n"
    "    assert not hasattr(s, 'duration')\n"
    "    s.problem.tasks[0].util_percent[:] = 0\n"
    "    return [int(np.flatnonzero(s.fits(asked[0]))[0])]",
    "placement": "assert len(s.problem.tasks) == int(asked[0].name[1:]) + 1\n"
    "    s.problem.power.gpu_idle_w.clear()\n"
    "    return int(s.feasible(asked[0])[0])",
}


def late(family: str) -> Any:
    """A problem with a job that comes later; queueing's are seven."""
    if family in ("placement", "consolidation"):
        return two_nodes_problem() if family == "placement" else PROBLEMS[family]()
    if family == "queueing":
        return QueueingProblem.of(Jobs.of([0, 5, 9, 9, 20, 21, 22], [10] * 7, [4] * 7), nodes=1)
    if family == "elastic":
        problem = two_jobs()
        return replace(problem, jobs=replace(problem.jobs, submit_s=np.array([0.0, 10.0])))
    first, *_ = three_jobs().applications
    return CoschedulingProblem.of([first], [0, 0], releases=[10.0, 0.0])


@pytest.mark.parametrize("family", LOOKS)
def test_a_policy_sees_no_job_that_is_still_to_come_and_changes_only_what_it_sees(
    family: str, file: Path, cli: Cli
) -> None:
    optgap.save(late(family), "problem.json")
    file.write_text(
        f"import numpy as np\ndef looks(*asked):\n    s = asked[-1]\n    {LOOKS[family]}\n"
    )
    given = cli("run", "problem.json", "--policy", "own.py:looks", "--json", "r.json")
    assert (given.code, given.err) == (0, "")
    assert json.loads(Path("r.json").read_text())["status"] == "feasible"


DOORS = Path(__file__).parents[1] / "audit" / "data" / "doors"


@pytest.mark.parametrize(
    ("policy", "accepted"), [("policies:talks", 1800), ("policy-spread:place", 1000)]
)
def test_policies_of_users_accept_what_they_say(
    policy: str, accepted: int, file: Path, cli: Cli
) -> None:
    csv = [f"--{key}={DOORS / f'ok-fraction-{key}.csv'}" for key in ("nodes", "tasks", "order")]
    cli("generate", "placement", *csv, "--set", "goal=accepted_gpu", "-o", "p.json")
    name = policy.replace(":", ".py:")
    given = cli("run", "p.json", "--policy", str(DOORS / name), "--json", "-")
    assert json.loads(given.out)["objective"] == accepted
    assert ("placing" in given.err) == ("talks" in policy)
