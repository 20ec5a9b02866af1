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
from trust.hostile import FORMS
from trust.samples import TABLES

import optgap
from optgap.registry import FAMILIES

TESTS = Path(__file__).parents[1]
PARTS = 1 if FUZZ else 24
"""Of how many parts one is tried; a long run tries everything."""


def attacked(folder: Path, family: str) -> dict[str, Any]:
    """The reports of `hostile.py` on every form of a small problem of the family."""
    problem = optgap.generate(family, **SMALL.get(family, {}))
    result = optgap.run(problem, next(iter(FAMILIES[family].policies)))
    optgap.save(problem, folder / "problem.json")
    optgap.save(result.solution, folder / "solution.json", problem)
    optgap.save(result, folder / "result.json", problem)
    own = filter(None, [os.environ.get("PYTHONPATH")])
    program = subprocess.run(
        [sys.executable, "-m", "trust.hostile", family, str(PARTS)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *own])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert program.returncode == 0, program.stderr[-2000:]
    reports: dict[str, Any] = json.loads(program.stdout)
    return reports


def assert_harmless(form: str, report: dict[str, Any]) -> None:
    """Nothing but refusals in one line and usable input, within 1 GiB, nothing left behind."""
    assert report["failures"] == [], form
    assert report["left"] == [], form
    assert report["mib"] < 1024, form
    assert report["refused"] > 10, form


@pytest.mark.parametrize("family", FAMILIES)
def test_a_broken_document_or_table_is_refused_in_one_line_or_usable(
    tmp_path: Path, family: str
) -> None:
    reports = attacked(tmp_path, family)
    assert set(reports) == {*FORMS, "table"}
    for form, report in reports.items():
        assert_harmless(form, report)


def test_every_family_has_tables_to_break() -> None:
    assert set(TABLES) >= set(FAMILIES)
