from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, refused
from strategies_consolidation import micro

from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
    GpuKind,
    PowerLine,
    Server,
    Task,
    recorded,
)
from optgap.models.consolidation.csvin import from_csv
from optgap.models.consolidation.presets import PRESETS, philly
from optgap.models.consolidation.recorded import JOBS, series
from optgap.models.csvout import csv_text
from optgap.models.errors import InputError


def solution(*places: tuple[int, ...], mhz: float = 1350.0) -> ConsolidationSolution:
    used = sorted({g for gpus in places for g in gpus})
    return ConsolidationSolution.of(
        [Assignment(k, gpus) for k, gpus in enumerate(places)], [Clock(g, mhz) for g in used]
    )


def test_the_paper_constants_give_the_numbers_worked_out_by_hand() -> None:
    kind = GpuKind()
    assert kind.power.watts(1350) == pytest.approx(144.8)
    assert kind.floor_mhz(1.2) == pytest.approx(1104.896, abs=1e-3)
    assert kind.power.watts(kind.floor_mhz(1.2)) == pytest.approx(122.741, abs=1e-3)
    assert GpuKind(frequencies_mhz=(135.0, 1110.0, 1350.0)).floor_mhz(1.2) == 1110
    assert kind.floor_mhz(1.0) == 1350
    assert kind.floor_mhz(1e5) == 135


def test_a_solution_is_a_table_and_may_leave_tasks_out() -> None:
    problem = micro()
    made = solution((0,), (0,), (1,))
    assert csv_text(*made.placements(problem)).splitlines()[1] == "t1,0.0,0,0"
    part = solution((0,), (0,))
    assert not problem.serves_all(part)
    assert len(problem.restrict(part)) == 2


def on(kind: GpuKind | None = None, **task: Any) -> ConsolidationProblem:
    """A task of 0.1 GB unless told, on two servers of two GPUs."""
    one = Task("a", **{"memory_gb": 0.1, **task})
    return ConsolidationProblem.of([kind or GpuKind()], [Server((0, 0))] * 2, [one])


