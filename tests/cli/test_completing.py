"""What the shell offers where a name is to be typed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Cli

Offered = Callable[[str], list[str]]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cli: Cli) -> Offered:
    """The words that bash offers at the end of a line, beside a placement and a queue."""
    monkeypatch.chdir(tmp_path)
    cli("generate", "placement", "--preset", "small", "--size", "5", "-o", "place.json")
    cli("generate", "queueing", "--size", "5", "-o", "queue.json")

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_OPTGAP_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        return cli().out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("optgap expl", "explain"),
        ("optgap families co", "consolidation coscheduling"),
        ("optgap generate que", "queueing"),
        ("optgap compare pl", "placement place.json"),
        ("optgap explain q", "queueing queue.json"),
        ("optgap run place.json --policy hps_", "hps_fixed"),
        ("optgap solve place.json --method bound-p", "bound-pooled bound-patterns bound-prices"),
        ("optgap compare placement --policies pwr,b", "pwr,bestfit"),
        ("optgap compare placement --policies a", "all"),
        ("optgap compare elastic --methods ex", "exhaustive"),
        ("optgap explain placement --beside n", "none node-value"),
        ("optgap generate placement --preset s", "small"),
        ("optgap compare elastic --preset t", "tiny"),
        ("optgap generate --fetch openb-", "openb-reference"),
        ("optgap fit linear", "linear-power"),
        ("optgap sweep grid.toml --engine s", "serial"),
        ("optgap sloev x --po", ""),
    ],
)
def test_a_name_is_offered(line: str, words: str, offered: Offered) -> None:
    assert offered(line) == words.split()


def test_without_a_problem_policies_of_every_family_are_offered(offered: Offered) -> None:
    words = offered("optgap run missing.json --policy ")
    assert {"fgd", "cats", "ecosched", "hps", "powerflow"} <= set(words)


def test_completing_loads_no_solver() -> None:
    script = (
        "import sys; from optgap.cli import main; main();"
        "print([m for m in ('numba', 'scipy', 'highspy', 'ortools', 'pandas', 'matplotlib')"
        " if m in sys.modules], file=sys.stderr)"
    )
    environment = {
        "_OPTGAP_COMPLETE": "complete_bash",
        "COMP_WORDS": "optgap compare elastic --policies ",
        "COMP_CWORD": "4",
        "PATH": "",
        "PYTHONPATH": ":".join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert "powerflow" in done.stdout
    assert done.stderr == "[]\n"
