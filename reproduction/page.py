"""docs/reproduction.md, made from the claims and the kept results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reproduction.claims import FOLDER, Item, Paper, paper

PAGE = Path(__file__).parent.parent / "docs" / "reproduction.md"
WORDS = ("yes", "nearly", "open", "no")
BEYOND = " (not in the paper)"
NUMBERED = re.compile(r"^(Fig\.|Table) \w+, ")

Results = Mapping[str, Any]
"""Kept results of a paper, by item."""


def counts(rows: Iterable[Mapping[str, str]]) -> tuple[int, ...]:
    """Return how many rows have each of `WORDS`."""
    found = Counter(row.get("agrees") for row in rows)
    return tuple(found[word] for word in WORDS)


def of_paper(of: Paper, results: Results) -> tuple[int, ...]:
    """Return the counts of a paper's statements: those of inputs are none."""
    kept = [found["rows"] for name, found in results.items() if not of.items[name].inputs]
    return counts(row for rows in kept for row in rows)


def in_words(found: Sequence[int]) -> str:
    """Return counts with their sum."""
    each = ", ".join(f"{n} {word}" for n, word in zip(found, WORDS, strict=True))
    return f"{sum(found)} statements: {each}."


def _named(item: Item) -> str:
    data = "" if not item.needs else " (DIR)" if item.stand_in else " DIR"
    title = NUMBERED.sub("", item.title).removesuffix(BEYOND)  # the item is named after it
    return f"- `{item.name}`{data}: {title}"


def section(of: Paper, results: Results) -> str:
    """Return a paper's part of the page."""
    judged: list[str] = []
    inputs: list[str] = []
    without: list[str] = []
    differ, listed = [], []
    for name, kept in results.items():
        item, rows = of.items[name], kept["rows"]
        if item.listed:
            chosen = [row for row in rows if re.match(item.listed, row["claim"])]
            listed += [f"- `{name}`, {row['claim']}: {row['ours']}" for row in chosen]
        told = [row for row in rows if "agrees" in row]
        line = _named(item)
        if told and not item.inputs:
            line += f": {', '.join(map(str, counts(told)))}"
            for verdict in WORDS[:1:-1]:
                refused = [row for row in told if row["agrees"] == verdict]
                form = "{claim}: {paper} ({ours})" if verdict == "no" else "{claim}: {paper}"
                words = "; ".join(form.format_map(row) for row in refused)
                differ += [f"- `{name}`, {verdict}: {words}"] if refused else []
        line += f"; {item.why}" if item.why else ""
        (inputs if item.inputs else judged if told else without).append(line)
    parts = (
        ("Statements, *yes, nearly, open, no*:", judged),
        ("*No*, with ours in brackets, and *open*:", differ),
        ("Other settings:", listed),
        ("Inputs, not counted:", inputs),
        ("No verdict:", without),
    )
    lines = [f"## {of.title}", "", in_words(of_paper(of, results)), "", of.text.strip(), ""]
    for heading, each in parts:
        lines += [heading, "", *each, ""] if each else []
    return "\n".join(lines)


def page(results: Mapping[str, Results]) -> str:
    """Return the whole page."""
    intro = (FOLDER / "page.md").read_text(encoding="utf-8")
    papers = [paper(name) for name in results]
    each = [of_paper(of, results[of.name]) for of in papers]
    total = in_words([sum(c) for c in zip(*each, strict=True)])
    intro = intro.replace("TOTAL", f"**{total}**")
    return "\n".join([intro, *(section(of, results[of.name]) for of in papers)])
