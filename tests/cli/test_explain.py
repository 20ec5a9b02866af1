from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli


def test_a_gap_is_shown_in_parts_with_decisions(cli: Cli, problem_file: str) -> None:
    given = ("explain", problem_file, "--policy", "random", "--seed", "3")
    answer = cli(*given, "--plot", "x.png", "--json", "x.json")
    assert answer.code == 0, answer.err
    for words in ("unproven", "price of being online", "price of the heuristic", "decisions:"):
        assert words in answer.out
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads(Path("x.json").read_text())
    assert document["schema"] == "optgap.explain/1"
    assert (document["policy"], document["per_event"]) == ("random", "greedy-exact")
    assert [part["name"] for part in document["parts"]] == ["unproven", "online", "heuristic"]
    total = sum(part["amount"] for part in document["parts"])
    assert total == pytest.approx(document["objective"] - document["bound"])
    assert len(document["decisions"]["top"]) <= 10
    assert document["decisions"]["costly"] >= len(document["decisions"]["top"])


def test_a_family_stands_for_its_preset(cli: Cli, problem_file: str) -> None:
    answer = cli("explain", "placement", "--preset", "small", "--size", "8", "--policy",
                 "pwr+fgd", "--set", "score=exact", "--set", "goal=fragmentation")  # fmt: skip
    assert answer.code == 0, answer.err
    assert "small, 8 tasks" in answer.out
    assert "pwr+fgd(score=exact)" in answer.out
    assert "milli-GPU" in answer.out
