from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_elastic import elastic_problems, jobs_of, rigid, table
from trust.agreement import examples
from trust.agreement import outcome_of as solved
from trust.agreement import value_of as value

import optgap
from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind, Overhead
from optgap.models.elastic.presets import day, small, tiny
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.registry import FAMILIES
from optgap.solvers.backends.growing import Growing
from optgap.solvers.elastic import METHODS, auto, auto_bound
from optgap.solvers.elastic.area import shortest_first
from optgap.solvers.elastic.exhaustive import OrderSearch, dominated, exhaustive
from optgap.solvers.elastic.joint import Tables, by_worth, ends
from optgap.solvers.elastic.offline import offline
from optgap.solvers.elastic.orders import Orders
from optgap.solvers.elastic.relaxation import relaxed
from optgap.solvers.elastic.snapshot import Choices, Snapshot, solve

POLICIES = FAMILIES["elastic"].policies

BOUNDS = [name for name, entry in METHODS.items() if entry.kind == "bound"]


def bound(problem: ElasticProblem, method: str, **params: Any) -> float:
    value = solved(problem, method, **params).bound
    assert value is not None
    return value


@examples(6)
@given(problem=elastic_problems(max_jobs=4), data=st.data())
def test_bounds_are_below_hindsight_and_every_policy(
    problem: ElasticProblem, data: st.DataObject
) -> None:
    """Starts are free, or take a little time or much."""
    starts = (problem.overhead, Overhead(2.0, 1.0, 0.0), Overhead(9.0, 0.5))
    problem = replace(problem, overhead=data.draw(st.sampled_from(starts)))
    found = solved(problem, "offline", runs=6, rounds=20)
    assert "not proven" in found.message or found.status is Status.OPTIMAL
    least = min(value(problem, solved(problem, policy)) for policy in POLICIES)
    least = min(least, value(problem, found))
    bounds = {name: bound(problem, name) for name in (*BOUNDS, "exhaustive")}
    for name, proven in {**bounds, "offline": found.bound}.items():
        assert proven <= least * (1 + 1e-6), name


def test_hindsight_beats_every_policy_and_places_every_job() -> None:
    problem = small(seed=1, size=16, gpus=16, hours=0.3)
    found = solved(problem, "offline", runs=30, rounds=30)
    made = value(problem, found)
    for name in ("elastic-srtf", "afs", "optimal-slowdown", "powerflow", "work-value"):
        assert made < value(problem, solved(problem, name)), name
    assert (found.solution.place >= 0).all()


def test_the_optimum_of_rigid_jobs_on_one_gpu_is_shortest_first() -> None:
    problem = rigid([(0, 100, 1), (0, 30, 1), (20, 5, 1)], gpus=1, per_node=1)
    ends = shortest_first(problem.jobs.submit_s, np.array([100.0, 30.0, 5.0]))
    assert ends.tolist() == [135, 35, 25]
    mean = (135 + 35 + 5) / 3
    assert value(problem, solved(problem, "exhaustive")) == pytest.approx(mean)
    assert bound(problem, "bound-prices") == pytest.approx(mean, rel=0.02)
    # where starts take a second, each of three in a row pays for its own
    paid = rigid([(0, 30, 1), (0, 10, 1), (0, 20, 1)], 1, 1, Overhead(1.0, 1.0, 0.0))
    found = solved(paid, "offline", runs=5)
    assert value(paid, found) == pytest.approx(np.mean([12, 34, 66]))
    assert found.status is Status.OPTIMAL


def test_prices_come_within_6_percent_of_the_optimum_in_the_median() -> None:
    gaps = []
    for seed in range(5):
        problem = tiny(seed=seed, size=3)
        gaps.append(value(problem, solved(problem, "exhaustive")) / bound(problem, "bound-prices"))
    assert min(gaps) >= 1 - 1e-6
    assert float(np.median(gaps)) < 1.06


def test_the_method_goes_by_the_size_of_the_problem() -> None:
    assert auto(tiny(seed=0)) == auto_bound(tiny(seed=0)) == "exhaustive"
    assert (auto(small(seed=0)), auto_bound(small(seed=0))) == ("offline", "bound-prices")
    few = small(seed=0, size=6)
    assert (auto(few), auto_bound(few)) == ("offline", "exhaustive")  # restarts cost time
    with pytest.raises(InputError, match="at most 12 jobs"):
        solved(small(seed=0), "exhaustive")


# -- the convex program of a decision: a bound, and prices that mean what they say ---------


def decision(problem: ElasticProblem, share: float = 1.0) -> Snapshot:
    jobs = problem.jobs
    made = Snapshot.of(problem, Choices.of(problem), jobs.of_class, jobs.iterations)
    return replace(made, limit_w=share * made.limit_w)


