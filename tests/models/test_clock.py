"""A time limit does not count compiling."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from optgap.cli.work import interruptible
from optgap.models.clock import COMPILING, CompileTimer
from optgap.models.limits import Limits
from optgap.models.result import Termination

SOLVE = """
import json, time
from optgap import generate, run
from optgap.models.clock import COMPILING
from optgap.heuristics.consolidation import engine
from optgap.models.compiled import Interpreted
engine.UP_TO = Interpreted(consolidation_cells=0)
problem = generate("consolidation", size=6)
before = COMPILING.working() - time.monotonic()
result = run(problem, policy="cats", time_limit={limit})
compiling = time.monotonic() - COMPILING.working() + before
print(json.dumps([result.termination, result.objective, result.seconds, compiling]))
"""


def test_the_clock_stands_still_while_anything_is_compiled() -> None:
    timer = CompileTimer()
    timer.begin()
    timer.begin()  # a function that the first one calls
    still = timer.working()
    time.sleep(0.02)
    timer.end()
    assert timer.working() == still
    timer.end()
    assert timer.working() >= still
    assert time.monotonic() - timer.working() >= 0.02
    end = timer.working()
    time.sleep(0.001)
    assert timer.working() > end


def test_an_interrupt_while_code_is_compiled_says_that_this_comes_first(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def work(limits: Limits) -> None:
        COMPILING.begin()
        try:
            os.kill(os.getpid(), signal.SIGINT)
            assert limits.interrupted.wait(10)
        finally:
            COMPILING.end()

    interruptible(work)
    said = "once code is compiled (on a first run only); once more aborts\n"
    assert capfd.readouterr().err.endswith(said)


def test_who_listens_is_told_how_many_of_how_many_until_it_leaves() -> None:
    timer, told = CompileTimer(), list[str]()
    with timer.telling(told.append):
        timer.begin()  # not one of ours
        timer.begin("advance", ["start", "leave"])
        timer.begin("start")
        timer.begin("start")  # for other types
        timer.begin("score", ["start", "rank"])
    timer.begin("rank")
    assert told == [
        f"compiling, once: {done} of {total} kernels"
        for done, total in ((1, 3), (2, 3), (2, 3), (3, 5))
    ]


def test_a_limit_without_compiling_runs_out() -> None:
    limits = Limits(0.01)
    time.sleep(0.02)
    assert limits.stop is Termination.TIME_LIMIT
    assert limits.seconds_left == 0.0


def test_a_first_run_ends_as_later_ones_do_under_a_limit_shorter_than_compiling(
    tmp_path: Path,
) -> None:
    def run() -> list[float | str]:
        done = subprocess.run(
            [sys.executable, "-c", SOLVE.format(limit=1)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        answer: list[float | str] = json.loads(done.stdout)
        return answer

    first, later = run(), run()
    assert first[:2] == later[:2]
    assert first[0] == "completed"
    assert float(first[3]) > float(first[2])  # compiling, which the result's seconds leave out
    assert abs(float(later[3])) < 1e-3
