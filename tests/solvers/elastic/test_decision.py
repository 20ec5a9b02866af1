"""The decision at one event: prices, states and proofs, by hand and against all combinations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from strategies_elastic import FREE, jobs_of, table

from optgap.models.elastic import ElasticProblem
from optgap.solvers.elastic import knapsack
from optgap.solvers.elastic.snapshot import Choices, Snapshot, horizon, solve, undominated

NO_LIMIT = knapsack.NO_LIMIT


def choices(*classes: list[tuple[float, int, float]]) -> Choices:
    """From (seconds per iteration, GPUs, W) by class."""
    rows = [row for one in classes for row in one]
    first = np.cumsum([0, *(len(one) for one in classes)])
    time_s, gpus, watts = zip(*rows, strict=True)
    none = np.zeros(len(rows), dtype=np.int64)
    return Choices(
        first, np.array(time_s, float), np.array(gpus, np.int64), np.array(watts, float), none, none
    )


def random_snapshot(seed: int, jobs: int = 4, wait: bool = True) -> Snapshot:
    """Up to four configurations each, and room for about half of what all would like.

    Every third is of milliseconds.
    """
    unit = 1e-3 if seed % 3 == 0 else 1.0
    rng = np.random.default_rng(seed)
    classes = []
    for _ in range(3):
        n = rng.choice([1, 2, 4, 8], int(rng.integers(1, 5)))
        t = np.round(rng.uniform(1, 9, len(n)) / n**0.7, 2)
        w = n * rng.integers(50, 200, len(n))
        classes.append(list(zip(t.tolist(), n.tolist(), w.tolist(), strict=True)))
    made = choices(*classes)
    limit = math.inf if seed % 4 == 0 else float(rng.integers(200, 1200))
    return Snapshot(
        made, rng.integers(0, 3, jobs), unit * rng.integers(1, 30, jobs),
        int(rng.integers(2, 14)), limit, 200.0 * unit if wait else math.inf,
    )  # fmt: skip


def options(snapshot: Snapshot) -> list[list[int]]:
    first = snapshot.choices.first
    return [[-1, *range(first[c], first[c + 1])] for c in snapshot.of_class]


def feasible(snapshot: Snapshot, chosen: np.ndarray) -> bool:
    """Whether both capacities are kept, and nobody waits who must not."""
    held = chosen[chosen >= 0]
    watts = math.fsum(snapshot.choices.watts[held].tolist())
    waits = (chosen < 0).any() and not math.isfinite(snapshot.wait_s)
    gpus = int(snapshot.choices.gpus[held].sum())
    return not waits and gpus <= snapshot.gpus and watts <= snapshot.limit_w * (1 + 1e-12)


def brute(snapshot: Snapshot) -> float:
    """The best of all combinations."""
    picks = (np.array(pick) for pick in itertools.product(*options(snapshot)))
    return min((snapshot.objective(p) for p in picks if feasible(snapshot, p)), default=math.inf)


def relaxed(snapshot: Snapshot) -> float:
    """The optimum where configurations may be mixed."""
    c, wait = snapshot.choices, snapshot.wait_s
    finite = math.isfinite(wait)
    columns = [(j, z) for j, row in enumerate(options(snapshot)) for z in row if z >= 0 or finite]
    cost = [snapshot.remaining[j] * c.time_s[z] if z >= 0 else wait for j, z in columns]
    used = [float(c.gpus[z]) if z >= 0 else 0.0 for _, z in columns]
    watts = [float(c.watts[z]) if z >= 0 else 0.0 for _, z in columns]
    limit = snapshot.limit_w if math.isfinite(snapshot.limit_w) else 1e9
    one = [[float(k == j) for k, _ in columns] for j in range(len(snapshot.remaining))]
    found = linprog(cost, [used, watts], [snapshot.gpus, limit], one, [1.0] * len(one))
    return float(found.fun) if found.status == 0 else math.inf


def arguments(snapshot: Snapshot) -> tuple[np.ndarray, ...]:
    c = snapshot.choices
    return snapshot.of_class, snapshot.remaining, c.first, c.time_s, c.gpus, c.watts


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("seed", range(16))
def test_no_combination_is_better_and_no_bound_is_higher(seed: int, wait: bool) -> None:
    made = random_snapshot(seed, 4, wait)
    truth = brute(made)
    few = solve(made, 0.0, most_states=2)  # where not all states fit there may be no proof
    assert few.bound <= truth + 1e-9
    assert few.objective >= truth - 1e-9
    assert not few.proven or few.objective == pytest.approx(truth)
    for gap in (1e-9, 0.05):
        found = solve(made, gap)
        assert found.proven
        if math.isinf(truth):
            assert found.chosen is None
            assert found.bound == math.inf
            continue
        assert found.chosen is not None
        assert feasible(made, found.chosen)
        assert found.objective == pytest.approx(made.objective(found.chosen), rel=1e-12)
        assert truth - 1e-9 <= found.objective <= truth * (1 + gap) + 1e-9
        assert found.objective * (1 - gap) - 1e-9 <= found.bound <= truth + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_prices_the_best_is_among_the_states(seed: int) -> None:
    """With room for all: prices say which states are looked at first, not what they cost."""
    made, rng = random_snapshot(seed, 3), np.random.default_rng(seed)
    limit, unit = min(made.limit_w, NO_LIMIT), made.wait_s / 200
    prices = unit * rng.uniform(0, 8, (3, 2)) * (1, 0.0 if limit == NO_LIMIT else 0.02)
    made_of = arguments(made)
    least = knapsack.least_costs(*made_of, prices, made.wait_s)
    paid = prices[0, 0] * made.gpus + (prices[0, 1] * limit if limit < NO_LIMIT else 0.0)
    start, truth = float(least[0].sum() - paid), brute(made)
    for room in (1e4 * unit, truth - start + 1e-6 * unit, truth - start - 1e-6 * unit):
        best, found, complete = knapsack.core(
            *made_of, prices, least, start, room, 0.0, made.gpus, limit, made.wait_s, 1000, False
        )
        assert complete
        assert found == (truth <= start + room)
        if found:
            assert feasible(made, best)
            assert made.objective(best) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_prices_are_worth_what_mixtures_are(seed: int, wait: bool) -> None:
    made = random_snapshot(seed, 5, wait)
    truth = relaxed(made)
    limit = min(made.limit_w, NO_LIMIT)
    prices, bound, best, value = knapsack.best_prices(
        *arguments(made), made.gpus, limit, made.wait_s, 0.0
    )
    if math.isfinite(truth):
        assert bound <= truth + 1e-9 * abs(truth)
        assert bound >= truth - 1e-6 * abs(truth)
    if math.isfinite(value):
        assert feasible(made, best)
        assert value == pytest.approx(made.objective(best))
        better = best.copy()
        knapsack.improve(*arguments(made), better, made.gpus, limit, made.wait_s)
        assert feasible(made, better)
        assert made.objective(better) <= value + 1e-9
        for j, row in enumerate(options(made)):
            for z in row[1:]:  # no single exchange saves more
                other = better.copy()
                other[j] = z
                free = feasible(made, other) and (
                    other[other >= 0].size == 0
                    or made.choices.watts[other[other >= 0]].sum() < made.limit_w * (1 - 1e-9)
                )
                assert not free or made.objective(other) >= made.objective(better) - 1e-9
    assert min(prices) >= 0
    assert solve(made, 0.0).prices == pytest.approx(tuple(prices))
    paid = float(prices[0]) * made.gpus + (float(prices[1]) * limit if limit < NO_LIMIT else 0.0)
    chosen = np.zeros(5, np.int64)
    total = knapsack.evaluate(*arguments(made), *prices, made.wait_s, chosen)[0]
    assert bound == pytest.approx(total - paid, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_states_go_where_another_is_as_good_in_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    most = 5 if seed % 2 else 16
    runs = [sorted(rng.integers(0, most, (int(n), 2)).tolist()) for n in rng.integers(0, 17, 5)]
    rows = [row for run in runs for row in run]
    starts = np.cumsum([0, *(len(run) for run in runs)])
    used = np.array([r[0] for r in rows], np.int64)
    power = np.array([r[1] for r in rows], float)
    cost = rng.integers(0, most, len(rows)).astype(float)

    def beats(a: int, b: int, slack: float) -> bool:
        return bool(used[a] <= used[b] and power[a] <= power[b] and cost[a] <= cost[b] + slack)

    for slack in (0.0, 1.0):
        kept = knapsack.pareto(used, power, cost, starts, slack).tolist()
        for a in range(len(rows)):
            assert a in kept or any(beats(k, a, slack) for k in kept)
        assert [rows[k] for k in kept] == sorted(rows[k] for k in kept)
        for a, b in itertools.combinations(kept, 2):
            assert not beats(a, b, slack)
            same = used[a] == used[b] and power[a] == power[b]  # of these the later may be cheaper
            assert slack or same or not beats(b, a, 0.0)


def test_configurations_that_none_beats_keep_their_place_in_the_tables() -> None:
    """One and two GPUs at two clocks; the slow clock on two GPUs is no better than one GPU."""
    time_s = np.array([[[4.0, 2.0], [2.0, np.inf]], [[3.0, 5.0], [np.inf, 1.0]]])
    watts = np.array([[[90.0, 150.0], [200.0, 1.0]], [[80.0, 90.0], [1.0, 220.0]]])
    made = Choices.from_tables(time_s, watts, np.array([1, 2]))
    assert made.first.tolist() == [0, 2, 4]
    assert made.time_s.tolist() == [4, 2, 3, 1]
    assert made.gpus.tolist() == [1, 1, 1, 2]
    assert made.watts.tolist() == [90, 150, 80, 220]
    assert made.count.tolist() == [0, 0, 0, 1]
    assert made.clock.tolist() == [0, 1, 0, 1]


def test_waiting_counts_twice_the_longest_that_any_job_could_take() -> None:
    """7 iterations of 2 s on one GPU at the low clock, and 5 of 3 s of the other class."""
    classes = [table("a", [[2.0, 1.0], [1.0, 0.5]], [[50, 90], [60, 100]]),
               table("b", [[3.0, 2.0]], [[50, 90]])]  # fmt: skip
    made = ElasticProblem.of(
        classes, jobs_of([0, 1], [7, 5]), [1000.0, 2000.0], gpus=2, gpus_per_node=2, cap="none",
        idle_w=70.0, overhead=FREE,
    )  # fmt: skip
    for of_class, left, longest in (
        ([0, 1], [7, 5], 15.0), ([0], [7], 14.0), ([1, 0], [0.1, 0.4], 0.8),
    ):  # fmt: skip
        assert horizon(made, np.array(of_class), np.array(left, float)) == 2 * longest
    # an idle GPU's power is the least that a configuration counts for
    assert sorted(Choices.of(made).watts.tolist())[:2] == [70, 70]


def test_of_equal_rows_the_first_stays() -> None:
    rows = np.array([[2, 1], [1, 2], [2, 2], [1, 2], [3, 0]], float)
    assert undominated(rows[:, 0], rows[:, 1]).tolist() == [0, 1, 4]


def test_prices_around_the_best_are_tried() -> None:
    others = knapsack.other_prices(2.0, 0.5)
    assert others.shape == (18, 2)
    assert (others > 0).all()
    assert [2.0, 0.4] in others.round(9).tolist()
    assert [1.6, 0.5] in others.round(9).tolist()
    assert [1.6, 0.625] in others.round(9).tolist()
