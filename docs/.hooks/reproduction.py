"""docs/reproduction.md from what the items gave.

    optgap reproduce all --data DIR --json all.json
    python docs/.hooks/reproduction.py all.json

writes the rows with a verdict to docs/reproduction.json, each item's anew that stands in
``all.json``, and the page from them. Typed here are the reasons alone; a test compares the page
with `page`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from optgap.reproduce import ITEMS, Item

DOCS = Path(__file__).parent.parent
STORED = DOCS / "reproduction.json"
PAGE = DOCS / "reproduction.md"
WORDS = ("yes", "nearly", "no")
BEYOND = " (not in the paper)"

PAPERS: dict[str, tuple[str, str, str, str]] = {
    "pwr": ("PWR and FGD", "placement", "1 2 3 4 5 6 7 8 9 10", "I II"),
    "cats": ("CATS", "consolidation", "1 2 3 7 8 9 10", "1 2"),
    "ecosched": ("EcoSched", "coscheduling", "1 2 3 5 6 7 8 9", "II"),
    "powerflow": ("PowerFlow", "elastic", "1 2 3 4 5 7 8 9 10", "2"),
    "hps": ("HPS, PBS and SBS", "queueing", "", "II"),
}
"""Short name, page, figures and tables that show results; the others are designs or inputs."""

WHY: dict[str, str] = {
    "pwr-table2": "its 310 nodes without GPU are none of its 1,213 (`pwr-table2`)",
    "pwr-traces": "the shares are those of all GPU demand (`pwr-traces`)",
    "pwr-fig3": "from 93 % on DotProd places least (`pwr-fig7`)",
    "pwr-fig5": "50 %: unexplained (`pwr-causes`)",
    "pwr-fig7": "DotProd: unexplained (`pwr-causes`)",
    "cats-table1": "instances and machine are not stated",
    "cats-table2": "another machine",
    "cats-fig1": "unexplained; other applications, clocks from 500 MHz up",
    "cats-fig3": "tasks are made after the paper's sentence",
    "cats-table4": "run times and window are not stated (`cats-table4`)",
    "cats-fig7b": "instants above 100 % (`cats-fig7b`)",
    "cats-fig2": "windows of 14 minutes; the paper's 80 % is r ≤ 0.3 (`cats-fig2`)",
    "cats-fig8": "whether thresholds hold (`cats-causes`); the rest unexplained",
    "cats-fig9": "as for Fig. 8 (`cats-causes`)",
    "cats-fig10": "as for Fig. 8 (`cats-causes`)",
    "ecosched-fig5": "no number",
    "ecosched-table2": "pot3d and vgg16 on V100: unexplained",
    "ecosched-fig6": "the Oracle was not optimal (`ecosched-oracle`); Marble's log has gpt2 at "
    "69 s, alone 17 s (`ecosched-fig6`)",
    "ecosched-fig7": "co-running, in the authors' log (`ecosched-fig9`)",
    "ecosched-fig9": "miniweather on V100: unexplained",
    "powerflow-motivation": "unexplained; GPT-2's profile over clocks is not public",
    "powerflow-fig2": "no number",
    "powerflow-fig3": "no number",
    "powerflow-fig4": "no number",
    "powerflow-fig5": "no number",
    "powerflow-table2": "ours are the noise that was put in",
    "powerflow-fig7": "Tiresias: unexplained (`powerflow-causes`). Clocks below 1,020 MHz: "
    "unexplained",
    "powerflow-fig9": "pre-runs and windows (`powerflow-fig9`)",
    "powerflow-fig8": "AFS alone takes more in the first hours: unexplained",
    "powerflow-fig10": "against AFS pre-runs and windows (`powerflow-causes`); trends against "
    "the others unexplained",
    "hps-impossible": "they contradict the workload or one another (`hps-impossible`)",
    "hps-table2": "no load, arrival process or patience gives all columns (`hps-loads`)",
    "hps-static": "as for Table II (`hps-loads`)",
    "hps-loads": "the best of 72 settings is 89 % off in one column (`hps-loads`)",
    "hps-orderings": "as for Table II (`hps-loads`)",
    "hps-aging": "the factor as printed (`hps-aging`)",
}
"""Why numbers differ, or why there is no verdict, by item."""

INTRO = """# Reproduction: every figure and table

`optgap reproduce all` runs again what the five papers show; `optgap reproduce NAME` runs one item
and prints *paper | ours | why different*, `--plot FOLDER` draws it. DIR asks for `--data DIR`,
[a folder with the public files](data.md); for (DIR) the package has a stand-in.

