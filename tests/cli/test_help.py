"""What is told of optgap itself: help whose lines work as they stand, completion, versions."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from conftest import Cli

import optgap
from optgap.cli import COMMANDS, EXAMPLES, load_command

ELSEWHERE = {
    "audit": "optgap audit kubernetes cluster.json --moves 14",  # needs a cluster
}


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_an_example_that_works(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    pages.solve_once(monkeypatch)
    shown = cli(name, "--help").out
    assert all(option in shown for option in ("--json", "-q", "-v"))
    for line in EXAMPLES[name]:
        assert f" {line} " in shown  # uncut at 80 columns
        if line.startswith("printf "):
            subprocess.run(line, shell=True, check=True)
        elif line != ELSEWHERE.get(name):
            answer = cli(*shlex.split(line)[1:])
            assert answer.code == 0, answer.err
    assert any(line.startswith(f"optgap {name}") for line in EXAMPLES[name])


def test_the_commands_and_their_options_are_few() -> None:
    assert len(COMMANDS) <= 13
    options = [
        option
        for name in COMMANDS
        for option in load_command(name).params
        if option.param_type_name == "option"
    ]
    assert len(options) <= 108


@pytest.mark.parametrize("option", [("--seed", "3"), ("--time-limit=5",), ("-v",)])
def test_every_command_takes_what_all_take(option: tuple[str, ...], cli: Cli) -> None:
    assert cli("families", *option).code == 0
    assert cli("families", "--seed").code == 2


HEAVY = {"numpy", "scipy", "pandas", "numba", "ortools", "pulp", "highspy", "cvxpy", "matplotlib"}
EXTRAS = {"pooch", "requests", "joblib", "pyarrow", "distributed", "optuna"}


def test_the_version_as_text_and_as_json(cli: Cli, tmp_path: Path) -> None:
    first, _, rest = cli("--version").out.partition("\n")
    assert first == f"optgap {optgap.__version__}"
    assert "numpy" in rest
    document = json.loads(cli("--version", "--json").out)
    assert document["schema"] == "optgap.versions/1"
    assert document["versions"]["optgap"] == optgap.__version__
    assert {"python", "numpy", "ortools", "highspy", "platform"} <= set(document["versions"])
    assert {"highs", "cbc", "cpsat"} <= {row["name"] for row in document["backends"]}
    assert "HiGHS" in rest
    answer = cli("--version", "--json", str(tmp_path / "v.json"))
    assert json.loads((tmp_path / "v.json").read_text()) == document
    assert answer.out.startswith(f"optgap {optgap.__version__}\n")
    assert cli("--version", "--jsno").code == 2


def test_show_versions_prints_the_same_block(capsys: pytest.CaptureFixture[str]) -> None:
    optgap.show_versions()
    out = capsys.readouterr().out
    for name, version in optgap.versions.versions().items():
        assert name in out
        assert version in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("optgap rep", "report"),
        ("optgap sweep --en", "--engine"),
        ("optgap run --po", "--policy"),
    ],
)
def test_the_shell_completes_commands_and_their_options(
    words: str, expected: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_OPTGAP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert expected in cli().out.split()


SHOWN = """
import sys
import optgap
print(*sys.modules, file=sys.stderr)
from optgap.cli import main
for command in (("--help",), ("sweep", "--help"), ("run", "--help"), ("families",)):
    main(command)
    print(*sys.modules, file=sys.stderr)
"""


def test_an_import_a_call_for_help_and_the_list_of_families_load_nothing_heavy() -> None:
    run = subprocess.run([sys.executable, "-c", SHOWN], capture_output=True, text=True, check=True)
    imported, bare, _, both, listed = (set(line.split()) for line in run.stderr.splitlines())
    assert not {*HEAVY, "typer", "rich"} & imported
    assert not [name for name in bare if name.startswith("optgap.cli.")]
    assert "optgap.cli.sweep" in both
    assert not (HEAVY | EXTRAS) & both
    assert not {"numba", "pandas", "ortools", "pulp", "highspy"} & listed
