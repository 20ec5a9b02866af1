from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from exhaustive_coscheduling import exhaustive
from hypothesis import given
from strategies_coscheduling import coscheduling_problems, three_jobs
from trust.agreement import examples

from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.coscheduling.presets import from_csv, synthetic
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.registry import FAMILIES
from optgap.solvers.coscheduling import METHODS, auto, auto_bound
from optgap.solvers.coscheduling.patterns import patterns

POLICIES = FAMILIES["coscheduling"].policies


def solved(problem: CoschedulingProblem, method: str, **params: Any) -> Outcome:
    function = exhaustive if method == "exhaustive" else METHODS[method].load()
    outcome: Outcome = function(problem, limits=Limits(60), seed=0, **params)
    return outcome


def value(problem: CoschedulingProblem, outcome: Outcome) -> float:
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return problem.evaluate(outcome.solution).objective


@pytest.mark.parametrize("method", ["oracle", "exhaustive"])
def test_three_jobs_take_what_was_worked_out_by_hand(method: str) -> None:
    problem = three_jobs()
    outcome = solved(problem, method)
    assert outcome.status is Status.OPTIMAL
    assert value(problem, outcome) == pytest.approx(299_300)
    assert solved(problem, "bound-area").bound == pytest.approx(276_900)


@examples(10)
@given(problem=coscheduling_problems())
def test_bounds_are_below_the_optimum_and_policies_above(problem: CoschedulingProblem) -> None:
    truth = value(problem, solved(problem, "exhaustive"))
    slack = 1e-6 * max(1.0, truth)
    for method in ("bound-area", "bound-patterns"):
        bound = solved(problem, method).bound
        assert bound <= truth + slack, method
    best = solved(problem, "oracle")
    assert best.bound <= truth + slack
    assert value(problem, best) >= truth - slack
    assert value(problem, best) == pytest.approx(best.claimed)
    if best.status is Status.OPTIMAL:
        assert value(problem, best) == pytest.approx(truth, rel=2e-6)
    for name, entry in POLICIES.items():
        found = entry.load()(problem, limits=Limits(), seed=0)
        assert value(problem, found) >= truth - slack, name


@pytest.mark.parametrize("goal", ["energy", "makespan", "edp"])
def test_the_oracle_proves_what_exhaustive_search_finds(goal: Any) -> None:
    full = synthetic(seed=3, size=5, goal=goal)
    best, every = solved(full, "oracle"), solved(full, "exhaustive")
    assert best.status is Status.OPTIMAL
    assert value(full, best) == pytest.approx(value(full, every), rel=2e-6)


def test_the_pattern_bound_is_above_the_area_bound_on_a_whole_queue() -> None:
    problem = synthetic(seed=0)
    near, far = solved(problem, "bound-patterns").bound, solved(problem, "bound-area").bound
    assert near > far


def test_patterns_are_those_that_no_further_count_fits_into() -> None:
    pool = [Application("a", tuple(Mode(g, 1.0, 1.0) for g in (1, 2, 3, 4)))]
    problem = CoschedulingProblem.of(pool, [0] * 5)
    assert sorted(patterns(problem) or []) == [(1, 1), (2, 1), (2, 2), (3, 1), (4,)]
    huge = CoschedulingProblem.of(
        [Application("a", tuple(Mode(g, 1.0, 1.0) for g in range(1, 60)))],
        [0] * 60,
        gpus=60,
        numa=60,
    )
    assert patterns(huge) is None
    assert auto_bound(huge) == "bound-area"
    assert auto_bound(problem) == "bound-patterns"
    assert auto(problem) == "oracle"
    with pytest.raises(InputError, match="patterns"):
        solved(huge, "bound-patterns")


def test_run_times_that_are_no_decimals_keep_bounds_below() -> None:
    pool = [
        Application(f"a{k}", (Mode(1, (k + 1) / 3, 100 / 7), Mode(2, 1 / 7, 50))) for k in range(3)
    ]
    problem = CoschedulingProblem.of(pool, gpus=2, idle_w=1 / 3)
    truth = value(problem, solved(problem, "exhaustive"))
    best = solved(problem, "oracle")
    assert value(problem, best) == pytest.approx(truth, rel=1e-3)
    assert best.bound <= truth * (1 + 1e-6)


def test_the_authors_main_queue_on_h100_is_bounded_tightly(data_dir: Path, tmp_path: Path) -> None:
    profiles = data_dir / "profiles" / "ecosched" / "h100_profiles.csv"
    names = dict.fromkeys(line.split(",")[2] for line in profiles.read_text().splitlines()[1:])
    queued = {"vgg16": 6, "resnet50": 4}
    rows = [f"{name},{queued.get(name, 1)}" for name in names]
    (tmp_path / "jobs.csv").write_text("\n".join(["app,count", *rows]) + "\n")
    problem = from_csv(profiles, tmp_path / "jobs.csv", seed=0)
    assert len(problem) == 25
    # the oracle attains 445,012.97 J
    assert solved(problem, "bound-patterns").bound == pytest.approx(445_013, rel=1e-5)
    for policy in POLICIES.values():
        outcome = policy.load()(problem, limits=Limits(), seed=0)
        assert value(problem, outcome) > 445_012.9


@pytest.mark.parametrize("goal", ["energy", "makespan", "edp"])
def test_times_of_different_scales_keep_the_bound_below_the_optimum(goal: Any) -> None:
    pool = [
        Application("short", (Mode(1, 1e-4 / 3, 0.01), Mode(2, 2e-4 / 7, 0.01))),
        Application("long", (Mode(1, 1e6 / 3, 1e4), Mode(2, 2e5, 1e4))),
        Application("odd", (Mode(1, 2 / 3, 1e3),)),
    ]
    problem = CoschedulingProblem.of(pool, [0, 0, 1, 2], gpus=2, idle_w=70.0, goal=goal)
    truth = value(problem, solved(problem, "exhaustive"))
    best = solved(problem, "oracle")
    assert best.bound <= truth * (1 + 1e-6)
    assert value(problem, best) >= truth * (1 - 1e-9)
