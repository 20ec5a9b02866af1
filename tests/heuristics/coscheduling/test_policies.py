from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_coscheduling import coscheduling_problems, three_jobs

from optgap.heuristics.coscheduling import CUSTOM
from optgap.heuristics.coscheduling.ecosched import best_action
from optgap.models.coscheduling import Application, CoschedulingProblem, CoschedulingSolution, Mode
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.registry import FAMILIES

POLICIES = FAMILIES["coscheduling"].policies


def run(problem: CoschedulingProblem, policy: str, **params: Any) -> CoschedulingSolution:
    outcome = POLICIES[policy].load()(problem, limits=Limits(), seed=0, **params)
    solution: CoschedulingSolution = outcome.solution
    assert problem.check(solution) == []
    return solution


def plan(solution: CoschedulingSolution) -> list[tuple[int, int, float]]:
    return [(run.job, run.gpu_count, run.start_s) for run in solution.runs]


@pytest.mark.parametrize(
    ("policy", "params", "schedule", "energy"),
    [
        ("sequential_max_gpu", {}, [(0, 4, 0), (1, 4, 160), (2, 4, 260)], 432_050),
        ("sequential_optimal_gpu", {}, [(0, 4, 0), (1, 4, 160), (2, 2, 260)], 394_200),
        ("marble", {}, [(0, 4, 0), (1, 4, 160), (2, 2, 260)], 394_200),
        ("ecosched", {"idle_weight": 0.5}, [(1, 4, 0), (0, 2, 100), (2, 1, 100)], 299_300),
        ("ecosched", {"idle_weight": 0.1}, [(0, 2, 0), (2, 1, 0), (1, 4, 180)], 299_300),
        ("ecosched", {"idle_weight": 0.0}, [(0, 2, 0), (2, 1, 0), (1, 4, 180)], 299_300),
        ("ecosched", {"idle_weight": 2.0}, [(1, 4, 0), (0, 3, 100), (2, 1, 100)], 322_100),
    ],
)
def test_three_jobs_go_as_worked_out_by_hand(
    policy: str, params: dict[str, Any], schedule: list[tuple[int, int, float]], energy: float
) -> None:
    problem = three_jobs()
    if policy == "ecosched":
        params = {"tau": 0.15, "normalise": "all", **params}
    solution = run(problem, policy, **params)
    assert plan(solution) == schedule
    assert problem.evaluate(solution).metrics["energy_j"] == pytest.approx(energy)


@given(problem=coscheduling_problems(max_jobs=7, max_gpus=6))
def test_every_policy_runs_every_job_and_breaks_nothing(problem: CoschedulingProblem) -> None:
    for policy in POLICIES:
        assert problem.serves_all(run(problem, policy))
    assert problem.serves_all(run(problem, "ecosched", signal="noisy", window=2))


def test_marble_passes_over_what_does_not_fit() -> None:
    pool = [Application(n, (Mode(g, 10.0, 100.0),)) for n, g in (("a", 3), ("b", 2), ("c", 1))]
    problem = CoschedulingProblem.of(pool)
    assert plan(run(problem, "marble")) == [(0, 3, 0), (2, 1, 0), (1, 2, 10)]


@given(
    modes=st.lists(
        st.dictionaries(st.integers(1, 4), st.sampled_from((0.0, 0.1, 0.25, 0.5)), min_size=1),
        min_size=1,
        max_size=5,
    ),
    free=st.integers(1, 4),
    places=st.integers(1, 3),
    weight=st.sampled_from((0.0, 0.2, 1.0)),
)
def test_the_chosen_action_is_the_best_of_all(
    modes: list[dict[int, float]], free: int, places: int, weight: float
) -> None:
    offers = [(job, tuple(sorted(m.items()))) for job, m in enumerate(modes)]
    ranked = []
    for size in range(1, places + 1):
        for picked in combinations(offers, size):
            for counts in product(*(m for _, m in picked)):
                used = sum(g for g, _ in counts)
                if used <= free:
                    score = sum(r for _, r in counts) / size + weight * (free - used) / 4
                    action = [(job, g) for (job, _), (g, _) in zip(picked, counts, strict=True)]
                    ranked.append((round(score, 9), -used, -size, action))
    expected = min(ranked)[3] if ranked else []
    assert best_action(offers, free, places, weight, 4) == expected


def test_sampled_memory_traffic_stands_in_for_run_times() -> None:
    twice = Application("a", (Mode(1, 10, 100, 0.2), Mode(2, 10, 100, 0.4)))
    none = Application("b", (Mode(1, 10, 100, 0.0), Mode(2, 5, 100, 0.0)))
    problem = CoschedulingProblem.of([twice, none], gpus=2, numa=1)
    solution = run(problem, "ecosched", signal="dram", idle_weight=0.0)
    assert sorted((job, count) for job, count, _ in plan(solution)) == [(0, 2), (1, 1)]


@pytest.mark.parametrize(
    "params",
    [{"tau": -1.0}, {"window": -1}, {"signal": "psychic"}, {"sigma": -1.0}, {"idle_weight": -2}],
)
def test_a_parameter_out_of_range_is_named(params: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(params))):
        run(three_jobs(), "ecosched", **params)


class _Own:
    def __init__(self, count: int = 4) -> None:
        self.count = count

    def place(self, state: Any) -> list[tuple[int, int]]:
        return [] if state.running else [(state.waiting[0], self.count)]


def test_a_policy_of_ones_own_runs() -> None:
    problem = three_jobs()
    outcome = CUSTOM.load()(
        problem, limits=Limits(), seed=0, policy=_Own, policy_params={"count": 2}
    )
    assert problem.check(outcome.solution) == []
    assert [count for _, count, _ in plan(outcome.solution)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda state: [], "nothing"),
        (lambda state: [(0, 9)], "one of 1, 2, 3, 4 GPUs"),
        (lambda state: [(7, 1)], "a job that waits"),
        (lambda state: [(0, 1), (0, 1)], "a job that waits, once"),
        (lambda state: [(0, 4), (1, 1)], "at most 0 GPUs"),
        (lambda state: [(0, 1), (1, 1), (2, 1)], "2 jobs"),
        (lambda state: [5], "pairs"),
        (lambda state: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_wrong_answer_of_ones_own_policy_is_told_in_one_line(answer: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        CUSTOM.load()(three_jobs(), limits=Limits(), seed=0, policy=answer)


def test_a_policy_that_is_out_of_time_says_so() -> None:
    limits = Limits()
    limits.interrupted.set()
    outcome = POLICIES["marble"].load()(three_jobs(), limits=limits, seed=0)
    assert outcome.solution is None
    assert outcome.status is Status.NO_SOLUTION
    assert outcome.termination is Termination.INTERRUPTED
