"""The command line as a process of its own: pipes, signals, start-up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import two_nodes_problem

import optgap

SLOW = """
import time

def slow(task, state):
    print("placing", flush=True)
    time.sleep(0.2)
    nodes = state.feasible(task)
    return nodes[0] if nodes.size else None

def stuck(task, state):
    print("placing", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    optgap.save(two_nodes_problem(), "problem.json")
    optgap.save(optgap.generate("placement", "small", size=200), "long.json")
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def optgap_process(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "optgap", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_output_in_a_pipe_is_plain_text() -> None:
    process = optgap_process("families")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "\x1b" not in out
    assert not set(out) & set("│╭━┃")
    process = optgap_process("run", "problem.json", "--policy", "fgd")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("problem ")


def test_output_that_cannot_be_encoded_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    problem = two_nodes_problem()
    optgap.save(replace(problem, name="α"), "greek.json")
    process = optgap_process("run", "greek.json", "--policy", "fgd")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert r"\u03b1: 2 nodes" in out


def test_bad_input_ends_in_one_line_and_exit_code_2() -> None:
    process = optgap_process("run", "nowhere.json", "--policy", "fgd")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == ("optgap: nowhere.json: no such file or directory; name a readable file\n")


def test_our_own_failure_ends_in_one_line_and_exit_code_1(folder: Path) -> None:
    # a package of that name without the module that the command needs
    code = (
        "import sys; import optgap.cli; sys.modules['optgap.api'] = None; "
        "sys.exit(optgap.cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "run", "problem.json", "--policy", "fgd"]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    assert plain.returncode == 1
    assert len(plain.stderr.splitlines()) == 1
    assert "-v shows where" in plain.stderr
    verbose = subprocess.run([*command, "-v"], capture_output=True, text=True, check=False)
    assert verbose.returncode == 1
    assert "Traceback" in verbose.stderr


@pytest.mark.parametrize("read", [0, 1])
def test_a_reader_that_leaves_is_no_error(read: int) -> None:
    # more than a pipe holds, so that writing meets the closed end: at once, or on the way
    optgap.save(optgap.generate("placement", "small", size=8000), "longer.json")
    process = optgap_process("run", "longer.json", "--policy", "fgd", "--json", "-")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(read)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 0


def test_an_interrupt_gives_the_partial_result() -> None:
    process = optgap_process("run", "long.json", "--policy", "slow.py:slow", "--json", "r.json")
    wait_for_work(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "once more aborts" in err
    assert "Traceback" not in err
    document = json.loads(Path("r.json").read_text())
    assert (document["termination"], document["status"]) == ("interrupted", "feasible")
    placed = [p for p in document["solution"]["placements"] if p["node"] is not None]
    assert 0 < len(placed) < 200


MARKET_SPLIT = """
import os, random, signal, sys, threading
from ortools.sat.python import cp_model
from optgap.cli.work import interruptible
from optgap.solvers.backends import cpsat

rng = random.Random(1)
model = cp_model.CpModel()
x = [model.new_bool_var("") for _ in range(50)]
for _ in range(6):
    row = [rng.randrange(100) for _ in x]
    model.add(cp_model.LinearExpr.weighted_sum(x, row) == sum(row) // 2)
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
answer = interruptible(lambda limits: cpsat.run(model, limits, workers=1))
sys.exit(answer.status != cp_model.UNKNOWN)
"""


def test_cp_sat_hears_the_interrupt_of_the_command_line() -> None:
    # market split: nobody decides it in a second
    command = [sys.executable, "-c", MARKET_SPLIT]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr == "optgap: stopping with what there is; once more aborts\n"


def test_a_second_interrupt_aborts() -> None:
    process = optgap_process("run", "long.json", "--policy", "slow.py:stuck", "--json", "r.json")
    wait_for_work(process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "once more aborts" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 3
    assert not Path("r.json").exists()
    process.stderr.close()


def test_a_time_limit_gives_the_partial_result() -> None:
    process = optgap_process(
        "run", "long.json", "--policy", "slow.py:slow", "--time-limit", "1", "--json", "r.json"
    )
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(Path("r.json").read_text())["termination"] == "time_limit"


def wait_for_work(process: subprocess.Popen[str]) -> None:
    """Until the policy has been asked for the first time."""
    assert process.stderr is not None
    assert process.stderr.readline() == "placing\n"
    time.sleep(0.3)
