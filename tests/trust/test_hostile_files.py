"""Every JSON form broken at every place in every way: one line, or it works; never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from trust.agreement import FUZZ
from trust.answers import SMALL
from trust.samples import TABLES

import optgap
from optgap.registry import FAMILIES

TESTS = Path(__file__).parents[1]
PARTS = 1 if FUZZ else 12
"""Of how many parts one is tried; a long run tries everything."""


def attacked(tmp_path: Path, family: str, form: str) -> dict[str, Any]:
    """The report of `hostile.py` on one form of a small problem of the family."""
    problem = optgap.generate(family, **SMALL.get(family, {}))
    optgap.save(problem, tmp_path / "problem.json")
    target, of = "problem.json", ""
    if form != "problem":
        result = optgap.run(problem, next(iter(FAMILIES[family].policies)))
        if form == "result":
            optgap.save(result, tmp_path / "result.json", problem)
        else:
            optgap.save(result.solution, tmp_path / "solution.json", problem)
        target, of = f"{form}.json", "problem.json"
    return hostile(tmp_path, "documents", target, of, "0", str(PARTS))


def hostile(folder: Path, *arguments: str) -> dict[str, Any]:
    """The report of `hostile.py`."""
    own = filter(None, [os.environ.get("PYTHONPATH")])
    program = subprocess.run(
        [sys.executable, "-m", "trust.hostile", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *own])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.returncode == 0, program.stderr[-2000:]
    report: dict[str, Any] = json.loads(program.stdout)
    return report


def assert_harmless(report: dict[str, Any]) -> None:
    """Nothing but refusals in one line and usable input, within 1 GiB, nothing left behind."""
    assert report["failures"] == []
    assert report["left"] == []
    assert report["mib"] < 1024
    assert report["refused"] > 20


@pytest.mark.parametrize("form", ["problem", "solution", "result"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_broken_document_is_refused_in_one_line_or_usable(
    tmp_path: Path, family: str, form: str
) -> None:
    assert_harmless(attacked(tmp_path, family, form))


@pytest.mark.parametrize("family", sorted(set(TABLES) & set(FAMILIES)))
def test_a_broken_table_is_refused_in_one_line_or_usable(tmp_path: Path, family: str) -> None:
    assert_harmless(hostile(tmp_path, "tables", family, "0", str(min(PARTS, 3))))


def test_every_family_has_tables_to_break() -> None:
    assert set(TABLES) >= set(FAMILIES)
