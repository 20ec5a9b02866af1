"""Intervals that hold: draws between applications, residuals, and what files keep."""

from __future__ import annotations

import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optgap
from optgap.comparing.uncertain import Drawn, draws
from optgap.fitting.profile import Profile
from optgap.fitting.saved import from_document, save
from optgap.fitting.uncertainty import Predictive, interval, samples
from optgap.models.errors import InputError
from optgap.models.performance.saved import read_fit

CLOCKS = np.arange(600.0, 1401.0, 100.0)


def sweep(applications: int, seed: int = 0, noise: float = 0.03) -> dict[str, Any]:
    """Power over the clock of so many applications, whose levels spread by a quarter."""
    rng = np.random.default_rng(seed)
    names, clocks, powers, times = [], [], [], []
    for k in range(applications):
        level = np.exp(0.25 * rng.standard_normal())
        error = np.exp(noise * rng.standard_normal((2, len(CLOCKS))))
        names += [f"app{k}"] * len(CLOCKS)
        clocks += CLOCKS.tolist()
        powers += (level * (40 + 0.1 * CLOCKS) * error[0]).tolist()
        times += (level * 80 * (1400 / CLOCKS) ** 0.7 * error[1]).tolist()
    return {"application": names, "frequency_mhz": clocks, "power_w": powers, "time_s": times}


@pytest.mark.parametrize("model", ["linear-power", "power-law-jct"])
def test_nine_of_ten_points_of_an_application_that_nobody_measured_are_covered(model: str) -> None:
    report = optgap.fit(sweep(25), model, cv=0)
    fresh = report.fit.estimator.prepare(sweep(40, seed=9))
    fit = report.fit.fits[""]
    low, high = interval(fit, 400, np.random.default_rng(0), fresh)
    measured = fresh.numbers(fit.response)
    assert 0.8 <= np.mean((low <= measured) & (measured <= high)) <= 0.98


def test_parameter_error_alone_covers_hardly_any(tmp_path: Path) -> None:
    table = sweep(25)
    report = optgap.fit(table, "linear-power", cv=0)
    document = report.to_json()
    del document["groups"][0]["state"]["predictive"]
    old = from_document(json.loads(json.dumps(document)), "old.json").fits[""]
    profile = report.fit.estimator.prepare(table)
    low, high = interval(old, 400, np.random.default_rng(0), profile)
    power = profile.numbers("power_w")
    assert np.mean((low <= power) & (power <= high)) < 0.3
    assert str(Drawn.of(read_fit(document))).endswith("draws of parameters alone")


def test_fitted_apart_held_out_rows_are_covered_and_the_interval_says_what_it_lacks() -> None:
    table = Profile.of(sweep(12))
    held = np.arange(len(table)) % len(CLOCKS) % 4 == 1
    report = optgap.fit(table.take(np.flatnonzero(~held)), "linear-power", by="application", cv=0)
    for several in (report, optgap.fit(sweep(1), "linear-power", cv=3)):
        assert "intervals carry parameters and residual error alone" in str(several)
    rng, hits = np.random.default_rng(0), []
    for name, rows in table.groups("application"):
        part = table.take(rows[held[rows]])
        low, high = interval(report.fit.fits[name], 100, rng, part)
        hits.append((low <= part.numbers("power_w")) & (part.numbers("power_w") <= high))
    assert 0.8 <= np.mean(hits) <= 0.97


def test_fits_of_one_table_are_drawn_for_the_same_application() -> None:
    table = sweep(6, noise=1e-6)
    fits = [optgap.fit(table, name, cv=0) for name in ("linear-power", "power-law-jct")]
    read = [read_fit(fit) for fit in fits]
    pairs = list(islice(draws(read, 3), 200))
    watts = np.log([pair[0].groups[""]["alpha"] for pair in pairs])
    seconds = np.log([pair[1].groups[""]["e_min"] for pair in pairs])
    assert np.corrcoef(watts, seconds)[0, 1] > 0.4  # one level made both


def test_draws_come_back_from_a_file_as_they_were(tmp_path: Path) -> None:
    table = sweep(6)
    report = optgap.fit(table, "linear-power", cv=0)
    save(tmp_path / "fit.json", report)
    back = read_fit(tmp_path / "fit.json")
    assert back.predictive("") == ("parameters", "residual", "between 6 of application")
    made = samples(report.fit.fits[""], 5, np.random.default_rng(1))
    read = samples(from_document(back.document, "fit.json").fits[""], 5, np.random.default_rng(1))
    assert [one.params_ for one in read] == [one.params_ for one in made]


@cache
def saved_fit() -> str:
    return json.dumps(optgap.fit(sweep(4), "linear-power", cv=0).to_json())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p.update(members=[]), "at least one"),
        (lambda p: p["members"][0].update(theta=[1.0]), "2 values"),
        (lambda p: p["members"][0].update(covariance=[[1.0]]), "2 rows"),
        (lambda p: p["members"][0].update(covariance=[[1.0, "x"], [0.0, 1.0]]), "2 rows"),
        (lambda p: p["members"][0].update(degrees=-1), "degrees"),
        (lambda p: p.update(scale=-1), "scale"),  # of files from before
    ],
)
def test_a_file_with_other_draws_is_refused_by_field(change: Any, words: str) -> None:
    document = json.loads(saved_fit())
    change(document["groups"][0]["state"]["predictive"])
    with pytest.raises(InputError, match=words):
        from_document(document, "broken.json")


