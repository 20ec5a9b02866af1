from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies_elastic import CLOCKS, JOB_A, jobs_of, table, two_jobs

from optgap.models.csvout import csv_text
from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind, presets
from optgap.models.elastic.modelfile import read_models
from optgap.models.elastic.pools import BATCHES, classes
from optgap.models.elastic.tables import Trained, job_class
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.performance import EnergyModel, ThroughputModel
from optgap.registry import FAMILIES

POLICIES = FAMILIES["elastic"].policies

RUN, RESTART = int(Kind.RUN), int(Kind.RESTART)


def solution(*segments: tuple[Any, ...], **more: Any) -> ElasticSolution:
    return ElasticSolution.of(segments, **more)  # type: ignore[arg-type]


def broken(problem: ElasticProblem, *segments: tuple[Any, ...], **more: Any) -> list[str]:
    return [v.constraint for v in problem.check(solution(*segments, **more))]


# -- formulas ------------------------------------------------------------------------------

EXAMPLE = Trained(
    "example",
    ThroughputModel(
        {
            "a_io_s": 0.004, "b_io_s": 2e-5, "a_grad_s": 0.006, "b_grad_s": 4e-4,
            "k_grad_s_mhz": 1.2, "A_local_s_mhz": 6, "K_local_s_mhz": 1.5, "B_local_s": 0.002,
            "theta_local_s": 0.004, "A_node_s_mhz": 15, "K_node_s_mhz": 3, "B_node_s": 0.004,
            "theta_node_s": 0.010, "gamma1": 2, "gamma2": 1.5,
        }
    ),
    # in GHz; both branches agree at 800 MHz
    EnergyModel(
        {
            "f0_mhz": 800, "theta": 4, "beta": 0.5, "static_w": 32,
            "grad_b_low_w": 4, "grad_a_low_w": 20, "sync_b_low_w": 10, "sync_a_low_w": 20,
            "grad_d_high_w": 10.08 - 0.0, "grad_c_high_w": 10, "grad_b_high_w": -5,
            "grad_a_high_w": 10, "sync_d_high_w": 6.16, "sync_c_high_w": 20,
            "sync_b_high_w": -10, "sync_a_high_w": 20,
        },
        "printed",
    ),
)  # fmt: skip


def test_tables_hold_the_times_and_energies_worked_out_by_hand() -> None:
    item = job_class(EXAMPLE, 64, [600.0, 1200.0], gpus=8, gpus_per_node=4)
    assert item.counts == (1, 2, 4, 8)
    assert item.time_s[:, 1] == pytest.approx([0.095746, 0.053562, 0.036031, 0.067737], rel=1e-4)
    energy = item.time_s * item.power_w
    assert energy[:, 1] == pytest.approx([19.1059, 19.3905, 22.8090, 63.9772], rel=1e-4)
    assert energy[:, 0] == pytest.approx([17.1617, 16.9883, 19.0135, 50.3660], rel=1e-4)
    assert item.power_w[:, 1] == pytest.approx([199.548, 362.017, 633.039, 944.499], rel=1e-4)


@pytest.mark.parametrize("pool", list(BATCHES))
def test_every_pool_has_positive_times_and_powers_below_the_boards_limit(pool: str) -> None:
    from optgap.models.elastic.pools import BOARDS

    for item in classes(pool, 64, 8):
        assert (item.time_s > 0).all()
        assert (np.diff(item.time_s, axis=1) < 0).all(), item.label  # a higher clock is faster
        per_gpu = item.power_w / np.array(item.counts)[:, None]
        assert (per_gpu > 0).all()
        assert (per_gpu <= BOARDS[pool].limit_w).all(), item.label


# -- the door ------------------------------------------------------------------------------


