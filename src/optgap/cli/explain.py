"""``optgap explain``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from optgap.cli import completing
from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.explaining import Explanation

_Beside = Annotated[
    str,
    opt.option(
        "--beside",
        "P,…",
        "online policies that run beside it, all or none",
        completing.policies("all", "none"),
    ),
]
_Log = Annotated[
    str | None,
    opt.option("--log", "FILE", "in its place what was done, as for `audit`: CSV or JSON"),
]


def command(
    subject: Annotated[
        str,
        opt.argument("FAMILY|PROBLEM.json", "a problem, or a family's preset", completing.subjects),
    ],
    policy: Annotated[
        str | None,
        opt.option("--policy", "P", "whose gap; see `optgap families`", completing.policies()),
    ] = None,
    log: _Log = None,
    methods: opt.Methods = "auto",
    beside: _Beside = "all",
    preset: opt.Preset = None,
    size: opt.Size = None,
    settings: opt.AnySettings = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.RunLimit = None,
    effort: opt.Effort = 1.0,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.api import choose_policy
    from optgap.auditing.tables import read_log, require_some
    from optgap.cli.subjects import problem_of
    from optgap.cli.work import Output, exit_code, foreign, interruptible
    from optgap.explaining import explain
    from optgap.models.figures import require_ending
    from optgap.parameters import assignments

    opt.require_writable(json, plot, read=(subject, log))
    require_ending(plot)
    given: dict[str, Any] = assignments(settings or [], "--set")
    problem = problem_of(subject, preset, size, given, seed)
    rows = None if log is None else read_log(log, problem)
    if rows is not None:
        require_some(rows, str(log))
    if policy is not None:
        with foreign():  # a wrong name is told before any work
            choose_policy(problem, policy, given)
    answer = interruptible(
        lambda limits: explain(
            problem,
            policy,
            methods,
            logged=None if rows is None else rows.solution,
            beside=() if beside == "none" else beside,
            time_limit=time_limit,
            effort=effort,
            seed=seed,
            limits=limits,
            **given,
        ),
        quiet=quiet,
    )
    if rows is not None and rows.reasons:
        answer = replace(answer, notes=(*answer.notes, f"rows of {log} left out: {rows.told}"))
    same = ("--preset", preset) if preset else ()
    _deliver(answer, Output(json, quiet), plot, (subject, *same))
    return exit_code([answer.termination])


def _deliver(answer: Explanation, out: Output, plot: str | None, subject: tuple[str, ...]) -> None:
    out.document(answer)
    if plot is not None:
        answer.plot(plot)
    out.answer_head(answer.head())
    out.table(*answer.table())
    out.notes([*answer.reasons(), *answer.notes])
    out.notes([answer.about_decisions()])
    if answer.costly:
        out.line()
        out.table(*answer.decisions())
    out.wrote(plot, out.json)
    out.following("compare", *subject, why="every policy's gap")
