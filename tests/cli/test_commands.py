"""The command line, called in this process: what it prints, writes and returns."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from conftest import RESULT_KEYS, Cli, refused, two_nodes_problem
from tables import options

import optgap
from optgap.cli import COMMANDS, REMOVED
from optgap.cli.work import exit_code
from optgap.models.placement import PlacementSolution
from optgap.models.result import Termination

pytestmark = pytest.mark.usefixtures("problem_file")


def rows_of(text: str) -> dict[str, str]:
    """The names and values that solve, run and check print."""
    return {
        name.strip(): value.strip()
        for name, value in (line.split("  ", 1) for line in text.splitlines() if "  " in line)
    }


def test_without_a_command_there_is_help(cli: Cli) -> None:
    bare, asked = cli(), cli("--help")
    assert bare.code == asked.code == 0
    assert bare.out == asked.out
    for name in COMMANDS:
        assert f" {name} " in bare.out


def test_families_lists_policies_methods_and_presets(cli: Cli) -> None:
    document = json.loads(cli("families", "--json", "-").out)
    placement = next(item for item in document["families"] if item["name"] == "placement")
    assert placement["name"] == "placement"
    for key, name in (("policies", "pwr+fgd"), ("presets", "small")):
        assert name in [row["name"] for row in placement[key]]
    assert "alpha=0.1          weight" in cli("families", "placement", "pwr+fgd").out
    refused(cli("families", "placement", "pwt"), "NAME: found 'pwt'")
    text = cli("families", "placement").out
    assert all(row["name"] in text for row in placement["methods"])


def test_seed_size_and_settings_reach_the_preset(cli: Cli) -> None:
    answer = cli("generate", "placement", "--preset", "small", "--size", "7", "--seed", "4",
                 "--set", "goal=weighted", "--set", "alpha=0.25", "-o", "x.json")  # fmt: skip
    assert answer.out.startswith("small, 7 tasks")
    made = optgap.generate("placement", "small", size=7, seed=4, goal="weighted", alpha=0.25)
    assert optgap.load("x.json").to_json() == made.to_json()


def test_without_an_output_file_the_problem_goes_to_standard_output(cli: Cli) -> None:
    answer = cli("generate", "placement", "--preset", "small", "--size", "2")
    assert json.loads(answer.out)["schema"] == "optgap.placement.problem/1"


CSV = {
    "nodes": "sn,cpu_milli,memory_mib,gpu,model\nn0,16000,4096,2,G2\nn1,16000,4096,1,T4\n",
    "tasks": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    "p0,1000,10,1,500,,LS\np1,1000,10,2,1000,G2,LS\np2,1000,10,0,0,,BE\n",
    "order": "seq,task\n0,p2\n1,p1\n2,p0\n3,p0\n",
    "ranks": "rank,node\n0,n1\n1,n0\n",
}


def test_csv_files_make_a_problem_and_placements_and_series_are_written_per_arrival(
    cli: Cli,
) -> None:
    tables = options(Path(), CSV)
    drawn = (*tables[:4], "--set", "load=0.4", "--seed", "1")
    assert cli("generate", "placement", *drawn, "-o", "y.json").code == 0
    assert optgap.load("y.json").tasks.demand_milli.sum() < 3000
    assert cli("generate", "placement", *tables, "-o", "x.json").code == 0
    problem = optgap.load("x.json")
    assert problem.tasks.names == ("p2", "p1", "p0", "p0")
    assert problem.ranks.tolist() == [1, 0]
    written = ("--placements", "p.csv", "--series", "s.csv")
    assert cli("run", "x.json", "--policy", "firstfit", *written).code == 0
    assert Path("p.csv").read_text() == "seq,node,gpu_index\n0,n1,\n1,n0,0-1\n2,n1,0\n3,n1,0\n"
    with open("s.csv", newline="") as file:
        series = list(csv.DictReader(file))
    assert list(series[0]) == [
        "seq", "arrived_gpu_milli", "used_gpu_milli", "used_cpu_milli", "frag_gpu_milli",
        "power_cpu_w", "power_gpu_w",
    ]  # fmt: skip
    assert [row["arrived_gpu_milli"] for row in series] == ["0", "2000", "2500", "3000"]
    assert [row["used_cpu_milli"] for row in series] == ["1000", "2000", "3000", "4000"]
    metrics = optgap.run(problem, "firstfit").metrics
    assert float(series[-1]["power_gpu_w"]) == metrics["power_gpu_w"] == 300 + 70
    assert float(series[-1]["frag_gpu_milli"]) == pytest.approx(metrics["frag_gpu_milli"])


def test_a_failed_arrival_has_empty_fields(cli: Cli) -> None:
    optgap.save(two_nodes_problem(extra=2), "tight.json")
    lines = cli("run", "tight.json", "--policy", "bestfit", "--placements", "-").out.splitlines()
    assert len(lines) == 7
    assert lines[-1] == "5,,"


def test_running_a_policy_writes_a_result(cli: Cli) -> None:
    answer = cli("run", "problem.json", "--policy", "pwr+fgd", "--set", "alpha=0.25", "--seed", "9",
                 "--json", "result.json", "-o", "solution.json")  # fmt: skip
    assert answer.code == 0
    document = json.loads(Path("result.json").read_text())
    assert set(document) >= RESULT_KEYS
    assert (document["schema"], document["method"]) == (
        "optgap.result/1",
        "pwr+fgd(alpha=0.25)",
    )
    assert (document["kind"], document["seed"]) == ("policy", 9)
    assert rows_of(answer.out)["objective"].replace(",", "") == f"{document['objective']:.3f} W"
    assert json.loads(Path("solution.json").read_text()) == document["solution"]


def test_quiet_prints_nothing(cli: Cli) -> None:
    answer = cli("run", "problem.json", "--policy", "fgd", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


@pytest.mark.parametrize("wrapped", [True, False])
def test_check_recomputes_what_run_says(cli: Cli, wrapped: bool) -> None:
    cli("run", "problem.json", "--policy", "fgd", "--json", "r.json", "-o", "s.json")
    name = "r.json" if wrapped else "s.json"
    verdict = json.loads(cli("check", "problem.json", name, "--json", "-").out)
    result = json.loads(Path("r.json").read_text())
    assert verdict["schema"] == "optgap.check/1"
    assert verdict["feasible"]
    assert verdict["violations"] == []
    assert verdict["objective"] == result["objective"]
    assert verdict["metrics"].items() <= result["metrics"].items()


def test_check_states_violations(cli: Cli) -> None:
    overfull = PlacementSolution.of([(0, [0]), (0, [0]), (0, [1]), (0, [])])
    optgap.save(overfull, "bad.json", optgap.load("problem.json"))
    answer = cli("check", "problem.json", "bad.json")
    assert answer.code == 0
    assert "a GPU 0: GPU capacity" in answer.out
    assert cli("check", "problem.json", "bad.json", "--strict").code == 2
    verdict = json.loads(cli("check", "problem.json", "bad.json", "--json", "-").out)
    assert not verdict["feasible"]
    assert verdict["objective"] is None
    said = {"constraint": "GPU capacity in milli-GPU (Cond. 3)", "where": "a GPU 0"}
    assert verdict["violations"] == [{**said, "found": 1500, "limit": 1000}]


LEAST_W = 495.0
"""Of `TWO_NODES`: one package and two GPUs of one node active."""


def test_solve_finds_the_optimum_and_bound_stays_below_it(cli: Cli) -> None:
    solved = cli("solve", "problem.json", "--json", "s.json")
    assert solved.code == 0
    exact = json.loads(Path("s.json").read_text())
    found = (exact["kind"], exact["status"], exact["objective"])
    assert found == ("exact", "optimal", LEAST_W)
    assert 0 <= exact["gap"] <= 1e-9  # the bound is rounded down
    assert "gap" in rows_of(solved.out)
    assert cli("solve", "problem.json", "--bound-only", "--json", "b.json").code == 0
    bound = json.loads(Path("b.json").read_text())
    assert set(bound) >= RESULT_KEYS
    assert (bound["status"], bound["objective"], bound["solution"]) == ("bound_only", None, None)
    assert 0.9 * LEAST_W < bound["bound"] <= LEAST_W * (1 + 1e-6)
    assert bound["bound_by"]


def test_compare_prints_the_table_and_writes_it(cli: Cli) -> None:
    answer = cli("compare", "problem.json", "--json", "gaps.json", "--plot", "gaps.png")
    assert answer.code == 0
    document = json.loads(Path("gaps.json").read_text())
    assert document["schema"] == "optgap.compare/1"
    assert document["best_known"] == LEAST_W
    assert (1 - 1e-9) * LEAST_W <= document["best_bound"] <= LEAST_W
    for row in document["rows"]:
        assert row["method"] in answer.out
    assert Path("gaps.png").read_bytes().startswith(b"\x89PNG")
    assert "\x1b" not in answer.out


def test_compare_takes_chosen_policies_with_parameters(cli: Cli) -> None:
    answer = cli("compare", "problem.json", "--policies", "pwr+fgd(alpha=0.4),fgd", "--json", "-",
                 "--set", "score=exact")  # fmt: skip
    assert answer.code == 0, answer.err
    rows = json.loads(answer.out)["rows"]
    assert [row["method"] for row in rows if row["kind"] == "policy"] == [
        "pwr+fgd(score=exact,alpha=0.4)",
        "fgd(score=exact)",
    ]


def test_a_gap_is_shown_in_parts_with_decisions(cli: Cli) -> None:
    given = ("explain", "problem.json", "--policy", "random", "--seed", "3")
    answer = cli(*given, "--plot", "x.png", "--json", "x.json")
    assert answer.code == 0, answer.err
    for words in ("unproven", "price of being online", "price of the heuristic", "decisions:"):
        assert words in answer.out
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads(Path("x.json").read_text())
    assert document["schema"] == "optgap.explain/1"
    assert (document["policy"], document["per_event"]) == ("random", "greedy-exact")
    assert [part["name"] for part in document["parts"]] == ["unproven", "online", "heuristic"]
    total = sum(part["amount"] for part in document["parts"])
    assert total == pytest.approx(document["objective"] - document["bound"])
    assert len(document["decisions"]["top"]) <= 10
    assert document["decisions"]["costly"] >= len(document["decisions"]["top"])


def test_a_family_stands_for_its_preset(cli: Cli) -> None:
    answer = cli("explain", "placement", "--preset", "small", "--size", "8", "--policy",
                 "pwr+fgd", "--set", "score=exact", "--set", "goal=fragmentation")  # fmt: skip
    assert answer.code == 0, answer.err
    assert "small, 8 tasks" in answer.out
    assert "pwr+fgd(score=exact)" in answer.out
    assert "milli-GPU" in answer.out


BEGINS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
RUN = ("run", "problem.json", "--policy", "fgd")
COMPARE = ("compare", "problem.json", "--policies", "fgd", "--methods", "bound-pooled")


@pytest.mark.parametrize(
    ("command", "ending"),
    [(RUN, ".png"), (RUN, ".svg"), (RUN, ".pdf"), (RUN, ".PNG"), (COMPARE, ".svg")],
)
def test_the_ending_says_the_format_and_the_same_run_makes_the_same_file(
    cli: Cli, command: tuple[str, ...], ending: str
) -> None:
    for name in ("a", "b"):
        assert cli(*command, "--plot", name + ending).code == 0
    first, second = (Path(name + ending).read_bytes() for name in ("a", "b"))
    assert first.startswith(BEGINS[ending.lower()])
    assert first == second
    assert sorted(Path().glob(".*")) == []  # nothing half-written is left


@pytest.mark.parametrize("name", ["x.gif", "x", "x.png.txt", ".png"])
@pytest.mark.parametrize("command", [("run", "--policy"), ("solve", "--method"), ("compare", "")])
def test_another_ending_is_one_line_before_any_work(
    cli: Cli, command: tuple[str, str], name: str
) -> None:
    given = [command[0], "problem.json", *([command[1], "nonsense"] if command[1] else [])]
    refused(cli(*given, "--plot", name), ".png, .svg or .pdf")
    assert not Path(name).exists()


def test_without_a_solution_nothing_is_drawn_and_that_is_said(cli: Cli) -> None:
    answer = cli("solve", "problem.json", "--method", "bound-pooled", "--plot", "s.png")
    assert answer.code == 0
    assert answer.err == "optgap: s.png: nothing drawn, there is no solution\n"
    assert not Path("s.png").exists()


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (KeyboardInterrupt(), 3, "optgap: interrupted\n"),
        (ModuleNotFoundError("no x"), 1, "optgap: ModuleNotFoundError: no x (-v shows where)\n"),
    ],
)
def test_an_interrupt_at_the_beginning_and_a_failure_of_ours_end_in_one_line(
    fault: BaseException, code: int, said: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("optgap.making.from_preset", raises)
    answer = cli("generate", "coscheduling", "-o", "problem.json")
    assert answer == (code, "", said)
    verbose = cli("generate", "coscheduling", "-o", "problem.json", "-v")
    assert ("Traceback" in verbose.err) == (code == 1)


@pytest.mark.parametrize(("name", "instead"), REMOVED.items())
def test_a_command_that_has_gone_says_in_one_line_what_to_use(
    name: str, instead: str, cli: Cli
) -> None:
    assert name not in COMMANDS
    for more in ((), ("--json", "x.json"), ("--help",)):
        words = ("fit", name) if name.startswith("-") else (name,)
        assert cli(*words, *more) == (2, "", f"optgap: there is no {name} any more: {instead}\n")


@pytest.mark.parametrize(
    ("ends", "code"),
    [("completed work_limit", 0), ("time_limit error", 1), ("interrupted", 3), ("time_limit", 3)],
)
def test_the_exit_code_says_how_a_command_ended(ends: str, code: int) -> None:
    assert exit_code(map(Termination, ends.split())) == code
