"""``optgap bound``."""

from __future__ import annotations

from optgap.cli import options as opt


def command(
    problem_file: opt.ProblemFile,
    method: opt.Method = "auto",
    settings: opt.Settings = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.TimeLimit = None,
    effort: opt.Effort = 1.0,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    from optgap.api import choose_method, execute
    from optgap.cli.results import deliver
    from optgap.cli.subjects import opened
    from optgap.cli.work import Output, interruptible

    problem, params = opened(problem_file, settings, json)
    runnable = choose_method(problem, method, params, bounding=True)
    result = interruptible(
        lambda limits: execute(problem, runnable, limits, seed, bound_only=True),
        time_limit,
        quiet,
        effort,
    )
    return deliver(result, problem, Output(json, quiet), None, verbose, ask=problem_file)