@examples(15)
@given(problem=elastic_problems(max_jobs=4, max_clocks=3), share=st.floats(0.2, 1.5))
def test_the_bound_is_below_the_exact_decision_and_prices_are_not_negative(
    problem: ElasticProblem, share: float
) -> None:
    snapshot = decision(problem, share)
    found, exact = relaxed(snapshot), solve(snapshot)
    assert found.bound <= exact.objective
    assert found.gpu_s >= 0
    assert found.watt_s >= 0
    assert found.watt_s == 0 or math.isfinite(snapshot.limit_w)


@pytest.fixture(scope="module")
def forty() -> Snapshot:
    return decision(day(seed=0, size=40, gpus=64, pool="v100"))


def test_it_proves_what_the_prices_of_the_exact_method_prove(forty: Snapshot) -> None:
    found = relaxed(forty)
    λ, μ = solve(forty).prices  # of another program, which knows no solver
    c = forty.choices
    total = -λ * forty.gpus - μ * forty.limit_w
    for k, left in zip(forty.of_class.tolist(), forty.remaining.tolist(), strict=True):
        z = slice(int(c.first[k]), int(c.first[k + 1]))
        cost = left * c.time_s[z] + λ * c.gpus[z] + μ * c.watts[z]
        total += min(float(cost.min()), forty.wait_s)
    assert found.bound == pytest.approx(total, rel=1e-6)


def test_a_watt_more_saves_no_more_than_its_price(forty: Snapshot) -> None:
    found = relaxed(forty)
    assert found.watt_s > 0
    more = Snapshot(forty.choices, forty.of_class, forty.remaining, forty.gpus,
                    forty.limit_w + 100.0, forty.wait_s)  # fmt: skip
    saved = found.bound - relaxed(more).bound
    assert 0 < saved <= 100 * found.watt_s * (1 + 1e-4)


def test_solve_runs_the_program_of_one_decision() -> None:
    problem = day(seed=0, size=40, gpus=64, pool="v100")
    result = optgap.solve(problem, "relaxation")
    assert result.status is Status.BOUND_ONLY
    assert result.bound <= optgap.run(problem, "work-value").objective
    found = relaxed(decision(problem))
    assert f"another GPU saves {found.gpu_s:,.0f} s" in result.message
    assert f"another kW {1000 * found.watt_s:,.0f} s" in result.message
    assert "over 1 jobs" in optgap.solve(problem, "relaxation", at_s=0.0).message
    with pytest.raises(InputError, match="after the first submission"):
        optgap.solve(problem, "relaxation", at_s=-5.0)


def test_a_thousand_jobs_are_proven_and_the_relaxation_is_close(forty: Snapshot) -> None:
    found = solve(decision(day(seed=0, size=1000, gpus=1024, pool="v100")), gap=1e-6)
    assert found.proven
    assert found.bound >= found.objective * (1 - 1e-6)
    later = replace(forty, of_class=forty.of_class[:30], remaining=forty.remaining[:30] / 2)
    for snapshot, near in ((forty, 0.9), (later, 0.0)):
        bound, exact = relaxed(snapshot).bound, solve(snapshot, gap=1e-7).objective
        assert near * exact < bound <= exact * (1 + 1e-9)


# -- every order of events -----------------------------------------------------------------


def two_and_one_later(submit_s: float) -> ElasticProblem:
    """Jobs of 10 s on one GPU or two, of which two GPUs hold two at a time."""
    return rigid([(0, 10, 1), (0, 10, 1), (submit_s, 10, 1)], gpus=2, per_node=2)


@pytest.mark.parametrize("submit_s", [10, 12, 19, 20])
def test_a_job_submitted_after_two_that_run_side_by_side_delays_none(submit_s: float) -> None:
    problem = two_and_one_later(submit_s)
    best = solved(problem, "exhaustive")
    assert best.status is Status.OPTIMAL
    assert value(problem, best) == pytest.approx(10, rel=1e-6)
    assert np.isclose(best.bound, 10, rtol=1e-6)


