"""``optgap families``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from optgap.cli import options as opt


def command(
    name: Annotated[str | None, typer.Argument(metavar="FAMILY", help="only this family")] = None,
    json: opt.JsonFile = None,
    seed: opt.UnusedSeed = 0,
    time_limit: opt.UnusedTimeLimit = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    from optgap.cli.work import Output
    from optgap.registry import FAMILIES, family, installed_policies

    opt.require_writable(json)
    out = Output(json, quiet)
    specs = [family(name, "FAMILY")] if name else list(FAMILIES.values())
    documents = []
    for spec in specs:
        installed = installed_policies(spec.name)
        out.line(f"{spec.name}: {spec.question}")
        for title, entries in (
            ("preset", spec.presets),
            ("policy", spec.policies),
            ("method", spec.methods),
        ):
            out.line()
            out.table((title, "what", "parameters"), [_row(e, title) for e in entries.values()])
        if installed:
            out.line()
            out.table(("installed policy", "from"), [(n, p.value) for n, p in installed.items()])
        documents.append(
            {
                "name": spec.name,
                "question": spec.question,
                "presets": _list(spec.presets.values()),
                "policies": _list(spec.policies.values()),
                "installed_policies": {n: p.value for n, p in installed.items()},
                "methods": _list(spec.methods.values()),
            }
        )
    out.document({"schema": "optgap.families/1", "families": documents})
    return 0


def _row(entry: Any, title: str) -> tuple[str, str, str]:
    kind = f" ({entry.kind})" if title == "method" else ""
    return (
        entry.name,
        entry.summary + kind,
        ", ".join(f"{key}={value}" for key, value in entry.params.items()),
    )


def _list(entries: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": entry.name,
            "kind": entry.kind,
            "summary": entry.summary,
            "params": dict(entry.params),
            "deterministic": entry.deterministic,
            "goals": list(entry.goals),
        }
        for entry in entries
    ]
