"""``--plot``: a picture of the solution or of the gaps, in the format of the file's ending."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Cli, refused

BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


pytestmark = pytest.mark.usefixtures("problem_file")


RUN = ("run", "problem.json", "--policy", "fgd")
COMPARE = ("compare", "problem.json", "--policies", "fgd", "--methods", "bound-pooled")


@pytest.mark.parametrize(
    ("command", "ending"),
    [(RUN, ".png"), (RUN, ".svg"), (RUN, ".pdf"), (RUN, ".PNG"), (COMPARE, ".svg")],
)
def test_the_ending_says_the_format_and_the_same_run_makes_the_same_file(
    cli: Cli, command: tuple[str, ...], ending: str
) -> None:
    for name in ("a", "b"):
        assert cli(*command, "--plot", name + ending).code == 0
    first, second = (Path(name + ending).read_bytes() for name in ("a", "b"))
    assert first.startswith(BEGINS[ending.lower()])
    assert first == second
    assert sorted(Path().glob(".*")) == []  # nothing half-written is left


@pytest.mark.parametrize("name", ["x.gif", "x", "x.png.txt", ".png"])
@pytest.mark.parametrize("command", [("run", "--policy"), ("solve", "--method"), ("compare", "")])
def test_another_ending_is_one_line_before_any_work(
    cli: Cli, command: tuple[str, str], name: str
) -> None:
    given = [command[0], "problem.json", *([command[1], "nonsense"] if command[1] else [])]
    refused(cli(*given, "--plot", name), ".png, .svg or .pdf")
    assert not Path(name).exists()


def test_without_a_solution_nothing_is_drawn_and_that_is_said(cli: Cli) -> None:
    answer = cli("solve", "problem.json", "--method", "bound-pooled", "--plot", "s.png")
    assert answer.code == 0
    assert answer.err == "optgap: s.png: nothing drawn, there is no solution\n"
    assert not Path("s.png").exists()
