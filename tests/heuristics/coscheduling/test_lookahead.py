from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from strategies_coscheduling import three_jobs

from optgap.heuristics.coscheduling import CUSTOM
from optgap.heuristics.coscheduling.engine import State, replay
from optgap.heuristics.coscheduling.replayed import Replay
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


@pytest.mark.parametrize("params", [{"tau": -1.0}, {"window": -1}, {"breadth": 0}])
def test_a_parameter_out_of_range_is_named(params: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(params))):
        energy(three_jobs(), "lookahead", **params)


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


def test_profiling_costs_the_power_of_every_mode_for_its_time() -> None:
    problem = three_jobs()
    load = POLICIES["ecosched"].load()
    outcome = load(problem, limits=Limits(), seed=0, profiling_s=10.0, count_profiling=True)
    watts = sum(m.power_w for app in problem.applications for m in app.modes)
    node_j = problem.evaluate(outcome.solution).metrics["energy_j"]
    assert outcome.info["profiling_j"] == pytest.approx(10 * watts)
    assert outcome.info["energy_with_profiling_j"] == pytest.approx(node_j + 10 * watts)


def test_a_fitted_signal_stands_in_for_run_times(tmp_path: Path) -> None:
    times = {1: 10.0, 2: 5.0}
    app = Application("a", tuple(Mode(g, t, 100.0, 1 / t) for g, t in times.items()))
    problem = CoschedulingProblem.of([app], gpus=2, numa=1)
    groups = [{"group": "a", "params": {"a": {"value": 0.0}, "b": {"value": 1.0}}}]
    fit = {"schema": "optgap.fit/1", "model": "dram-runtime", "groups": groups}
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fit))
    fitted = energy(problem, "ecosched", signal="fitted", model=str(path))
    assert fitted == energy(problem, "ecosched")
    for wrong in ({"signal": "fitted"}, {"model": str(path)}):
        with pytest.raises(InputError, match="model"):
            energy(problem, "ecosched", **wrong)


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


def test_marble_without_the_numa_limit_needs_a_problem_without_it() -> None:
    pool = [Application(f"a{k}", (Mode(1, 10.0, 100.0),)) for k in range(4)]
    tight, free = (CoschedulingProblem.of(pool, numa=numa) for numa in (2, 4))
    assert energy(free, "marble", numa_limit=False) < energy(tight, "marble")
    with pytest.raises(InputError, match="numa=4"):
        energy(tight, "marble", numa_limit=False)


def test_a_log_is_played_again_with_the_profiles_run_times(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("app,gpu_count,start_s,end_s\nY,4,0,111\nX,2,111,300\nZ,1,111,270\n")
    problem = three_jobs()
    load = CUSTOM.load()
    own = {"policy": Replay, "policy_params": {"schedule": str(path)}}
    outcome = load(problem, limits=Limits(), seed=0, **own)
    assert problem.evaluate(outcome.solution).objective == pytest.approx(299_300)
    path.write_text("app,gpu_count,start_s,end_s\nY,4,0,111\n")
    with pytest.raises(InputError, match="1 of 3 jobs"):
        load(problem, limits=Limits(), seed=0, **own)
    with pytest.raises(InputError, match="schedule"):
        load(problem, limits=Limits(), seed=0, policy=Replay)
