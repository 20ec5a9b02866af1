"""What the documentation shows is what happens."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pages
import pandas as pd
import pytest
from conftest import Cli

import optgap
from optgap.cli import COMMANDS


def test_links_between_pages_lead_somewhere(root: Path) -> None:
    for page in (*root.glob("*.md"), *(root / "docs").glob("*.md")):
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


def test_times_are_quoted_as_the_benchmark_measured_them(root: Path) -> None:
    page = (root / "CONTRIBUTING.md").read_text()
    found = json.loads((root / "benchmarks" / "first_run.json").read_text())
    assert f"takes {found['cold_s']:.0f} s the first time, {found['warm_s']:.0f} s\nlater" in page
    assert f"`make setup` takes {found['setup_s']:.0f} s" in page
    minutes, seconds = divmod(round(found["setup_s"] + found["make_compare_after_setup_s"]), 60)
    assert f"{minutes} min {seconds} s with the setup" in page
    assert found["largest_difference_points"] <= 0.3


def test_the_readme_shows_what_its_four_lines_print(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (root / "README.md").read_text()
    assert len(readme.split()) <= 400
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    exec(code, {})

    def steady(text: str) -> str:
        return re.sub(r" +[\d.]+$|HiGHS [\d.]+", "", text.strip(), flags=re.MULTILINE)

    assert steady(capsys.readouterr().out) == steady(shown)


def test_fifteen_lines_with_public_names_lead_from_measurements_to_a_frame(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test the example of the page on Python: fit, problem, gaps, picture, own policy, frame."""
    (code,) = re.findall(r"```python\n(.*?)```", (root / "docs" / "api.md").read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 15
    assert set(re.findall(r"optgap\.(\w+)", code)) <= set(optgap.__all__)
    monkeypatch.chdir(tmp_path)
    Path("power.csv").write_text("frequency_mhz,power_w\n600,80\n900,108\n1200,133\n1400,152\n")
    made: dict[str, Any] = {}
    exec(code, made)
    frame = made["frame"]
    assert Path("gaps.png").read_bytes().startswith(b"\x89PNG")
    assert frame.index[0] == "exact"
    assert {"emptiest", "cats"} == {*frame.index[1:]}
    assert (frame["gap_to_bound"] >= 0).all()
    assert (made["gaps"].to_frame()[["low", "high"]] >= 0).all(axis=None)


def test_the_introduction_counts_as_optgap_does(root: Path) -> None:
    """The jobs, schedules, bound and gaps worked by hand are those of the referee and methods."""
    path = root / "docs" / "introduction.md"
    page, (jobs,) = path.read_text(), [item for item in pages.read(path) if hasattr(item, "name")]
    problem: Any = optgap.problem(
        "queueing", jobs=pd.read_csv(io.StringIO(jobs.text)), nodes=1, gpus_per_node=4
    )
    rows = re.findall(r"^\| [a-e] \|(.+)\|$", page, re.MULTILINE)
    said = " ".join(page.split())
    fifo, best, middle = zip(*(map(float, r.split("|")) for r in rows), strict=True)
    for policy, starts in (("fifo", fifo), ("shortest", best)):
        result = optgap.run(problem, policy)
        solution: Any = result.solution
        assert [*solution.start_s] == list(starts), policy
        assert result.objective == sum(starts) / 5
        assert f"**{sum(starts) / 5:.0f} s**" in said
    bound = (sum(middle) - sum(problem.jobs.duration_s) / 2) / 5
    assert f"{bound:.0f} s" in said
    assert optgap.bound(problem, "bound-area").bound == pytest.approx(bound)
    assert optgap.solve(problem, "exact").bound == pytest.approx(sum(best) / 5)
    assert f"{optgap.run(problem, 'easy').objective:.0f} s" in said
    for objective, below in ((58, bound), (16, bound), (58, 16)):
        gap = round(100 * (objective / below - 1), 1 if below == 16 else 0)
        assert f"= {gap:g} %" in said


@pytest.mark.slow
def test_the_tutorial_goes_as_it_says(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Every line that the page shows beside a command is one that it prints."""
    pages.solve_once(monkeypatch)
    monkeypatch.chdir(tmp_path)
    path = root / "docs" / "tutorial.md"
    page, out = path.read_text(), ""
    for item in pages.read(path):
        if isinstance(item, pages.File):
            Path(item.name).write_text(item.text)
        elif isinstance(item, pages.Command) and not item.inline and item.words[0] == "optgap":
            answer = cli(*item.words[1:])
            assert answer.code == 0, f"{item.text}: {answer.err}"
            out += answer.out
    for kind, shown in pages.FENCE.findall(page):
        for line in shown.splitlines() if kind == "" else ():
            if "HiGHS" not in line:  # its version may be another
                assert line in out
    assert Path("report.html").stat().st_size > 50_000
    assert "lowest.py:Lowest" in out


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
