"""Sweeps and fits that say what their rows cannot tell.

The files of ``data/doors`` are made up: each is the smallest table of one kind of fault.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import Cli

from optgap.fitting.audit import audit
from optgap.fitting.profile import Profile
from optgap.fitting.readers import read_profile
from optgap.fitting.workflow import fit

DOORS = Path(__file__).parent / "data" / "doors"

AUDITED: list[tuple[str, list[str], list[str], int]] = [
    ("clock_not_reached.csv", ["more than 1800 MHz (4 of 4 groups)"], [], 48),
    ("clean_sweep_ends.csv", [], [], 0),
    ("many_apps_unnamed.csv", [],
     ["rows at one clock differ by more than 5 %: --by Application_name?"], 0),
]  # fmt: skip
"""File, places of its suspects, advice, and suspect rows."""


@pytest.mark.parametrize(("file", "where", "advice", "rows"), AUDITED)
def test_an_audit_is_a_screen(
    cli: Cli, file: str, where: list[str], advice: list[str], rows: int
) -> None:
    found = audit(read_profile(DOORS / file))
    assert [item.where for item in found.suspects] == where
    assert list(found.advice) == advice
    assert len(found.suspect_rows) == rows
    answer = cli("fit", "--audit", str(DOORS / file))
    assert answer.code == 0
    assert len(answer.out.splitlines()) <= 12


def test_rows_that_did_not_reach_their_clock_are_left_out() -> None:
    table = read_profile(DOORS / "clock_not_reached.csv")
    rows = np.setdiff1d(np.arange(len(table)), audit(table).suspect_rows)
    for model, names, expected in (
        ("linear-power", ("P_gs", "alpha"), [(p, 0.03) for p in (60, 50, 40, 30)]),
        ("power-law-jct", ("e_min", "beta"), [(100, b) for b in (1, 0.9, 0.5, 0.2)]),
    ):
        report = fit(table.take(rows), model, by="application")
        found = [[one.params_[name] for name in names] for one in report.fit.fits.values()]
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def bends(u: np.ndarray) -> dict[str, np.ndarray]:
    """Exact shapes over a clock that rises to 1."""
    return {
        "time c/f": 1 / u, "time a + c/f": 0.5 + 1 / u, "time roof": np.maximum(0.8, 0.6 / u),
        "power line": 0.3 + u, "power cube": 0.3 + u**3, "power cube alone": u**3,
        "power law": u**1.7, "power bend": 0.4 + u**2 + 5 * np.maximum(u - 0.7, 0) ** 2,
    }  # fmt: skip


def test_no_point_of_an_exact_sweep_is_suspect_and_a_wrong_one_is_found() -> None:
    for count in (6, 9, 20):
        for low in (0.045, 0.4):
            for u in (np.linspace(low, 1, count), np.geomspace(low, 1, count)):
                for name, y in bends(u).items():
                    column = "time_s" if name.startswith("time") else "power_w"
                    table = {"frequency_mhz": 2000 * u, column: 100 * y}
                    assert audit(Profile(table)).suspects == (), (name, count, low)
                    if count == 9 and low == 0.4:
                        wrong = np.where(np.arange(count) == 4, 1.5, 1.0)
                        found = audit(Profile({**table, column: 100 * y * wrong}))
                        assert found.suspect_rows.tolist() == [4], name
