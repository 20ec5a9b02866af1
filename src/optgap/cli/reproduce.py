"""``optgap reproduce``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optgap.cli import DONE, PARTIAL, completing
from optgap.cli import options as opt
from optgap.models.errors import InputError, NoQuote
from optgap.reproduce import FIRST_SEED, ITEMS, SEEDS, Item, Report, Stopped, Study, find, study
from optgap.reproduce.report import SCHEMA

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.models.limits import Limits
    from optgap.reproduce import Cache


def command(
    name: Annotated[
        str, opt.argument("list|all|NAME", "what to run; `list` shows the names", completing.items)
    ] = "list",
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="runs of each policy")
    ] = SEEDS,
    data: Annotated[
        str | None, opt.option("--data", "DIR", "the public traces; $OPTGAP_DATA without it")
    ] = None,
    plot: Annotated[
        str | None, opt.option("--plot", "DIR", "one PNG per figure, in this folder")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="neither take a kept result nor keep this one")
    ] = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="run anew what has been kept, and keep it")
    ] = False,
    json: opt.JsonFile = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="the first seed", show_default=True)
    ] = FIRST_SEED,
    time_limit: opt.TimeLimit = None,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.work import Output, interruptible
    from optgap.reproduce import Cache

    opt.require_writable(json)
    opt.refuse({"--refresh": no_cache and refresh}, "--no-cache, too", "one of the two")
    out = Output(json, quiet)
    chosen = list(ITEMS.values()) if name in ("list", "all") else [find(name)]
    if name == "list":
        return _list(chosen, study(seeds, seed, data), out)
    folder = _folder(plot)
    cache = None if no_cache else Cache(refresh=refresh)

    def work(limits: Limits) -> tuple[list[Report], bool]:
        return _run(chosen, study(seeds, seed, data, limits), cache, skip=name == "all")

    reports, stopped = interruptible(work, time_limit, quiet)
    for notice in cache.notices if cache else ():
        print(f"optgap: {notice}", file=sys.stderr)
    _deliver(reports, [item for item in chosen if item.name not in _names(reports)], out)
    if folder is not None:
        _draw(reports, folder)
    return PARTIAL if stopped else DONE


def _folder(plot: str | None) -> Path | None:
    """The folder for pictures, made if it is missing."""
    if plot is None:
        return None
    try:
        Path(plot).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(plot, "", NoQuote(error.strerror), "a folder to write to") from None
    return Path(plot)


def _list(items: list[Item], given: Study, out: Output) -> int:
    rows = []
    for item in items:
        rows.append((item.name, item.title, item.paper, item.runs_from(given.data)))
    out.table(("name", "what", "paper", "runs from"), rows)
    documents = [
        {"name": i.name, "paper": i.paper, "title": i.title, "needs": list(i.needs)} for i in items
    ]
    out.document({"schema": SCHEMA, "items": documents})
    return DONE


def _run(
    items: list[Item], given: Study, cache: Cache | None, skip: bool
) -> tuple[list[Report], bool]:
    """The reports that were finished, and whether the limits ended the work before all were.

    With `skip`, items that cannot be run here are left out.
    """
    reports = []
    for item in items:
        if skip and not item.runnable(given.data):
            continue
        try:
            reports.append(item.run(given) if cache is None else cache.run(item, given))
        except Stopped:
            return reports, True
    return reports, False


def _deliver(reports: list[Report], left: list[Item], out: Output) -> None:
    from optgap.versions import versions

    for report in reports:
        out.answer(report)
        out.line()
    for item in left:
        out.line(f"{item.name}: {item.title}: not run")
    if left:
        out.line("for what needs the public trace, see --data")
    out.document(
        {
            "schema": SCHEMA,
            "versions": versions(),
            "items": [report.to_json() for report in reports],
            "not_run": [item.name for item in left],
        }
    )


def _names(reports: list[Report]) -> set[str]:
    return {report.item.name for report in reports}


def _draw(reports: list[Report], folder: Path) -> None:
    from optgap.models.jsonio import write_bytes

    for report in reports:
        if report.panels:
            write_bytes(folder / f"{report.item.name}.png", report.png())
