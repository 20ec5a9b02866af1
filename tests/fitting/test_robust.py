"""Constrained robust fits: outliers, monotone and positive power, the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import Cli

import optgap

CLOCKS = np.arange(600.0, 1501.0, 50.0)


def board(outliers: bool) -> dict[str, Any]:
    power = 40 + 0.1 * CLOCKS
    power[[3, 9, 15]] *= 1.6 if outliers else 1.0
    return {"frequency_mhz": CLOCKS, "power_w": power}


@pytest.mark.parametrize("model", ["linear-power", "powerflow-power"])
def test_outliers_move_a_robust_fit_less_than_least_squares(model: str) -> None:
    truth = 40 + 0.1 * CLOCKS

    def error(**settings: Any) -> float:
        fit = optgap.fit(board(True), model, cv=0, **settings).fit.fits[""]
        return float(np.abs(fit.predict(board(False)) / truth - 1).mean())

    assert error(robust=True) < 0.2 * error(loss="linear")


def test_power_never_falls_though_the_rows_do() -> None:
    table = board(False)
    table["power_w"] = table["power_w"][::-1] + 5 * np.sin(CLOCKS)
    fit = optgap.fit(table, "powerflow-power", cv=0, robust=True).fit.fits[""]
    found = fit.predict({"frequency_mhz": np.linspace(600, 1500, 200)})
    assert (found > 0).all()
    assert (np.diff(found) >= -1e-3 * found.mean()).all()


def test_the_command_line_asks_for_it(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "board.csv"
    pd.DataFrame(board(True)).to_csv(path, index=False)
    answer = cli("fit", "linear-power", str(path), "--set", "robust=true", "--cv", "3")
    assert answer.code == 0
    refused = cli("fit", "power-law-power", str(path), "--set", "robust=true")
    assert refused.code == 2
    assert "robust" in refused.err
