"""What prices prove where starts cost time: no behaviour of a job costs less, tried one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from strategies_elastic import jobs_of, table

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.jobs import Overhead
from optgap.models.elastic.presets import small
from optgap.models.limits import Limits
from optgap.solvers.elastic.lagrangian import Setting, evaluate
from optgap.solvers.elastic.prices import bound_prices

TIMES = [[2.0, 1.0], [1.2, 0.7]]
WATTS = [[60.0, 120.0], [110.0, 230.0]]
IDLE_W = 15.0
EDGES = np.array([0.0, 3.0, 5.0, 12.0, 30.0, 31.0, 60.0])
GRID = np.concatenate([EDGES[:-1], [8.0, 20.0, 45.0]])

Price = np.ndarray


def job(submit_s: float = 0.0, base_s: float = 4.0) -> ElasticProblem:
    """One job of 20 iterations on one or two GPUs, at two clocks; starts take 5 or 6 s."""
    return ElasticProblem.of(
        [table("m", TIMES, WATTS)], jobs_of([0], [20.0], [submit_s]), [600.0, 1200.0], gpus=2,
        gpus_per_node=2, eta=1.0, p_max_w=200.0, idle_w=IDLE_W,
        overhead=Overhead(base_s, 1.0 if base_s else 0.0, 0.0),
    )  # fmt: skip


def least(problem: ElasticProblem, gpu: Price, power: Price, charged: bool = True) -> float:
    """The job's part of the bound: completion plus payments, s."""
    bound = evaluate(Setting.of(problem, EDGES, charged), gpu, power, 400).bound
    return bound + float((2 * gpu * np.diff(EDGES)).sum() + (400 * power * np.diff(EDGES)).sum())


def paid(gpu: Price, power: Price, begin: float, end: float, n: int, watts: float) -> float:
    """For n GPUs at so many W between two times, s."""
    span = np.clip(np.minimum(EDGES[1:], end) - np.maximum(EDGES[:-1], begin), 0.0, None)
    return float(((gpu * n + power * watts) * span).sum())


def behaviours(problem: ElasticProblem, gpu: Price, power: Price) -> Iterator[float]:
    """What each costs: one run, or two with a pause or another count, begun on the grid."""
    submit = float(problem.jobs.submit_s[0])
    begins = [submit, *(t for t in GRID if t > submit)]
    modes = list(product(range(2), range(2)))

    def run(begin: float, mode: tuple[int, int], left: float, until: float) -> tuple[float, ...]:
        k, f = mode
        started = begin + problem.overhead.seconds(k + 1)
        end = min(until, started + left * TIMES[k][f])
        if end < started:
            return np.inf, left, end
        cost = paid(gpu, power, begin, started, k + 1, IDLE_W * (k + 1))
        cost += paid(gpu, power, started, end, k + 1, WATTS[k][f])
        return cost, left - (end - started) / TIMES[k][f], end

    for begin, first in product(begins, modes):
        cost, _, end = run(begin, first, 20.0, np.inf)
        yield end + cost
        for stop, second in product(GRID, modes):
            if stop <= begin:
                continue
            cost, left, _ = run(begin, first, 20.0, float(stop))
            if left <= 1e-9 or cost == np.inf:
                continue
            for again in (t for t in GRID if t >= stop):
                if second[0] == first[0] and again == stop:  # another clock: no restart
                    more = paid(gpu, power, again, again + left * TIMES[second[0]][second[1]],
                                second[0] + 1, WATTS[second[0]][second[1]])  # fmt: skip
                    yield again + left * TIMES[second[0]][second[1]] + cost + more
                else:
                    more, _, end = run(float(again), second, left, np.inf)
                    yield end + cost + more


@pytest.mark.parametrize("submit_s", [0.0, 4.0])
def test_no_behaviour_of_a_job_costs_less(submit_s: float) -> None:
    problem, rng, ratios, gained = job(submit_s), np.random.default_rng(1), [], 0
    for _ in range(12):
        gpu = rng.uniform(0, 1, 6) * (rng.random(6) < 0.7)
        power = rng.uniform(0, 0.02, 6) * (rng.random(6) < 0.7)
        proven, truth = least(problem, gpu, power), min(behaviours(problem, gpu, power))
        assert proven <= truth * (1 + 1e-9)
        free = least(problem, gpu, power, charged=False)
        assert proven >= free * (1 - 1e-9)
        gained += proven > free * 1.01
        ratios.append(proven / truth)
    assert np.median(ratios) > 0.8
    assert gained > 6


def test_without_prices_a_job_pays_one_start() -> None:
    nothing = np.zeros(6)
    # on two GPUs at the higher clock: 6 s of start and 14 s of work, or 5 s and 20 s on one
    assert least(job(), nothing, nothing) == pytest.approx(20.0, rel=1e-6)
    assert least(job(4.0), nothing, nothing) == pytest.approx(24.0, rel=1e-6)


def test_free_starts_are_bounded_as_before() -> None:
    rng = np.random.default_rng(2)
    problem = job(base_s=0.0)
    for _ in range(5):
        gpu, power = rng.uniform(0, 1, 6), rng.uniform(0, 0.02, 6)
        free, charged = (
            evaluate(Setting.of(problem, EDGES, so), gpu, power, 64) for so in (False, True)
        )
        assert charged.bound == pytest.approx(free.bound, rel=1e-9)
        assert charged.gpu_s == pytest.approx(free.gpu_s)
        assert charged.joules == pytest.approx(free.joules)


def test_the_dearer_starts_are_the_higher_the_bound() -> None:
    made = small(seed=0, size=8, gpus=8, hours=0.1)
    bounds = [
        bound_prices(
            replace(made, overhead=Overhead(base, base, 0.0)), limits=Limits(), seed=0, rounds=40
        ).bound
        or 0.0
        for base in (0.0, 2.0, 30.0)
    ]
    assert all(b > a * 1.001 for a, b in pairwise(bounds))
