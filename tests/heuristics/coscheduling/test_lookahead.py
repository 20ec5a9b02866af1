from __future__ import annotations

from typing import Any

import pytest
from strategies_coscheduling import three_jobs

from optgap.heuristics.coscheduling.engine import State, replay
from optgap.models.coscheduling import Application, CoschedulingProblem, Mode
from optgap.models.coscheduling.presets import stream, synthetic
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.registry import FAMILIES

POLICIES = FAMILIES["coscheduling"].policies


def energy(problem: CoschedulingProblem, policy: str, **params: Any) -> float:
    outcome = POLICIES[policy].load()(problem, limits=Limits(), seed=0, **params)
    assert problem.check(outcome.solution) == []
    assert problem.serves_all(outcome.solution)
    return float(problem.evaluate(outcome.solution).metrics["energy_j"])


def test_looking_ahead_takes_less_energy_than_ecosched_on_every_synthetic_queue() -> None:
    for seed in range(5):
        problem = synthetic(seed=seed)
        assert energy(problem, "lookahead") < energy(problem, "ecosched")


def test_run_times_in_another_unit_lead_to_the_same_decisions() -> None:
    base = synthetic(seed=2, size=8)
    slow = [
        Application(
            app.name,
            tuple(Mode(m.gpu_count, 60 * m.runtime_s, m.power_per_gpu_w) for m in app.modes),
        )
        for app in base.applications
    ]
    longer = CoschedulingProblem.of(slow, base.jobs)
    plans = []
    for problem in (base, longer):
        outcome = POLICIES["lookahead"].load()(problem, limits=Limits(), seed=0)
        plans.append([(run.job, run.gpu_count) for run in outcome.solution.runs])
    assert plans[0] == plans[1]


def test_how_long_a_job_will_run_is_not_known_before_it_has() -> None:
    """Two problems that differ in one job's run times only: the first decision is the same."""
    one = three_jobs()
    first = []
    for factor in (1, 50):
        modes = tuple(
            Mode(m.gpu_count, m.runtime_s * factor, m.power_per_gpu_w)
            for m in one.applications[0].modes
        )
        problem = CoschedulingProblem.of([Application("X", modes), *one.applications[1:]])
        outcome = POLICIES["lookahead"].load()(problem, limits=Limits(), seed=0)
        runs = outcome.solution.runs
        first.append([(run.job, run.gpu_count) for run in runs if run.start_s == 0])
    assert first[0] == first[1]


def test_a_parameter_out_of_range_is_named() -> None:
    with pytest.raises(InputError, match="tau"):
        energy(three_jobs(), "lookahead", tau=-1.0)


@pytest.mark.parametrize("policy", ["ecosched", "marble", "lookahead", "exact-window"])
def test_policies_are_not_told_of_jobs_that_are_still_to_come(policy: str) -> None:
    problem = stream(seed=3, size=6, between_s=40.0)
    assert energy(problem, policy) > 0


def test_the_event_loop_shows_who_runs_since_when() -> None:
    one = three_jobs()
    problem = CoschedulingProblem.of(one.applications, [2, 0, 0], releases=[0.0, 20.0, 500.0])
    seen: list[State] = []

    def choose(state: State) -> list[tuple[int, int]]:
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
    outcome = POLICIES["ecosched"].load()(problem, limits=Limits(), seed=0, signal="fitted")
    assert [run.gpu_count for run in outcome.solution.runs] == [1]
    blind = CoschedulingProblem.of([Application("a", (Mode(1, 1.0, 1.0), Mode(2, 1.0, 1.0)))])
    with pytest.raises(InputError, match="models="):
        energy(blind, "ecosched", signal="fitted")


def test_energies_are_normalised_over_all_counts_or_over_those_kept() -> None:
    # on 1 GPU the least energy, but too slow for τ
    app = Application("a", (Mode(1, 30.0, 100.0), Mode(2, 16.0, 120.0), Mode(4, 15.0, 130.0)))
    other = Application("b", (Mode(2, 10.0, 100.0),))
    problem = CoschedulingProblem.of([app, other], [0, 1, 1])
    first = {}
    for over in ("all", "kept"):
        load = POLICIES["ecosched"].load()
        outcome = load(problem, limits=Limits(), seed=0, idle_weight=0.0, normalise=over)
        first[over] = outcome.solution.runs[0].job
    assert first == {"all": 1, "kept": 0}
    with pytest.raises(InputError, match="normalise"):
        energy(problem, "ecosched", normalise="some")
