"""What a run on one GPU at one batch cannot tell comes from published jobs, and is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optgap.fitting.powerflow_energy import PowerFlowEnergy
from optgap.fitting.powerflow_power import PowerFlowPower
from optgap.fitting.saved import drawn
from optgap.fitting.throughput import PowerFlowThroughput
from optgap.fitting.uncertainty import samples
from optgap.fitting.workflow import fit
from optgap.models.elastic import pools
from optgap.models.elastic.fits import together
from optgap.models.elastic.jobs import JobClass
from optgap.models.performance import priors
from optgap.models.performance.measured import gv100_power, h100_scaling
from optgap.models.performance.saved import read_fit
from optgap.models.performance.throughput import ThroughputModel

CLASSES = [
    (pool, item) for pool in ("a100", "t4") for item in pools.classes(pool, gpus=8, gpus_per_node=8)
]
TERMS = {"a_io_s": 0, "b_io_s": 1, "a_grad_s": 0, "theta_local_s": 0, "B_local_s": 0,
         "theta_node_s": 0, "B_node_s": 0}  # fmt: skip
"""Parameters of the pools, and whether they go with the batch."""


def sweep(item: JobClass, clocks: np.ndarray, gpus: int, noise: float = 0.0) -> dict[str, object]:
    """Rows of a class on so many GPUs of one node, over the clocks."""
    k, one = item.counts.index(gpus), np.ones(len(clocks))
    rng = np.random.default_rng(1)
    time = item.time_s[k] * np.exp(noise * rng.standard_normal(len(clocks)))
    power = item.power_w[k] / gpus * np.exp(noise * rng.standard_normal(len(clocks)))
    return {
        "gpus": gpus * one, "nodes": one, "gpus_on_node": gpus * one, "frequency_mhz": clocks,
        "local_batch": item.batch / gpus * one, "time_s": time, "power_w": power,
        "energy_j": power * time * gpus,
    }  # fmt: skip


def spread_of(values: list[float], least: float) -> tuple[float, float]:
    logs = np.log(np.maximum(values, least))
    return float(np.exp(logs.mean())), float(logs.std(ddof=1))


def test_the_priors_of_times_are_those_of_the_published_pools() -> None:
    found: dict[str, list[float]] = {name: [] for name in (*TERMS, "gamma1", "gamma2", "slope")}
    for pool in ("a100", "t4"):
        for model, terms in pools.fitted_terms(pool).items():
            for batch in pools.BATCHES[pool][model]:
                whole = float(ThroughputModel(terms).iteration_time(1, batch))
                for name, per_batch in TERMS.items():
                    found[name].append(terms.get(name, 0.0) * batch**per_batch / whole)
                found["slope"].append(terms["b_grad_s"] * batch / whole)
                for name in ("gamma1", "gamma2"):
                    found[name].append(terms[name] - 1)
    for name, values in found.items():
        prior = priors.BY_BATCH if name == "slope" else priors.TIME[name]
        median, spread = spread_of(values, 0.1 if name.startswith("gamma") else 0.01)
        assert median == pytest.approx(prior.median, rel=0.05), name
        assert spread == pytest.approx(prior.spread, abs=0.02), name
    constant = [name for name, prior in priors.TIME.items() if prior.together]
    logs = [np.log(np.maximum(found[name], 0.01)) for name in constant]
    between = np.corrcoef(logs)[np.triu_indices(len(constant), 1)]
    assert between.mean() == pytest.approx(priors.CONSTANT**2, abs=0.01)


def test_the_priors_of_power_are_those_of_the_published_measurements() -> None:
    static = [p["P_gs"] / (p["P_gs"] + p["alpha"] * 510) for p in gv100_power().groups.values()]
    assert spread_of(static, 0.1) == pytest.approx(
        (priors.STATIC.median, priors.STATIC.spread), abs=0.01
    )
    assert sorted(static)[1] > priors.FLOOR > sorted(static)[0]
    waits = []
    for name in ("bert", "gpt2", "resnet50", "resnet101", "resnet152", "vgg16", "vgg19"):
        _, s, c = h100_scaling()[name].time
        one, fall = h100_scaling()[name].power
        busy = 1 / 4 / (1 - s + s / 4 + c * 3)
        waits.append(((one - 3 * fall - 70) / (one - 70) - busy) / (1 - busy))
    assert spread_of(waits, 0.02) == pytest.approx(
        (priors.SYNC.median, priors.SYNC.spread), abs=0.01
    )


def test_one_gpu_and_one_batch_predict_eight_within_a_factor_of_two() -> None:
    beyond, count = [], 0
    for pool, item in CLASSES[1::2]:
        clocks = pools.board_of(pool).clocks
        fit = PowerFlowEnergy().fit(sweep(item, clocks, 1, 0.03))
        time = fit.facts_["time"]
        # below what a prior is of, its logarithm is none: β of lavamd once ended at -5
        priors = [p for p in (*fit.parameters_, *time.parameters_) if p.prior is not None]
        assert all(p.lower >= p.prior.above for p in priors)
        for n in item.counts[1:]:
            rows = sweep(item, clocks, n)
            seconds = time.predict(rows)
            watts = fit.predict(rows) / seconds / n
            assert (seconds > 0).all()
            assert (watts > 0.2 * fit.facts_["low_w"]).all()
            off = np.abs(np.log([seconds / rows["time_s"], watts / rows["power_w"]])).max(axis=1)
            count += 1
            if off.max() > math.log(2):
                beyond.append((item.label, n))
                assert off[1] < math.log(2), item.label  # powers are always
    assert len(CLASSES) == 26
    assert count == 39
    assert len(beyond) <= 1


def test_what_came_from_published_jobs_is_said_and_scatters_as_they_do() -> None:
    pool, item = CLASSES[0]
    clocks = pools.board_of(pool).clocks
    time = PowerFlowThroughput().fit(sweep(item, clocks, 1))
    told = next(w for w in time.warnings_ if "published jobs" in w)
    assert "theta_local_s" in told
    assert "b_grad_s" in told
    assert "k_grad_s_mhz" not in told
    names = [p.name for p in time.parameters_]
    k, gamma = names.index("theta_local_s"), names.index("gamma2")
    assert time.stderr_[gamma] / (time.theta_[gamma] - 1) == pytest.approx(1.59, rel=1e-6)
    # the run itself says a little about what goes together with its other constant terms
    assert 0.95 < time.stderr_[k] / time.theta_[k] / 1.27 < 1
    logs = np.log(
        [d.params_["theta_local_s"] for d in samples(time, 400, np.random.default_rng(0))]
    )
    assert logs.std() == pytest.approx(1.27, rel=0.15)
    two = sweep(item, clocks, 2)
    again = PowerFlowThroughput().fit(
        {name: np.append(values, two[name]) for name, values in sweep(item, clocks, 1).items()}
    )
    assert "theta_local_s" not in next((w for w in again.warnings_ if "published" in w), "")


def test_a_saved_fit_is_drawn_from_as_the_fit_itself() -> None:
    pool, item = CLASSES[5]
    document = fit(sweep(item, pools.board_of(pool).clocks, 1), "powerflow-energy").to_json()
    for one in drawn(document, "fit", 20, np.random.default_rng(3)):
        params = one["groups"][0]["params"]
        assert params["wait_share"]["value"] > 0
        assert params["static_w"]["value"] > 0


def test_a_problem_may_have_more_gpus_than_were_measured() -> None:
    pool, item = CLASSES[-1]
    clocks = pools.board_of(pool).clocks
    report = fit(sweep(item, clocks, 1), "powerflow-energy")
    (make,) = together([read_fit(report)]).makers.values()
    made = make(item.batch, clocks, 8, 8)
    assert made.counts == (1, 2, 4, 8)
    one = report.fit.fits[""]
    for k, n in enumerate(made.counts):
        energy = one.predict(sweep(item, clocks, n))
        np.testing.assert_allclose(made.time_s[k] * made.power_w[k], energy, rtol=1e-9)
        assert (made.power_w[k] / n > 0.2 * item.power_w[0].min()).all()


def test_power_does_not_fall_below_what_any_busy_gpu_draws() -> None:
    clocks = np.linspace(600, 1500, 10)
    rows = {"frequency_mhz": clocks, "power_w": 300 - 2e-4 * (1500 - clocks) ** 2}
    fit = PowerFlowPower(form="continuous", f0_mhz=900.0, kappa=0.0).fit(rows)
    falling = fit.with_theta(fit.theta_ - np.array([0, 0, 0, 0, 0, 0, 1e4]))
    low = falling.predict({"frequency_mhz": np.array([600.0, 1500.0])})
    assert low == pytest.approx([138, 0.25 * rows["power_w"].min()], rel=0.1)
