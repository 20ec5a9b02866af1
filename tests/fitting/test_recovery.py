"""Every model finds the parameters that made noise-free data, and its Jacobian is right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from powerflow import TIME

import optgap
from optgap.fitting import ESTIMATORS, make_estimator
from optgap.fitting.profile import Profile
from optgap.models.performance import EnergyModel, ThroughputModel
from optgap.models.performance.throughput import GRAD_NAMES, IO_NAMES, SYNC_NAMES

CLOCKS = np.arange(500.0, 1450.0, 50.0)

COMMON = (*IO_NAMES, *GRAD_NAMES)
SHARED = (0.004, 2e-5, 0.006, 4e-4, 1.2)
RING = dict(zip((*COMMON, *SYNC_NAMES["ring"], "gamma1", "gamma2"),
                (*SHARED, 0.003, 0.012, 0.001, 5.0, 0.01, 2.5, 2.0), strict=True))  # fmt: skip
TOPOLOGY = dict(zip((*COMMON, *SYNC_NAMES["topology"], "gamma1", "gamma2"),
                    (*SHARED, 0.004, 0.002, 0.02, 0.004, 0.001, 0.003, 0.006, 0.002, 2.0, 1.5),
                    strict=True))  # fmt: skip
POWER = {
    "f0_mhz": 830.0,
    "kappa": 1.7,
    "theta": 5.0,
    "beta": 0.8,
    "static_w": 30.0,
    "grad_static_w": 3.0,
    "grad_linear_w": 8.0,
    "grad_voltage_w": 12.0,
    "sync_static_w": 5.0,
    "sync_linear_w": 15.0,
    "sync_voltage_w": 20.0,
}


PLACES = ((1, 1), (2, 1), (4, 1), (2, 2), (4, 2), (8, 2), (4, 4), (8, 4), (16, 4), (8, 8), (16, 8))
"""(GPUs, nodes) of the sweep."""


def cluster_grid() -> dict[str, np.ndarray]:
    """Every GPU count, placement, batch and clock of a small sweep."""
    rows = [
        (gpus, nodes, gpus // nodes, batch, clock)
        for gpus, nodes in PLACES
        for batch in (4, 16, 64, 256, 1024)
        for clock in (600, 750, 900, 1050, 1200, 1350)
    ]
    names = ("gpus", "nodes", "gpus_on_node", "local_batch", "frequency_mhz")
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


LAYOUT = ("gpus", "local_batch", "frequency_mhz", "nodes", "gpus_on_node")


def times(parameters: dict[str, float], form: str) -> dict[str, np.ndarray]:
    grid = cluster_grid()
    model = ThroughputModel(parameters, form)  # type: ignore[arg-type]
    return {**grid, "time_s": model.iteration_time(*(grid[name] for name in LAYOUT))}


def energies() -> dict[str, np.ndarray]:
    table = times(TIME, "paper")
    layout = [table[name] for name in LAYOUT]
    _, grad, sync = ThroughputModel(TIME).parts(*layout)
    powers = EnergyModel(POWER, "physical")
    energy = powers.iteration_energy(*layout[:3], grad, sync, table["time_s"])
    return {**table, "energy_j": energy}


def swept(**columns: Any) -> dict[str, np.ndarray]:
    return {"frequency_mhz": CLOCKS, **columns}


BATCHES = 2.0 ** np.arange(1, 12)
LEVELS = np.array([0.3, 0.55, 0.8, 1.1, 1.4])
HIGH = np.maximum(CLOCKS / 1000 - 0.9, 0)


class Case(NamedTuple):
    """A model with settings, the data it made itself, and the parameters behind them."""

    name: str
    model: str
    settings: dict[str, Any]
    table: dict[str, np.ndarray]
    truth: dict[str, float]


X = CLOCKS / 1000
CASES = [
    Case("linear", "linear-power", {}, swept(power_w=23.3 + 0.09 * CLOCKS),
         {"P_gs": 23.3, "alpha": 0.09}),
    Case("power law", "power-law-power", {}, swept(power_w=40 + 160 * (CLOCKS / 1400) ** 2.4),
         {"static_w": 40, "gain_w": 160, "exponent": 2.4}),
    Case("jct", "power-law-jct", {}, swept(time_s=12 * (1400 / CLOCKS) ** 0.91),
         {"e_min": 12, "beta": 0.91}),
    Case("throughput", "powerflow-throughput", {}, times(TIME, "paper"), TIME),
    Case("ring", "powerflow-throughput", {"sync": "ring"}, times(RING, "ring"), RING),
    Case("topology", "powerflow-throughput", {"sync": "topology"}, times(TOPOLOGY, "topology"),
         TOPOLOGY),
    Case("continuous P(f)", "powerflow-power", {"form": "continuous"},
         swept(power_w=30 + 60 * X + 40 * HIGH + 90 * HIGH**2 + 120 * HIGH**3),
         {"f0_mhz": 900, "b_low_w": 30, "a_low_w": 60, "c_high_w": 40, "b_high_w": 90,
          "a_high_w": 120}),
    Case("P(f) from V(f)", "powerflow-power", {"form": "physical"},
         swept(power_w=30 + 20 * X + 70 * X * (1 + 1.3 * HIGH) ** 2),
         {"f0_mhz": 900, "kappa": 1.3, "static_w": 30, "linear_w": 20, "voltage_w": 70}),
    Case("energy", "powerflow-energy", {"form": "physical", "f0_mhz": 830.0, "kappa": 1.7},
         energies(), POWER),
    Case("batch, printed", "batch-power", {"form": "paper"},
         {"local_batch": BATCHES, "power_w": 25 * np.log(BATCHES + 6) + 20},
         {"alpha": 25, "theta": 6, "beta": 20}),
    Case("batch, with ends", "batch-power", {"form": "saturating"},
         {"local_batch": BATCHES, "power_w": 25 * np.log(np.clip(BATCHES, 8, 512)) + 20},
         {"alpha": 25, "theta": 0, "beta": 20}),
    Case("dram, both forms agree", "dram-runtime", {},
         {"dram_sum": LEVELS, "time_s": 25 / LEVELS}, {"a": 0, "b": 0.04, "c": 25, "k": 1}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_noise_free_parameters_are_recovered(case: Case) -> None:
    fit = make_estimator(case.model, **case.settings).fit(case.table)
    for name, value in case.truth.items():
        assert fit.params_[name] == pytest.approx(value, rel=1e-4, abs=1e-9), name
    measured = Profile.of(case.table).numbers(fit.response)
    assert fit.predict(case.table) == pytest.approx(measured, rel=1e-6)
    assert fit.r2_ > 1 - 1e-9


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_analytic_jacobian_is_the_numerical_one(case: Case) -> None:
    estimator = make_estimator(case.model, **case.settings)
    table = estimator.prepare(case.table)
    facts = estimator.settle(table)
    design = estimator.design(table, facts)
    params = list(estimator.parameters(table, facts))
    rng = np.random.default_rng(3)
    theta = estimator.guess(table, facts) * rng.uniform(0.8, 1.2, len(params))
    _, jacobian = estimator.curve(theta, design)
    for k, parameter in enumerate(params):
        if parameter.fixed:
            continue
        step = np.zeros(len(theta))
        step[k] = 1e-6 * max(abs(theta[k]), 1e-3)
        ahead, behind = (
            estimator.curve(theta + step, design)[0],
            estimator.curve(theta - step, design)[0],
        )
        numeric = (ahead - behind) / (2 * step[k])
        scale = max(float(np.abs(numeric).max()), 1e-6)
        assert jacobian[:, k] == pytest.approx(numeric, abs=1e-4 * scale), parameter.name


def test_the_printed_form_recovers_its_powers() -> None:
    x = CLOCKS / 1000
    power = np.where(CLOCKS < 900, 20 + 60 * x, 90 - 30 * x + 20 * x**2 + 40 * x**3)
    fit = make_estimator("powerflow-power", form="printed").fit(swept(power_w=power))
    assert fit.predict(swept()) == pytest.approx(power, rel=1e-6)
    assert 850 < fit.params_["f0_mhz"] <= 900


def test_every_model_of_the_table_was_recovered() -> None:
    # two levels are read off, not fitted: tests/fitting/test_readers.py has them
    assert {case.model for case in CASES} == set(ESTIMATORS) - {"device-power"}


def test_errors_cover_the_truth_about_as_often_as_they_should() -> None:
    inside = 0
    for seed in range(60):
        noise = np.random.default_rng(seed).lognormal(0, 0.02, len(CLOCKS))
        fit = make_estimator("linear-power", loss="linear").fit(
            swept(power_w=(40 + 0.09 * CLOCKS) * noise)
        )
        inside += abs(fit.params_["alpha"] - 0.09) <= fit.stderr_[1]
    assert 30 <= inside <= 52  # 68 % of 60 is 41


def test_a_robust_fit_shrugs_off_one_bad_point() -> None:
    power = 40 + 0.09 * CLOCKS
    power[3] *= 3
    robust = make_estimator("linear-power").fit(swept(power_w=power))
    plain = make_estimator("linear-power", loss="linear").fit(swept(power_w=power))
    assert robust.params_["alpha"] == pytest.approx(0.09, rel=0.02)
    assert plain.params_["alpha"] != pytest.approx(0.09, rel=0.1)


def test_a_time_without_loading_is_fitted_without_it() -> None:
    truth = {**TIME, "a_io_s": 0.0, "b_io_s": 0.0, "gamma1": 1.0}
    fit = make_estimator("powerflow-throughput", io="none").fit(times(truth, "paper"))
    assert fit.params_["a_io_s"] == 0
    assert fit.params_["b_grad_s"] == pytest.approx(4e-4, rel=1e-4)


def test_parameters_that_cannot_be_told_apart_are_named() -> None:
    table = times(TOPOLOGY, "topology")
    few = (table["nodes"] <= 2) | (table["gpus_on_node"] == 4)
    fit = make_estimator("powerflow-throughput", sync="topology").fit(
        {name: column[few] for name, column in table.items()}
    )
    loose = [note for note in fit.warnings_ if "identifiable" in note]
    assert loose
    assert "theta_node_s" in loose[0]
    assert "measure" in loose[0]
    assert np.isnan(fit.stderr_[[p.name for p in fit.parameters_].index("theta_node_s")])
    assert fit.mape_ < 1e-6


def test_power_does_not_fall_below_what_any_busy_gpu_draws() -> None:
    clocks = np.linspace(600, 1500, 10)
    rows = {"frequency_mhz": clocks, "power_w": 300 - 2e-4 * (1500 - clocks) ** 2}
    settings = {"form": "continuous", "f0_mhz": 900.0, "kappa": 0.0}
    fit = make_estimator("powerflow-power", **settings).fit(rows)
    falling = fit.with_theta(fit.theta_ - np.array([0, 0, 0, 0, 0, 0, 1e4]))
    low = falling.predict({"frequency_mhz": np.array([600.0, 1500.0])})
    assert low == pytest.approx([138, 0.25 * rows["power_w"].min()], rel=0.1)


def test_what_one_gpu_and_one_batch_cannot_tell_has_no_number() -> None:
    one = np.ones(len(CLOCKS))
    rows = swept(
        gpus=one, local_batch=32 * one, time_s=0.1 + 200 / CLOCKS, power_w=50 + 0.1 * CLOCKS
    )
    report = optgap.fit(rows, "powerflow-energy", cv=0)
    told = report.fit.fits[""].params_
    assert {told[name] for name in ("static_w", "wait_share", "sync_b_low_w")} == {0}
    assert "P_sync is not identifiable" in str(report)
    problem = optgap.generate("elastic", seed=0, size=3, preset="tiny", models=report)
    assert [item.counts for item in problem.classes] == [(1,)]
    stream = optgap.generate("queueing", seed=0, size=6, models=report)
    told = stream.jobs.batches > 0
    assert stream.jobs.gpus[told].tolist() == [1] * told.sum()
    assert f"{6 - told.sum()} of 6 keep their durations" in stream.fits[0].used
    with pytest.raises(optgap.InputError, match="a batch of 64 on any GPUs, 8 per node"):
        optgap.models.elastic.fits.together(problem.fits).makers["model"](64, CLOCKS, 8, 8)
    two = {name: np.tile(column, 2) for name, column in rows.items()}
    two["gpus"] = np.repeat([1.0, 2.0], len(CLOCKS))
    fit = make_estimator("powerflow-throughput").fit(two)
    assert "no run on more than two GPUs of one node; measure several" in str(fit.warnings_)
