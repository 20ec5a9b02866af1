"""``python -m reproduction [PAPER | ITEM …]``: run papers again and keep what came out."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from optgap.datasets import present_folder
from optgap.render import text_table
from reproduction import page
from reproduction.claims import PAPERS, SEEDS, Paper, Report, Study, paper

RESULTS = Path(__file__).parent / "results"
ROW = re.compile(r'\{\s+"claim"[^{}]*\}')


def stored(name: str) -> dict[str, Any]:
    """Return the kept results of a paper, by item, in the order of its claims."""
    path = RESULTS / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {item: found[item] for item in paper(name).items if item in found}


def keep(of: Paper, reports: list[Report]) -> None:
    """Put reports in place of the kept ones, and write the page."""
    results = stored(of.name) | {report.item.name: report.to_json() for report in reports}
    ordered = {name: results[name] for name in of.items if name in results}
    text = json.dumps(ordered, ensure_ascii=False, indent=1)
    text = ROW.sub(lambda row: " ".join(row[0].split()), text)  # a line each: diffs are read
    (RESULTS / f"{of.name}.json").write_text(text + "\n", encoding="utf-8")
    page.PAGE.write_text(page.page({name: stored(name) for name in PAPERS}), encoding="utf-8")


def changed(report: Report, kept: dict[str, Any]) -> list[str]:
    """Return the claims whose verdict is not the kept one."""
    before = kept.get(report.item.name, {}).get("rows", [])
    was = [(row["claim"], row["agrees"]) for row in before if "agrees" in row]
    now = [(row.claim, row.agrees) for row in report.rows if row.agrees]
    return [f"{claim}: {verdict}" for claim, verdict in now if (claim, verdict) not in was]


def show(report: Report) -> None:
    """Print a report."""
    item = report.item
    print(f"{item.name}: {item.title} ({report.source})")
    rows = [(row.claim, row.paper, row.ours, row.agrees, row.note) for row in report.rows]
    print(text_table(("claim", "paper", "ours", "agrees", "note"), rows))
    print()


def main(arguments: list[str] | None = None) -> int:
    """Run papers or items; 1 if a verdict is not the one that is kept, 2 for a bad name."""
    parser = argparse.ArgumentParser("reproduction", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"{', '.join(PAPERS)} or items; all without")
    parser.add_argument("--data", metavar="DIR", help="public traces; $OPTGAP_DATA without it")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="fewer than 10 keep nothing")
    given = parser.parse_args(arguments)
    papers = [paper(name) for name in PAPERS]
    known = {*PAPERS, *(item for of in papers for item in of.items)}
    if unknown := set(given.names) - known:
        parser.error(f"no {min(unknown)}; there are {', '.join(sorted(known))}")
    study = Study(SEEDS[: given.seeds], present_folder(given.data))
    other = []
    for of in papers:
        reports = []
        for name, item in of.items.items():
            if given.names and not {of.name, name} & set(given.names):
                continue
            try:
                report = of.run(name, study)
            except FileNotFoundError as error:
                print(f"{error}: not run\n")
                continue
            show(report)
            if study.seeds == SEEDS and not item.missing(study.data):
                reports.append(report)
                other += changed(report, stored(of.name))
        if reports:
            keep(of, reports)
    if other:
        print("verdicts that were others before:", *other, sep="\n  ")
    return bool(other)


if __name__ == "__main__":
    sys.exit(main())
