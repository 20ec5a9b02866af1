"""``optgap tune``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from optgap.cli import completing
from optgap.cli import options as opt

Family = Annotated[str, opt.argument("FAMILY", "whose preset makes instances", completing.families)]
Policy = Annotated[str, opt.option("--policy", "P", "whose parameters", completing.policies())]
Ranges = Annotated[
    list[str],
    opt.option(
        "--param",
        "NAME=RANGE",
        "what to choose: 0..1, '0.01..10 log' or a|b|c; repeatable",
        completing.policy_settings,
    ),
]
PresetSettings = Annotated[
    list[str] | None,
    opt.option(
        "--set", "KEY=VALUE", "a parameter of the preset; repeatable", completing.preset_settings
    ),
]
Search = Annotated[
    str,
    opt.option(
        "--search",
        "NAME",
        "scipy, optuna or grid",
        completing.one_of(lambda: ("scipy", "optuna", "grid")),
    ),
]
Bound = Annotated[
    str, opt.option("--bound", "METHOD", "what bounds the instances", completing.methods("auto"))
]


def command(
    family: Family,
    policy: Policy,
    ranges: Ranges,
    preset: opt.Preset = None,
    settings: PresetSettings = None,
    train: Annotated[
        int, typer.Option("--train", metavar="N", min=1, help="instances to choose on")
    ] = 8,
    test: Annotated[
        int, typer.Option("--test", metavar="N", min=1, help="instances to report on")
    ] = 8,
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", min=1, help="settings to try")
    ] = 40,
    search: Search = "scipy",
    bound: Bound = "auto",
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.TimeLimit = None,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.work import Output, exit_code, interruptible
    from optgap.comparing.comparison import PART_NOTE
    from optgap.parameters import assignments
    from optgap.tuning import tune

    opt.require_writable(json)
    space = assignments(ranges, "--param")
    params: dict[str, Any] = dict(assignments(settings or [], "--set"))
    found = interruptible(
        lambda limits: tune(
            family,
            policy,
            space,
            preset=preset,
            train=range(seed, seed + train),
            test=range(seed + train, seed + train + test),
            trials=trials,
            search=search,
            bound=bound,
            seed=seed,
            limits=limits,
            **params,
        ),
        time_limit,
        quiet,
    )
    out = Output(json, quiet)
    out.table(*found.table())
    if any(scores.turned_down for pair in (found.train, found.test) for scores in pair):
        out.line("\n" + PART_NOTE)
    out.line(f"\n{len(found.trials)} settings tried; {found.verdict()}")
    out.document(found)
    return exit_code([found.termination])
