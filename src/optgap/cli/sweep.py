"""``optgap sweep``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optgap.cli import completing
from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.sweeping import Done, Spec

SHOWN = 5
"""How many failures are named one by one."""


def command(
    spec: Annotated[str, opt.argument("SPEC.toml", "the grid of runs")],
    output: Annotated[
        str | None,
        opt.option(
            "--output -o", "FILE", "the table: .parquet, .csv or .json; SPEC.parquet without"
        ),
    ] = None,
    engine: Annotated[
        str,
        opt.option(
            "--engine",
            "NAME",
            "processes, dask, ray or serial",
            completing.one_of(lambda: ("processes", "dask", "ray", "serial")),
        ),
    ] = "processes",
    scheduler: Annotated[
        str | None, opt.option("--scheduler", "ADDRESS", "of a Dask or Ray cluster")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="processes; one per core")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with the table that is there")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="run failed cells again, too (with --resume)")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only list the runs")] = False,
    json: opt.JsonFile = None,
    time_limit: opt.TimeLimit = None,
    quiet: opt.Quiet = False,
) -> int:
    from pathlib import Path

    from optgap.cli.work import Output, interruptible
    from optgap.sweeping import Engine, load_spec, run
    from optgap.sweeping.formats import require_format

    opt.refuse({"--retry-failed": retry_failed and not resume}, "it alone", "--resume beside it")
    target = output or str(Path(spec).with_suffix(".parquet"))
    opt.require_writable(json, target, read=[spec])
    require_format(target)
    chosen = Engine(engine, jobs, scheduler)
    loaded = load_spec(spec)
    out = Output(json, quiet)
    if dry_run:
        return _list(loaded, out)
    done = interruptible(
        lambda limits: run(
            loaded, target, engine=chosen, resume=resume, retry_failed=retry_failed, limits=limits
        ),
        time_limit,
        quiet,
    )
    return _deliver(done, out)


def _list(spec: Spec, out: Output) -> int:
    rows = [
        (
            cell.instance.family,
            cell.instance.label,
            str(cell.instance.seed),
            cell.label,
            str(cell.seed),
        )
        for cell in spec.cells.values()
    ]
    out.table(("family", "instance", "its seed", "method", "seed"), rows, (2, 4))
    out.line(f"\n{len(rows)} runs")
    out.document({"schema": "optgap.sweep/1", "total": len(rows), "keys": list(spec.cells)})
    return 0


def _deliver(done: Done, out: Output) -> int:
    from optgap.cli import FAILED, complain
    from optgap.cli.work import exit_code

    out.answer(done)
    out.line(
        f"\n{len(done.rows)} of {done.total} runs in {done.path}: "
        f"{done.skipped} there before, {done.ran} now"
    )
    if done.stale:
        out.line(f"{done.stale} of another spec or version moved to {done.aside}")
    out.document(done)
    for text in done.contradictions:
        complain(f"{text}: one of them is wrong", FAILED)
    for row in done.failed[:SHOWN]:
        complain(f"{row['instance']}, {row['method']}, seed {row['seed']}: {row['error']}", FAILED)
    if len(done.failed) > SHOWN:
        complain(f"{len(done.failed) - SHOWN} more runs failed; the table has their errors", FAILED)
    if done.failed or done.contradictions:
        return FAILED
    return exit_code([done.termination])
