"""The estimators' habits: settings, groups, splits, refits, samples, reports, saved files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optgap.fitting import ESTIMATORS, make_estimator
from optgap.fitting.curves import LinearPower
from optgap.fitting.groups import Split, cross_validate, fit_groups
from optgap.fitting.optimise import Floats, Parameter, solved
from optgap.fitting.profile import Profile
from optgap.fitting.report import FitReport
from optgap.fitting.saved import load, save
from optgap.fitting.throughput import PowerFlowThroughput
from optgap.fitting.uncertainty import interval, samples
from optgap.fitting.workflow import report_of
from optgap.models.errors import InputError
from optgap.models.jsonio import dump_json
from optgap.models.performance import ThroughputModel, read_fit

CLOCKS = np.linspace(500, 1400, 19)


def board(noise: float = 0.02, seed: int = 0) -> Profile:
    """Three applications over 19 clocks: power and run time with noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, static, slope, beta in (
        ("a", 30, 0.05, 0.3),
        ("b", 40, 0.09, 0.8),
        ("c", 25, 0.12, 1),
    ):
        for clock in CLOCKS:
            power = (static + slope * clock) * rng.lognormal(0, noise)
            rows.append((name, clock, power, 10 * (1400 / clock) ** beta * rng.lognormal(0, noise)))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    names = ("application", "frequency_mhz", "power_w", "time_s")
    return Profile.of(dict(zip(names, columns, strict=True)), "board.csv")


