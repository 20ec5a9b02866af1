"""``optgap info``."""

from __future__ import annotations

from typing import Annotated

import typer

from optgap.cli import options as opt


def command(
    json: opt.JsonFile = None,
    short: Annotated[bool, typer.Option("--short", help="the version of optgap alone")] = False,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.work import Output
    from optgap.versions import versions

    opt.require_writable(json)
    out = Output(json, quiet)
    block = versions()
    if short:
        out.line(f"optgap {block['optgap']}")
        out.document({"schema": "optgap.versions/1", "versions": block})
        return 0
    from optgap.solvers.backends import available, backends

    rows = [(row, available(row.name)) for row in backends()]
    out.pairs(list(block.items()))
    out.line()
    out.table(
        ("back end", "versions", "usable"),
        [
            (
                row.title,
                ", ".join(f"{name} {found}" for name, found in row.versions.items()),
                "no: " + reason if reason else "yes",
            )
            for row, reason in rows
        ],
    )
    out.document(
        {
            "schema": "optgap.info/1",
            "versions": block,
            "backends": [
                {
                    "name": row.name,
                    "title": row.title,
                    "versions": dict(row.versions),
                    "usable": not reason,
                    "reason": reason,
                }
                for row, reason in rows
            ],
        }
    )
    return 0
