"""docs/reproduction.md is what one run gave, and so are the verdicts on the other pages."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import ROOT

from optgap import reproduce
from optgap.reproduce import ITEMS

VERBATIM = ("placement", "coscheduling")
"""Pages that have every statement that does not agree, as it was printed."""
PRINTED = re.compile(r"^\| ([^|]*) \| ([^|]+) \| ([^|]*) \| (yes|nearly|no) \|", re.MULTILINE)
QUICK = ("pwr-table1", "hps-impossible")
"""Items that take no time and need no files."""


@pytest.fixture(scope="module")
def index() -> ModuleType:
    """What writes the page."""
    place = ROOT / "docs" / ".hooks" / "reproduction.py"
    spec = importlib.util.spec_from_file_location("docs_reproduction", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results(index: ModuleType) -> dict[str, Any]:
    """The verdicts of the run that is kept."""
    found: dict[str, Any] = index.stored()
    return found


def test_the_page_is_made_from_the_results_that_are_kept(
    index: ModuleType, results: dict[str, Any]
) -> None:
    assert index.PAGE.read_text(encoding="utf-8") == index.page(results)
    assert list(results) == list(ITEMS)


@pytest.mark.parametrize("name", QUICK)
def test_the_results_that_are_kept_are_what_the_items_give(
    index: ModuleType, results: dict[str, Any], name: str
) -> None:
    document = {"items": [reproduce.run(name, seeds=1).to_json()]}
    assert index.judged(document)[name]["rows"] == results[name]["rows"]


def test_every_figure_and_table_with_results_is_run_again(index: ModuleType) -> None:
    for prefix, (_, _, figures, tables) in index.PAPERS.items():
        assert index.shown(prefix) == (set(figures.split()), set(tables.split())), prefix


def test_no_difference_is_without_a_reason_and_no_reason_without_a_command(
    index: ModuleType, results: dict[str, Any]
) -> None:
    for name, kept in results.items():
        why = index.WHY.get(name, "")
        assert all(row["rule"] for row in kept["rows"]), name
        if any(row["agrees"] == "no" for row in kept["rows"]):
            assert re.search(r"`[a-z]+-[\w-]+`|unexplained", why) or "not stated" in why, name
        for item in re.findall(r"`([a-z]+-[\w-]+)`", why):
            assert item in ITEMS
        if not kept["rows"] and "not in the paper" not in ITEMS[name].title:
            assert why, name


def test_the_pages_count_what_the_results_count(
    index: ModuleType, results: dict[str, Any], root: Path
) -> None:
    for prefix, (_, name, *_) in index.PAPERS.items():
        page = (root / "docs" / f"reproduction-{name}.md").read_text(encoding="utf-8")
        agree, nearly, differ = index.of_paper(prefix, results)
        counted = f"{agree + nearly + differ} statements: {agree} agree, {nearly} nearly, {differ} "
        assert f"{counted}do not" in " ".join(page.split())


@pytest.mark.parametrize("name", VERBATIM)
def test_the_pages_show_what_does_not_agree(
    index: ModuleType, results: dict[str, Any], root: Path, name: str
) -> None:
    page = (root / "docs" / f"reproduction-{name}.md").read_text(encoding="utf-8")
    (prefix,) = (short for short, (_, page_of, *_) in index.PAPERS.items() if page_of == name)
    differ = [
        tuple(row[key] for key in ("claim", "paper", "ours", "agrees"))
        for item, kept in results.items()
        if item.startswith(f"{prefix}-")
        for row in kept["rows"]
        if row["agrees"] != "yes"
    ]
    assert sorted(PRINTED.findall(page)) == sorted(differ)


def test_the_table_of_schedulers_has_the_numbers_that_are_kept(
    results: dict[str, Any], root: Path
) -> None:
    page = (root / "docs" / "reproduction-queueing.md").read_text(encoding="utf-8")
    for row in results["hps-table2"]["rows"] + results["hps-static"]["rows"]:
        scheduler = row["claim"].partition(":")[0]
        line = next(line for line in page.splitlines() if line.startswith(f"| {scheduler} |"))
        assert f"| {row['paper']} / {row['ours']} |" in line, row["claim"]


def test_the_readme_counts_what_the_results_count(
    index: ModuleType, results: dict[str, Any], root: Path
) -> None:
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    papers = [index.of_paper(prefix, results) for prefix in index.PAPERS]
    agree, nearly, differ = map(sum, zip(*papers, strict=True))
    counted = f"of {agree + nearly + differ} statements {agree} agree, {nearly} nearly, {differ} "
    assert f"{counted}do not" in readme
