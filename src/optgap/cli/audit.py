"""``optgap audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.auditing import Audit
    from optgap.cli.work import Output

FIRST_MOVES = 40
"""Number of moves that are printed."""

Kind = Annotated[str, opt.argument("kubernetes|slurm|swf|FAMILY", "what the file is")]
Source = Annotated[
    str, opt.argument("FILE", "what the cluster printed (- is standard input), or a problem")
]
Log = Annotated[str | None, opt.argument("[LOG]", "what was done with the problem: CSV or JSON")]
Policies = Annotated[
    str,
    opt.option("--policies", "P,…", "beside what happened, for logs"),
]
LogSettings = Annotated[
    list[str] | None,
    opt.option(
        "--set",
        "KEY=VALUE",
        "logs: gpus; Slurm: pool, zone, wait=eligible|submit; Kubernetes: plain=NAME",
    ),
]


def command(
    *,
    kind: Kind,
    source: Source,
    log: Log = None,
    moves: Annotated[
        int | None,
        typer.Option("--moves", metavar="K", min=0, help="a plan with at most so many migrations"),
    ] = None,
    devices: Annotated[
        str | None, opt.option("--devices", "FILE", "power of GPU products: model,idle_w,full_w")
    ] = None,
    policies: Policies = "all",
    methods: opt.Methods = "auto",
    settings: LogSettings = None,
    columns: opt.Columns = None,
    problem_json: Annotated[
        str | None, opt.option("--problem", "FILE", "write the problem that was read")
    ] = None,
    solution_json: Annotated[
        str | None, opt.option("--solution", "FILE", "write what happened, as its solution")
    ] = None,
    report: Annotated[str | None, opt.option("--report", "HTML", "a page about it")] = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.TimeLimit = None,
    effort: opt.Effort = 1.0,
) -> int:
    from optgap.auditing import audit
    from optgap.auditing.entry import options_of
    from optgap.cli.work import Output, exit_code, interruptible
    from optgap.models.figures import require_ending
    from optgap.models.reading import STANDARD_INPUT
    from optgap.parameters import assignments

    outputs = (json, plot, report, problem_json, solution_json)
    opt.require_writable(*outputs, read=(source, log, devices))
    require_ending(plot)
    given = options_of(kind, assignments(settings or [], "--set"))
    answer = interruptible(
        lambda limits: audit(
            kind,
            source,
            log,
            moves=moves,
            devices=devices,
            policies=policies,
            methods=methods,
            time_limit=time_limit,
            effort=effort,
            seed=seed,
            limits=limits,
            columns=assignments(columns or [], "--column"),
            **given,
        ),
        time_limit if kind == "kubernetes" else None,
        effort,
    )
    out = Output(json)
    out.document(answer)
    if problem_json is not None:
        Output(problem_json, True).document(answer.problem)
    if solution_json is not None:
        Output(solution_json, True).document(answer.solution.to_json(answer.problem))
    _write(answer, plot, report)
    _tell(answer, out, moves)
    out.wrote(problem_json, solution_json, plot, report, json)
    if problem_json is not None:
        out.following("compare", problem_json, why="every policy's gap")
    elif source != STANDARD_INPUT and report is None:
        again = ["--devices", devices] if devices else []
        again += [word for text in settings or [] for word in ("--set", text)]
        again += [word for text in columns or [] for word in ("--column", text)]
        page = ("--report", "audit.html")
        if answer.curve is not None and moves is None:
            page = ("--moves", str(len(answer.curve.points[-1].moves)))
        why = "as a page" if "--report" in page else "the plan"
        out.following("audit", kind, source, log, *again, *page, why=why)
    return exit_code([answer.termination])


def _write(answer: Audit, plot: str | None, report: str | None) -> None:
    """Write the picture and the page that were asked for."""
    if plot is not None:
        answer.plot(plot)
    if report is not None:
        from optgap.reporting import report as write

        write([answer], report, title=f"audit of {answer.source}")


def _tell(answer: Audit, out: Output, moves: int | None) -> None:
    from optgap.render import plural

    out.answer_head(answer.head())
    out.table(*answer.table())
    if moves is not None and answer.curve is not None:
        plan = answer.moves(moves)
        header, rows, right = plan.table()
        out.line(
            f"\nthe best plan found with at most {plural(moves, 'move')}: "
            f"{plural(len(plan), 'move')}"
        )
        if rows:
            out.table(header, rows[:FIRST_MOVES], right)
            if len(rows) > FIRST_MOVES:
                out.line("… (--json FILE has all)")
    out.notes(answer.notes())
