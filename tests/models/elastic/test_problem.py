from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from powerflow import ENERGY, TIME
from strategies_elastic import CLOCKS, JOB_A, jobs_of, table, two_jobs

from optgap.models.elastic import ElasticProblem, ElasticSolution, Kind, presets
from optgap.models.elastic.modelfile import read_models
from optgap.models.elastic.pools import BATCHES, classes
from optgap.models.elastic.tables import maker_of
from optgap.models.elastic.traces import Trace, read_trace
from optgap.models.errors import InputError
from optgap.models.performance import EnergyModel, ThroughputModel
from optgap.registry import FAMILIES

POLICIES = FAMILIES["elastic"].policies

RUN, RESTART = int(Kind.RUN), int(Kind.RESTART)


def solution(*segments: tuple[Any, ...], **more: Any) -> ElasticSolution:
    return ElasticSolution.of(segments, **more)  # type: ignore[arg-type]


# -- formulas ------------------------------------------------------------------------------

EXAMPLE = maker_of("example", ThroughputModel(TIME), EnergyModel(ENERGY, "printed"))


def test_tables_hold_the_times_and_energies_worked_out_by_hand() -> None:
    item = EXAMPLE(64, np.array([600.0, 1200.0]), 8, 4)
    assert item.counts == (1, 2, 4, 8)
    assert item.time_s[:, 1] == pytest.approx([0.095746, 0.053562, 0.036031, 0.067737], rel=2e-5)
    energy = item.time_s * item.power_w
    assert energy[:, 1] == pytest.approx([19.1059, 19.3905, 22.8090, 63.9772], rel=2e-5)
    assert energy[:, 0] == pytest.approx([17.1617, 16.9883, 19.0135, 50.3660], rel=2e-5)
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
        ({"eta": -0.1}, "from 0 to 1"),
        ({"gpus_per_node": 3}, "power of two"),
        ({"clocks": [1000, 900, 1400]}, "ascending"),
        ({"jobs": jobs_of([0], [0])}, "iterations"),
        ({"jobs": jobs_of([1], [5])}, "class"),
        ({"jobs": jobs_of([0], [5], requested=[8])}, "one of 1, 2, 4"),
        ({"jobs": jobs_of([0], [5], submit_s=[-1.0])}, "submit_s"),
        ({"classes": [table("A", [[1, -1, 1]], [[1, 1, 1]])]}, "time_s at 1 GPUs, 1200 MHz"),
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


def test_models_come_as_tables(tmp_path: Path) -> None:
    rows = {"counts": [1, 2, 4], "time_s": JOB_A[0], "power_w": JOB_A[1]}
    for model, said in (({"tables": [rows]}, ""), ({"time": {}, "energy": {}}, "tables")):
        document = {"frequencies_mhz": CLOCKS, "models": [{"name": "A", **model}]}
        path = tmp_path / "models.json"
        path.write_text(json.dumps({"schema": "optgap.elastic.models/1", **document}))
        if said:
            with pytest.raises(InputError, match=said):
                read_models(path)
            continue
        found = read_models(path)
        assert found.clocks is not None
        assert found.makers["A"](64, found.clocks, 4, 4).time_s[1].tolist() == list(JOB_A[0][1])


def test_the_traces_in_the_data_folder_can_be_read(data_dir: Path) -> None:
    folder = data_dir / "profiles" / "traces"
    for name in ("elasticflow/philly_103959.csv", "philly_jobs.csv.gz"):
        problem = presets.from_csv(trace=folder / name, seed=0, gpus=64, size=50)
        assert len(problem) == 50
        assert (np.diff(problem.jobs.submit_s) >= 0).all()


def test_every_job_asks_for_as_many_gpus_where_that_is_set() -> None:
    assert set(presets.small(seed=0, size=10, requested=4).jobs.requested.tolist()) == {4}
    assert len(set(presets.small(seed=0).jobs.requested.tolist())) > 1
    with pytest.raises(InputError, match="requested: found 3, expected 0, or one of 1, 2, 4"):
        presets.small(seed=0, requested=3)


# -- public traces: what each column becomes, and what is refused --------------------------


PHILLY = "timestamp,duration,num_gpus\n"
ELASTICFLOW = "submit_time,model_name,batch_size,num_gpu,duration\n"

