"""Priors of a policy's own model of jobs are those of the published jobs."""

from __future__ import annotations

import numpy as np
import pytest

from optgap.models.elastic import pools
from optgap.models.performance import priors
from optgap.models.performance.measured import gv100_power, h100_scaling
from optgap.models.performance.throughput import ThroughputModel

TERMS = {"a_io_s": 0, "b_io_s": 1, "a_grad_s": 0, "theta_local_s": 0, "B_local_s": 0,
         "theta_node_s": 0, "B_node_s": 0}  # fmt: skip
"""Parameters of the pools, and whether they go with the batch."""


def spread_of(values: list[float], least: float) -> tuple[float, float]:
    logs = np.log(np.maximum(values, least))
    return float(np.exp(logs.mean())), float(logs.std(ddof=1))


def test_the_priors_of_times_are_those_of_the_published_pools() -> None:
    found: dict[str, list[float]] = {name: [] for name in (*TERMS, "gamma1", "gamma2")}
    for pool in ("a100", "t4"):
        for model, terms in pools.fitted_terms(pool).items():
            for batch in pools.BATCHES[pool][model]:
                whole = float(ThroughputModel(terms).iteration_time(1, batch))
                for name, per_batch in TERMS.items():
                    found[name].append(terms.get(name, 0.0) * batch**per_batch / whole)
                for name in ("gamma1", "gamma2"):
                    found[name].append(terms[name] - 1)
    for name, values in found.items():
        prior = priors.TIME[name]
        median, spread = spread_of(values, 0.1 if name.startswith("gamma") else 0.01)
        assert median == pytest.approx(prior.median, rel=0.05), name
        assert spread == pytest.approx(prior.spread, abs=0.02), name


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
