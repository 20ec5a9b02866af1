from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli

PROFILES = """app,gpu_count,runtime_s,avg_power_per_gpu_w
X,1,330,350
X,2,180,310
Y,4,100,320
Z,1,150,300
Z,2,140,235
"""


@pytest.fixture
def problem(tmp_path: Path, cli: Cli) -> Path:
    (tmp_path / "profiles.csv").write_text(PROFILES)
    (tmp_path / "jobs.csv").write_text("app,count\nX,1\nY,1\nZ,1\n")
    out = tmp_path / "problem.json"
    node = ["--set", "gpus=4", "--set", "numa=2", "--set", "idle_w=70", "-o", str(out)]
    tables = ["--profiles", str(tmp_path / "profiles.csv"), "--jobs", str(tmp_path / "jobs.csv")]
    assert cli("generate", "coscheduling", *tables, *node).code == 0
    return out


def test_profiles_become_a_proven_schedule_that_the_referee_accepts(
    problem: Path, tmp_path: Path, cli: Cli
) -> None:
    answer = cli("solve", str(problem), "--json", "-", "-q")
    result = json.loads(answer.out)
    assert answer.code == 0
    assert (result["status"], result["unit"]) == ("optimal", "J")
    assert result["objective"] == pytest.approx(299_300)
    assert {run["app"] for run in result["solution"]["schedule"]} == {"X", "Y", "Z"}
    solution = tmp_path / "solution.json"
    solution.write_text(json.dumps(result["solution"]))
    verdict = json.loads(cli("check", str(problem), str(solution), "--json", "-").out)
    assert verdict["feasible"]
    assert verdict["metrics"]["makespan_s"] == pytest.approx(280)


LOG = "app,gpu_count,start_s,end_s\nY,4,0,104\nX,2,104,290\nZ,1,104,260\n"


def test_a_measured_schedule_is_checked_as_it_was(problem: Path, tmp_path: Path, cli: Cli) -> None:
    log = tmp_path / "log.csv"
    log.write_text(LOG)
    verdict = json.loads(cli("check", str(problem), str(log), "--json", "-").out)
    assert verdict["feasible"]
    assert verdict["metrics"]["makespan_s"] == 290


@pytest.mark.parametrize(
    ("log", "constraint"),
    [
        (LOG.replace("2,104,290", "4,104,290"), "X"),
        (LOG.replace("2,104,290", "2,90,290"), "one job per GPU"),
    ],
)
def test_a_measured_schedule_that_overlaps_is_refused(
    log: str, constraint: str, problem: Path, tmp_path: Path, cli: Cli
) -> None:
    (tmp_path / "log.csv").write_text(log)
    answer = cli("check", str(problem), str(tmp_path / "log.csv"), "--strict")
    assert answer.code == 2
    assert constraint in answer.out


def test_a_policy_is_explained_start_by_start(problem: Path, cli: Cli) -> None:
    answer = cli("explain", str(problem), "--policy", "sequential_max_gpu", "--json", "-", "-q")
    document = json.loads(answer.out)
    assert document["per_event"] == "exact-window"
    assert document["decisions"]["judged"] == 3
    assert document["decisions"]["top"][0]["chosen"] == "on 4 GPUs"


def test_a_stream_and_a_window_run_through_the_command_line(tmp_path: Path, cli: Cli) -> None:
    path = str(tmp_path / "stream.json")
    made = cli("generate", "coscheduling", "--preset", "stream", "--size", "6", "-o", path)
    assert made.code == 0
    answer = cli("run", path, "--policy", "exact-window(window=2)", "--json", "-", "-q")
    result = json.loads(answer.out)
    assert result["metrics"]["jobs_run"] == 6
    assert result["metrics"]["plans"] > 1
