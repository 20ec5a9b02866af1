"""Logs of samples become runs, or are refused in a line that says why.

The files of ``data/doors`` are made up: power is base + slope x clock while busy, for 15 s at
900, 1200 and 1410 MHz each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optgap.fitting.audit import audit
from optgap.fitting.readers import read_profile
from optgap.fitting.workflow import fit
from optgap.models.errors import InputError

DOORS = Path(__file__).parent / "data" / "doors"

LINES: list[tuple[str, float, float, float, list[float], str]] = [
    ("smi_base", 60, 0.156, 62, [15, 15, 15], "cut into 3 runs (45 s)"),
    ("smi_glitch_low", 60, 0.156, 62, [15, 15, 15], "2 readings of 1.2 W"),
    ("smi_high_idle", 60, 0.130, 130, [15, 15, 15], "36 idle samples"),
    ("smi_iso_times", 60, 0.156, 62, [15, 15, 15], "0.5 s apart"),
    ("smi_killed", 60, 0.156, 62, [15, 15, 15], "the last, cut line (row 127) left out"),
    ("smi_suspended", 60, 0.156, 62, [np.nan, np.nan, 15, 15], "no sample for 3,600 s"),
]
"""File, base in W, slope in W/MHz, power at rest, run times, and a part of the notes."""


@pytest.mark.parametrize(("name", "base", "slope", "idle", "times", "note"), LINES)
def test_power_over_the_clock_is_found_in_a_log(
    name: str, base: float, slope: float, idle: float, times: list[float], note: str
) -> None:
    profile = read_profile(DOORS / f"{name}.csv")
    assert profile.numbers("time_s") == pytest.approx(times, abs=0.5, nan_ok=True)
    assert profile.numbers("idle_w") == pytest.approx(idle, rel=0.01)
    assert note in "\n".join(profile.notes)
    assert len(profile.notes) <= 3
    found = fit(profile, "linear-power", cv=0).fit[""].params_
    assert found["alpha"] == pytest.approx(slope, rel=0.03)
    assert found["P_gs"] == pytest.approx(base, rel=0.05)


REFUSED = [
    ("smi_idle_only", "linear-power", "idle throughout (61.5 W)"),
    ("smi_no_power", "linear-power", "power.draw [W] is [N/A] in every row"),
    ("smi_capped_clock_jitter", "power-law-jct", "expected at least two values"),
    ("smi_suspended", "power-law-jct", "row 1, column time_s: found nothing"),
    ("preamble_ncu", "linear-power", "this is Nsight Compute's"),
]


@pytest.mark.parametrize(("name", "model", "why"), REFUSED)
def test_a_log_that_tells_nothing_is_refused(name: str, model: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        fit(DOORS / f"{name}.csv", model)
    assert why in str(caught.value)


def test_a_capped_run_is_one_run_whose_clock_is_suspect() -> None:
    profile = read_profile(DOORS / "smi_capped_clock_jitter.csv")
    row = [float(profile[name][0]) for name in ("time_s", "frequency_mhz", "power_w")]
    assert row == pytest.approx([70, 1330, 300], abs=0.5)
    assert [str(item) for item in audit(profile).suspects] == [
        "run at 1: its clock spreads over more than 5 %: not held"
    ]


def test_a_board_that_draws_more_at_rest_is_warned_of() -> None:
    report = fit(DOORS / "idle_never_seen_swapped.csv", "device-power")
    assert "rows at rest draw 68 W, more than rows at work" in str(report)
