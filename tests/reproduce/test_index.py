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

VERBATIM = {"pwr": "placement", "ecosched": "coscheduling", "hps": "queueing"}
"""Papers whose pages are the tables as they were printed."""
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


@pytest.mark.parametrize("prefix", VERBATIM)
def test_the_pages_have_the_verdicts_that_are_kept(
    results: dict[str, Any], root: Path, prefix: str
) -> None:
    page = (root / "docs" / f"reproduction-{VERBATIM[prefix]}.md").read_text(encoding="utf-8")
    for name, kept in results.items():
        if name.startswith(f"{prefix}-") and name != "hps-loads":
            for row in kept["rows"]:
                timed = row["ours"].endswith(" ms")
                cells = [row["claim"], row["paper"], row["ours"], row["agrees"]]
                line = re.escape(f"| {' | '.join(cells[:2])} | ") + (
                    r"[^|]*" if timed else re.escape(row["ours"])
                )
                assert re.search(line + re.escape(f" | {row['agrees']} |"), page), row["claim"]


def test_the_readme_counts_what_the_results_count(
    index: ModuleType, results: dict[str, Any], root: Path
) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    for prefix, (_, page, *_) in index.PAPERS.items():
        counted = ", ".join(map(str, index.of_paper(prefix, results)))
        (line,) = re.findall(rf"^.*\(docs/reproduction-{page}\.md\): (.*)$", readme, re.MULTILINE)
        assert line.startswith(f"{index.coverage(prefix)}; {counted}, "), line
