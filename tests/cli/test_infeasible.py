"""What the command line does where there is no solution: says so, names the way to learn why, 4."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli, two_nodes_problem

import optgap


@pytest.fixture(autouse=True)
def _problem(here: Path) -> None:
    """Six GPUs asked for, four there."""
    optgap.save(two_nodes_problem(extra=2), "tight.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve",),
        ("solve", "--method", "milp", "-q", "--json", "out.json"),
        ("solve", "--bound-only"),
        ("compare",),
        ("compare", "--methods", "bound-pooled", "-q"),
    ],
)
def test_an_infeasible_problem_exits_with_4_and_names_conflict(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    answer = cli(arguments[0], "tight.json", *arguments[1:])
    assert answer.code == 4
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("optgap: there is no solution, as ")
    assert "`optgap solve tight.json --conflict` names what cannot go together" in answer.err


def test_asked_for_the_conflict_it_is_told_in_the_same_line(cli: Cli) -> None:
    answer = cli("solve", "tight.json", "--conflict")
    assert answer.code == 4
    told = "tasks 0 (t0), 4 (t4), 5 (t5) cannot all be served; without any one of them the others"
    assert told in answer.err
    assert "--conflict" not in answer.err


def test_a_policy_that_serves_a_part_of_it_is_an_answer(cli: Cli) -> None:
    assert cli("run", "tight.json", "--policy", "fgd").code == 0


def test_a_comparison_of_accepted_parts_has_to_be_asked_for(cli: Cli) -> None:
    answer = cli("compare", "tight.json", "--policies", "fgd,random", "--json", "out.json")
    assert "--parts" in answer.out
    document = json.loads(Path("out.json").read_text())
    assert document["infeasible_by"] == "exact"
    assert [row["gap_to_bound"] for row in document["rows"][1:]] == [None] * 2
    asked = cli("compare", "tight.json", "--policies", "fgd,random", "--parts")
    assert asked.code == 0
    assert asked.out.count("  accepted part  ") == 2


@pytest.mark.usefixtures("one_process")
def test_a_value_without_a_solution_does_not_stop_the_others(cli: Cli) -> None:
    swept = ("--preset", "small", "--sweep", "size=120,6", "--methods", "bound-pooled")
    answer = cli("compare", "placement", *swept, "--policies", "pwr", "--json", "out.json",
                 "--plot", "out.png")  # fmt: skip
    assert answer.code == 4
    assert "size=120: no solution serves all that is asked, as bound-pooled proves" in answer.out
    assert Path("out.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads(Path("out.json").read_text())
    assert document["schema"] == "optgap.compare-set/1"
    assert (document["parameter"], document["values"]) == ("size", [120, 6])
    first, second = document["comparisons"]
    assert (first["infeasible_by"], second["infeasible_by"]) == ("bound-pooled", None)
    assert second["rows"][-1]["gap_to_bound"] is not None
