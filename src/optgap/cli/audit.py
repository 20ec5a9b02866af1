"""``optgap audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.auditing import Audit
    from optgap.cli.work import Output

FIRST_MOVES = 40
"""Moves that are shown without -v."""


def command(
    kind: Annotated[str, typer.Argument(metavar="kubernetes", help="what the file is")],
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="what the cluster printed; - is standard input")
    ],
    moves: Annotated[
        int | None,
        typer.Option("--moves", metavar="K", min=0, help="a plan with at most so many migrations"),
    ] = None,
    moves_json: Annotated[
        str | None,
        typer.Option("--moves-json", metavar="FILE", help="that plan alone, as JSON"),
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option(
            "--devices", metavar="FILE", help="power of GPU products: model,idle_w,full_w"
        ),
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="HTML", help="a page about it")
    ] = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.TimeLimit = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    from optgap.auditing import audit
    from optgap.cli.work import Output, exit_code, interruptible
    from optgap.plotting import require_ending

    opt.require_writable(json, plot, report, moves_json)
    require_ending(plot)
    answer = interruptible(
        lambda limits: audit(kind, source, moves=moves, devices=devices, seed=seed, limits=limits),
        time_limit,
        quiet,
    )
    out = Output(json, quiet)
    if out.json is not None:
        out.document(answer.to_json(moves))
    if moves_json is not None:
        Output(moves_json, True).document(answer.moves(moves or 0).to_json())
    if plot is not None:
        from optgap.auditing.picture import audit_figure
        from optgap.plotting import save_figure

        save_figure(plot, audit_figure(answer))
    if report is not None:
        from optgap.reporting import report as write

        write([answer], report, title=f"audit of {answer.source}")
    _tell(answer, out, moves, verbose)
    return exit_code([answer.termination])


def _tell(answer: Audit, out: Output, moves: int | None, verbose: bool) -> None:
    for line in answer.head():
        out.line(line)
    out.line()
    if answer.facts:
        out.pairs(answer.facts)
        out.line()
    out.table(*answer.table())
    if moves is not None and answer.curve is not None:
        plan = answer.moves(moves)
        header, rows, right = plan.table()
        out.line(f"\nthe best plan found with at most {moves:,} moves: {len(plan):,} moves")
        if rows:
            shown = rows if verbose else rows[:FIRST_MOVES]
            out.table(header, shown, right)
            if len(shown) < len(rows):
                out.line("… (-v shows all, --moves-json FILE writes them)")
    for k, note in enumerate(answer.notes()):
        out.line(note if k else "\n" + note)
