"""What the documentation shows is what happens."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from conftest import Cli

from optgap.cli import COMMANDS

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    return [code for kind, code in FENCE.findall(path.read_text()) if kind == language]


def test_the_example_policy_runs_as_the_page_says(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cli: Cli,
) -> None:
    page = root / "docs" / "your-own-policy.md"
    policy, script = blocks(page, "python")
    assert policy.startswith("# spread.py\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("spread.py").write_text(policy)
    for line in "".join(blocks(page, "sh")).splitlines():
        answer = cli(*shlex.split(line)[1:])
        assert answer.code == 0, answer.err
        assert "Spread" in answer.out
    exec(compile(script, str(page), "exec"), {})
    assert "Spread" in capsys.readouterr().out


def test_the_readmes_script_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (script,) = blocks(root / "README.md", "python")
    exec(compile(script, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "gap to bound" in out
    assert len(out.splitlines()) > 15


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs"])
def test_links_between_pages_lead_somewhere(root: Path, name: str) -> None:
    pages = sorted((root / name).glob("*.md")) if (root / name).is_dir() else [root / name]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_option_in_the_command_line_page_exists(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # help texts are cut to the terminal
    text = (root / "docs" / "cli.md").read_text()
    help_texts = cli("--help").out
    for name in COMMANDS:
        assert f"optgap {name}" in text or f"| {name}" in text
        help_texts += cli(name, "--help").out
    for option in set(re.findall(r"--[a-z][a-z-]+", text)):
        assert option in help_texts, option


def test_the_readme_quotes_the_times_that_the_benchmark_measured(root: Path) -> None:
    readme = (root / "README.md").read_text()
    found = json.loads((root / "benchmarks" / "first_run.json").read_text())
    assert f"{found['cold_s']:.0f} s the first time, {found['warm_s']:.0f} s later" in readme
    assert f"sets .venv up, {found['setup_s']:.0f} s" in readme
    minutes, seconds = divmod(round(found["setup_s"] + found["make_compare_after_setup_s"]), 60)
    assert f"{minutes} min {seconds} s with the setup" in readme
    assert found["largest_difference_points"] <= 0.3
