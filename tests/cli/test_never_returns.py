"""A policy of a user's own that never comes back: a limit or a signal ends it, the rest goes on."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from conftest import Cli, two_nodes_problem
from trust.answers import SMALL

import optgap
from optgap import watchdog
from optgap.registry import FAMILIES

OWN = """
import os, signal, time

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

def asleep(task, state):
    time.sleep(600)

def late(task, state):
    time.sleep(0.35)
    return 0

ASKED = []

def slow(task, state, interrupt_at=0):
    ASKED.append(task)
    if len(ASKED) == interrupt_at:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)
    nodes = state.feasible(task)
    return nodes[0] if nodes.size else None
"""


@pytest.fixture(autouse=True)
def _folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    said = " ".join(answer.out.split())
    assert "of its time limit; what it had decided until then is lost" in said


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send there")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_ends_it_without_a_time_limit(cli: Cli, number: int) -> None:
    after(0.5, number)
    answer = cli("run", "problem.json", "--policy", "own.py:forever", "--json", "r.json")
    assert answer.code == 3
    document = json.loads(Path("r.json").read_text())
    assert (document["status"], document["termination"]) == ("no_solution", "interrupted")


def test_what_a_slow_policy_has_placed_until_then_is_kept(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "GRACE_S", 10.0)
    optgap.save(optgap.generate("placement", "small", size=200), "long.json")
    policy = ("--policy", "own.py:slow(interrupt_at=3)")
    assert cli("run", "long.json", *policy, "--json", "r.json").code == 3
    document = json.loads(Path("r.json").read_text())
    assert (document["termination"], document["status"]) == ("interrupted", "feasible")
    placed = [p for p in document["solution"]["placements"] if p["node"] is not None]
    assert 0 < len(placed) < 200


@pytest.mark.parametrize("name", ["forever", "asleep"])
def test_what_is_left_behind_inside_python_or_out_leaves_the_other_rows(
    name: str, cli: Cli
) -> None:
    asked = ("--policies", f"own.py:{name},pwr", "--methods", "exact", "--time-limit", "2")
    answer = cli("compare", "problem.json", *asked, "--json", "c.json")
    assert (answer.code, answer.err) == (3, "")
    assert f"own.py:{name}*" in answer.out
    rows = {row["method"]: row for row in json.loads(Path("c.json").read_text())["rows"]}
    assert rows[f"own.py:{name}"]["termination"] == "time_limit"
    assert rows[f"own.py:{name}"]["message"].startswith("ended, as it did not return within")
    assert rows["pwr"]["gap_to_bound"] == pytest.approx(0, abs=1e-9)


def test_a_decision_within_the_grace_is_kept_and_a_policy_that_returns_is_never_disturbed() -> None:
    result = optgap.run("problem.json", "own.py:late", time_limit=0.2)
    assert (result.status, result.termination) == ("feasible", "time_limit")
    before = threading.active_count()
    for _ in range(20):
        assert optgap.run("problem.json", lambda task, state: 0).status == "feasible"
    assert threading.active_count() <= before
