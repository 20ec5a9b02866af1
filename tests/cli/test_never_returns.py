"""A policy of a user's own that never comes back: a limit or a signal ends it, the rest goes on."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, two_nodes_problem
from trust.answers import SMALL

import optgap
from optgap import watchdog
from optgap.cli import work
from optgap.models.limits import Limits
from optgap.registry import FAMILIES

OWN = """
import time

def forever(*arguments):
    while True:
        pass

def stubborn(*arguments):
    while True:
        try:
            while True:
                pass
        except Exception:
            pass

def late(task, state):
    time.sleep(0.35)
    return 0
"""


@pytest.fixture
def _often() -> Iterator[None]:
    """Threads take turns a hundred times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watchdog, "GRACE_S", 0.3)
    monkeypatch.setattr(watchdog, "AGAIN_S", 0.1)
    optgap.save(two_nodes_problem(), "problem.json")
    Path("own.py").write_text(OWN)


def after(seconds: float, number: int) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_time_limit_ends_a_loop_without_end_in_every_family(family: str) -> None:
    problem = optgap.generate(family, **SMALL.get(family, {}))
    optgap.run(problem, next(iter(FAMILIES[family].policies)))  # what it loads is no decision
    result = optgap.run(problem, "own.py:forever", time_limit=0.2)
    assert (result.status, result.termination) == ("no_solution", "time_limit")
    assert result.message.startswith("ended, as it did not return within")


@pytest.mark.parametrize("name", ["forever", "stubborn"])
def test_the_command_line_exits_with_3_and_says_why(cli: Cli, name: str) -> None:
    answer = cli("run", "problem.json", "--policy", f"own.py:{name}", "--time-limit", "0.2")
    assert (answer.code, answer.err) == (3, "")
    assert "no_solution (time_limit)" in answer.out
    assert "of its time limit; what it had decided until then is lost" in answer.out


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_ends_it_without_a_time_limit(cli: Cli, number: int) -> None:
    after(0.5, number)
    answer = cli("run", "problem.json", "--policy", "own.py:forever", "--json", "r.json")
    assert answer.code == 3
    document = json.loads(Path("r.json").read_text())
    assert (document["status"], document["termination"]) == ("no_solution", "interrupted")


def test_the_other_rows_of_a_comparison_are_there(cli: Cli) -> None:
    policies = ("--policies", "own.py:forever,pwr", "--time-limit", "2", "--json", "c.json")
    answer = cli("compare", "problem.json", *policies)
    assert answer.code == 3
    assert "own.py:forever*" in answer.out
    rows = {row["method"]: row for row in json.loads(Path("c.json").read_text())["rows"]}
    assert rows["own.py:forever"]["termination"] == "time_limit"
    assert rows["pwr"]["gap_to_bound"] == 0


def test_code_outside_python_ends_the_process_in_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(words: bytes) -> None:
        raise SystemExit(words.decode())

    def run(limits: Limits) -> optgap.Result:
        def asleep(task: Any, state: Any) -> int:
            limits.interrupted.set()
            time.sleep(4)
            return 0

        return optgap.run("problem.json", asleep, limits=limits)

    monkeypatch.setattr(work, "_leave", leave)
    with pytest.raises(SystemExit, match="busy outside Python and cannot be stopped"):
        work.interruptible(run)


def test_a_decision_within_the_grace_is_kept_and_a_policy_that_returns_is_never_disturbed() -> None:
    result = optgap.run("problem.json", "own.py:late", time_limit=0.2)
    assert (result.status, result.termination) == ("feasible", "time_limit")
    before = threading.active_count()
    for _ in range(20):
        assert optgap.run("problem.json", lambda task, state: 0).status == "feasible"
    assert threading.active_count() <= before


@pytest.mark.usefixtures("_often")
def test_an_exception_on_its_way_when_the_code_comes_back_reaches_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The exceptions come as soon as the limit is over, and often; none gets out or is left."""
    monkeypatch.setattr(watchdog, "GRACE_S", 0.001)
    monkeypatch.setattr(watchdog, "AGAIN_S", 0.02)
    monkeypatch.setattr(watchdog, "LOOK_S", 0.001)
    before = set(threading.enumerate())  # that of a policy asleep above may still watch it
    hit = 0
    for turn in range(300):
        limits = Limits()
        dog = watchdog.Watchdog(limits)
        try:
            try:
                limits.interrupted.set()
                for _ in range(6000 * (turn % 60)):  # none to a few milliseconds
                    pass
            finally:
                dog.end()
        except watchdog.Overrun:
            hit += 1
            dog.end()
        for _ in range(2000):
            pass
    assert hit > 20
    time.sleep(0.1)
    assert set(threading.enumerate()) <= before
