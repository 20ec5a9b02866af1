"""Tables of a problem as files, as frames, and as options of ``optgap generate``."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd


def options(
    folder: Path, tables: Mapping[str, Any], settings: Mapping[str, object] | str = ""
) -> list[str]:
    """Write tables, of text or held, as files; return ``--NAME FILE … --set NAME=VALUE …``."""
    given = []
    for name, table in tables.items():
        if isinstance(table, pd.DataFrame):
            table = table.to_csv(index=False)
        elif isinstance(table, dict):
            table = json.dumps(table)
        path = folder / f"{name}.csv"
        path.write_text(table)
        given += [f"--{name}", str(path)]
    if isinstance(settings, str):
        settings = dict(setting.split("=") for setting in settings.split())
    for name, value in settings.items():
        given += ["--set", f"{name}={value}"]
    return given


def held(tables: Mapping[str, str]) -> dict[str, Any]:
    """The tables of these texts in memory: frames, and documents."""
    return {
        name: json.loads(text) if text.startswith("{") else pd.read_csv(io.StringIO(text))
        for name, text in tables.items()
    }