# T_iter at the highest clock: 1 s on one GPU, 0.5 s on two, 0.25 s on four
TIMES = ((2.0, 1.0), (1.0, 0.5), (0.5, 0.25))
WATTS = ((100.0, 150.0), (200.0, 300.0), (400.0, 600.0))
COLUMNS = ("submit_s", "requested", "iterations")
POOL = [table(m, TIMES, WATTS, batch) for m, batch in (("bert", 32), ("bert", 64), ("ncf", 64))]


LEFT_OUT = (
    "2 jobs whose model the pool has not: one like it, or drawn",
    "2 jobs without a duration left out",
    "1 job without num_gpus left out",
)


def read(folder: Path, text: str, **changes: float) -> Trace:
    path = folder / "trace.csv"
    path.write_text(text)
    return read_trace(path, POOL, seed=0, **changes)  # type: ignore[arg-type]


def told(trace: Trace) -> dict[str, Any]:
    """What a trace has become."""
    columns = {name: getattr(trace.jobs, name).tolist() for name in COLUMNS}
    classes = [POOL[c] for c in trace.jobs.of_class]
    named = {"model": [one.model for one in classes], "batch": [one.batch for one in classes]}
    return {**columns, **named, "notes": trace.notes, "origin": trace.origin}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # what took no time or GPU is out, and the first comes at 0 s
            PHILLY + "2017-10-03 12:01:00,30,2\n2017-10-03 12:00:00,10,4\n"
            "2017-10-03 12:02:00,0,1\n2017-10-03 12:03:00,9,0\n2017-10-03 12:03:00,0,9\n",
            {"submit_s": [0.0, 60.0], "requested": [4, 2], "iterations": [10 / 0.25, 30 / 0.5],
             "origin": "Philly trace trace.csv", "notes": LEFT_OUT},
        ),
        (
            ELASTICFLOW + "0,ncf,64,1,120\n0,bert,40,1,1\n",
            {"model": ["ncf", "bert"], "batch": [64, 32], "iterations": [120.0, 1.0], "notes": ()},
        ),
    ],
)  # fmt: skip
def test_columns_of_public_traces_become_jobs(
    text: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    found = told(read(tmp_path, text))
    assert {name: found[name] for name in expected} == expected


def test_what_was_changed_is_counted(tmp_path: Path) -> None:
    found = told(read(tmp_path, ELASTICFLOW + "0,transformer,64,3,9\n0,ncf,64,16,9\n"))
    assert (found["model"], found["requested"]) == (["bert", "ncf"], [4, 4])
    assert found["notes"] == (
        "1 job whose model the pool has not: one like it, or drawn",
        "1 request for GPUs cut to what batch and cluster allow",
        "1 request for GPUs rounded up to a power of two",
    )


def test_a_part_of_a_trace_is_its_first_hours_and_jobs(tmp_path: Path) -> None:
    rows = "".join(f"{1800 * k},ncf,64,1,9\n" for k in (3, 2, 1, 0))
    assert read(tmp_path, ELASTICFLOW + rows, hours=1.0).jobs.submit_s.tolist() == [0, 1800]
    assert read(tmp_path, ELASTICFLOW + rows, size=3).jobs.submit_s.tolist() == [0, 1800, 3600]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "row 1: found nothing, expected a header"),
        ("a,b\n1,2\n", "row 1: found a, b, expected the columns of a Philly or"),
        (PHILLY, "found no jobs"),
        (PHILLY + "2017-10-03 12:00:00,0,1\n", "found no jobs"),
        (PHILLY + "yesterday,1,1\n", "column timestamp: found 'yesterday', expected .* or a date"),
        (PHILLY + "2017-10-03 12:00:00,-1,1\n", "row 2, column duration: found '-1'"),
        (PHILLY + "2017-10-03 12:00:00,1\n", "row 2: found 2 cells, expected 3"),
        (ELASTICFLOW + "0,ncf,64,1,0\n", "row 2, column duration: found '0', expected .* above 0"),
        (ELASTICFLOW + "0,ncf,64,1,1\nx,ncf,64,1,1\n", "row 3, column submit_time: found 'x'"),
        (ELASTICFLOW + "0,ncf,nan,1,1\n", "row 2, column batch_size: found 'nan'"),
        (ELASTICFLOW + "0,ncf,64,1e99,1\n", "row 2, column num_gpu: found '1e99'"),
        (PHILLY + "x" * (1 << 21), "row 2: found a line of more than"),
        (PHILLY + '"' + "2017\n" * 40_000, "row .*: found .*, expected comma-separated cells"),
    ],
)
def test_what_is_wrong_in_a_trace_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)
