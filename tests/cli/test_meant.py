"""A name that was mistyped is answered with the one that was meant."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from conftest import Cli, refused

from optgap.models.errors import InputError, meant, one_of

SLIPS = (
    ("slove problem.json", "solve"),
    ("families plcement", "placement"),
    ("generate placment", "placement"),
    ("compare elastc", "elastic"),
    ("generate placement --preset smal", "small"),
    ("generate placement --set sise=3", "size"),
    ("generate queueing --set goal=makspan", "makespan"),
    ("generate elastic --set pool=a10", "a100"),
    ("run problem.json --policy fdg", "fgd"),
    ("run problem.json --policy PWR_FGD", "pwr+fgd"),
    ("run problem.json --policy 'pwr+fgd(alhpa=0.2)'", "alpha"),
    ("run problem.json --policy fgd --set scoer=exact", "score"),
    ("run problem.json --policy fgd --set score=exat", "exact"),
    ("run problem.json --policy optgap.comparing.overview:compare_al", "compare_all"),
    ("explain problem.json --policy firstfits", "firstfit"),
    ("solve problem.json --method bound-pattern", "bound-patterns"),
    ("solve problem.json --method milp --set backend=hihgs", "highs"),
    ("solve problem.json --bound-only --method patern", "patterns"),
    ("compare problem.json --policies pwr,bestfitt", "bestfit"),
    ("compare problem.json --methods exat", "exact"),
    ("compare placement --preset small --set gaol=power", "goal"),
    ("generate --fetch openbb", "openb"),
    ("fit linear-powr power.csv", "linear-power"),
    ("sweep grid.toml", "policies"),
    ("sweep grid.toml --engine proceses", "processes"),
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.chdir(tmp_path)
    cli("generate", "placement", "--preset", "small", "--size", "5", "-o", "problem.json")
    Path("grid.toml").write_text('[[grid]]\nfamily = "queueing"\npolices = ["sjf"]\n')


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "name"), SLIPS)
def test_a_slip_is_answered_with_the_name_that_was_meant(line: str, name: str, cli: Cli) -> None:
    answer = cli(*shlex.split(line))
    refused(answer)
    assert answer.err.endswith(f"; did you mean {name!r}?\n"), answer.err


@pytest.mark.usefixtures("here")
def test_a_method_given_as_a_policy_is_told_to_be_one(cli: Cli) -> None:
    told = cli("run", "problem.json", "--policy", "milp").err
    assert "milp is a method of placement" in told
    told = cli("run", "problem.json", "--policy", "hps").err
    assert "hps is a policy of queueing" in told


def test_nothing_is_guessed_where_nothing_is_like_it() -> None:
    names = ["pwr", "fgd", "gpupacking", "gpuclustering"]
    assert meant("xyz", names) == ""
    assert meant("gpu", names) == ""  # two of them
    assert meant("packing", names) == "gpupacking"
    assert "did you mean" not in str(InputError("--policy", "", "xyz", one_of(names)))
    long = [f"policy-{k:03}" for k in range(500)]
    assert str(InputError("x", "", "policy-4999", one_of(long))).endswith("mean 'policy-499'?")


@pytest.mark.parametrize("command", ["solve", "run", "compare", "explain"])
def test_a_family_before_a_file_is_told_that_the_file_says_it(command: str, cli: Cli) -> None:
    policy = ("--policy", "fgd") if command in ("run", "explain") else ()
    answer = cli(command, "placement", "problem.json", *policy)
    refused(answer, f"optgap: {command}: found problem.json besides, expected ")
    assert answer.err.endswith("PROBLEM.json alone (a problem's file says its family)\n")
