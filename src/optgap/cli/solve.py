"""``optgap solve``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.contract import Problem
    from optgap.models.result import Result

Conflict = Annotated[
    bool,
    typer.Option(
        "--conflict",
        help="where there is no solution, name tasks that cannot go together, and what is short",
    ),
]


def command(
    *,
    problem_file: opt.ProblemFile,
    method: opt.Method = "auto",
    settings: opt.Settings = None,
    bound_only: Annotated[
        bool, typer.Option("--bound-only", help="prove a bound, and look for no solution")
    ] = False,
    conflict: Conflict = False,
    output: opt.SolutionFile = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.TimeLimit = None,
    effort: opt.Effort = 1.0,
) -> int:
    from optgap.api import choose_method, execute
    from optgap.cli.subjects import opened
    from optgap.cli.work import Output, deliver, interruptible

    problem, params = opened(problem_file, settings, json, output, plot=plot)
    opt.refuse(
        {"--output": output, "--plot": plot, "--conflict": conflict} if bound_only else {},
        "conflicts with --bound-only",
        "give only one",
    )
    runnable = choose_method(problem, method, params, bounding=bound_only)
    result = interruptible(
        lambda limits: execute(problem, runnable, limits, seed, bound_only=bound_only),
        time_limit,
        effort,
    )
    if conflict:
        result = _with_conflict(result, problem, time_limit)
    out = Output(json, silent=output == "-")
    ask = None if conflict else problem_file
    return deliver(result, problem, out, output, plot=plot, ask=ask)


def _with_conflict(result: Result, problem: Problem, time_limit: float | None) -> Result:
    """Return `result` with a message that names tasks which cannot all be served."""
    from optgap.cli.work import interruptible
    from optgap.explaining.conflicts import conflict
    from optgap.models.errors import InputError

    possible = getattr(problem, "always_possible", "")
    if possible:
        return _noted(result, f"no conflict: {possible}")
    if result.solution is not None and problem.serves_all(result.solution):
        return result
    try:
        found = interruptible(lambda limits: conflict(problem, limits=limits), time_limit)
    except InputError as error:  # the result is worth more than what explains it
        return _noted(result, str(error))
    return result if found is None else _noted(result, str(found))


def _noted(result: Result, text: str) -> Result:
    return replace(result, message="; ".join(filter(None, [result.message, text])))