def cluster(noise: float = 0.03, seed: int = 0) -> Profile:
    """One job over GPU counts and batches."""
    rng = np.random.default_rng(seed)
    grid = [(n, max(1, n // 4), b) for n in (1, 2, 4, 8, 16) for b in (8, 16, 32, 64, 128, 256)]
    n, nodes, batch = (np.array(column, dtype=float) for column in zip(*grid, strict=True))
    truth = {"a_grad_s": 0.01, "b_grad_s": 1e-3, "theta_local_s": 0.01, "theta_node_s": 0.03}
    time = ThroughputModel({**truth, "B_node_s": 0.002}).iteration_time(n, batch, None, nodes)
    time = time * rng.lognormal(0, noise, len(time))
    return Profile({"gpus": n, "nodes": nodes, "local_batch": batch, "time_s": time}, "cluster.csv")


@pytest.fixture(scope="module")
def job() -> FitReport[Any]:
    """The iteration times of `cluster`, fitted once: a second of work."""
    return report_of(PowerFlowThroughput(), cluster(), None, None)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_settings_go_in_and_come_out(name: str) -> None:
    estimator = make_estimator(name, seed=7, loss="linear")
    assert estimator.get_params()["seed"] == 7
    copy = estimator.clone()
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert type(estimator)(**estimator.get_params()).get_params() == estimator.get_params()
    assert estimator.clone(starts=3).starts == 3
    assert repr(estimator).startswith(type(estimator).__name__)


def test_an_unknown_model_is_refused_with_the_list() -> None:
    with pytest.raises(InputError, match="linear-power, power-law-power"):
        make_estimator("quadratic")


def test_frames_mappings_and_profiles_fit_alike() -> None:
    table = board().take(np.arange(19))
    expected = LinearPower().fit(table).params_
    assert LinearPower().fit(dict(table.columns)).params_ == expected
    assert LinearPower().fit(table.to_frame()).params_ == expected
    with pytest.raises(InputError, match="a table of columns"):
        LinearPower().fit([1, 2, 3])


def test_groups_are_fitted_apart_in_one_call() -> None:
    fit = fit_groups(LinearPower(), board(), "application")
    assert list(fit.fits) == ["a", "b", "c"]
    assert fit["c"].params_["alpha"] == pytest.approx(0.12, rel=0.05)
    assert np.mean(np.abs(fit.predict(board()) / board().numbers("power_w") - 1)) < 0.03
    with pytest.raises(InputError, match="a fitted group"):
        fit.predict({"application": ["z"], "frequency_mhz": [900.0]})
    assert fit["a"].r2_ > 0.9


def test_groups_of_one_board_share_its_voltage_curve() -> None:
    fit = fit_groups(make_estimator("powerflow-power", form="physical"), board(), "application")
    shared = {(one.params_["f0_mhz"], one.params_["kappa"]) for one in fit.fits.values()}
    assert len(shared) == 1


# --- held out ---------------------------------------------------------------------------------


def test_folds_hold_every_row_out_once_and_keep_groups_whole() -> None:
    table = board()
    seen = np.zeros(len(table))
    for train, held in Split(5).pairs(table, "application"):
        assert not set(train) & set(held)
        assert len(set(table["application"][train])) == 3
        seen[held] += 1
    assert np.all(seen == 1)
    with pytest.raises(InputError, match="at least 2 folds"):
        list(Split(1).pairs(table, None))


def test_values_groups_and_sizes_are_held_out() -> None:
    table = cluster()
    pairs = list(Split(column="gpus").pairs(table, None))
    assert [set(table["gpus"][held]) for _, held in pairs] == [{1.0}, {2.0}, {4.0}, {8.0}, {16.0}]
    ((train, held),) = Split(column="gpus", upto=8).pairs(table, None)
    assert table["gpus"][train].max() == 8
    assert set(table["gpus"][held]) == {16.0}
    with pytest.raises(InputError, match="rows on both sides"):
        list(Split(column="gpus", upto=64).pairs(table, None))


def test_held_out_errors_are_those_of_the_noise() -> None:
    held = cross_validate(LinearPower(), board(noise=0.02), "application")
    assert 0.01 < held.mape < 0.025
    assert set(held.by_group()) == {"a", "b", "c"}
    assert held.median <= held.errors.max()
    assert held.r2 > 0.95
    assert held.skipped == ()


def test_what_cannot_be_held_out_is_skipped_and_named() -> None:
    table = board()
    few = table.take(np.concatenate([np.arange(19), [19, 20]]))
    held = cross_validate(LinearPower(), few, "application")
    assert set(held.by_group()) == {"a"}
    assert held.skipped[0].startswith("b: ")
    with pytest.raises(InputError, match="enough rows"):
        cross_validate(LinearPower(), few.take(np.array([0, 19])), "application")


# --- samples ----------------------------------------------------------------------------------


def test_samples_scatter_like_the_standard_errors() -> None:
    table = board(noise=0.03).take(np.arange(19))
    fit = LinearPower(loss="linear").fit(table)
    drawn = samples(fit, 300, np.random.default_rng(1))
    slopes = np.array([one.params_["alpha"] for one in drawn])
    assert slopes.std() == pytest.approx(fit.stderr_[1], rel=0.4)
    low, high = interval(fit, 300, np.random.default_rng(1), table)
    assert np.all(low <= high)
    assert np.mean((low <= fit.predict(table)) & (fit.predict(table) <= high)) == 1


def test_samples_are_those_of_their_generator_and_keep_bounds(job: FitReport[Any]) -> None:
    fit = job.fit.fits[""]
    one = samples(fit, 20, np.random.default_rng(5))
    two = samples(fit, 20, np.random.default_rng(5))
    assert [item.params_ for item in one] == [item.params_ for item in two]
    for item in one:
        assert all(
            p.lower <= value <= p.upper
            for p, value in zip(item.parameters_, item.theta_, strict=True)
        )


# --- reports and files ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> FitReport[Any]:
    return report_of(LinearPower(), board(), "application", Split(5))


def test_a_report_says_what_was_found_and_how_well(report: FitReport[Any]) -> None:
    text = str(report)
    for words in ("57 rows", "held out", "5 folds", "P_gs", "alpha", "W/MHz", "[0, ∞]"):
        assert words in text
    assert "valid for frequency_mhz 500…1400" in text
    html = report._repr_html_()
    assert html.count("<table>") == 1
    assert "overflow-x:auto" in html
    assert "power per MHz" in html


def test_a_report_warns_of_bounds_overfitting_and_lone_applications() -> None:
    steep = board().take(np.arange(38, 57))
    power = 0.0001 * steep.numbers("frequency_mhz") ** 2
    bound = str(report_of(LinearPower(), steep.with_columns(power_w=power), None, Split(3)))
    assert "P_gs is at its bound 0; where it should not be, measure lower clocks" in bound
    pooled = str(report_of(LinearPower(), board(), None, None))
    assert "3 applications fitted as one" in pooled
    assert "the form does not fit the data" in pooled
    few = board(noise=0.1).take(np.arange(0, 19, 5))
    noisy = report_of(make_estimator("power-law-power"), few, None, Split(4))
    assert "too few rows" in str(noisy) or "measure" in str(noisy)


def test_a_report_document_has_the_keys_others_read(report: FitReport[Any]) -> None:
    document = report.to_json()
    assert document["schema"] == "optgap.fit/1"
    assert set(document) >= {"model", "source", "by", "overall", "groups"}
    assert set(document["overall"]) >= {"n", "r2", "mape", "cv_mape"}
    group = document["groups"][0]
    assert set(group) >= {"group", "n", "params", "r2", "mape", "cv_mape", "validity", "warnings"}
    assert set(group["params"]["alpha"]) >= {"value", "stderr", "lower", "upper", "at_bound"}


SAVED = [
    ("linear-power", board(), "application"),
    ("power-law-power", board(), "application"),
    ("power-law-jct", board(), "application"),
    ("powerflow-power", board(), "application"),
    ("powerflow-energy", board(), "application"),
    ("powerflow-throughput", cluster(), None),
    (
        "batch-power",
        Profile.of({"local_batch": [1.0, 2, 4, 8, 16], "power_w": [50.0, 50, 90, 120, 122]}),
        None,
    ),
    ("dram-runtime", Profile.of({"dram_sum": [0.3, 0.6, 0.9], "time_s": [9.0, 5, 3.8]}), None),
]


@pytest.mark.parametrize(("name", "table", "by"), SAVED, ids=[item[0] for item in SAVED])
def test_a_saved_fit_predicts_the_same(
    name: str, table: Profile, by: str | None, tmp_path: Path
) -> None:
    made = report_of(make_estimator(name), table, by, None)
    save(tmp_path / "fit.json", made)
    back = load(tmp_path / "fit.json")
    assert back.predict(table) == pytest.approx(made.fit.predict(table), rel=1e-12)
    for group, fit in back.fits.items():
        assert fit.params_ == made.fit.fits[group].params_
        assert fit.mape_ == pytest.approx(made.fit.fits[group].mape_)
    parameters = read_fit(tmp_path / "fit.json")
    assert parameters.model == name
    assert set(parameters.groups) == set(made.fit.fits)
    drawn = samples(next(iter(back.fits.values())), 2, np.random.default_rng(0))
    assert len(drawn) == 2


def test_one_group_is_the_only_one(job: FitReport[Any], tmp_path: Path) -> None:
    save(tmp_path / "one.json", job)
    parameters = read_fit(tmp_path / "one.json")
    model = ThroughputModel(parameters.only())
    whole = cluster()
    times = model.iteration_time(whole["gpus"], whole["local_batch"], None, whole["nodes"])
    assert times == pytest.approx(load(tmp_path / "one.json").predict(whole), rel=1e-9)
    save(tmp_path / "three.json", report_of(LinearPower(), board(), "application", None))
    with pytest.raises(InputError, match="3 groups"):
        read_fit(tmp_path / "three.json").only()


@cache
def saved_fit() -> str:
    made = report_of(make_estimator("powerflow-power"), board(), "application", None)
    return json.dumps(made.to_json())


CHANGES: list[tuple[Any, str]] = [
    (lambda fit, group: fit.update(schema="optgap.fit/9"), "optgap.fit/1"),
    (lambda fit, group: fit.update(model="quadratic"), "one of linear-power"),
    (lambda fit, group: fit.update(groups=[]), "at least one fitted group"),
    (lambda fit, group: fit.update(groups={}), "a list"),
    (lambda fit, group: fit.update(settings={"colour": "blue"}), "one of"),
    (lambda fit, group: fit.update(by=3), "a column name"),
    (lambda fit, group: group["params"]["f0_mhz"].update(value=-5), "f0_mhz.value: found -5"),
    (lambda fit, group: group["params"]["f0_mhz"].update(lower="low"), "f0_mhz.lower: found 'low'"),
    (lambda fit, group: group["state"].update(covariance=[[1.0]]), "covariance: found shape"),
    (lambda fit, group: group["state"].update(facts={}), "state.facts: found"),
    (lambda fit, group: group["params"].update(more=group["params"].pop("kappa")), "found .*more"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_a_saved_fit_that_was_tampered_with_is_refused(
    change: Any, words: str, tmp_path: Path
) -> None:
    document = json.loads(saved_fit())
    change(document, document["groups"][0])
    dump_json(tmp_path / "fit.json", document)
    with pytest.raises(InputError, match=words):
        load(tmp_path / "fit.json")


def test_pictures_are_drawn(report: FitReport[Any], job: FitReport[Any], tmp_path: Path) -> None:
    (curve,) = report.plot(tmp_path / "fit.png").axes
    assert (curve.get_xlabel(), len(curve.lines)) == ("frequency (MHz)", 3)
    assert len(curve.get_legend_handles_labels()[1]) == 3
    (measured,) = job.plot(tmp_path / "job.svg").axes
    assert measured.get_title() == "the rows fitted to"
    assert (tmp_path / "fit.png").stat().st_size > 10_000
    with pytest.raises(InputError, match=r"\.png, \.svg or \.pdf"):
        report.plot(tmp_path / "fit.doc")


def test_a_direction_that_no_row_tells_takes_no_degree_of_freedom() -> None:
    slope = np.stack([np.ones(6), np.arange(6.0), np.arange(6.0)], axis=1)  # b and c are one
    params = [Parameter(name, "", -9, 9, name) for name in "abc"]
    errors = np.array([1.0, -2, 1, -1, 2, -1]) / 100

    def evaluate(theta: Floats) -> tuple[Floats, Floats]:
        return slope @ theta - errors, slope

    fit, _, spread = solved(evaluate, params, np.ones((1, 3)), "linear", scale=1.0)
    assert spread.loose == ((1, 2),)
    noise = np.sqrt(np.sum(fit.residuals**2) / 4)
    told = np.linalg.inv(slope[:, :2].T @ slope[:, :2])
    assert spread.stderr[0] == pytest.approx(noise * np.sqrt(told[0, 0]), rel=1e-3)
