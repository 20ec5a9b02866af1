"""What is proven where starts take time: below every schedule, tried one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import elastic_problems, jobs_of, table
from trust.agreement import examples

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind, Overhead
from optgap.models.elastic.presets import small
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.registry import FAMILIES
from optgap.solvers.backends.growing import Growing
from optgap.solvers.elastic.exhaustive import OrderSearch, exhaustive
from optgap.solvers.elastic.offline import offline

POLICIES = FAMILIES["elastic"].policies
STARTS = Overhead(2.0, 1.0, 0.0)

Held = tuple[int, int] | None


def proven(problem: ElasticProblem, found: float = np.inf) -> float:
    """Mean completion − submission, s."""
    search = OrderSearch(problem, Limits(60), True, found, 400)
    search.run()
    assert search.orders.trouble == ""
    return search.proven / len(problem)


def steps(problem: ElasticProblem) -> list[dict[int, Held]]:
    """Every choice of counts and clocks, or none, that fits."""
    per_job = [
        [None, *zip(*np.nonzero(np.isfinite(problem.time_s[c])), strict=True)]
        for c in problem.jobs.of_class
    ]
    found = []
    for pick in itertools.product(*per_job):
        held = {j: (int(p[0]), int(p[1])) for j, p in enumerate(pick) if p is not None}
        used = sum(int(problem.counts[k]) for k, _ in held.values())
        watts = sum(
            max(
                float(problem.power_w[problem.jobs.of_class[j], k, f]),
                problem.idle_w * int(problem.counts[k]),
            )
            for j, (k, f) in held.items()
        )
        if used <= problem.gpus and watts <= problem.power_limit_w:
            found.append(held)
    return found


def best_by_events(problem: ElasticProblem) -> float:
    """The least mean of schedules that decide at submissions and completions; by trying all."""
    jobs, size, choices = problem.jobs, len(problem), steps(problem)
    best = np.inf

    def go(now: float, left: tuple[float, ...], restart: tuple[float, ...],
           counts: tuple[int, ...], cost: float) -> None:  # fmt: skip
        nonlocal best
        here = [j for j in range(size) if left[j] > 1e-9 and jobs.submit_s[j] <= now + 1e-9]
        coming = min((float(s) for s in jobs.submit_s if s > now + 1e-9), default=np.inf)
        if cost >= best:
            return
        if not any(x > 1e-9 for x in left):
            best = cost
            return
        for held in choices if here else [{}]:
            if any(j not in here for j in held):
                continue
            due, end = list(restart), coming
            for j in here:
                k = held[j][0] if j in held else -1
                if k != counts[j]:
                    due[j] = problem.overhead.seconds(int(problem.counts[k])) if k >= 0 else 0.0
                if j in held:
                    t = float(problem.time_s[jobs.of_class[j], held[j][0], held[j][1]])
                    end = min(end, now + due[j] + left[j] * t)
            if end == np.inf:
                continue
            rest, more = list(left), 0.0
            for j in here:
                ends = False
                if j in held:
                    t = float(problem.time_s[jobs.of_class[j], held[j][0], held[j][1]])
                    works = max(0.0, end - now - due[j])
                    rest[j], due[j] = left[j] - works / t, max(0.0, due[j] - (end - now))
                    ends = rest[j] <= 1e-9
                    rest[j] = 0.0 if ends else rest[j]
                more += end - now
            kept = tuple(held[j][0] if j in held else -1 for j in range(size))
            go(end, tuple(rest), tuple(due), kept, cost + more)

    go(0.0, tuple(map(float, jobs.iterations)), (0.0,) * size, (-1,) * size, 0.0)
    return best / size


def drawn(rng: np.random.Generator, size: int, clocks: int) -> ElasticProblem:
    """Jobs on one or two GPUs, at one clock or two, under a limit that may be short."""
    single, share = rng.uniform(0.5, 2.0), rng.uniform(0.5, 1.0)
    times = [[single, 0.7 * single], [single * (1 - share / 2), 0.7 * single * (1 - share / 2)]]
    watts = [[60.0, 100.0], [115.0, 195.0]]
    times, watts = ([row[:clocks] for row in rows] for rows in (times, watts))
    submit = np.sort(rng.choice([0.0, 0.0, 3.0, 8.0, 15.0], size))
    submit[0] = 0.0
    return ElasticProblem.of(
        [table("m", times, watts)], jobs_of([0] * size, rng.uniform(4, 40, size).tolist(), submit),
        [600.0, 1200.0][:clocks], gpus=2, gpus_per_node=2, eta=1.0,
        p_max_w=float(rng.choice([60.0, 80.0, 100.0])), idle_w=10.0, overhead=STARTS,
    )  # fmt: skip


@pytest.mark.parametrize(("size", "clocks", "many"), [(1, 2, 3), (2, 1, 12), (2, 2, 4), (3, 1, 6)])
def test_no_schedule_that_decides_at_events_is_below(size: int, clocks: int, many: int) -> None:
    rng, ratios = np.random.default_rng(size), []
    for _ in range(many):
        problem = drawn(rng, size, clocks)
        best = best_by_events(problem)
        bound = proven(problem, best * size * (1 + 1e-9))
        assert bound <= best * (1 + 1e-9)
        ratios.append(bound / best)
    if clocks == 1:  # a clock may change between events, at no cost
        assert np.median(ratios) > 0.98
        assert max(ratios) > 1 - 1e-6  # some are proven optimal


@examples(10)
@given(problem=elastic_problems(max_jobs=3, max_clocks=2), data=st.data())
def test_no_policy_is_below(problem: ElasticProblem, data: st.DataObject) -> None:
    problem = replace(problem, overhead=data.draw(st.sampled_from((STARTS, Overhead(9.0, 0.5)))))
    bound = exhaustive(problem, limits=Limits(60), seed=0).bound
    assert bound is not None
    for name, entry in POLICIES.items():
        solution = entry.load()(problem, limits=Limits(), seed=0).solution
        assert bound <= problem.evaluate(solution).objective * (1 + 1e-6), name


@pytest.mark.parametrize("free", [False, True])
def test_an_optimum_does_not_profile_to_get_past_a_limit(free: bool) -> None:
    """The window's mean of 100 W is below the limit of 105 W, and its fast clock above."""
    problem = ElasticProblem.of(
        [table("m", [[2.0, 1.0]], [[60.0, 140.0]])], jobs_of([0], [30.0]), [600.0, 1200.0],
        gpus=1, gpus_per_node=1, eta=1.0, p_max_w=105.0, idle_w=10.0,
        overhead=Overhead(0.0, 0.0, 0.0) if free else STARTS,
    )  # fmt: skip
    start = 0.0 if free else 3.0
    restart = (0, 0.0, start, Kind.RESTART, 1, -1, -1)
    window = ElasticSolution.of([restart, (0, start, start + 40.0, Kind.PROFILE, 1, -1, -1)][free:])
    assert [(v.constraint, v.found) for v in problem.check(window)] == [("power limit", 140.0)]
    known = exhaustive(problem, limits=Limits(60), seed=0)
    assert known.bound == pytest.approx(start + 60.0, rel=1e-5)
    if free:
        assert known.status is Status.OPTIMAL
        assert problem.check(known.solution) == []
        assert problem.evaluate(known.solution).objective == pytest.approx(60.0)


