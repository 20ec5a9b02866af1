from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import Cli

import optgap

JOBS = """job,arrival_s,duration_s,gpus,type,iterations
1,0,3600,4,training,100
2,10,600,8,inference,20
3,20,1200,2,research,30
4,30,300,1,inference,5
5,40,900,4,training,40
"""


@pytest.fixture
def problem(tmp_path: Path, cli: Cli) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    out = tmp_path / "problem.json"
    cluster = ["--set", "nodes=1", "--set", "gpus_per_node=8", "-o", str(out)]
    jobs = ["--jobs", str(tmp_path / "jobs.csv")]
    assert cli("generate", "queueing", *jobs, *cluster).code == 0
    return out


def test_jobs_become_a_proven_schedule_that_the_referee_accepts(
    problem: Path, tmp_path: Path, cli: Cli
) -> None:
    result = json.loads(cli("solve", str(problem), "--json", "-", "-q").out)
    assert (result["status"], result["unit"]) == ("optimal", "s")
    assert result["objective"] <= 954
    solution = tmp_path / "solution.json"
    solution.write_text(json.dumps(result["solution"]))
    verdict = json.loads(cli("check", str(problem), str(solution), "--json", "-").out)
    assert verdict["feasible"]
    assert verdict["metrics"]["mean_wait_s"] == pytest.approx(result["objective"])


def test_a_schedule_is_written_as_csv_and_a_bound_stands_alone(
    problem: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "schedule.csv"
    assert cli("run", str(problem), "--policy", "fifo", "--schedule", str(out), "-q").code == 0
    lines = out.read_text().splitlines()
    assert lines[:3] == ["job,start_s,end_s,nodes", "1,0.0,3600.0,0:4", "2,3600.0,4200.0,0:8"]
    bound = json.loads(cli("solve", str(problem), "--bound-only", "--json", "-", "-q").out)
    assert bound["status"] == "bound_only"
    assert bound["bound"] <= 954


def test_jobs_that_leave_are_held_against_a_bound_for_the_others(tmp_path: Path, cli: Cli) -> None:
    out = str(tmp_path / "problem.json")
    params = ["--size", "150", "--set", "patience=const", "--set", "load=1.6"]
    assert cli("generate", "queueing", *params, "-o", out).code == 0
    answer = cli("compare", out, "--policies", "fifo,sjf", "--json", "-", "-q")
    rows = {row["method"]: row for row in json.loads(answer.out)["rows"]}
    assert rows["fifo"]["bound_scope"] == "accepted"
    assert rows["fifo"]["metrics"]["success_rate"] < 1


def test_what_a_log_lost_on_the_way_is_said(tmp_path: Path, cli: Cli) -> None:
    log = tmp_path / "log.swf"
    line = "1 0 5 60 4 -1 -1 4 120 -1 1 3 1 -1 2 -1 -1 -1\n"
    log.write_text("; UnixStartTime: 0\n" + line + line.replace("1 0 5 60", "2 5 5 -1", 1))
    answer = cli("generate", "queueing", "--jobs", str(log), "-o", str(tmp_path / "p.json"))
    assert answer.code == 0
    assert "1 job without a run time left out" in answer.out


NAMES = ("=1+1", "+5%", "-x", "@a", "'=2", "''-y", "plain", "-5")


def test_names_that_a_spreadsheet_would_compute_are_escaped_and_read_back(
    tmp_path: Path, cli: Cli
) -> None:
    rows = "".join(f'"{name}",{k},60,1\n' for k, name in enumerate(NAMES))
    (tmp_path / "jobs.csv").write_text("job,arrival_s,duration_s,gpus\n" + rows)
    problem, table = tmp_path / "p.json", tmp_path / "out.csv"
    given = ("--jobs", str(tmp_path / "jobs.csv"), "--set", "nodes=1", "--set", "gpus_per_node=8")
    assert cli("generate", "queueing", *given, "-o", str(problem)).code == 0
    # an apostrophe before such a sign is read as one that was put there
    assert optgap.load(problem).jobs.names[:4] == ("=1+1", "+5%", "-x", "@a")
    assert cli("run", str(problem), "--policy", "fifo", "--schedule", str(table)).code == 0
    with open(table, newline="") as file:
        shown = [row["job"] for row in csv.DictReader(file)]
    assert shown[:5] == ["'=1+1", "'+5%", "'-x", "'@a", "'=2"]
    assert shown[6:] == ["plain", "-5"]
    verdict = json.loads(cli("check", str(problem), str(table), "--json", "-").out)
    assert verdict["feasible"]
    assert verdict["serves_all"]
