"""The help of every command shows lines that work as they stand."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import Cli

from optgap.cli import COMMANDS, EXAMPLES

ELSEWHERE = {
    "audit": "optgap audit kubernetes cluster.json --moves 14",  # needs a cluster
    "info": "optgap info --fetch openb",  # needs a network
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_an_example_that_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = cli(name, "--help").out
    for line in EXAMPLES[name]:
        assert f" {line} " in shown  # uncut at 80 columns
        if line.startswith("printf "):
            subprocess.run(line, shell=True, check=True)
        elif line != ELSEWHERE.get(name):
            answer = cli(*shlex.split(line)[1:])
            assert answer.code == 0, answer.err
    assert any(line.startswith(f"optgap {name}") for line in EXAMPLES[name])
