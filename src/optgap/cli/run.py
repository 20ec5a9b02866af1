"""``optgap run``."""

from __future__ import annotations

from typing import Annotated, Any

from optgap.cli import options as opt
from optgap.registry import family, file_options


def command(
    *,
    problem_file: opt.ProblemFile,
    policy: Annotated[
        str,
        opt.option(
            "--policy",
            "P",
            "see `optgap families`; module:attribute or file.py:attribute for your own",
        ),
    ],
    settings: opt.Settings = None,
    output: opt.SolutionFile = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.TimeLimit = None,
    effort: opt.Effort = 1.0,
    **tables: str | None,
) -> int:
    from optgap.api import choose_policy, execute
    from optgap.cli.subjects import opened
    from optgap.cli.work import Output, deliver, foreign, interruptible

    problem, params = opened(problem_file, settings, json, output, *tables.values(), plot=plot)
    _refuse_foreign(problem, tables)
    with foreign():
        runnable = choose_policy(problem, policy, params)
    result = interruptible(
        lambda limits: execute(problem, runnable, limits, seed), time_limit, effort
    )
    if result.solution is not None:
        _write(problem, result.solution, tables)
    out = Output(json, silent="-" in (output, *tables.values()))
    written = [path for path in tables.values() if path is not None]
    return deliver(result, problem, out, output, plot=plot, ask=problem_file, tables=written)


def _refuse_foreign(problem: Any, tables: dict[str, str | None]) -> None:
    """Raise InputError for a table that this family has not, or that is named as a picture."""
    from optgap.models.errors import InputError, NoQuote
    from optgap.models.figures import is_picture

    known = family(problem.family).tables_out
    for name, path in tables.items():
        if path is not None and name not in known:
            expected = f"tables of {problem.family}: " + ", ".join(f"--{key}" for key in known)
            raise InputError(f"--{name}", "", NoQuote(path), expected)
        if path is not None and is_picture(path):
            expected = "the name of a CSV file (--plot FILE draws the solution)"
            raise InputError(f"--{name}", "", NoQuote(path), expected)


def _write(problem: Any, solution: Any, tables: dict[str, str | None]) -> None:
    from optgap.models.jsonio import write_text
    from optgap.models.tables import guarded

    spec = family(problem.family)
    for name, path in tables.items():
        if path is not None:
            write_text(path, guarded(spec.export(name, problem, solution)))


opt.with_files(command, file_options(outgoing=True))
