"""Versions, shell completion, and what a call for help does not import."""

from __future__ import annotations

import json
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
