"""`exhaustive` against a program that shares nothing with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from optimum_elastic import optimum
from strategies_elastic import FREE, jobs_of, table
from trust.agreement import many

import optgap
from optgap.documents import load_problem
from optgap.models.elastic import ElasticProblem
from optgap.models.result import Status

MANY = many(100, long=1000)


def drawn(seed: int) -> ElasticProblem:
    """Two to four jobs that arrive over time; limits from tight to none."""
    rng = np.random.default_rng(seed)
    gpus, clocks = int(rng.choice([1, 2, 2, 4])), int(rng.integers(1, 4))
    size = int(rng.choice([2, 3, 3, 4])) if gpus < 4 or clocks < 3 else int(rng.integers(2, 4))
    speed = np.sort(rng.uniform(0.5, 1.0, clocks))
    classes = []
    for c in range(int(rng.integers(1, 3))):
        share, watts = rng.choice([0.3, 0.8, 1.0]), rng.uniform(80, 200)
        counts = 2.0 ** np.arange(gpus.bit_length())
        times = rng.uniform(0.5, 2) * np.outer(share / counts + 1 - share, 1 / speed)
        powers = watts * np.outer(counts, 0.3 + 0.7 * speed ** rng.choice([1, 3]))
        classes.append(table(f"m{c}", times.tolist(), powers.tolist()))
    needed = max(float(c.power_w.min()) for c in classes)
    work = rng.choice([1.0, 10.0, 10.0, 20.0, 37.5], size)
    submit = np.sort(rng.choice([0, 0, 2, 5, 10, 12, 19, 20, 31, 60], size)).astype(float)
    return ElasticProblem.of(
        classes,
        jobs_of(rng.integers(0, len(classes), size).tolist(), work.tolist(), submit.tolist()),
        np.linspace(600, 1000, clocks).tolist(),
        gpus=gpus,
        gpus_per_node=gpus,
        eta=1.0,
        p_max_w=needed * float(rng.choice([1.0001, 1.3, 2, 3])) / gpus,
        cap="power" if rng.random() < 0.75 else "none",
        idle_w=0.0,
        overhead=FREE,
    )


@pytest.mark.parametrize("seed", range(MANY))
def test_every_order_with_every_joint_configuration_has_the_same_optimum(seed: int) -> None:
    problem = drawn(seed)
    jobs = problem.jobs
    truth = optimum(
        jobs.submit_s, jobs.iterations, problem.time_s[jobs.of_class],
        problem.power_w[jobs.of_class], problem.counts, problem.gpus, problem.power_limit_w,
    )  # fmt: skip
    best = optgap.solve(problem, "exhaustive", time_limit=60)
    assert best.status is Status.OPTIMAL, best.message
    assert best.objective == pytest.approx(truth, rel=2e-6)
    assert best.bound <= truth * (1 + 1e-6)


DOORS = {1: 4.6908, 2: 5.5232, 3: 4.5997, 4: 10.1307, 5: 9.6434, 6: 8.6571}
"""Mean JCT, s, of problems whose optimum would be less if it could profile to keep the limit."""


@pytest.mark.parametrize("number", DOORS)
def test_an_optimum_that_must_not_profile_is_reached(number: int) -> None:
    problem = load_problem(Path(__file__).parent / "elastic_doors" / f"limit-{number}.json")
    best = optgap.solve(problem, "exhaustive")
    assert best.status is Status.OPTIMAL
    assert best.objective == pytest.approx(DOORS[number], abs=6e-5)
    assert best.bound == pytest.approx(DOORS[number], abs=6e-5)
