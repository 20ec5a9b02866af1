"""``optgap explain``."""

from __future__ import annotations

from typing import Annotated, Any

from optgap.cli import options as opt


def command(
    *,
    subject: Annotated[
        str,
        opt.argument("FAMILY|PROBLEM.json", "a problem, or a family's preset"),
    ],
    policy: Annotated[str, opt.option("--policy", "P", "whose gap; see `optgap families`")],
    methods: opt.Methods = "auto",
    preset: opt.Preset = None,
    size: opt.Size = None,
    settings: opt.AnySettings = None,
    plot: opt.PlotFile = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.RunLimit = None,
    effort: opt.Effort = 1.0,
) -> int:
    from optgap.api import choose_policy
    from optgap.cli.subjects import chosen, problem_of
    from optgap.cli.work import Output, exit_code, foreign, interruptible
    from optgap.explaining import explain
    from optgap.models.figures import require_ending
    from optgap.parameters import assignments

    opt.require_writable(json, plot, read=(subject,))
    require_ending(plot)
    given: dict[str, Any] = assignments(settings or [], "--set")
    asked = given if size is None else {"size": size, **given}
    problem = problem_of(subject, preset, size, given := dict(given), seed=seed)
    with foreign():  # a wrong name is told before any work
        choose_policy(problem, policy, given)
    answer = interruptible(
        lambda limits: explain(
            problem,
            policy,
            methods,
            time_limit=time_limit,
            effort=effort,
            seed=seed,
            limits=limits,
            **given,
        ),
    )
    out = Output(json)
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
    same = chosen(preset, {key: asked[key] for key in asked if key not in given}, seed)
    out.following("compare", subject, *same, why="every policy's gap")
    return exit_code([answer.termination])