def made(**changes: Any) -> ElasticProblem:
    given: dict[str, Any] = {"gpus": 4, "gpus_per_node": 4, "eta": 0.8, "p_max_w": 150.0}
    given.update(changes)
    classes_ = given.pop("classes", [table("A", *JOB_A)])
    jobs = given.pop("jobs", jobs_of([0], [10]))
    clocks = given.pop("clocks", CLOCKS)
    return ElasticProblem.of(classes_, jobs, clocks, **given)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"eta": 1.5}, "from 0 to 1"),
        ({"eta": -0.1}, "from 0 to 1"),
        ({"gpus": 6}, "multiple"),
        ({"gpus_per_node": 3}, "power of two"),
        ({"clocks": [1000, 900, 1400]}, "ascending"),
        ({"eta": 0.1}, "needs to run"),
        ({"jobs": jobs_of([0], [0])}, "iterations"),
        ({"jobs": jobs_of([1], [5])}, "class"),
        ({"jobs": jobs_of([0], [5], requested=[8])}, "one of 1, 2, 4"),
        ({"jobs": jobs_of([0], [5], submit_s=[-1.0])}, "submit_s"),
        ({"classes": [table("A", [[1, -1, 1]], [[1, 1, 1]])]}, "time_s at 1 GPUs, 1200 MHz"),
        ({"classes": [table("A", [[1, 1, 1]], [[1, 1, 0]])]}, "power_w at 1 GPUs, 1400 MHz"),
        ({"cap": "energy"}, "one of power, none"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(changes: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        made(**changes)


def test_jobs_are_sorted_with_a_note_and_batches_limit_gpus() -> None:
    problem = made(jobs=jobs_of([0, 0], [10, 20], submit_s=[5.0, 1.0]))
    assert problem.jobs.names == ("b", "a")
    assert "sorted" in str(problem)
    small = made(classes=[table("A", *JOB_A, batch=2)])
    assert small.classes[0].counts == (1, 2)


# -- the referee ---------------------------------------------------------------------------


def test_an_unfinished_job_is_no_violation_but_does_not_count() -> None:
    problem = two_jobs()
    plan = solution((0, 0, 600, RUN, 2, 0, -1))
    assert problem.check(plan) == []
    assert not problem.serves_all(plan)
    assert problem.evaluate(plan).objective == pytest.approx(600)
    assert problem.restrict(plan).jobs.names == ("a",)


# -- files ---------------------------------------------------------------------------------


def test_timeline_and_series_tell_the_same_story() -> None:
    problem = two_jobs()
    outcome = POLICIES["powerflow"].load()(problem, limits=Limits(), seed=0, profiles="perfect")
    rows = csv_text(*outcome.solution.timeline(problem)).splitlines()
    assert rows[0] == "time_s,job,event,gpus,frequency_mhz"
    assert rows[1:5] == [
        "0.0,a,submit,0,0.0", "0.0,b,submit,0,0.0", "0.0,a,run,2,1200.0", "0.0,b,run,2,1000.0",
    ]  # fmt: skip
    assert sum(",complete," in row for row in rows) == 2
    power = csv_text(*outcome.solution.series(problem)).splitlines()
    assert power[1].split(",")[1:4] == ["2", "4", "470.000"]
    assert power[-1].split(",")[1:4] == ["0", "0", "0.000"]


def test_models_come_as_tables_or_as_parameters(tmp_path: Path) -> None:
    document = {
        "schema": "optgap.elastic.models/1",
        "frequencies_mhz": list(CLOCKS),
        "models": [
            {
                "name": "A",
                "tables": [{"counts": [1, 2, 4], "time_s": JOB_A[0], "power_w": JOB_A[1]}],
            },
            {
                "name": "example",
                "form": "printed",
                "time": dict(EXAMPLE.time.parameters),
                "energy": dict(EXAMPLE.energy.parameters),
            },
        ],
    }
    path = tmp_path / "models.json"
    path.write_text(json.dumps(document))
    found = read_models(path)
    assert found.clocks is not None
    a = found.makers["A"](64, found.clocks, 4, 4)
    assert a.time_s[1].tolist() == list(JOB_A[0][1])
    b = found.makers["example"](64, np.array([1200.0]), 8, 4)
    assert b.time_s[0, 0] == pytest.approx(0.095746, rel=1e-4)


def test_the_traces_in_the_data_folder_can_be_read(data_dir: Path) -> None:
    folder = data_dir / "profiles" / "traces"
    names = ("adaptdl/workload-1.csv", "sia/saturn_workload-1.csv", "gavel_msr/0e4a51_seed0.csv",
             "elasticflow/philly_103959.csv", "philly_jobs.csv.gz")  # fmt: skip
    for name in names:
        problem = presets.from_csv(trace=folder / name, seed=0, gpus=64, size=50)
        assert len(problem) == 50
        assert (np.diff(problem.jobs.submit_s) >= 0).all()


def test_every_job_asks_for_as_many_gpus_where_that_is_set() -> None:
    assert set(presets.small(seed=0, size=10, requested=4).jobs.requested.tolist()) == {4}
    assert len(set(presets.small(seed=0).jobs.requested.tolist())) > 1
    with pytest.raises(InputError, match="requested: found 3, expected 0, or one of 1, 2, 4"):
        presets.small(seed=0, requested=3)
