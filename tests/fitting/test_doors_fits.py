"""Sweeps and fits that say what their rows cannot tell.

The files of ``data/doors`` are made up: each is the smallest table of one kind of fault.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli

import optgap
from optgap.fitting.audit import audit
from optgap.fitting.curves import LinearPower
from optgap.fitting.profile import Profile
from optgap.fitting.readers import read_profile
from optgap.fitting.uncertainty import Predictive, interval, members_of, samples
from optgap.fitting.workflow import fit
from optgap.models.errors import InputError

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


def test_an_audit_tells_power_of_all_gpus() -> None:
    gpus = np.array([1.0, 2.0, 4.0])
    whole = audit(Profile({"gpus": gpus, "power_w": 200 * gpus, "time_s": 8 / gpus}))
    assert "power_w grows with the GPUs" in str(whole)


def bends(u: np.ndarray) -> dict[str, np.ndarray]:
    """Exact shapes over a clock that rises to 1."""
    return {
        "time c/f": 1 / u, "time a + c/f": 0.5 + 1 / u, "time roof": np.maximum(0.8, 0.6 / u),
        "power line": 0.3 + u, "power cube": 0.3 + u**3, "power cube alone": u**3,
        "power law": u**1.7, "power bend": 0.4 + u**2 + 5 * np.maximum(u - 0.7, 0) ** 2,
    }  # fmt: skip


def test_no_point_of_an_exact_sweep_is_suspect() -> None:
    for count in (6, 9, 20):
        for low in (0.045, 0.4):
            for u in (np.linspace(low, 1, count), np.geomspace(low, 1, count)):
                for name, y in bends(u).items():
                    column = "time_s" if name.startswith("time") else "power_w"
                    table = {"frequency_mhz": 2000 * u, column: 100 * y}
                    assert audit(Profile(table)).suspects == (), (name, count, low)


def test_two_rows_have_values_but_no_errors(cli: Cli, tmp_path: Path) -> None:
    report = fit(read_profile(DOORS / "two_rows.csv"), "linear-power")
    one = report.fit.fits[""]
    assert one.params_ == pytest.approx({"P_gs": 27.5, "alpha": 0.0875}, rel=1e-3)
    assert np.isnan(one.stderr_).all()
    assert np.isnan(one.covariance_).all()
    assert "no interval: 2 rows for 2 parameters" in report.notes
    with pytest.raises(InputError, match="2 rows for 2 parameters"):
        samples(one, 3, np.random.default_rng(0))
    report.plot(tmp_path / "two.svg")
    optgap.save(report, tmp_path / "two.json")
    back = optgap.load(tmp_path / "two.json")
    assert back.fits[""].params_ == one.params_
    answer = cli("compare", "consolidation", "--size", "4", "--model", str(tmp_path / "two.json"),
                 "--policies", "cats,first", "--samples", "5")  # fmt: skip
    assert answer.code == 0
    assert "two.json: no interval: 2 rows for 2 parameters" in answer.out
    assert "not drawn" in answer.out


STATIC: list[tuple[float, int]] = [(0.0, 8), (0.03, 8), (0.03, 4)]
"""True static power, as a share of that at the highest clock, and rows."""


@pytest.mark.parametrize(("static", "rows"), STATIC)
def test_a_static_power_at_its_bound_leaves_intervals_that_hold(static: float, rows: int) -> None:
    rng = np.random.default_rng(rows)
    clocks = np.linspace(0.5, 1.0, rows)
    ends = Profile({"frequency_mhz": np.array([350.0, 700.0, 1150.0])})
    inside, held, trials = np.zeros(3), 0, 0
    while held < 60 and trials < 1500:
        trials += 1
        noise = np.exp(0.04 * rng.standard_normal(rows))
        power = 100 * (static + (1 - static) * clocks) * noise
        one = LinearPower().fit({"frequency_mhz": 1000 * clocks, "power_w": power})
        if not one.at_bound_[0]:
            continue
        held += 1
        assert np.isnan(one.stderr_[0])
        members = members_of({"": (one, Profile({"frequency_mhz": 1000 * clocks}))})
        one.predictive_ = Predictive(members[""])  # type: ignore[attr-defined]
        low, high = interval(one, 200, rng, ends)
        truth = 100 * (static + (1 - static) * ends.numbers("frequency_mhz") / 1000)
        inside += (low <= truth) & (truth <= high)
    assert (inside / held).min() >= 0.75


def test_a_fit_predicts_numbers_and_arrays_and_warns_beyond_its_rows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = {"application": ["a", "a", "a", "b", "b", "b"], "frequency_mhz": [600, 900, 1200] * 2,
            "power_w": [78, 104, 131, 92, 126, 158]}  # fmt: skip
    report = fit(rows, "linear-power", by=["application"], cv=0)
    several = report.predict({"application": ["a", "b"], "frequency_mhz": 900})
    assert isinstance(report.predict({"frequency_mhz": 900}, "a"), float)
    assert report.predict({"frequency_mhz": [900]}, "a") == pytest.approx(several[:1])
    assert caplog.text == ""
    report.predict({"frequency_mhz": 2000}, group="b")
    assert "frequency_mhz 2000 is outside 600 to 1200" in caplog.text
    frame = report.to_frame()
    assert frame[frame.parameter == "alpha"].group.tolist() == ["a", "b"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"by": "app"}, "by: found 'app'"),
    ({"cv": "ten"}, "cv: found 'ten'"),
    ({"leave_out": "x"}, "leave_out: found 'x'"),
    ({"extrapolate": 3}, "extrapolate: found 3"),
    ({"columns": 3}, "columns: found 3"),
    ({"robust": True}, "settings: found 'robust'"),
    ({"loss": "huber"}, "loss: found 'huber'"),
    ({"loss_scale": 0}, "loss_scale: found 0"),
    ({"seed": "a"}, "seed: found 'a'"),
    ({"P_gs": 99.0}, "P_gs: found 99"),
    ({"P_gs": "idle"}, "P_gs: found 'idle'"),
    ({"P_gs": "idle_w"}, "a column idle_w"),
]


@pytest.mark.parametrize(("how", "words"), REFUSED)
def test_an_error_names_the_argument(how: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fit({"frequency_mhz": [600, 900, 1200], "power_w": [78, 104, 131]}, "linear-power", **how)


@pytest.mark.parametrize("how", [{"P_gs": 23.3}, {"P_gs": "idle_w"}])
def test_a_static_power_may_be_given(how: dict[str, Any]) -> None:
    clocks = np.array([600.0, 900.0, 1200.0])
    rows = {"frequency_mhz": clocks, "power_w": 23.3 + 0.09 * clocks, "idle_w": 23.3}
    report = fit(rows, "linear-power", **how)
    assert report.fit.fits[""].params_ == pytest.approx({"P_gs": 23.3, "alpha": 0.09}, rel=1e-3)
    assert report.fit.fits[""].parameters_[0].fixed
