"""``optgap sweep``."""

from __future__ import annotations

from typing import Annotated

import typer

from optgap.cli import options as opt

SHOWN = 5
"""Number of failures that are named one by one."""


def command(
    *,
    spec: Annotated[str, opt.argument("SPEC.toml", "the grid of comparisons")],
    output: Annotated[
        str | None,
        opt.option("--output -o", "FILE", "the table: .csv or .parquet; SPEC.csv without"),
    ] = None,
    engine: Annotated[
        str,
        opt.option(
            "--engine",
            "NAME[=ADDRESS]",
            "processes, dask=ADDRESS, ray or ray=ADDRESS",
        ),
    ] = "processes",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="processes; default: one per core"),
    ] = None,
    json: opt.JsonFile = None,
    time_limit: opt.TimeLimit = None,
) -> int:
    from pathlib import Path

    from optgap.cli import FAILED, complain
    from optgap.cli.work import Output, exit_code, foreign, interruptible
    from optgap.sweeping import load_spec, require_engine, require_table, run

    target = Path(output or Path(spec).with_suffix(".csv"))
    opt.require_writable(json, str(target), read=[spec])
    require_table(target)
    require_engine(engine)
    with foreign():
        loaded = load_spec(spec)
    out = Output(json)
    done = interruptible(
        lambda limits: run(loaded, target, engine=engine, jobs=jobs, limits=limits), time_limit
    )
    count = f"{done.skipped + done.ran} of {done.total} comparisons in {done.path}"
    out.line(f"{count}: {done.skipped} there before, {done.ran} now")
    out.document(done)
    out.wrote(str(done.path), json)
    out.following("report", str(done.path), "-o", "report.html", why="means and pictures")
    for row in done.failed[:SHOWN]:
        name = f"{row['instance']}, {row['method']}, seed {row['seed']}"
        complain(f"{name}: {row['message']}", FAILED)
    if len(done.failed) > SHOWN:
        complain(f"{len(done.failed) - SHOWN} more runs failed; the table has their errors", FAILED)
    return FAILED if done.failed else exit_code([done.termination])
