"""docs/reproduction.md, made from the claims and the kept results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reproduction.claims import FOLDER, Item, Paper, paper

PAGE = Path(__file__).parent.parent / "docs" / "reproduction.md"
WORDS = ("yes", "nearly", "no")
SHOWN = 10
"""Number of statements that do not agree up to which a paper's are listed."""
BEYOND = " (not in the paper)"

Results = Mapping[str, Any]
"""Kept results of a paper, by item."""


def counts(rows: Iterable[Mapping[str, str]]) -> tuple[int, ...]:
    """Return how many rows agree, nearly, and do not."""
    found = Counter(row.get("agrees") for row in rows)
    return tuple(found[word] for word in WORDS)


def of_paper(results: Results) -> tuple[int, ...]:
    """Return the counts of all items of a paper."""
    return counts(row for kept in results.values() for row in kept["rows"])


def _data(item: Item) -> str:
    return "" if not item.needs else " (DIR)" if item.stand_in else " DIR"


def _table(header: str, rows: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {header} |", "|" + " --- |" * (header.count("|") + 1), *lines]


def section(of: Paper, results: Results) -> str:
    """Return a paper's part of the page."""
    letters: dict[str, str] = {}
    without, rows, differ, listed = [], [], [], []
    for name, kept in results.items():
        item = of.items[name]
        judged = [row for row in kept["rows"] if "agrees" in row]
        if item.listed:
            chosen = [row for row in kept["rows"] if re.match(item.listed, row["claim"])]
            cells = [(row["claim"], row.get("paper", ""), row["ours"]) for row in chosen]
            listed += [f"`{name}`:", "", *_table("claim | paper | ours", cells), ""]
        title, named = item.title.removesuffix(BEYOND), f"`{name}`{_data(item)}"
        if not judged:
            without.append(f"- {named}: {title}" + (f" ({item.why})" if item.why else ""))
            continue
        for row in judged:
            letters.setdefault(row["rule"], chr(ord("a") + len(letters)))
            if row["agrees"] == "no":
                differ.append((row["claim"], row["paper"], row["ours"], f"`{name}`"))
        rules = ", ".join(dict.fromkeys(letters[row["rule"]] for row in judged))
        found = f"{', '.join(map(str, counts(judged)))} ({rules})"
        rows.append((named, title, found, item.why))
    agree, nearly, no = of_paper(results)
    told = f"{agree + nearly + no} statements: {agree} agree, {nearly} nearly, {no} do not."
    lines = [f"## {of.title}", "", told, "", of.text.strip(), ""]
    lines += _table("item | what | yes, nearly, no | why", rows)
    lines += ["", *(f"- **{letter}**: {rule}" for rule, letter in letters.items()), ""]
    if without:
        lines += ["Without a verdict, or beyond the paper:", "", *without, ""]
    if 0 < len(differ) <= SHOWN:
        lines += ["What does not agree:", ""]
        lines += [*_table("claim | paper | ours | item", differ), ""]
    return "\n".join([*lines, *listed])


def page(results: Mapping[str, Results]) -> str:
    """Return the whole page."""
    intro = (FOLDER / "page.md").read_text(encoding="utf-8")
    agree, nearly, no = (sum(c) for c in zip(*map(of_paper, results.values()), strict=True))
    total = f"Of {agree + nearly + no} statements {agree} agree, {nearly} nearly, {no} do not."
    intro = intro.replace("TOTAL", total)
    return "\n".join([intro, *(section(paper(name), kept) for name, kept in results.items())])
