from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli

JOBS = """job,submit_s,model,batch,iterations,gpus
a,0,A,64,1000,2
b,0,B,64,500,3
"""
TABLES = {
    "schema": "optgap.elastic.models/1",
    "frequencies_mhz": [1000, 1200, 1400],
    "models": [
        {"name": "A", "tables": [{"counts": [1, 2, 4],
            "time_s": [[1.0, 0.87, 0.8], [0.6, 0.52, 0.48], [0.4, 0.35, 0.325]],
            "power_w": [[100, 135, 172], [190, 240, 300], [360, 455, 570]]}]},
        {"name": "B", "tables": [{"counts": [1, 2, 4],
            "time_s": [[2.0, 1.72, 1.58], [1.1, 0.95, 0.88], [0.65, 0.57, 0.53]],
            "power_w": [[120, 166, 210], [230, 290, 362], [440, 555, 690]]}]},
    ],
}  # fmt: skip
CLUSTER = [
    *("--set", "gpus=4", "--set", "gpus_per_node=4", "--set", "eta=0.8", "--set", "p_max_w=150"),
    *("--set", "idle_w=0", "--set", "restarts=false"),
]


def files(tmp_path: Path, jobs: str = JOBS, models: object = TABLES) -> list[str]:
    (tmp_path / "jobs.csv").write_text(jobs)
    (tmp_path / "models.json").write_text(json.dumps(models))
    return ["--jobs", str(tmp_path / "jobs.csv"), "--models", str(tmp_path / "models.json")]


@pytest.fixture
def problem(tmp_path: Path, cli: Cli) -> Path:
    out = tmp_path / "problem.json"
    answer = cli("generate", "elastic", *files(tmp_path), *CLUSTER, "-o", str(out))
    assert answer.code == 0, answer.err
    assert "rounded up" in answer.out
    return out


def test_the_written_out_example_from_csv_to_timeline(
    problem: Path, tmp_path: Path, cli: Cli
) -> None:
    out, power = tmp_path / "timeline.csv", tmp_path / "power.csv"
    tables = ["--timeline", str(out), "--series", str(power), "--json", "-"]
    answer = cli("run", str(problem), "--policy", "powerflow(profiles=perfect)", *tables)
    result = json.loads(answer.out)
    assert answer.code == 0
    assert result["objective"] == pytest.approx(528.86, abs=0.01)
    assert result["unit"] == "s"
    lines = out.read_text().splitlines()
    assert lines[0] == "time_s,job,event,gpus,frequency_mhz"
    assert "0.0,a,run,2,1200.0" in lines
    assert power.read_text().startswith("time_s,jobs_running,gpus_used,power_jobs_w")


def test_solve_proves_the_optimum_and_check_accepts_it(
    problem: Path, tmp_path: Path, cli: Cli
) -> None:
    result = json.loads(cli("solve", str(problem), "--json", "-", "-q").out)
    assert result["status"] == "optimal"
    assert result["objective"] < 528.86
    solution = tmp_path / "solution.json"
    solution.write_text(json.dumps(result["solution"]))
    verdict = json.loads(cli("check", str(problem), str(solution), "--json", "-").out)
    assert verdict["feasible"]
    assert verdict["objective"] == pytest.approx(result["objective"])


def test_a_policy_that_passes_the_limit_is_measured_against_what_it_kept(
    problem: Path, cli: Cli
) -> None:
    policies = "powerflow(profiles=perfect),powerflow(profiles=perfect,mode=paper)"
    answer = cli("compare", str(problem), "--policies", policies, "--json", "-", "-q")
    rows = {row["method"]: row for row in json.loads(answer.out)["rows"]}
    strict = rows["powerflow(profiles=perfect)"]
    paper = rows["powerflow(profiles=perfect,mode=paper)"]
    assert (strict["bound_scope"], paper["bound_scope"]) == ("all", "accepted")
    assert paper["objective"] < strict["objective"]
    assert paper["gap_to_bound"] >= 0


def test_a_fit_of_energy_serves_as_models(tmp_path: Path, cli: Cli) -> None:
    rows = ["gpus,local_batch,frequency_mhz,time_s,power_w"]
    for n in (1, 2, 4):
        for batch in (16, 32, 64):
            for f in (600, 800, 1000, 1200, 1400):
                t = 0.005 + batch * 1.1 / f + (0.01 + 0.001 * n if n > 1 else 0)
                rows.append(f"{n},{batch},{f},{t:.6f},{40 + 0.09 * f + 5e-8 * f**3:.3f}")
    (tmp_path / "profile.csv").write_text("\n".join(rows) + "\n")
    fit = str(tmp_path / "fit.json")
    fitted = cli(
        "fit", "powerflow-energy", str(tmp_path / "profile.csv"), "-o", fit, "-q", "--cv", "0"
    )
    assert fitted.code == 0, fitted.err
    (tmp_path / "jobs.csv").write_text(
        "job,submit_s,model,batch,iterations\nx,0,model,64,2000\ny,30,model,32,900\n"
    )
    out = str(tmp_path / "p.json")
    given = ["--jobs", str(tmp_path / "jobs.csv"), "--models", fit, "-o", out]
    cluster = ["--set", "gpus=4", "--set", "gpus_per_node=4", "--set", "eta=0.8"]
    answer = cli("generate", "elastic", *given, *cluster)
    assert answer.code == 0, answer.err
    assert cli("run", out, "--policy", "afs", "-q").code == 0


def test_a_trace_stands_in_for_jobs(tmp_path: Path, cli: Cli) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("name,time,application,num_replicas,batch_size\nx-0,5,ncf,3,4096\n")
    out = str(tmp_path / "p.json")
    pool = ["--set", "gpus=8", "--set", "pool=t4"]
    answer = cli("generate", "elastic", "--trace", str(trace), *pool, "-o", out)
    assert answer.code == 0
    assert "1 request for GPUs rounded up" in answer.out
    assert cli("generate", "elastic", *pool, "--trace", "nowhere.csv").code == 2
    neither = cli("generate", "elastic", "--models", str(trace), *pool)
    assert "--jobs, --trace" in neither.err
