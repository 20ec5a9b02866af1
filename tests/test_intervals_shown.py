"""Every interval that a page or a notebook shows holds the gap that stands beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PER_CENT = re.compile(r"^!?(-?[\d,]+\.\d+)")
ROUNDED = 0.0051
"""What two digits behind the point hide, points."""


def cells_of_text(text: str) -> Iterator[list[str]]:
    """The rows of text tables, cell by cell."""
    for line in text.splitlines():
        yield re.split(r"\s{2,}", line.strip())


def cells_of_html(text: str) -> Iterator[list[str]]:
    """The rows of HTML tables, cell by cell."""
    for row in re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL):
        found = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)
        yield [unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in found]


def outside(rows: Iterator[list[str]]) -> tuple[int, list[list[str]]]:
    """How many intervals there are, and those whose gap lies outside without a mark."""
    count, wrong, at = 0, [], None
    for cells in rows:
        row = [cell.removesuffix(" (%)") for cell in cells]
        if {"gap to bound", "low", "high"} <= set(row):
            # the first column has no header, which text tables lose
            at = [row.index(name) - len(row) for name in ("gap to bound", "low", "high")]
            continue
        if at is None or len(row) < -at[0]:
            continue
        found = [PER_CENT.match(row[k]) for k in at]
        if None in found:
            continue
        gap, low, high = (float(m[1].replace(",", "")) for m in found if m)
        count += 1
        if not low - ROUNDED <= gap <= high + ROUNDED and not row[at[0]].startswith("!"):
            wrong.append(row)
    return count, wrong


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """The text and the HTML of a page, or of every output of a notebook."""
    if path.suffix == ".md":
        yield path.read_text(), ""
        return
    for cell in json.loads(path.read_text())["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            plain = "".join(output.get("text", "")) + "".join(data.get("text/plain", ""))
            yield plain, "".join(data.get("text/html", ""))


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=lambda path: path.name)
def test_gaps_are_shown_inside_their_intervals(path: Path) -> None:
    for text, html in texts(path):
        assert outside(cells_of_text(text))[1] == []
        assert outside(cells_of_html(html))[1] == []


def test_the_test_finds_what_it_looks_for() -> None:
    page = (ROOT / "docs" / "csv-to-gap.md").read_text()
    assert outside(cells_of_text(page))[0] == 3
    wrong = "     gap to bound  low  high  samples\ncats  7.23 %  15.57 %  15.62 %  5\n"
    assert outside(cells_of_text(wrong))[1] == [["cats", "7.23 %", "15.57 %", "15.62 %", "5"]]
