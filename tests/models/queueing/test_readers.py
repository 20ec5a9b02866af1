from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from optgap.models.errors import InputError
from optgap.models.queueing.presets import from_csv

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


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("z,1,0,1,", "row 4, column duration_s: found 0.0"),
        ("z,1,1,0,", "row 4, column gpus: found 0"),
        ("z,1,1,99,", "row 4, column gpus: found 99, expected at most 64"),
        ("z,-1,1,1,", "row 4, column arrival_s"),
        ("x,1,1,1,", "row 4, job: found job x again, as in row 2"),
        ("z,1,1,1,0", "row 4, estimate_s"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        from_csv(file(tmp_path, "jobs.csv", TIDY + row + "\n"))


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


def test_a_packed_file_that_breaks_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(gzip.compress(TIDY.encode())[:-12])
    with pytest.raises(InputError, match=r"jobs\.csv\.gz"):
        from_csv(path)


def test_the_philly_trace_is_read_whole(data_dir: Path) -> None:
    problem = from_csv(data_dir / "profiles" / "traces" / "philly_jobs.csv.gz", nodes=48)
    assert len(problem) == 82_247
    assert problem.jobs.gpus.max() == 128
