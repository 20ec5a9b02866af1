from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli

TASKS = "task,memory_gb,gpus,kappa\nt1,12,1,1.2\nt2,10,1,1.2\nt3,6,1,1.2\n"
SERIES = "task,t_s,util_percent\n" + "".join(
    f"t{k + 1},{60 * t},{u}\n"
    for k, series in enumerate([(80, 20, 80, 20), (20, 70, 20, 70), (60, 60, 10, 10)])
    for t, u in enumerate(series)
)
CLUSTER = ["--set", "servers=2", "--set", "gpus_per_server=2", "--set", "server_static_w=100"]


@pytest.fixture
def tables(tmp_path: Path) -> list[str]:
    (tmp_path / "tasks.csv").write_text(TASKS)
    (tmp_path / "series.csv").write_text(SERIES)
    return ["--tasks", str(tmp_path / "tasks.csv"), "--series", str(tmp_path / "series.csv")]


@pytest.fixture
def problem(tables: list[str], tmp_path: Path, cli: Cli) -> Path:
    out = tmp_path / "problem.json"
    given = [*tables, *CLUSTER, "--set", "capacity=mean", "-o", str(out)]
    assert cli("generate", "consolidation", *given).code == 0
    return out


def test_tables_become_a_proven_placement_that_the_referee_accepts(
    problem: Path, tmp_path: Path, cli: Cli
) -> None:
    answer = cli("solve", str(problem), "--json", "-", "-q")
    result = json.loads(answer.out)
    assert answer.code == 0
    assert (result["status"], result["unit"]) == ("optimal", "W")
    assert result["objective"] == pytest.approx(345.481, abs=1e-3)
    assert set(result["solution"]) >= {"assignments", "frequencies_mhz"}
    path = tmp_path / "solution.json"
    path.write_text(json.dumps(result["solution"]))
    verdict = json.loads(cli("check", str(problem), str(path), "--json", "-").out)
    assert verdict["feasible"]
    result["solution"]["assignments"][0]["gpus"] = [[0, 1], [1, 0]]
    path.write_text(json.dumps(result["solution"]))
    verdict = json.loads(cli("check", str(problem), str(path), "--json", "-").out)
    assert "different GPUs (7)" in [v["constraint"] for v in verdict["violations"]]


def test_placements_and_a_policy_of_ones_own_come_out_as_csv(
    problem: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def last(task, state):\n    return len(state.count) - 1 - task\n")
    out = tmp_path / "placements.csv"
    answer = cli("run", str(problem), "--policy", "mine.py:last", "--placements", str(out))
    assert answer.code == 0
    assert out.read_text().splitlines() == [
        "task,start_s,server,gpu_index", "t1,0.0,1,1", "t2,0.0,1,0", "t3,0.0,0,1",
    ]  # fmt: skip


def test_a_simulation_has_a_bound_and_an_explanation(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "trace.json"
    given = ["--preset", "pai", "--size", "12", "--set", "present=8", "-o", str(path)]
    assert cli("generate", "consolidation", *given).code == 0
    answer = cli("compare", str(path), "--policies", "cats,hotcloud,first", "--json", "-", "-q")
    document = json.loads(answer.out)
    assert answer.code == 0
    assert document["unit"] == "J"
    assert document["best_bound"] > 0
    assert all(row["metrics"]["average_gpus"] > 0 for row in document["rows"][1:])


def test_waking_is_set_from_the_command_line_and_power_by_utilisation_refused(
    tables: list[str], tmp_path: Path, cli: Cli
) -> None:
    path = tmp_path / "p.json"
    given = ["--set", "wake_s=3", "--set", "goal=energy"]
    assert cli("generate", "consolidation", *tables, *CLUSTER, *given, "-o", str(path)).code == 0
    document = json.loads(path.read_text())
    assert document["wake_s"] == 3
    found = json.loads(cli("run", str(path), "--policy", "cats", "--json", "-", "-q").out)
    assert found["metrics"]["mean_stretch"] > 1
    path.write_text(json.dumps(document | {"util_scaled": True}))
    refused = cli("solve", str(path))
    assert refused.code == 2
    assert "util_scaled: found true, expected false" in refused.err


def test_fitted_models_are_given_one_after_another(
    tables: list[str], tmp_path: Path, cli: Cli
) -> None:
    groups = [
        ("linear-power", {"P_gs": {"value": 40.0}, "alpha": {"value": 0.1}}),
        ("power-law-jct", {"beta": {"value": 0.5}}),
    ]
    given = []
    for model, params in groups:
        path = tmp_path / f"{model}.json"
        group = {"group": "", "params": params, "validity": {}}
        document = {"schema": "optgap.fit/1", "model": model, "groups": [group]}
        path.write_text(json.dumps(document))
        given += ["--model", str(path)]
    out = tmp_path / "p.json"
    assert cli("generate", "consolidation", *tables, *given, "-o", str(out)).code == 0
    kind = json.loads(out.read_text())["kinds"][0]
    assert (kind["static_w"], kind["slope_w_per_mhz"], kind["beta"]) == (40, 0.1, 0.5)


@pytest.fixture
def power(tmp_path: Path, cli: Cli) -> str:
    rows = [(300, 51), (600, 76), (900, 105), (1200, 130), (1350, 146)]
    table, path = tmp_path / "power.csv", tmp_path / "power.json"
    table.write_text("frequency_mhz,power_w\n" + "".join(f"{f},{p}\n" for f, p in rows))
    assert cli("fit", "linear-power", str(table), "-o", str(path), "-q").code == 0
    return str(path)


def test_gaps_have_an_interval_under_the_uncertainty_of_a_fit(
    problem: Path, power: str, cli: Cli
) -> None:
    given = ["--policies", "cats,default", "--model", power, "--samples", "4"]
    answer = cli("compare", str(problem), *given, "--json", "-", "-q")
    assert answer.code == 0
    document = json.loads(answer.out)
    said = document["uncertainty"]
    assert (said["samples"], said["level"]) == (4, 0.9)
    rows = {row["method"]: row for row in said["gap_to_bound"]}
    fitted = {row["method"]: row["gap_to_bound"] for row in document["rows"]}
    for name in ("cats", "default"):
        assert rows[name]["low"] <= rows[name]["median"] <= rows[name]["high"]
        assert rows[name]["median"] == pytest.approx(fitted[name], abs=0.02)
    assert rows["default"]["low"] < rows["default"]["high"]
    text = cli("compare", str(problem), *given).out
    assert "4 samples of" in text
    assert "range of 4 draws (holds 60 %); 90 % takes 19 draws" in text
    again = cli("compare", str(problem), *given, "--json", "-", "-q")
    assert json.loads(again.out)["uncertainty"] == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["consolidation", "--samples", "3"], "seed 0, which rests on no fit"),
        (["consolidation", "--model", "FIT", "--samples", "1"], "2 to 10000 draws"),
        (["consolidation", "--model", "none.json"], "none.json"),
        (["consolidation", "--sweep", "size=4,5", "--model", "FIT"], "conflicts with --sweep"),
        (["placement", "--preset", "small", "--model", "FIT"], "linear-power serves consolidation"),
        (["--model", "FIT"], "--model: needs a family"),
    ],
)
def test_draws_that_cannot_be_made_are_told_in_one_line(
    given: list[str], said: str, power: str, cli: Cli
) -> None:
    answer = cli("compare", *(power if text == "FIT" else text for text in given))
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1
