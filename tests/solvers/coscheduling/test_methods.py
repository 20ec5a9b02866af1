from __future__ import annotations

from pathlib import Path

import pytest
from exhaustive_coscheduling import exhaustive
from hypothesis import given
from strategies_coscheduling import coscheduling_problems, three_jobs
from trust.agreement import examples
from trust.agreement import outcome_of as solved
from trust.agreement import value_of as value

from optgap.heuristics.coscheduling.regret import regrets
from optgap.models.coscheduling import Application, CoschedulingProblem, CoschedulingSolution, Mode
from optgap.models.coscheduling.presets import from_csv, stream, synthetic
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.registry import FAMILIES
from optgap.solvers.coscheduling import auto, auto_bound
from optgap.solvers.coscheduling.patterns import patterns

POLICIES = FAMILIES["coscheduling"].policies


def test_the_pattern_bound_is_above_the_area_bound_on_a_whole_queue() -> None:
    problem = synthetic(seed=0)
    near, far = solved(problem, "bound-patterns").bound, solved(problem, "bound-area").bound
    assert near > far


def test_the_method_goes_by_the_number_of_patterns() -> None:
    few, huge = (
        CoschedulingProblem.of(
            [Application("a", tuple(Mode(g, 1.0, 1.0) for g in range(1, most)))],
            [0] * jobs, gpus=most, numa=numa,
        )
        for most, jobs, numa in ((5, 5, 2), (60, 60, 60))
    )  # fmt: skip
    assert patterns(huge) is None
    assert auto_bound(huge) == "bound-area"
    assert (auto_bound(few), auto(few)) == ("bound-patterns", "oracle")
    with pytest.raises(InputError, match="patterns"):
        solved(huge, "bound-patterns")


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


# -- the policy that solves its window exactly, and what each start cost -------------------


exact_window = POLICIES["exact-window"].load()


@examples(15)
@given(problem=coscheduling_problems(goals=("energy", "makespan"), max_jobs=4))
def test_with_everything_there_at_once_it_is_optimal(problem: CoschedulingProblem) -> None:
    truth = value(problem, exhaustive(problem, limits=Limits(), seed=0))
    found = value(problem, exact_window(problem, limits=Limits(), seed=0))
    assert found >= truth - 1e-6 * max(1.0, truth)
    if not problem.releases:
        assert found == pytest.approx(truth, rel=2e-6)


def test_a_plan_is_made_anew_only_when_a_job_comes() -> None:
    whole = exact_window(synthetic(seed=0), limits=Limits(), seed=0)
    assert whole.info["plans"] == 1
    few = exact_window(stream(seed=0, size=6), limits=Limits(), seed=0)
    assert 1 < few.info["plans"] <= 6  # type: ignore[operator]
    assert few.info["plans_not_proven"] == 0


def test_a_longer_window_is_worth_something_here() -> None:
    alone = three_jobs(numa=1)  # one after another, each at its cheapest
    outcome = exact_window(alone, limits=Limits(), seed=0, window=1)
    assert value(alone, outcome) == pytest.approx(value(alone, solved(alone, "oracle")))
    problem = synthetic(seed=1)
    short = value(problem, exact_window(problem, limits=Limits(), seed=0, window=3))
    assert short > value(problem, exact_window(problem, limits=Limits(), seed=0)) * 1.001


@examples(12)
@given(problem=coscheduling_problems(goals=("energy", "makespan", "edp")))
def test_what_the_starts_cost_adds_up_to_the_way_from_the_bound(
    problem: CoschedulingProblem,
) -> None:
    solution = POLICIES["marble"].load()(problem, limits=Limits(), seed=0).solution
    found = regrets(problem, solution)
    objective = problem.evaluate(solution).objective
    truth = value(problem, exhaustive(problem, limits=Limits(), seed=0))
    assert len(found) == len(problem)
    assert all(regret.cost >= 0 for regret in found)
    # the bound at time 0 is at most the optimum, and the costs lead from it to the schedule
    assert sum(regret.cost for regret in found) >= (objective - truth) * (1 - 1e-6) - 1e-4 * truth


def test_an_optimal_schedule_has_next_to_no_regrets_and_a_bad_choice_is_named() -> None:
    problem = three_jobs()
    best = solved(problem, "oracle").solution
    assert isinstance(best, CoschedulingSolution)
    bad = POLICIES["sequential_max_gpu"].load()(problem, limits=Limits(), seed=0).solution
    good, poor = regrets(problem, best), regrets(problem, bad)
    assert sum(r.cost for r in good) < 0.2 * sum(r.cost for r in poor)
    x = next(r for r in poor if r.subject == "X")
    assert (x.chosen, x.better) == ("on 4 GPUs", "on 2 GPUs")
    single = CoschedulingProblem.of([Application("a", (Mode(1, 5.0, 100.0),))])
    only = POLICIES["ecosched"].load()(single, limits=Limits(), seed=0).solution
    assert [r.cost for r in regrets(single, only)] == [0.0]
