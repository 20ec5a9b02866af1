"""``optgap run``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from optgap.cli import options as opt


def command(
    problem_file: opt.ProblemFile,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="P",
            help="see `optgap families`; module:attribute or file.py:attribute for your own",
        ),
    ],
    settings: opt.Settings = None,
    placements: Annotated[
        str | None,
        typer.Option("--placements", metavar="CSV", help="per arrival: seq,node,gpu_index"),
    ] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="CSV", help="totals after each arrival")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="write the solution alone here"),
    ] = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.TimeLimit = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    from optgap.api import choose_policy, execute
    from optgap.cli.results import deliver
    from optgap.cli.work import Output, interruptible
    from optgap.documents import load_problem
    from optgap.parameters import assignments

    opt.require_writable(json, output, placements, series)
    params = assignments(settings or [], "--set")
    problem = load_problem(problem_file)
    runnable = choose_policy(problem, policy, params)
    result = interruptible(
        lambda limits: execute(problem, runnable, limits, seed), time_limit, quiet
    )
    if result.solution is not None:
        _tables(problem, result.solution, {"placements": placements, "series": series})
    return deliver(result, problem, Output(json, quiet), output, verbose)


def _tables(problem: Any, solution: Any, wanted: dict[str, str | None]) -> None:
    from optgap.models.jsonio import write_text
    from optgap.registry import family

    spec = family(problem.family)
    for name, path in wanted.items():
        if path is not None:
            write_text(path, spec.export(name, problem, solution))