def test_a_comparison_tells_what_its_draws_carry() -> None:
    table = sweep(5)
    power = optgap.fit(table, "linear-power", cv=0)
    jct = optgap.fit(table, "power-law-jct", cv=0)
    problem = optgap.generate("consolidation", seed=0, size=4, models=[power, jct])
    gaps = optgap.compare(problem, "cats", uncertainty=4)
    told = [line for line in gaps.head() if "draws of" in line]
    assert len(told) == 2
    assert told[0].endswith("draws of parameters, residual, between 5 of application")
    assert gaps.to_json()["uncertainty"]["drawn"][0]["parts"][-1] == "between 5 of application"


def test_draws_stay_within_the_bounds_of_their_parameters() -> None:
    fit = optgap.fit(sweep(3, noise=0.3), "power-law-power", cv=0).fit.fits[""]
    found: Predictive = fit.predictive_
    drawn = found.draws(fit.parameters_, 500, np.random.default_rng(0))
    for values, parameter in zip(drawn.T, fit.parameters_, strict=True):
        assert parameter.lower <= values.min()
        assert values.max() <= parameter.upper


def test_draws_in_directions_that_rows_hardly_tell_predict_sanely() -> None:
    # time is exact, θ of Eq. 12 and P_sync hardly matter: their errors are many times themselves
    rows = [
        (n, b, f, t, (60 + 0.12 * f) * n * t * (1 + 0.01 * (f % 300 > 0)))
        for n in (1, 2, 4)
        for b in (8, 16, 32)
        for f in range(600, 1501, 150)
        for t in [0.01 + 0.004 * b * 1500 / f + 0.004 * (n > 1)]
    ]
    names = ("gpus", "local_batch", "frequency_mhz", "time_s", "energy_j")
    table = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    fit = optgap.fit(table, "powerflow-energy", cv=0).fit.fits[""]
    measured = np.array(table["energy_j"])
    ratios = [one.predict(table) / measured for one in samples(fit, 40, np.random.default_rng(0))]
    assert np.quantile(np.abs(np.log(ratios)), 0.95) < np.log(1.5)


def test_a_workload_under_several_limits_counts_as_one() -> None:
    table = sweep(10)
    limits = [f"{name}/{k % 2}" for k, name in enumerate(table["application"])]
    of_two = optgap.fit({**table, "application": limits, "workload": table["application"]},
                        "linear-power", cv=0)  # fmt: skip
    found: Predictive = of_two.fit.fits[""].predictive_
    assert len(found.members) == 20
    assert [m.name for m in found.members].count("app3") == 2
    assert found.parts[-1] == "between 10 of workload"
    assert read_fit(of_two.to_json()).predictive("") == found.parts


def test_busy_rows_draw_less_than_full_power_and_draws_say_so(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    busy = np.repeat([0.0, 1.0], [40, 160])
    power = np.where(busy > 0, rng.uniform(150, 300, 200), rng.uniform(55, 60, 200))
    report = optgap.fit({"busy": busy, "power_w": power}, "device-power")
    assert report.fit.fits[""].params_["full_w"] > 295
    assert report.to_json()["overall"]["cv_mape"] is None  # no row is meant to draw full power
    save(tmp_path / "device.json", report)
    back = from_document(json.loads((tmp_path / "device.json").read_text()), "d").fits[""]
    assert back.predictive_.parts == ("parameters", "residual")
    assert read_fit(report.to_json()).predictive("") == back.predictive_.parts
    full = [one.params_["full_w"] for one in samples(back, 300, np.random.default_rng(0))]
    assert np.quantile(full, [0.05, 0.95]) == pytest.approx([157.5, 292.5], abs=8)
    assert all(one.params_["idle_w"] <= one.params_["full_w"]
               for one in samples(back, 50, np.random.default_rng(1)))  # fmt: skip


def test_both_forms_of_a_blend_are_drawn() -> None:
    signal = np.array([0.4, 0.8, 1.2, 1.6])
    fit = optgap.fit({"dram_sum": signal, "time_s": 40 / signal**0.9 * [1.02, 0.98, 1.03, 0.97]},
                     "dram-runtime", cv=0).fit.fits[""]  # fmt: skip
    drawn = samples(fit, 50, np.random.default_rng(0))
    assert all(np.ptp([one.params_[name] for one in drawn]) > 0 for name in ("b", "c", "k"))
    rate, law = (fit.params_["a"] + fit.params_["b"] * signal), fit.params_["c"]
    both = np.sqrt(law * signal ** -fit.params_["k"] / rate)
    np.testing.assert_allclose(fit.predict({"dram_sum": signal}), both, rtol=1e-12)
