"""Recorded series from the public files, and files that are not what they should be."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, refused

from optgap.models.consolidation.presets import philly
from optgap.models.consolidation.recorded import FILES, JOBS, series
from optgap.models.errors import InputError

WINDOWS = """jobid,name,-1,0,1
a,m1_gpu0,10,20,30
a,m1_gpu1,0,100,50.5
b,m2_gpu0,,1,2
c,m3_gpu0,5,5,5
"""


def written(folder: Path, kind: str, text: str) -> Path:
    """A data folder with one of the files."""
    path = folder / FILES[kind]
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(text.encode()))
    return folder


def pods(**values: list[float]) -> str:
    """A minute apart, the last sample first."""
    rows = [
        f"{pod},{60.0 * k},{value}"
        for pod, series in values.items()
        for k, value in reversed(list(enumerate(series)))
    ]
    return "\n".join(["container_ip,timestamp_anon,value", *rows, ""])


def test_windows_are_one_series_per_gpu_without_those_that_lack_a_minute(tmp_path: Path) -> None:
    found = series("philly", written(tmp_path, "philly", WINDOWS))
    assert [one.tolist() for one in found] == [[10, 20, 30], [0, 100, 50.5], [5, 5, 5]]


def test_summed_windows_are_one_series_per_job_and_may_pass_100(tmp_path: Path) -> None:
    found = series("philly", written(tmp_path, "philly", WINDOWS), summed=True)
    assert [one.tolist() for one in found] == [[10, 120, 80.5], [5, 5, 5]]


def test_pods_are_put_in_order_and_short_or_idle_ones_left_out(tmp_path: Path) -> None:
    text = pods(busy=[*range(9), 101.0], short=[5.0] * 9, idle=[0.0] * 12)
    (found,) = series("genai", written(tmp_path, "genai", text))
    assert np.array_equal(found, [*range(9), 100])


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("philly", WINDOWS.replace("20", "x"), r"row 2, column 0: found 'x', expected a number"),
        ("philly", WINDOWS + "d,m4,1\n", r"row 6: found 3 cells, expected 5 as in the header"),
        ("philly", "jobid,name\na,b\n", r"row 1: found jobid, name, expected a job, a GPU"),
        ("philly", "", r"row 1: found nothing, expected a header$"),
        ("genai", pods(a=[1.0]).replace("1.0", "nan"), r"row 2, column value: found 'nan'"),
        ("genai", WINDOWS, r"expected a column container_ip"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(kind: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        series(kind, written(tmp_path, kind, text))


PHILLY_JOBS = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 00:02:00,600,2,1200,b
2017-10-09 00:00:00,100000,1,100000,a
2017-10-09 00:01:00,5,1,5,a
2017-10-09 00:03:00,60,16,960,a
2017-10-09 00:04:00,1200,8,9600,b
"""


def test_jobs_of_philly_come_in_order_and_their_load_is_what_is_asked(tmp_path: Path) -> None:
    written(tmp_path, "philly", WINDOWS)
    path = tmp_path / JOBS
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(PHILLY_JOBS.encode()))
    made = philly(seed=0, size=3, series="philly", data=str(tmp_path), present=2.0)
    # neither the job under 20 s nor that of 16 GPUs; the longest is cut at a day
    assert [(task.duration_s, task.gpus) for task in made.tasks] == [
        (86400, 1),
        (600, 2),
        (1200, 8),
    ]
    assert [task.submit_s for task in made.tasks] == [0, 22_050, 44_100]  # 88,200 s, two at a time
    assert "jobs and series recorded" in made.origin
    with pytest.raises(InputError, match="size: found 4, expected at most the 3 jobs"):
        philly(seed=0, size=4, series="philly", data=str(tmp_path))
    path.write_bytes(gzip.compress(PHILLY_JOBS.replace("2017-10-09 00:02", "today").encode()))
    with pytest.raises(InputError, match=r"row 2, column timestamp: found 'today:00'"):
        philly(seed=0, size=3, series="philly", data=str(tmp_path))


def test_other_series_and_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="series: found 'mars', expected one of philly, genai"):
        series("mars", tmp_path)
    with pytest.raises(InputError, match="no such file"):
        series("genai", tmp_path)


def test_a_damaged_archive_is_told_in_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "philly", WINDOWS) / FILES["philly"]
    path.write_bytes(path.read_bytes()[:-12])
    monkeypatch.setenv("OPTGAP_DATA", str(tmp_path))
    out = tmp_path / "made.json"
    wanted = ("--preset", "pai", "--set", "series=philly", "-o", str(out))
    refused(cli("generate", "consolidation", *wanted), "expected a whole gzip file")
    assert not out.exists()
