"""``optgap generate --fetch NAME``, which lists and downloads public data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from optgap.cli import DONE

if TYPE_CHECKING:
    from optgap.cli.work import Output
    from optgap.datasets import Dataset

LIST = "list"
"""Name that downloads nothing and lists the public data."""
ABOUT = ("name", "title", "licence", "cite", "home", "bytes")
"""Fields of public data that are shown."""


def fetched(names: list[str], out: Output) -> int:
    """Download public data of these names, or list all of it."""
    from optgap.cli.work import interruptible
    from optgap.datasets import VARIABLE, catalogue, choose, data_folder, fetch, home
    from optgap.models.limits import Limits

    if names == [LIST]:
        return _listed(Path(os.environ.get(VARIABLE) or home()), list(catalogue().values()), out)
    folder = data_folder()
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

    came = interruptible(work)
    for item in chosen:
        out.line(f"{item.name}: {item.there(folder)} of {len(item.files)} files in {folder}")
        out.line(f"  licence: {item.licence}\n  cite: {item.cite}")
    whole = all(item.there(folder) == len(item.files) for item in chosen)
    out.document({"schema": "optgap.data/1", "folder": str(folder), "came": came, "whole": whole})
    return DONE


def _listed(folder: Path, datasets: list[Dataset], out: Output) -> int:
    rows = [
        (
            item.name,
            f"{item.there(folder)} of {len(item.files)}",
            f"{item.bytes / 1e6:.2f} MB",
            item.title,
        )
        for item in datasets
    ]
    out.table(("public data", "files there", "size", "what"), rows, (1, 2))
    out.line(f"\nin {folder}; `optgap generate --fetch NAME` downloads it")
    out.document(
        {
            "schema": "optgap.data/1",
            "folder": str(folder),
            "datasets": [
                {
                    **{key: getattr(item, key) for key in ABOUT},
                    "files": [file.path for file in item.files],
                    "there": item.there(folder),
                }
                for item in datasets
            ],
        }
    )
    return DONE
