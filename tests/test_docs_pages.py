"""What the tutorial and the pages on explaining and reporting show is what happens."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in; what is solved twice there is solved once."""
    from optgap import gaps

    known: dict[tuple[str, str, int], Any] = {}
    run = gaps.execute

    def remembered(problem: Any, runnable: Any, limits: Any, seed: int) -> Any:
        key = (json.dumps(problem.to_json()), runnable.label, seed)
        if key not in known:
            known[key] = run(problem, runnable, limits, seed)
        return known[key]

    monkeypatch.setattr(gaps, "execute", remembered)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(cli: Cli, page: str) -> str:
    """What all commands of a page print; installing apart."""
    out = ""
    for kind, code in FENCE.findall(page):
        if kind == "python" and code.startswith("class "):
            Path("spread.py").write_text(code)
        for line in code.splitlines() if kind == "sh" else ():
            words = shlex.split(line)
            if words[:1] == ["optgap"]:
                answer = cli(*words[1:])
                assert answer.code == 0, f"{line}: {answer.err}"
                out += answer.out
    return out


@pytest.mark.slow
def test_the_tutorial_goes_as_it_says(root: Path, here: Path, cli: Cli) -> None:
    page = (root / "docs" / "tutorial.md").read_text()
    out = told(cli, page)
    for kind, shown in FENCE.findall(page):
        for line in shown.splitlines() if kind == "" else ():
            if "HiGHS" not in line:  # its version may be another
                assert line in out
    assert Path("report.html").stat().st_size > 50_000
    assert "spread.py:Lowest" in out


@pytest.mark.slow
def test_the_page_on_reports_goes_as_it_says(
    root: Path, here: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "report.md").read_text()
    assert "sections" in told(cli, page)
    (script,) = (code for kind, code in FENCE.findall(page) if kind == "python")
    exec(compile(script, "report.md", "exec"), {})
    assert "<title>optgap report</title>" in Path("report.html").read_text()


def test_the_example_on_explaining_runs(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    page = (root / "docs" / "explain.md").read_text()
    (script,) = (code for kind, code in FENCE.findall(page) if kind == "python")
    exec(compile(script, "explain.md", "exec"), {})
    assert "price of the heuristic" in capsys.readouterr().out


@pytest.mark.slow
def test_the_page_from_a_csv_to_a_gap_goes_as_it_says(
    root: Path, here: Path, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "csv-to-gap.md").read_text()
    (table,) = (code for kind, code in FENCE.findall(page) if kind == "csv")
    Path("sweep.csv").write_text(table)
    out = told(cli, page)
    assert "P_gs and α of Eq. 1 on 600 to 1350 MHz" in out
    (script,) = (code for kind, code in FENCE.findall(page) if kind == "python")
    exec(compile(script, "csv-to-gap.md", "exec"), {})
    assert Path("gaps.png").stat().st_size > 10_000


def test_the_page_from_a_csv_to_a_gap_lists_every_column_and_model(root: Path) -> None:
    from optgap.fitting import ESTIMATORS
    from optgap.making import MODELS, columns_in
    from optgap.models.quantities import MEASURED
    from optgap.registry import FAMILIES

    page = (root / "docs" / "csv-to-gap.md").read_text()
    for name, quantity in MEASURED.items():
        assert f"| `{name}` | {quantity.unit}" in page or quantity.unit in ("0..1", "0..GPUs"), name
    for name in ESTIMATORS:
        assert page.count(f"`{name}`") >= 2, name
    for spec in FAMILIES.values():
        part = page.partition(f"### {spec.name}\n")[2].partition("\n### ")[0]
        for table, columns in spec.files.items():
            if table not in MODELS and table != "trace":
                assert all(f"`{column}`" in part for column in columns_in(columns)), table
