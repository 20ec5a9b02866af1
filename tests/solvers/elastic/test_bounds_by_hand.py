"""Bounds worked out by hand, or by a slower program: one that became weaker or stronger fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from strategies_elastic import FREE, jobs_of, rigid, table, two_jobs

from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.jobs import Overhead
from optgap.models.elastic.presets import small
from optgap.models.limits import Limits
from optgap.solvers.elastic.area import alone, best_mixture, least_shares
from optgap.solvers.elastic.area import shortest_first as srpt
from optgap.solvers.elastic.lagrangian import Setting, evaluate
from optgap.solvers.elastic.prices import Market, bound_prices, first_prices

GREEDY = table("A", [[100.0], [1.0]], [[50], [50]])
"""One iteration per second only on both GPUs, and little power."""
HOT = table("B", [[1.0], [1.0]], [[200], [200]])


def mixed(limit_w: float = 200.0, gpus: int = 2) -> ElasticProblem:
    """Ten iterations each of a job that wants the GPUs and one that wants the power."""
    return ElasticProblem.of(
        [GREEDY, HOT], jobs_of([0, 1], [10, 10]), [1000.0], gpus=gpus, gpus_per_node=gpus,
        eta=1.0, p_max_w=limit_w / gpus, idle_w=0.0, overhead=FREE,
    )  # fmt: skip


# -- one machine ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "shares"), [(1.0, (1.0, 0.5)), (0.0, (0.25, 1.0)), (0.6, (0.7, 0.7))]
)
def test_shares_mix_gpus_and_power(weight: float, shares: tuple[float, ...]) -> None:
    assert least_shares(mixed(), weight).tolist() == pytest.approx(shares)


def test_the_best_of_seventeen_mixtures_counts() -> None:
    """Sums of completions: 20 at either end, and 20.9375 at 10/16, next to 21 at 0.6."""
    weight, value, ends = best_mixture(mixed())
    assert weight == 0.625
    assert ends.tolist() == pytest.approx([6.875 + 7.1875, 6.875])
    assert value == pytest.approx(20.9375 / 2)
    assert alone(mixed()) == 10


def test_without_a_limit_on_power_gpus_are_all_there_is() -> None:
    free = replace(mixed(), cap="none")
    weight, value, ends = best_mixture(free)
    assert (weight, value) == (1.0, pytest.approx(10.0))
    assert ends.tolist() == pytest.approx([15, 5])


def test_submissions_count_and_one_alone_is_as_fast_as_it_can_be() -> None:
    late = replace(mixed(), jobs=jobs_of([0, 1], [10, 10], [3.0, 40.0]))
    assert alone(late) == 10
    assert best_mixture(late)[2].tolist() == pytest.approx([13, 45])
    # the second overtakes: 4 s of work left of the first beside 2
    assert srpt(np.array([0.0, 6.0]), np.array([10.0, 2.0])).tolist() == [12, 8]
    assert srpt(np.array([0.0, 6.0]), np.array([10.0, 5.0])).tolist() == [10, 15]
    assert srpt(np.array([6.0, 0.0]), np.array([2.0, 10.0])).tolist() == [8, 12]
    assert srpt(np.array([5.0, 0.0, 5.0]), np.array([3.0, 5.0, 1.0])).tolist() == [9, 5, 6]


# -- prices --------------------------------------------------------------------------------


def test_one_job_at_constant_prices_buys_what_it_needs_at_once() -> None:
    """Ten seconds on one GPU at 0.2 s per second and 100 W at 0.001 s per J: 2 s and 1 s more."""
    made = replace(rigid([(5, 10, 1)], gpus=1, per_node=1), cap="power", eta=1.0, p_max_w=100.0)
    setting = Setting.of(made, np.array([0.0, 10.0, 40.0]))
    seen = evaluate(setting, np.full(2, 0.2), np.full(2, 1e-3), 4000)
    assert seen.bound == pytest.approx(15 + 2 + 1 - 40 * 0.2 - 40 * 0.1, rel=1e-3)
    assert seen.bound <= 6 + 1e-9
    assert seen.gpu_s.tolist() == pytest.approx([5, 5])
    assert seen.joules.tolist() == pytest.approx([500, 500])
    # where it pays to wait until prices end, at 12 s: 10 s more
    dear = evaluate(replace(setting, edges=np.array([0.0, 6.0, 12.0])), np.full(2, 9.0),
                    np.zeros(2), 4000)  # fmt: skip
    assert dear.bound == pytest.approx(22 - 9 * 12, rel=1e-3)
    assert dear.gpu_s.tolist() == [0, 0]


def test_one_class_of_equal_jobs_is_priced_to_within_a_percent() -> None:
    """Three jobs of 10, 20 and 30 s on one GPU: completions of 10, 30 and 60 s."""
    made = rigid([(0, 10, 1), (0, 20, 1), (0, 30, 1)], gpus=1, per_node=1)
    outcome = bound_prices(made, limits=Limits(), seed=0)
    assert outcome.bound == pytest.approx(100 / 3, rel=1e-6)
    assert outcome.bound < 100 / 3
    late = rigid([(0, 10, 1), (100, 20, 1)], gpus=1, per_node=1)
    assert bound_prices(late, limits=Limits(), seed=0).bound == pytest.approx(15, rel=1e-6)


def test_prices_are_stronger_than_the_mixture_where_configurations_matter() -> None:
    """What the ascent reaches; that no bound exceeds the optimum is held elsewhere."""
    outcome = bound_prices(two_jobs(), limits=Limits(), seed=0)
    assert outcome.bound_by == "prices of GPUs and power over time"
    assert outcome.bound == pytest.approx(470.39, abs=0.3)


def test_the_first_prices_are_the_jobs_that_have_come_and_not_ended() -> None:
    """Completions at 10, 30 and 60 s of one GPU: 3, 2 and 1 are there until then."""
    made = rigid([(0, 10, 1), (0, 20, 1), (0, 30, 1)], gpus=1, per_node=1)
    edges, gpu = first_prices(made, 107)
    assert edges[-1] == pytest.approx(1.15 * 60 + 2 * 20)
    middle = (edges[1:] + edges[:-1]) / 2
    expected = np.select([middle < 10, middle < 30, middle < 60], [3, 2, 1], 0)
    assert gpu.tolist() == np.maximum(expected, 3e-3).tolist()
    apart = rigid([(0, 10, 2), (100, 20, 2)], gpus=2, per_node=2)
    edges, gpu = first_prices(apart, 400)
    middle = (edges[1:] + edges[:-1]) / 2
    # a job takes half of the machine's two GPUs for its time: 5 s, and 10 s from 100 s on
    busy = (middle < 5) | ((middle >= 100) & (middle < 110))
    assert gpu.tolist() == np.where(busy, 1, 1e-3).tolist()
    gpu, power = first_prices(mixed(), 400)[1].reshape(2, -1)
    assert (gpu.max(), power.max()) == pytest.approx((0.625 * 2, 0.375 * 2))


def test_prices_are_those_of_all_gpus_and_all_power() -> None:
    """Ten seconds on one GPU of two at 100 of 200 W, bought half of it by 5 s, half by 20 s."""
    made = replace(rigid([(0, 10, 1)], gpus=2, per_node=2), cap="power", eta=1.0, p_max_w=100.0)
    setting = Setting.of(made, np.array([0.0, 5.0, 20.0]))
    found = Market(setting, Limits()).evaluate(np.array([0.2, 0.2, 0.2, 0.2]))
    assert found.bound == evaluate(setting, np.full(2, 0.1), np.full(2, 1e-3), 64).bound
    assert found.slope == pytest.approx([-1 / 2, -5 / 6] * 2)


def test_a_few_rounds_on_few_pieces_climb_as_they_did() -> None:
    for made, rounds, bound in (
        (mixed(), 5, 11.4418430), (mixed(), 40, 12.4925381), (two_jobs(), 5, 425.929322),
    ):  # fmt: skip
        outcome = bound_prices(made, limits=Limits(), seed=0, pieces=16, rounds=rounds)
        assert outcome.bound == pytest.approx(bound, rel=1e-5)
        assert outcome.info["pieces"] == 16
        assert outcome.info["one_machine_s"] == pytest.approx(best_mixture(made)[1])


# -- starts that cost time: every behaviour of a job, tried one by one ---------------------


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
