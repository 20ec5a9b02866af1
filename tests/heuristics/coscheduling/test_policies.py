from __future__ import annotations

from typing import Any

from hypothesis import given
from strategies_coscheduling import coscheduling_problems, three_jobs

from optgap.heuristics.coscheduling import CUSTOM
from optgap.heuristics.coscheduling.engine import CoschedulingState, replay
from optgap.models.coscheduling import Application, CoschedulingProblem, CoschedulingSolution, Mode
from optgap.models.coscheduling.presets import synthetic
from optgap.models.limits import Limits
from optgap.registry import FAMILIES

POLICIES = FAMILIES["coscheduling"].policies


def run(problem: CoschedulingProblem, policy: str, **params: Any) -> CoschedulingSolution:
    outcome = POLICIES[policy].load()(problem, limits=Limits(), seed=0, **params)
    solution: CoschedulingSolution = outcome.solution
    assert problem.check(solution) == []
    return solution


def plan(solution: CoschedulingSolution) -> list[tuple[int, int, float]]:
    return [(run.job, run.gpu_count, run.start_s) for run in solution.runs]


@given(problem=coscheduling_problems(max_jobs=7, max_gpus=6))
def test_every_policy_runs_every_job_and_breaks_nothing(problem: CoschedulingProblem) -> None:
    for policy in POLICIES:
        assert problem.serves_all(run(problem, policy))
    assert problem.serves_all(run(problem, "ecosched", window=2))


def test_sampled_memory_traffic_stands_in_for_run_times() -> None:
    twice = Application("a", (Mode(1, 10, 100, 0.2), Mode(2, 10, 100, 0.4)))
    none = Application("b", (Mode(1, 10, 100, 0.0), Mode(2, 5, 100, 0.0)))
    problem = CoschedulingProblem.of([twice, none], gpus=2, numa=1)
    solution = run(problem, "ecosched", signal="dram", idle_weight=0.0)
    assert sorted((job, count) for job, count, _ in plan(solution)) == [(0, 2), (1, 1)]


def test_a_policy_of_ones_own_runs() -> None:
    def alone(state: Any, count: int = 4) -> list[tuple[int, int]]:
        return [] if state.running else [(state.waiting[0], count)]

    problem, two = three_jobs(), {"count": 2}
    outcome = CUSTOM.load()(problem, limits=Limits(), seed=0, policy=alone, policy_params=two)
    assert problem.check(outcome.solution) == []
    assert [count for _, count, _ in plan(outcome.solution)] == [2, 2, 2]


# -- looking ahead -----------------------------------------------------------------------------


def slower(problem: CoschedulingProblem, factor: float, which: int) -> CoschedulingProblem:
    """The same with the run times of the first `which` applications times a factor."""
    pool = list(problem.applications)
    for k, app in enumerate(pool[:which]):
        modes = [Mode(m.gpu_count, factor * m.runtime_s, m.power_per_gpu_w) for m in app.modes]
        pool[k] = Application(app.name, tuple(modes))
    return CoschedulingProblem.of(pool, problem.jobs)


def test_looking_ahead_takes_less_energy_than_ecosched_on_every_synthetic_queue() -> None:
    for seed in range(5):
        problem = synthetic(seed=seed)
        far, near = (
            problem.evaluate(run(problem, policy)).metrics["energy_j"]
            for policy in ("lookahead", "ecosched")
        )
        assert far < near


def test_run_times_in_another_unit_lead_to_the_same_decisions() -> None:
    one = synthetic(seed=2, size=8)
    other = slower(one, 60.0, len(one.applications))
    plans = [[row[:2] for row in plan(run(problem, "lookahead"))] for problem in (one, other)]
    assert plans[0] == plans[1]


def test_how_long_a_job_will_run_is_not_known_before_it_has() -> None:
    """Two problems that differ in one job's run times only: the first decision is the same."""
    one = three_jobs()
    plans = [plan(run(problem, "lookahead")) for problem in (one, slower(one, 50.0, 1))]
    first, other = ([row for row in rows if row[2] == 0] for rows in plans)
    assert first == other


def test_the_event_loop_shows_who_runs_since_when() -> None:
    one = three_jobs()
    problem = CoschedulingProblem.of(one.applications, [2, 0, 0], releases=[0.0, 20.0, 500.0])
    seen: list[CoschedulingState] = []

    def choose(state: CoschedulingState) -> list[tuple[int, int]]:
        seen.append(state)
        return [(state.waiting[0], 2)] if state.waiting[0] == 0 else [(state.waiting[0], 1)]

    replay(problem, choose, Limits())
    assert [(s.time_s, s.waiting, s.running, s.started) for s in seen] == [
        (0.0, (0,), (), ()),
        (20.0, (1,), (0,), ((0.0, 2),)),
        (500.0, (2,), (), ()),
    ]


def test_a_fitted_signal_stands_in_for_run_times() -> None:
    fitted = Application("a", (Mode(1, 10.0, 100.0, fitted_s=9.0), Mode(2, 9.5, 100.0, None, 20.0)))
    problem = CoschedulingProblem.of([fitted], gpus=2, numa=1)
    assert [count for _, count, _ in plan(run(problem, "ecosched", signal="fitted"))] == [1]