@pytest.mark.parametrize(
    ("make", "given", "said"),
    [
        (on, {"kappa": 0.9}, "kappa: found 0.9"),
        (on, {"util_percent": np.array([])}, "no samples"),
        (on, {"util_percent": np.array([10.0, np.nan])}, "nan"),
        (on, {"util_percent": np.array([10.0, 101.0])}, "101 "),
        (on, {"duration_s": -1.0}, "duration_s"),
        (on, {"power": PowerLine(0.0, 0.0)}, "0 W at any clock"),
        (on, {"kind": GpuKind(f_min_mhz=1400.0)}, "f_min"),
        (on, {"kind": GpuKind(memory_gb=0.0)}, "memory_gb"),
        (on, {"kind": GpuKind(power=PowerLine(-1.0, 0.1))}, "static_w"),
        (on, {"kind": GpuKind(frequencies_mhz=(300.0, 200.0))}, "highest clock"),
        (PRESETS["mixed"].load(), {"seed": 0, "samples": 0}, "samples: found 0.*at least 1"),
        (PRESETS["mixed"].load(), {"seed": 0, "kappas": -1}, "kappas: found -1.*at least 0"),
        (PRESETS["pai"].load(), {"seed": 0, "servers": -2}, "servers: found -2"),
        (PRESETS["pai"].load(), {"seed": 0, "present": 0.0}, "present: found 0.0"),
        (PRESETS["pai"].load(), {"seed": 0, "gpus_per_server": 0}, "gpus_per_server: found 0"),
        (PRESETS["testbed"].load(), {"seed": 0, "stage": 5}, "stage: found 5"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(**given)


TASKS = "task,memory_gb,gpus,kappa\na,4,1,1.2\nb,5,2,1.5\n"
SERIES = "task,t_s,util_percent\na,0,10\na,60,20\nb,0,30\nb,60,50\n"


def test_tables_make_a_problem(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TASKS)
    (tmp_path / "s.csv").write_text(SERIES)
    t, s = tmp_path / "t.csv", tmp_path / "s.csv"
    problem = from_csv(t, s, seed=0, servers=2, capacity="slot", clock_step_mhz=15)
    assert problem.rows.tolist() == [[10_000_000, 30_000_000], [20_000_000, 50_000_000]]
    assert len(problem.kinds[0].frequencies_mhz) == 82
    assert len(problem.places) == 16
    s.write_text(SERIES + "b,120,1\n")
    assert from_csv(t, s, seed=0, series_rule="loose").horizon == 3
    with pytest.raises(InputError, match="expected its util_percent"):
        from_csv(t, seed=0, capacity="mean")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_the_same_for_the_same_seed(name: str) -> None:
    entry = PRESETS[name]
    size = {"size": 20} if "size" in entry.params else {}
    first, again = (entry.load()(seed=5, **size) for _ in range(2))
    assert first.to_json() == again.to_json()
    assert "synthetic" in first.origin


# -- fitted models -------------------------------------------------------------------------


def fit(model: str, groups: dict[str, dict[str, float]], low: float, high: float) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"group": group, "params": {name: {"value": value} for name, value in params.items()}}
        for group, params in groups.items()
    ]
    made = [{**row, "validity": {"frequency_mhz": [low, high]}} for row in rows]
    return {"schema": "optgap.fit/1", "model": model, "groups": made}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.csv"
    path.write_text("task,memory_gb,app\na,4,bfs\nb,5,lstm\n")
    return path


def saved(path: Path, document: dict[str, Any]) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def test_a_fit_by_application_becomes_the_tasks_own(tasks: Path, tmp_path: Path) -> None:
    groups = {"bfs": {"P_gs": 30.0, "alpha": 0.1}, "lstm": {"P_gs": 50.0, "alpha": 0.2}}
    power = saved(tmp_path / "p.json", fit("linear-power", groups, 1, 2000))
    problem = from_csv(tasks, model=power, seed=0)
    assert [task.power.static_w for task in problem.tasks if task.power] == [30, 50]


def test_the_clocks_of_a_fit_are_taken_over_unless_others_are_asked_for(
    tasks: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    document = fit("linear-power", {"": {"P_gs": 30, "alpha": 0.1}}, 1200, 1380)
    path = saved(tmp_path / "p.json", document)
    with caplog.at_level(logging.WARNING):
        kind = from_csv(tasks, model=path, seed=0).kinds[0]
    assert (kind.f_min_mhz, kind.f_max_mhz) == (1200, 1380)
    assert not caplog.text
    with caplog.at_level(logging.WARNING):
        from_csv(tasks, model=path, seed=0, f_max_mhz=1350.0)
    assert "fitted on 1200 to 1380 MHz, used from 1104.9 to 1350 MHz" in caplog.text
    assert len(caplog.text.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (fit("linear-power", {"A100": {"P_gs": 3, "alpha": 1}}, 1, 2), "a model of A100, expected"),
        (fit("linear-power", {"bfs": {"P_gs": 3, "alpha": 1}}, 1, 2), "one fitted on lstm"),
        (fit("dram-runtime", {"": {"a": 1}}, 1, 2), "linear-power or power-law-jct"),
        (fit("linear-power", {"": {"P_gs": 3}}, 1, 2), "no alpha"),
        (fit("linear-power", {}, 1, 2), "found none"),
    ],
)
def test_a_model_of_something_else_is_refused(
    tasks: Path, tmp_path: Path, document: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        from_csv(tasks, model=saved(tmp_path / "p.json", document), seed=0)


# -- recorded series -----------------------------------------------------------------------


WINDOWS = """jobid,name,-1,0,1
a,m1_gpu0,10,20,30
a,m1_gpu1,0,100,50.5
b,m2_gpu0,,1,2
c,m3_gpu0,5,5,5
"""


def written(folder: Path, text: str) -> Path:
    """A data folder with the file of series."""
    path = folder / recorded.WINDOWS
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(text.encode()))
    return folder


def test_windows_are_one_series_per_gpu_or_summed_per_job(tmp_path: Path) -> None:
    """A window that lacks a minute is left out, and a sum may pass 100 %."""
    folder = written(tmp_path, WINDOWS)
    found = [[one.tolist() for one in series(folder, summed=s)] for s in (False, True)]
    assert found == [[[10, 20, 30], [0, 100, 50.5], [5, 5, 5]], [[10, 120, 80.5], [5, 5, 5]]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WINDOWS.replace("20", "x"), r"row 2, column 0: found 'x', expected a number"),
        (WINDOWS + "d,m4,1\n", r"row 6: found 3 cells, expected 5 as in the header"),
        ("jobid,name\na,b\n", r"row 1: found jobid, name, expected a job, a GPU"),
        ("", r"row 1: found nothing, expected a header$"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        series(written(tmp_path, text))


PHILLY_JOBS = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 00:02:00,600,2,1200,b
2017-10-09 00:00:00,100000,1,100000,a
2017-10-09 00:01:00,5,1,5,a
2017-10-09 00:03:00,60,16,960,a
2017-10-09 00:04:00,1200,8,9600,b
"""


def test_jobs_of_philly_come_in_order_and_their_load_is_what_is_asked(tmp_path: Path) -> None:
    written(tmp_path, WINDOWS)
    path = tmp_path / JOBS
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(PHILLY_JOBS.encode()))
    made = philly(seed=0, size=3, series="philly", data=str(tmp_path), present=2.0)
    # neither the job under 20 s nor that of 16 GPUs; the longest is cut at a day
    assert [task.duration_s for task in made.tasks] == [86400, 600, 1200]
    assert [task.gpus for task in made.tasks] == [1, 2, 8]
    assert [task.submit_s for task in made.tasks] == [0, 22_050, 44_100]  # 88,200 s, two at a time
    assert "jobs and series recorded" in made.origin
    with pytest.raises(InputError, match="size: found 4, expected at most the 3 jobs"):
        philly(seed=0, size=4, series="philly", data=str(tmp_path))
    path.write_bytes(gzip.compress(PHILLY_JOBS.replace("2017-10-09 00:02", "today").encode()))
    with pytest.raises(InputError, match=r"row 2, column timestamp: found 'today:00'"):
        philly(seed=0, size=3, series="philly", data=str(tmp_path))


def test_other_series_and_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="series: found 'mars', expected one of synthetic, philly"):
        philly(seed=0, size=3, series="mars")
    with pytest.raises(InputError, match="no such file"):
        series(tmp_path)


def test_a_damaged_archive_is_told_in_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, WINDOWS) / recorded.WINDOWS
    path.write_bytes(path.read_bytes()[:-12])
    monkeypatch.setenv("OPTGAP_DATA", str(tmp_path))
    out = tmp_path / "made.json"
    wanted = ("--preset", "pai", "--set", "series=philly", "-o", str(out))
    refused(cli("generate", "consolidation", *wanted), "expected a whole gzip file")
    assert not out.exists()
