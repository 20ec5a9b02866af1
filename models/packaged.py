"""Tables of measured numbers that the package carries, each read once, when it is first needed."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def packaged_csv(package: str, name: str) -> Sequence[tuple[Any, ...]]:
    """Return the rows below the header of ``data/name``, whole numbers as integers."""
    rows = csv.reader(_text(package, name).splitlines()[1:])
    return tuple(tuple(map(_number, row)) for row in rows)


@cache
def packaged_json(package: str, name: str) -> Any:
    """Return the document of ``data/name``, which nobody may change."""
    return json.loads(_text(package, name))


def _text(package: str, name: str) -> str:
    return files(package).joinpath("data", name).read_text(encoding="utf-8")


def _number(cell: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
