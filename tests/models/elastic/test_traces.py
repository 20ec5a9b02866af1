"""Public traces of training jobs: what each column becomes, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, refused
from strategies_elastic import table

from optgap.models.elastic.traces import NOMINAL_S, Trace, read_trace
from optgap.models.errors import InputError

PHILLY = "timestamp,duration,num_gpus\n"
GAVEL = "job_type,total_steps,arrival_s,scale_factor\n"
ELASTICFLOW = "submit_time,model_name,batch_size,num_gpu,duration\n"
POLLUX = "name,time,application,num_replicas,batch_size\n"
SIA = "name,time,application,num_replicas,batch_size,duration\n"

# T_iter at the highest clock: 1 s on one GPU, 0.5 s on two, 0.25 s on four
TIMES = ((2.0, 1.0), (1.0, 0.5), (0.5, 0.25))
WATTS = ((100.0, 150.0), (200.0, 300.0), (400.0, 600.0))
POOL = [table(m, TIMES, WATTS, batch) for m, batch in (("bert", 32), ("bert", 64), ("ncf", 64))]


def read(folder: Path, text: str, **changes: float) -> Trace:
    path = folder / "trace.csv"
    path.write_text(text)
    return read_trace(path, POOL, seed=0, **changes)  # type: ignore[arg-type]


def test_philly_jobs_run_as_long_as_recorded_from_the_first_on(tmp_path: Path) -> None:
    rows = "2017-10-03 12:01:00,30,2\n2017-10-03 12:00:00,10,4\n2017-10-03 12:02:00,0,1\n"
    trace = read(tmp_path, PHILLY + rows + "2017-10-03 12:03:00,9,0\n")
    assert trace.jobs.submit_s.tolist() == [0.0, 60.0]  # those that took no time or GPU are out
    assert trace.jobs.requested.tolist() == [4, 2]
    assert trace.jobs.iterations.tolist() == [10 / 0.25, 30 / 0.5]
    assert trace.origin == "Philly trace trace.csv"


def test_gavels_steps_are_those_of_all_workers_and_its_batch_that_of_one(tmp_path: Path) -> None:
    trace = read(tmp_path, GAVEL + "BERT (batch size 16),900,5,2\nBERT (batch size 16),900,6,4\n")
    assert trace.jobs.iterations.tolist() == [450.0, 225.0]
    assert [POOL[c].batch for c in trace.jobs.of_class] == [32, 64]
    assert trace.jobs.submit_s.tolist() == [0.0, 1.0]


def test_elasticflow_names_model_batch_and_duration(tmp_path: Path) -> None:
    trace = read(tmp_path, ELASTICFLOW + "0,ncf,64,1,120\n0,bert,40,1,1\n")
    assert [(POOL[c].model, POOL[c].batch) for c in trace.jobs.of_class] == [
        ("ncf", 64),
        ("bert", 32),
    ]
    assert trace.jobs.iterations.tolist() == [120.0, 1.0]
    assert trace.notes == ()


def test_pollux_has_no_durations_and_sia_has(tmp_path: Path) -> None:
    pollux = read(tmp_path, POLLUX + "a,0,ncf,1,64\n")
    assert pollux.jobs.iterations.tolist() == [NOMINAL_S["ncf"]]
    sia = read(tmp_path, SIA + "a,0,ncf,1,64,77\n")
    assert sia.jobs.iterations.tolist() == [77.0]
    assert sia.origin.startswith("Sia")


def test_what_was_changed_is_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, ELASTICFLOW + "0,transformer,64,3,9\n0,ncf,64,16,9\n")
    assert [POOL[c].model for c in trace.jobs.of_class] == ["bert", "ncf"]
    assert trace.jobs.requested.tolist() == [4, 4]
    assert trace.notes == (
        "1 job whose model the pool has not: one like it, or drawn",
        "1 request for GPUs cut to what batch and cluster allow",
        "1 request for GPUs rounded up to a power of two",
    )


def test_jobs_left_out_are_counted(tmp_path: Path) -> None:
    rows = "0,600,8\n50,0,4\n100,0,1\n200,60,0\n"
    trace = read(tmp_path, f"timestamp,duration,num_gpus\n{rows}")
    assert len(trace.jobs) == 1
    left = ("2 jobs without a duration left out", "1 job without num_gpus left out")
    assert set(left) <= set(trace.notes)


def test_a_part_of_a_trace_is_its_first_hours_and_jobs(tmp_path: Path) -> None:
    rows = "".join(f"{1800 * k},ncf,64,1,9\n" for k in (3, 2, 1, 0))
    assert read(tmp_path, ELASTICFLOW + rows, hours=1.0).jobs.submit_s.tolist() == [0, 1800]
    assert read(tmp_path, ELASTICFLOW + rows, size=3).jobs.submit_s.tolist() == [0, 1800, 3600]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "row 1: found nothing, expected a header"),
        ("a,b\n1,2\n", "row 1: found a, b, expected the columns of a Philly, Gavel"),
        (PHILLY, "found no jobs"),
        (PHILLY + "2017-10-03 12:00:00,0,1\n", "found no jobs"),
        (PHILLY + "yesterday,1,1\n", "column timestamp: found 'yesterday', expected .* or a date"),
        (PHILLY + "2017-10-03 12:00:00,-1,1\n", "row 2, column duration: found '-1'"),
        (PHILLY + "2017-10-03 12:00:00,1\n", "row 2: found 2 cells, expected 3"),
        (ELASTICFLOW + "0,ncf,64,1,0\n", "row 2, column duration: found '0', expected .* above 0"),
        (ELASTICFLOW + "0,ncf,64,1,1\nx,ncf,64,1,1\n", "row 3, column submit_time: found 'x'"),
        (GAVEL + "BERT,nan,0,1\n", "row 2, column total_steps: found 'nan'"),
        (SIA + "a,0,ncf,1e99,64,1\n", "row 2, column num_replicas: found '1e99'"),
        (PHILLY + "x" * (1 << 21), "row 2: found a line of more than"),
        (PHILLY + '"' + "2017\n" * 40_000, "row .*: found .*, expected comma-separated cells"),
    ],
)
def test_what_is_wrong_in_a_trace_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)


def test_a_damaged_archive_is_told_in_one_line(cli: Cli, tmp_path: Path) -> None:
    row = "2017-10-03 12:00:00,100,1\n"
    whole = bytearray(gzip.compress((PHILLY + row * 50).encode()))
    whole[12:-9] = bytes(byte ^ 0x5A for byte in whole[12:-9])
    path, out = tmp_path / "trace.csv.gz", tmp_path / "made.json"
    path.write_bytes(whole)
    answer = cli("generate", "elastic", "--trace", str(path), "-o", str(out))
    refused(answer, "expected a whole gzip file")
    assert not out.exists()


def test_an_archive_is_read_as_its_text(tmp_path: Path) -> None:
    text = GAVEL + "BERT (batch size 16),900,5,2\n"
    packed = tmp_path / "trace.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    one, two = read_trace(packed, POOL, seed=0), read(tmp_path, text)
    assert np.array_equal(one.jobs.iterations, two.jobs.iterations)
