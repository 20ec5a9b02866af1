from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optgap.models.errors import InputError
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.queueing.presets import from_csv, mixed, small
from optgap.models.queueing.workload import DURATIONS_S, GPUS, KINDS, draw


def jobs(**change: Any) -> Jobs:
    """Two jobs of a second on one GPU, the second a second later."""
    columns = {"arrival_s": [0.0, 1.0], "duration_s": [1.0, 1.0], "gpus": [1, 1]}
    return Jobs.of(**{**columns, **change})


def queue(**params: Any) -> QueueingProblem:
    """A job of one GPU and one of eight."""
    return QueueingProblem.of(jobs(gpus=[1, 8], arrival_s=[0, 0]), **params)


@pytest.mark.parametrize(
    ("make", "params", "said"),
    [
        (jobs, {"arrival_s": [0, -1]}, "arrival_s: found -1"),
        (jobs, {"arrival_s": [0, math.nan]}, "arrival_s"),
        (jobs, {"duration_s": [1, 0]}, "duration_s: found 0"),
        (jobs, {"gpus": [1, 0]}, "gpus: found 0"),
        (jobs, {"gpus": [1, 1.5]}, "found 1.5, expected an integer"),
        (jobs, {"names": ["a", "a"]}, r"job: found job a again, as in field jobs\[0\]"),
        (jobs, {"patience_s": [1, 0]}, "patience_s"),
        (jobs, {"estimate_s": [1, -2]}, "estimate_s"),
        (jobs, {"iterations": [1]}, "iterations: found 1, expected 2"),
        (queue, {"nodes": 0}, "nodes"),
        (queue, {"gpus_per_node": True}, "gpus_per_node"),
        (queue, {"nodes": 10**6, "gpus_per_node": 10**5}, "100000000000 GPUs.*at most 10000000"),
        (queue, {"nodes": 1, "gpus_per_node": 4}, r"job 1, gpus: found 8 GPUs.*at most 4"),
        (queue, {"placement": "x"}, "one of node, count"),
        (queue, {"goal": "x"}, "one of mean_wait, mean_jct, makespan"),
        (mixed, {"seed": 0, "load": 0}, "load"),
        (mixed, {"seed": 0, "corr": "x"}, "corr"),
        (mixed, {"seed": 0, "patience": "x"}, "patience"),
        (mixed, {"seed": 0, "patience_s": 0}, "patience_s"),
        (mixed, {"seed": 0, "sigma": -1}, "sigma"),
        (mixed, {"seed": 0, "size": 0}, "size"),
    ],
)
def test_what_cannot_be_is_refused_by_place(make: Any, params: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(**params)


def test_jobs_are_sorted_by_arrival_and_keep_their_names() -> None:
    jobs = Jobs.of([5, 0, 5], [1, 2, 3], [1, 1, 1], names=["a", "b", "c"])
    assert jobs.names == ("b", "a", "c")
    assert jobs.duration_s.tolist() == [2, 1, 3]


def chi_square(found: Any, shares: tuple[float, ...]) -> float:
    expected = np.array(shares) * sum(found)
    return float(((np.array(found) - expected) ** 2 / expected).sum())


def test_the_workload_has_the_papers_marginals() -> None:
    jobs = draw(np.random.default_rng(1), 20_000, 64)
    # 99.9 % points of χ² with two, four and three degrees of freedom
    assert chi_square([jobs.kinds.count(k) for k, _ in KINDS], (0.5, 0.3, 0.2)) < 13.8
    counts = [int((jobs.gpus == n).sum()) for n, _ in GPUS]
    assert chi_square(counts, tuple(share for _, share in GPUS)) < 18.5
    spans = [
        int(((jobs.duration_s >= low) & (jobs.duration_s < high)).sum())
        for (low, high), _ in DURATIONS_S
    ]
    assert sum(spans) == len(jobs)
    assert chi_square(spans, tuple(share for _, share in DURATIONS_S)) < 16.3
    assert np.corrcoef(jobs.gpus, jobs.duration_s)[0, 1] == pytest.approx(0, abs=0.03)


def test_the_workload_has_the_load_and_the_couplings_asked_for() -> None:
    assert mixed(seed=0, size=1000, load=0.7).load == pytest.approx(0.7, rel=0.1)
    assert small(seed=0).nodes == 2
    assert len(mixed(seed=0)) == 200
    work = {c: draw(np.random.default_rng(0), 5000, 64, corr=c) for c in ("positive", "negative")}  # type: ignore[arg-type]
    positive, negative = (work[c].gpu_seconds.mean() for c in ("positive", "negative"))
    assert positive > 2 * negative
    wide = draw(np.random.default_rng(0), 5000, 64, large="16-32")
    assert set(wide.gpus.tolist()) == {1, 2, 4, 8, 16, 24, 32}
    assert draw(np.random.default_rng(0), 10, 64, arrivals="all_at_zero").arrival_s.max() == 0


def test_patience_and_estimates_leave_the_jobs_as_they_are() -> None:
    plain = draw(np.random.default_rng(0), 300, 64)
    for patience in ("const", "exp", "duration"):
        other = draw(np.random.default_rng(0), 300, 64, patience=patience)  # type: ignore[arg-type]
        assert np.array_equal(other.duration_s, plain.duration_s)
        assert np.isfinite(other.patience_s).all()
    guessed = draw(np.random.default_rng(0), 300, 64, estimate="limits")
    assert (guessed.estimate_s >= guessed.duration_s).all()
    noisy = draw(np.random.default_rng(0), 300, 64, estimate="lognormal")
    assert not noisy.exact_estimates


# -- logs and tables -----------------------------------------------------------------------


SWF = """; Version: 2.2
; MaxProcs: 16
;
1 100 5 60 4 -1 -1 4 120 -1 1 3 1 -1 2 -1 -1 -1
2 90 0 30 8 -1 -1 -1 -1 -1 1 3 1 -1 -1 -1 -1 -1
3 110 -1 -1 -1 -1 -1 4 120 -1 5 3 1 -1 2 -1 -1 -1
4 120 0 10 -1 -1 -1 -1 20 -1 1 3 1 -1 2 -1 -1 -1
5 130 0 10 1 -1 -1 99 20 -1 1 3 1 -1 2 -1 -1 -1
6 140 0 10 1 -1 -1 1 20 -1 2 3 1 -1 2 -1 -1 -1
6 140 0 40 1 -1 -1 1 20 -1 1 3 1 -1 2 -1 -1 -1
7 -1 0 10 1 -1 -1 1 20 -1 1 3 1 -1 2 -1 -1 -1
"""
PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,a
2017-10-09 06:13:03,2951.0,2,1,b
2017-10-09 06:13:03,0.0,2,1,b
"""
TIDY = "job,arrival_s,duration_s,gpus,estimate_s\nx,5,10,2,\ny,1,20,4,30\n"


def file(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return str(path)


def test_a_swf_log_is_read_with_a_count_of_everything_left_out(tmp_path: Path) -> None:
    problem = from_csv(file(tmp_path, "log.swf", SWF), nodes=2)
    jobs = problem.jobs
    assert jobs.names == ("2", "1", "6")
    assert jobs.arrival_s.tolist() == [0, 10, 50]
    assert jobs.gpus.tolist() == [8, 4, 1]
    assert jobs.estimate_s.tolist() == [30, 120, 20]
    assert jobs.kinds == ("", "queue-2", "queue-2")
    assert problem.notices == (
        "1 part of a job with checkpoints left out",
        "1 job without a submit time left out",
        "1 job without a requested time, the run time taken",
        "1 job without a run time left out",
        "1 job without processors left out",
        "1 job larger than 16 GPUs left out",
        "1 job out of order, sorted by arrival",
    )
    assert "sorted by arrival" in str(problem)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 2 3", "row 12: found 3 fields, expected 18 numbers"),
        (SWF.splitlines()[3].replace("60", "x"), "row 12, field 4: found 'x'"),
        (SWF.splitlines()[3].replace("60", "-7"), "row 12, field 4: found '-7'"),
        (SWF.splitlines()[3], "job 1 again, as in row 4"),
    ],
)
def test_a_swf_line_that_is_none_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        from_csv(file(tmp_path, "log.swf", SWF + line + "\n"), nodes=2)


def test_a_swf_log_can_be_read_strictly(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 6, column run time"):
        from_csv(file(tmp_path, "log.swf", SWF), nodes=2, unusable="refuse")
    with pytest.raises(InputError, match="no jobs"):
        from_csv(file(tmp_path, "none.swf", "; nothing\n"))


@pytest.mark.parametrize("name", ["philly.csv", "philly.csv.gz"])
def test_phillys_table_starts_with_its_first_job(tmp_path: Path, name: str) -> None:
    problem = from_csv(file(tmp_path, name, PHILLY))
    assert problem.jobs.arrival_s.tolist() == [0, 2932]
    assert problem.jobs.kinds == ("b", "a")
    assert problem.notices[0] == "1 job without a duration left out"


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="row 2, column timestamp: found 'noon'"):
        from_csv(file(tmp_path, "p.csv", PHILLY.replace("2017-10-09 07:01:55", "noon")))


def test_the_tidy_table_takes_what_is_left_out_as_exact(tmp_path: Path) -> None:
    problem = from_csv(file(tmp_path, "jobs.csv", TIDY), nodes=1)
    assert problem.jobs.names == ("y", "x")
    assert problem.jobs.estimate_s.tolist() == [30, 10]
    assert problem.notices == ("1 job out of order, sorted by arrival",)
    assert len(from_csv(file(tmp_path, "jobs.csv", TIDY), first=1).jobs) == 1


def test_bad_rows_can_be_dropped_with_a_count(tmp_path: Path) -> None:
    path = file(tmp_path, "jobs.csv", TIDY + "z,1,0,1,\nw,1,1,99,\n")
    notices = from_csv(path, unusable="drop").notices
    assert notices[:2] == (
        "1 job without a duration_s left out",
        "1 job larger than 64 GPUs left out",
    )


@pytest.mark.parametrize("cell", ["-1", "nan", "NaN", ""])
@pytest.mark.parametrize("column", ["arrival_s", "duration_s", "gpus"])
def test_cells_that_tell_nothing_are_dropped_with_a_count(
    column: str, cell: str, tmp_path: Path
) -> None:
    """Test the tidy table, and Philly's with the column of the same meaning."""
    values = {"job": "z", "arrival_s": "1", "duration_s": "1", "gpus": "1", "estimate_s": "2"}
    row = ",".join({**values, column: cell}.values())
    path = file(tmp_path, "jobs.csv", f"{TIDY}{row}\n")
    found = from_csv(path, unusable="drop")
    article = {"arrival_s": "", "duration_s": "a ", "gpus": ""}[column]
    assert (len(found), found.notices[0]) == (2, f"1 job without {article}{column} left out")
    with pytest.raises(InputError, match=f"row 4, column {column}"):
        from_csv(path)
    place = ["arrival_s", "duration_s", "gpus"].index(column)
    cells = ["2017-10-09 07:01:55", "66.0", "1", "1", "a"]
    cells[place] = cell
    lines = f"{PHILLY}{','.join(cells)}\n"
    assert len(from_csv(file(tmp_path, "philly.csv", lines))) == 2


def test_the_philly_trace_is_read_whole(data_dir: Path) -> None:
    problem = from_csv(data_dir / "profiles" / "traces" / "philly_jobs.csv.gz", nodes=48)
    assert len(problem) == 82_247
    assert problem.jobs.gpus.max() == 128
