"""Budgets of work and limits of time: what is spent, what is left, and what was cut."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from optgap.cli.work import interruptible
from optgap.models.clock import COMPILING, CompileTimer
from optgap.models.errors import InputError
from optgap.models.limits import Limits, why_stopped
from optgap.models.result import Termination
from optgap.models.work import WORK


def test_without_a_budget_work_is_counted_and_nothing_stops() -> None:
    limits = Limits()
    limits.spend(3.0)
    assert limits.within(math.inf).remaining == math.inf
    assert (limits.spent, limits.remaining, limits.stop, limits.cut) == (3.0, math.inf, None, None)


def test_a_part_spends_for_the_whole_and_has_no_more_than_the_whole() -> None:
    whole = Limits(work=10.0)
    part = whole.within(4.0)
    part.spend(3.0)
    assert (part.remaining, whole.remaining) == (1.0, 7.0)
    assert whole.within(100.0).remaining == 7.0
    part.within(1.0).spend(2.0)
    assert (part.spent, whole.spent, part.remaining) == (5.0, 5.0, 0.0)
    assert part.stop is Termination.WORK_LIMIT
    assert whole.stop is None


def test_the_whole_remembers_that_a_part_was_cut() -> None:
    whole = Limits(work=10.0)
    part = whole.within(1.0).within(5.0)
    part.spend(1.0)
    assert whole.cut is None
    assert part.stop is Termination.WORK_LIMIT
    assert whole.cut is Termination.WORK_LIMIT
    assert whole.each(None).cut is None


@pytest.mark.parametrize("limit", [-3, float("nan"), "5"])
def test_a_time_limit_is_a_number_of_seconds(limit: object) -> None:
    with pytest.raises(InputError, match="expected a number of seconds"):
        Limits(time_limit=limit)  # type: ignore[arg-type]


def test_a_time_limit_cuts_and_leaves_the_budget_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("optgap.models.limits.working_time", lambda: now[0])
    limits = Limits(time_limit=5.0, work=60.0, started=100.0)
    part = limits.within(10.0)
    now[0] = 104.0
    assert (limits.seconds_left, part.remaining, part.stop) == (1.0, 10.0, None)
    now[0] = 105.0
    assert part.stop is Termination.TIME_LIMIT
    assert (part.remaining, limits.cut) == (10.0, Termination.TIME_LIMIT)
    now[0] = 106.0
    assert limits.seconds_left == 0.0


def test_an_interrupt_reaches_all_parts_and_outranks_a_budget() -> None:
    limits = Limits(work=1.0)
    part = limits.within(0.5)
    part.spend(1.0)
    assert part.stop is Termination.WORK_LIMIT
    limits.interrupted.set()
    assert part.stop is limits.alone().stop is limits.each(None).stop is Termination.INTERRUPTED
    assert limits.cut is Termination.INTERRUPTED


def test_threads_have_meters_of_their_own() -> None:
    whole = Limits(work=10.0, effort=2.0)
    whole.spend(4.0)
    parts = [whole.alone(), whole.alone()]
    threads = [threading.Thread(target=p.spend, args=(k + 1.0,)) for k, p in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [p.remaining for p in parts] == [5.0, 4.0]
    assert [p.effort for p in parts] == [2.0, 2.0]
    assert whole.spent == 4.0
    whole.spend(max(p.spent for p in parts))
    assert whole.remaining == 4.0


def test_a_call_that_used_up_its_part_met_a_budget() -> None:
    limits = Limits(work=5.0)
    assert why_stopped(limits) is limits.cut is Termination.WORK_LIMIT
    assert why_stopped(Limits(time_limit=1e6, work=5.0)) is Termination.WORK_LIMIT
    assert why_stopped(Limits(time_limit=0.4, work=5.0)) is Termination.TIME_LIMIT
    assert why_stopped(Limits(time_limit=1e6)) is Termination.TIME_LIMIT


def test_iterations_and_looks_fit_what_they_count() -> None:
    many = WORK.iterations(2.0, 1_000)
    assert WORK.linear(int(many), 1_000) == pytest.approx(2.0, rel=1e-3)
    assert WORK.integer(int(WORK.looks(2.0)), -1, 500) == pytest.approx(2.0, rel=1e-2)
    assert WORK.iterations(math.inf, 10) == WORK.looks(math.inf) == math.inf
    assert WORK.iterations(0.0, 10) == WORK.looks(0.0) == 1.0


# -- a time limit does not count compiling -------------------------------------------------


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