*Yes, nearly, no* counts an item's statements by how far our number is from the paper's, by the
rule of that letter. *Why* names the item that shows the reason, or says that it is unexplained.
This page is made from one run, [reproduction.json](reproduction.json). What contradicts itself in
the papers: [errata](errata.md).
"""


def stored() -> dict[str, Any]:
    """The verdicts of the last run, by item."""
    found: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return found


def judged(document: Mapping[str, Any]) -> dict[str, Any]:
    """Of a document that ``optgap reproduce --json`` wrote, what is kept of each item."""
    kept = {}
    for item in document["items"]:
        rows = [
            {key: row[key] for key in ("claim", "paper", "ours", "agrees", "rule")}
            for row in item["rows"]
            if row["agrees"]
        ]
        kept[item["name"]] = {"source": item["source"], "seeds": item["seeds"], "rows": rows}
    return kept


def counts(rows: Iterable[Mapping[str, str]]) -> tuple[int, ...]:
    """How many rows agree, nearly, and do not."""
    found = Counter(row["agrees"] for row in rows)
    return tuple(found[word] for word in WORDS)


def of_paper(prefix: str, results: Mapping[str, Any]) -> tuple[int, ...]:
    """The counts of all items of a paper."""
    return counts(
        row
        for name, kept in results.items()
        if name.startswith(f"{prefix}-")
        for row in kept["rows"]
    )


def shown(prefix: str) -> tuple[set[str], set[str]]:
    """The figures and tables that the titles of a paper's items name."""
    titles = [item.title for item in ITEMS.values() if item.name.startswith(f"{prefix}-")]
    own = [title for title in titles if "not in the paper" not in title]
    figures = {
        n
        for t in own
        for part in re.findall(r"Fig\. ([\d ,and]+)", t)
        for n in re.findall(r"\d+", part)
    }
    tables = {n for t in own for n in re.findall(r"^Table (\w+)", t)}
    return figures, tables


def coverage(prefix: str) -> str:
    """In words: how many figures and tables are run again, of those there are."""
    wanted = [set(words.split()) for words in PAPERS[prefix][2:]]
    parts = []
    for found, there, word in zip(shown(prefix), wanted, ("figure", "table"), strict=True):
        if there:
            plural = "" if len(there) == 1 else "s"
            parts.append(f"{len(found & there)} of {len(there)} {word}{plural}")
    return ", ".join(parts)


def data(item: Item) -> str:
    """Whether an item reads public files; in brackets where something stands in for them."""
    return "" if not item.needs else " (DIR)" if item.stand_in else " DIR"


def table(prefix: str, results: Mapping[str, Any]) -> str:
    """The rows of a paper's items, the rules of their letters, and the items without a verdict."""
    lines = [
        "| NAME | what | yes, nearly, no | why |",
        "| --- | --- | --- | --- |",
    ]
    letters: dict[str, str] = {}
    without = []
    for name, kept in results.items():
        if not name.startswith(f"{prefix}-"):
            continue
        item, rows = ITEMS[name], kept["rows"]
        for row in rows:
            letters.setdefault(row["rule"], chr(ord("a") + len(letters)))
        if not rows:
            why = f" ({WHY[name]})" if name in WHY else ""
            without.append(f"`{name}`{data(item)}: {item.title.removesuffix(BEYOND)}{why}")
            continue
        rules = ", ".join(dict.fromkeys(letters[row["rule"]] for row in rows))
        verdicts = f"{', '.join(map(str, counts(rows)))} ({rules})"
        cells = (f"`{name}`{data(item)}", item.title, verdicts, WHY.get(name, ""))
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"- **{letter}**: {rule}" for rule, letter in letters.items())]
    if without:
        lines += ["", "Without a verdict, or beyond the paper:", "", *(f"- {it}" for it in without)]
    return "\n".join(lines)


def page(results: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [INTRO]
    for prefix, (title, file, *_) in PAPERS.items():
        agree, nearly, differ = of_paper(prefix, results)
        parts.append(
            f"## {title}\n\n[The page](reproduction-{file}.md): {coverage(prefix)}. Of "
            f"{agree + nearly + differ} statements {agree} agree, {nearly} nearly, {differ} do not."
            f"\n\n{table(prefix, results)}\n"
        )
    return "\n".join(parts)


def main(files: list[str]) -> None:
    """Keep what `files` hold, and write the page."""
    results = stored() if STORED.exists() else {}
    for file in files:
        results |= judged(json.loads(Path(file).read_text(encoding="utf-8")))
    ordered = {name: results[name] for name in ITEMS if name in results}
    STORED.write_text(json.dumps(ordered, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(ordered), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