def test_without_time_there_is_a_schedule_and_a_bound() -> None:
    problem = two_and_one_later(0.0)
    best = exhaustive(problem, limits=Limits(1e-9), seed=0)
    assert (best.status, best.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert problem.check(best.solution) == []
    assert problem.serves_all(best.solution)
    assert 0 < best.bound <= 40 / 3 * (1 + 1e-9)  # two at 10 s, one at 20 s
    assert "LP" not in best.bound_by


@pytest.mark.parametrize("later", [0.0, 1.7e9])
def test_jobs_of_milliseconds_and_of_years_are_proven_beside_one_another(later: float) -> None:
    """By twelve orders of magnitude apart, and the clock of a real log: within 5e-7 of the mean."""
    rng = np.random.default_rng(1)
    for _ in range(4):
        work = 10.0 ** (rng.uniform(2, 6, 4) if later else rng.uniform(-6, 6, 4))
        submit = later + np.sort(np.where(rng.random(4) < 0.5, 0, 10.0 ** rng.uniform(-6, 6, 4)))
        problem = replace(
            two_and_one_later(0.0), jobs=jobs_of([0] * 4, work.tolist(), submit.tolist())
        )
        best = exhaustive(problem, limits=Limits(), seed=0)
        assert best.status is Status.OPTIMAL
        assert problem.check(best.solution) == []
        value = problem.evaluate(best.solution).objective
        assert value * (1 - 6e-7) <= best.bound <= value * (1 + 1e-9)


@examples(15)
@given(problem=elastic_problems(max_jobs=4, free=True), data=st.data())
def test_no_prefix_is_bounded_above_the_optimum_of_an_order_that_begins_with_it(
    problem: ElasticProblem, data: st.DataObject
) -> None:
    tables = Tables(problem)
    completed = enumerate(ends(tables, by_worth(tables, tables.fastest_s)))
    submitted = [(submit_s, 0, -1) for submit_s in tables.submit_s[1:]]
    both = sorted([*submitted, *((end, 1, j) for j, end in completed)])
    events = tuple(event for _, _, event in both)
    programs = Orders(tables, Limits())
    whole = programs.solve(events, np.inf)
    begun = programs.solve(events[: data.draw(st.integers(0, len(events)))], np.inf)
    assert 0 < begun.value <= whole.value * (1 + 1e-6)


def test_jobs_with_all_clocks_on_sixteen_gpus_are_proven() -> None:
    problem = small(seed=1, size=4, gpus=16, hours=0.2, restarts=False)
    best = solved(problem, "exhaustive")
    assert best.status is Status.OPTIMAL
    for name in ("afs", "elastic-srtf", "optimal"):
        assert value(problem, solved(problem, name)) >= value(problem, best) * (1 - 1e-6), name


def test_of_two_alike_the_one_that_is_shorter_and_there_before_completes_first() -> None:
    problem = two_and_one_later(5.0)
    assert dominated(problem) == [set(), {0}, {0, 1}]
    later = replace(problem, jobs=jobs_of([0, 0, 0], [10, 9, 8], [0, 0, 5]))
    assert dominated(later) == [{1}, set(), set()]


# -- starts that take time: below every schedule, tried one by one -------------------------


STARTS = Overhead(2.0, 1.0, 0.0)

Held = tuple[int, int] | None


def proven(problem: ElasticProblem, found: float = np.inf) -> float:
    """Mean completion − submission, s."""
    search = OrderSearch(problem, Limits(), True, found=found, most=400)
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
    known = exhaustive(problem, limits=Limits(), seed=0)
    assert known.bound == pytest.approx(start + 60.0, rel=1e-5)
    if free:
        assert known.status is Status.OPTIMAL
        assert value(problem, known) == pytest.approx(60.0)


def test_a_bound_holds_at_whatever_prices_the_solver_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts that cost time, and such that cost none."""
    problem = drawn(np.random.default_rng(5), 2, 1)
    best, rng = best_by_events(problem), np.random.default_rng(0)
    right = Growing.duals.fget

    def wrong(self: Any) -> np.ndarray:
        duals: np.ndarray = right(self)
        return duals * rng.uniform(-0.2, 1.5, len(duals))  # some of a sign that proves nothing

    monkeypatch.setattr(Growing, "duals", property(wrong))
    for _ in range(3):
        assert proven(problem, best * 2 * (1 + 1e-9)) <= best * (1 + 1e-9)
    problem = two_and_one_later(12.0)
    found = exhaustive(problem, limits=Limits(10), seed=0)
    assert found.bound <= 10
    assert problem.evaluate(found.solution).objective >= 10 * (1 - 1e-9)


def test_three_jobs_of_fitted_models_are_certified_and_too_few_programs_are_named() -> None:
    problem = small(seed=0, size=3, gpus=8, hours=0.1)
    found = offline(problem, limits=Limits(), seed=0, runs=60)
    assert "starts" in found.bound_by
    assert found.claimed <= found.bound * 1.02
    assert "search ended" not in found.message
    few = exhaustive(problem, limits=Limits(), seed=0, programs=1)
    assert few.message == "the bound's search ended after 1 program; more may prove more"
    assert few.bound < found.bound