def test_a_bound_holds_at_whatever_prices_the_solver_names(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn(np.random.default_rng(5), 2, 1)
    best, rng = best_by_events(problem), np.random.default_rng(0)
    right = Growing.duals.fget

    def wrong(self: Any) -> np.ndarray:
        duals: np.ndarray = right(self)
        return duals * rng.uniform(-0.2, 1.5, len(duals))  # some of a sign that proves nothing

    monkeypatch.setattr(Growing, "duals", property(wrong))
    for _ in range(3):
        assert proven(problem, best * 2 * (1 + 1e-9)) <= best * (1 + 1e-9)


def test_four_jobs_of_fitted_models_are_certified() -> None:
    problem = small(seed=9, size=4, gpus=16, hours=0.2)
    found = offline(problem, limits=Limits(60), seed=0, runs=100)
    assert found.claimed is not None
    assert found.bound is not None
    assert "starts" in found.bound_by
    assert found.claimed <= found.bound * 1.02


def test_more_programs_prove_more_and_too_few_are_named() -> None:
    problem = small(seed=9, size=4, gpus=16, hours=0.2)
    few, all_ = (exhaustive(problem, limits=Limits(60), seed=0, programs=n) for n in (1, 1200))
    assert few.message == "the bound's search ended at programs=1; more may prove more"
    assert all_.message == ""
    assert few.bound < all_.bound
