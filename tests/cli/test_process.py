"""The command line as a process of its own: pipes, signals, start-up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import two_nodes_problem

import optgap

pytestmark = pytest.mark.usefixtures("here")

PATIENCE_S = 300
"""For one process; a busy machine is slow."""

STUCK = """
import time

def stuck(task, state):
    print("placing", flush=True)
    time.sleep(600)
"""


def optgap_process(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "optgap", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_output_in_a_pipe_is_plain_text_and_escaped_if_it_cannot_be_encoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    path = Path("greek.json")
    optgap.save(replace(two_nodes_problem(), name="α"), path)
    process = optgap_process("compare", str(path), "--policies", "fgd", "--methods", "bound-pooled")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert out.startswith(r"\u03b1: 2 nodes")
    assert "\x1b" not in out
    assert "\\u25" not in out  # of the lines that a table has at a terminal
    assert not set(out) & set("│╭━┃")


@pytest.mark.parametrize("read", [0, 1])
def test_a_reader_that_leaves_is_no_error(read: int) -> None:
    # more than a pipe holds, so that writing meets the closed end: at once, or on the way
    process = optgap_process("generate", "placement", "--preset", "small", "--size", "2000")
    assert process.stderr is not None
    process.stdout.read(read)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=PATIENCE_S) == 0


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
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr == "optgap: stopping with what there is; once more aborts\n"


def test_a_second_interrupt_aborts() -> None:
    optgap.save(two_nodes_problem(), "problem.json")
    Path("own.py").write_text(STUCK)
    process = optgap_process("run", "problem.json", "--policy", "own.py:stuck", "--json", "r.json")
    assert process.stderr.readline() == "placing\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert "once more aborts" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE_S) == 3
    assert not Path("r.json").exists()
    process.stderr.close()
