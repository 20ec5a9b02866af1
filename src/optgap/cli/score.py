"""``optgap score``."""

from __future__ import annotations

from typing import Annotated

from optgap.cli import BAD_INPUT
from optgap.cli import options as opt


def command(
    *,
    policy: Annotated[
        str,
        opt.argument(
            "POLICY",
            "see `optgap families`; module:attribute or file.py:attribute for your own",
        ),
    ],
    family: Annotated[
        str | None,
        opt.option("--family", "F", "where several have such a policy"),
    ] = None,
    json: opt.JsonFile = None,
    seed: opt.Seed = 0,
    time_limit: opt.RunLimit = None,
) -> int:
    from optgap.cli.work import Output, exit_code, interruptible
    from optgap.scoring import score

    opt.require_writable(json)
    found = interruptible(
        lambda limits: score(policy, family, time_limit=time_limit, seed=seed, limits=limits)
    )
    out = Output(json)
    out.answer(found)
    out.document(found)
    out.wrote(json)
    worst = max(found.rows, key=lambda row: row.gap_to_best or 0.0)
    out.following("explain", f"lib:{worst.instance}", "--policy", policy, why="its worst gap")
    if any(row.failure == "input" for row in found.rows):
        return BAD_INPUT
    return exit_code(row.result.termination for row in found.rows)
