"""``optgap info``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from optgap.cli import DONE, completing
from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output

ABOUT = ("name", "title", "licence", "cite", "home", "bytes")
"""What is told of public data."""


def command(
    json: opt.JsonFile = None,
    fetch: Annotated[
        list[str] | None,
        opt.option(
            "--fetch",
            "NAME",
            "download public data of this name, or all; repeatable",
            completing.datasets,
        ),
    ] = None,
    quiet: opt.Quiet = False,
) -> int:
    from optgap.cli.work import Output
    from optgap.datasets import VARIABLE, catalogue, data_folder, home
    from optgap.versions import versions

    opt.require_writable(json)
    out = Output(json, quiet)
    block = versions()
    if fetch:
        return _fetch(fetch, data_folder(), out)
    folder, datasets = Path(os.environ.get(VARIABLE) or home()), catalogue().values()
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
    rows_of = [
        (
            item.name,
            f"{item.there(folder)} of {len(item.files)}",
            f"{item.bytes / 1e6:.2f} MB",
            item.title,
        )
        for item in datasets
    ]
    out.line()
    out.table(("public data", "files there", "size", "what"), rows_of, (1, 2))
    out.line(f"\nin {folder}; `optgap info --fetch NAME` downloads it")
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
            "data": {
                "folder": str(folder),
                "datasets": [
                    {
                        **{key: getattr(item, key) for key in ABOUT},
                        "files": [file.path for file in item.files],
                        "there": item.there(folder),
                    }
                    for item in datasets
                ],
            },
        }
    )
    return 0


def _fetch(names: list[str], folder: Path, out: Output) -> int:
    from optgap.cli.work import interruptible
    from optgap.datasets import choose, fetch
    from optgap.models.limits import Limits

    offered = [item for item in choose(names) if any(file.url for file in item.files)]
    chosen = offered if names == ["all"] else choose(names)

    def work(limits: Limits) -> list[str]:
        came: list[str] = []
        for item in chosen:
            if limits.stop is not None:
                break
            limits.progress(item.name, None, None)
            came += [file.path for file in fetch([item.name])]
        return came

    came = interruptible(work, quiet=not out.talk)
    for item in chosen:
        out.line(f"{item.name}: {item.there(folder)} of {len(item.files)} files in {folder}")
        out.line(f"  licence: {item.licence}\n  cite: {item.cite}")
    whole = all(item.there(folder) == len(item.files) for item in chosen)
    out.document({"schema": "optgap.data/1", "folder": str(folder), "came": came, "whole": whole})
    return DONE
