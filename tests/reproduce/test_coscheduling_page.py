"""docs/reproduction-coscheduling.md shows what the package has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from optgap.reproduce.coscheduling import ITEMS


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "reproduction-coscheduling.md").read_text()


def test_the_page_has_every_item(page: str) -> None:
    for item in ITEMS:
        assert f"### {item.title}\n" in page
        assert f"`optgap reproduce {item.name}`" in page


def test_the_page_counts_its_verdicts(page: str) -> None:
    found = re.findall(r"^\|.*\| (yes|nearly|no) \|[^|]*\|$", page, re.MULTILINE)
    numbers = re.search(r"(\d+) statements: (\d+) agree, (\d+) nearly,\n(\d+) do not", page)
    assert numbers is not None
    counts = [len(found), *(found.count(word) for word in ("yes", "nearly", "no"))]
    assert [int(number) for number in numbers.groups()] == counts


def test_pictures_are_there_and_small(root: Path, page: str) -> None:
    pictures = re.findall(r"\]\((images/ecosched-[a-z0-9]+\.png)\)", page)
    assert len(pictures) == 8
    for name in pictures:
        assert (root / "docs" / name).stat().st_size < 150_000
