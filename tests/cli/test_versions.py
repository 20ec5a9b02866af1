"""Versions, shell completion, and what a call for help does not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Cli

import optgap

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
        ("optgap sweep --sch", "--scheduler"),
        ("optgap run --po", "--policy"),
    ],
)
def test_the_shell_completes_commands_and_their_options(words: str, expected: str) -> None:
    environment = {
        **os.environ,
        "_OPTGAP_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    run = subprocess.run(
        [sys.executable, "-m", "optgap"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert expected in run.stdout.split()


@pytest.mark.parametrize("command", ["", "sweep", "run"])
def test_help_imports_nothing_heavy(command: str) -> None:
    code = (
        f"import sys; from optgap.cli import main; main({[*command.split(), '--help']!r}); "
        "print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not (HEAVY | EXTRAS) & set(run.stderr.split())
    if not command:
        assert "optgap.cli." not in run.stderr
