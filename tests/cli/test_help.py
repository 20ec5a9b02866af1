"""The help of every command shows lines that work as they stand."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pages
import pytest
from conftest import Cli

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
    assert len(options) <= 130


@pytest.mark.parametrize("option", [("--seed", "3"), ("--time-limit=5",), ("-v",)])
def test_every_command_takes_what_all_take(option: tuple[str, ...], cli: Cli) -> None:
    assert cli("families", *option).code == 0
    assert cli("families", "--seed").code == 2
