"""docs/reproduction.md lists what `optgap reproduce` has, and counts what the pages count."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from optgap.reproduce import ITEMS

COUNTED = ("placement", "coscheduling")
"""Families whose pages are the tables as they were printed."""


@pytest.fixture(scope="module")
def rows(root: Path) -> dict[str, list[str]]:
    text = (root / "docs" / "reproduction.md").read_text()
    found = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", text, re.MULTILINE)
    assert len(found) == len(dict(found))
    return {name: rest.split(" | ") for name, rest in found}


def test_every_item_stands_in_the_index_once_by_its_title(rows: dict[str, list[str]]) -> None:
    assert list(rows) == list(ITEMS)
    assert [row[0] for row in rows.values()] == [item.title for item in ITEMS.values()]


def test_no_verdict_is_without_a_tolerance_and_no_difference_without_a_reason(
    rows: dict[str, list[str]],
) -> None:
    for name, (_, data, tolerance, verdicts, *why) in rows.items():
        assert data, name
        if verdicts == "–":
            assert tolerance == "–" or tolerance.startswith("none: "), name
        else:
            assert tolerance != "–", name
            assert verdicts.endswith(", 0") or why[0].strip(), name


def test_every_reason_names_a_command_or_says_what_is_not_known(
    rows: dict[str, list[str]],
) -> None:
    for row in rows.values():
        for item in re.findall(r"`([a-z]+-[\w-]+)`", row[4] if len(row) > 4 else ""):
            assert item in ITEMS


@pytest.mark.parametrize("family", COUNTED)
def test_the_index_counts_what_the_page_counts(
    rows: dict[str, list[str]], root: Path, family: str
) -> None:
    page = (root / "docs" / f"reproduction-{family}.md").read_text()
    found: dict[str, Counter[str]] = {}
    for part in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        item = re.search(r"`optgap reproduce ([\w-]+)`", part)
        assert item is not None
        words = re.findall(r"^\|.*\| (yes|nearly|no) \|[^|]*\|$", part, re.MULTILINE)
        found[item[1]] = Counter(words)
    for name, counts in found.items():
        shown = ", ".join(str(counts[word]) for word in ("yes", "nearly", "no"))
        assert rows[name][3] == ("–" if not counts else shown), name
