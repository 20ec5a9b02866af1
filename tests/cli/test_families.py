"""Every family through the command line: from tables to a proven, checked solution."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Cli, refused
from strategies_elastic import CLOCKS, JOB_A, JOB_B
from tables import options
from trust.answers import SMALL
from trust.samples import TABLES

import optgap
from optgap.registry import FAMILIES

pytestmark = pytest.mark.usefixtures("here")


class Example(NamedTuple):
    """Tables written out by hand, and the optimum of what they make."""

    tables: dict[str, str]
    settings: str
    optimum: float
    unit: str


SERIES = "task,t_s,util_percent\n" + "".join(
    f"t{k + 1},{60 * t},{u}\n"
    for k, series in enumerate([(80, 20, 80, 20), (20, 70, 20, 70), (60, 60, 10, 10)])
    for t, u in enumerate(series)
)
MODELS = {
    "schema": "optgap.elastic.models/1",
    "frequencies_mhz": CLOCKS,
    "models": [
        {"name": name, "tables": [{"counts": [1, 2, 4], "time_s": times, "power_w": watts}]}
        for name, (times, watts) in (("A", JOB_A), ("B", JOB_B))
    ],
}
EXAMPLES = {
    "consolidation": Example(
        {
            "tasks": "task,memory_gb,gpus,kappa\nt1,12,1,1.2\nt2,10,1,1.2\nt3,6,1,1.2\n",
            "series": SERIES,
        },
        "servers=2 gpus_per_server=2 server_static_w=100 capacity=mean",
        345.481,
        "W",
    ),
    "coscheduling": Example(
        {
            "profiles": "app,gpu_count,runtime_s,avg_power_per_gpu_w\n"
            "X,1,330,350\nX,2,180,310\nY,4,100,320\nZ,1,150,300\nZ,2,140,235\n",
            "jobs": "app,count\nX,1\nY,1\nZ,1\n",
        },
        "gpus=4 numa=2 idle_w=70",
        299_300,
        "J",
    ),
    "elastic": Example(
        {
            "jobs": "job,submit_s,model,batch,iterations,gpus\na,0,A,64,1000,2\nb,0,B,64,500,3\n",
            "models": json.dumps(MODELS),
        },
        "gpus=4 gpus_per_node=4 eta=0.8 p_max_w=150 idle_w=0 restarts=false",
        500,
        "s",
    ),
    "queueing": Example(
        {
            "jobs": "job,arrival_s,duration_s,gpus,type,iterations\n1,0,3600,4,training,100\n"
            "2,10,600,8,inference,20\n3,20,1200,2,research,30\n4,30,300,1,inference,5\n"
            "5,40,900,4,training,40\n"
        },
        "nodes=1 gpus_per_node=8",
        606,
        "s",
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The problem file of each example."""
    from optgap.cli import main

    paths = {}
    for family, example in EXAMPLES.items():
        folder = tmp_path_factory.mktemp(family)
        paths[family] = str(folder / "problem.json")
        given = options(folder, example.tables, example.settings)
        assert main(("generate", family, *given, "-o", paths[family])) == 0
    return paths


def answered(cli: Cli, *arguments: str) -> Any:
    """The JSON that a command gives."""
    answer = cli(*arguments, "--json", "-", "-q")
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


@pytest.mark.parametrize("family", EXAMPLES)
def test_tables_become_a_proven_solution_that_the_referee_accepts(
    family: str, made: dict[str, str], cli: Cli
) -> None:
    result = answered(cli, "solve", made[family], "-o", "s.json")
    example = EXAMPLES[family]
    assert (result["status"], result["unit"]) == ("optimal", example.unit)
    assert result["objective"] == pytest.approx(example.optimum, rel=1e-5)
    verdict = answered(cli, "check", made[family], "s.json")
    assert verdict["feasible"]
    assert verdict["objective"] == pytest.approx(result["objective"])
    if family == "consolidation":
        result["solution"]["assignments"][0]["gpus"] = [[0, 1], [1, 0]]
        Path("s.json").write_text(json.dumps(result["solution"]))
        violations = answered(cli, "check", made[family], "s.json")["violations"]
        assert "different GPUs (7)" in [violation["constraint"] for violation in violations]


def test_a_solution_comes_out_as_csv(made: dict[str, str], cli: Cli) -> None:
    Path("mine.py").write_text("def last(task, state):\n    return len(state.count) - 1 - task\n")
    for family, policy, option, begins in (
        ("consolidation", "mine.py:last", "--placements",
         "task,start_s,server,gpu_index\nt1,0.0,1,1\nt2,0.0,1,0\nt3,0.0,0,1\n"),
        ("queueing", "fifo", "--schedule",
         "job,start_s,end_s,nodes\n1,0.0,3600.0,0:4\n2,3600.0,4200.0,0:8\n"),
    ):  # fmt: skip
        assert cli("run", made[family], "--policy", policy, option, "out.csv").code == 0
        assert Path("out.csv").read_text().startswith(begins)


# -- consolidation -----------------------------------------------------------------------


@pytest.fixture
def tasks() -> list[str]:
    return options(Path(), EXAMPLES["consolidation"].tables, "servers=2 gpus_per_server=2")


def test_time_to_wake_and_power_by_utilisation_are_refused(tasks: list[str], cli: Cli) -> None:
    path = Path("p.json")
    assert cli("generate", "consolidation", *tasks, "-o", "p.json").code == 0
    document = json.loads(path.read_text())
    for field, value, said in (("util_scaled", True, "true"), ("wake_s", 3.0, "3.0")):
        path.write_text(json.dumps(document | {field: value}))
        refused(cli("solve", "p.json"), f"{field}: found {said}, expected")


def test_fitted_models_are_given_one_after_another(tasks: list[str], cli: Cli) -> None:
    groups = [
        ("linear-power", "", {"P_gs": {"value": 40.0}, "alpha": {"value": 0.1}}),
        ("power-law-jct", "V100", {"beta": {"value": 0.5}}),
    ]
    given = []
    for model, name, params in groups:
        group = {"group": name, "params": params, "validity": {}}
        document = {"schema": "optgap.fit/1", "model": model, "groups": [group]}
        Path(f"{model}.json").write_text(json.dumps(document))
        given += ["--model", f"{model}.json"]
    assert cli("generate", "consolidation", *tasks, *given, "-o", "p.json").code == 0
    kind = json.loads(Path("p.json").read_text())["kinds"][0]
    assert (kind["static_w"], kind["slope_w_per_mhz"], kind["beta"]) == (40, 0.1, 0.5)


@pytest.fixture
def power(cli: Cli) -> str:
    rows = [(300, 51), (600, 76), (900, 105), (1200, 130), (1350, 146)]
    Path("power.csv").write_text("frequency_mhz,power_w\n" + "".join(f"{f},{p}\n" for f, p in rows))
    assert cli("fit", "linear-power", "power.csv", "-o", "power.json", "-q").code == 0
    return "power.json"


def test_gaps_have_an_interval_under_the_uncertainty_of_a_fit(
    made: dict[str, str], power: str, cli: Cli
) -> None:
    given = ["--policies", "cats,default", "--model", power, "--samples", "4"]
    document = answered(cli, "compare", made["consolidation"], *given)
    said = document["uncertainty"]
    assert (said["samples"], said["level"]) == (4, 0.9)
    rows = {row["method"]: row for row in said["gap_to_bound"]}
    fitted = {row["method"]: row["gap_to_bound"] for row in document["rows"]}
    for name in ("cats", "default"):
        assert rows[name]["low"] <= rows[name]["median"] <= rows[name]["high"]
        assert rows[name]["median"] == pytest.approx(fitted[name], abs=0.02)
    assert rows["default"]["low"] < rows["default"]["high"]
    again = cli("compare", made["consolidation"], *given, "--json", "again.json")
    assert "4 samples of" in again.out
    assert "range of 4 draws (holds 60 %); 90 % takes 19 draws" in again.out
    assert json.loads(Path("again.json").read_text())["uncertainty"] == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["consolidation", "--samples", "3"], "seed 0, which rests on no fit"),
        (["consolidation", "--model", "FIT", "--samples", "1"], "2 to 10000 draws"),
        (["consolidation", "--model", "none.json"], "none.json"),
        (["consolidation", "--sweep", "size=4,5", "--model", "FIT"], "conflicts with --sweep"),
        (["placement", "--model", "FIT"], "linear-power serves consolidation, elastic"),
        (["--model", "FIT"], "--model: needs a family"),
    ],
)
def test_draws_that_cannot_be_made_are_told_in_one_line(
    given: list[str], said: str, power: str, cli: Cli
) -> None:
    refused(cli("compare", *(power if text == "FIT" else text for text in given)), said)


# -- coscheduling ------------------------------------------------------------------------

LOG = "app,gpu_count,start_s,end_s\nY,4,0,104\nX,2,104,290\nZ,1,104,260\n"


@pytest.mark.parametrize(
    ("log", "constraint"),
    [
        (LOG, ""),
        (LOG.replace("2,104,290", "4,104,290"), "X"),
        (LOG.replace("2,104,290", "2,90,290"), "one job per GPU"),
    ],
)
def test_a_measured_schedule_is_checked_as_it_was(
    log: str, constraint: str, made: dict[str, str], cli: Cli
) -> None:
    Path("log.csv").write_text(log)
    given = ("check", made["coscheduling"], "log.csv")
    if not constraint:
        verdict = answered(cli, *given)
        assert verdict["feasible"]
        assert verdict["metrics"]["makespan_s"] == 290
        return
    answer = cli(*given, "--strict")
    assert answer.code == 2
    assert constraint in answer.out


def test_a_policy_is_explained_start_by_start(made: dict[str, str], cli: Cli) -> None:
    document = answered(cli, "explain", made["coscheduling"], "--policy", "sequential_max_gpu")
    assert document["per_event"] == "exact-window"
    assert document["decisions"]["judged"] == 3
    assert document["decisions"]["top"][0]["chosen"] == "on 4 GPUs"


# -- elastic -----------------------------------------------------------------------------


def test_the_written_out_example_from_csv_to_timeline(made: dict[str, str], cli: Cli) -> None:
    tables = ["--timeline", "timeline.csv", "--series", "power.csv"]
    policy = ("--policy", "powerflow(profiles=perfect)")
    result = answered(cli, "run", made["elastic"], *policy, *tables)
    assert result["objective"] == pytest.approx(528.86, abs=0.01)
    lines = Path("timeline.csv").read_text().splitlines()
    assert lines[0] == "time_s,job,event,gpus,frequency_mhz"
    assert lines[1:5] == [
        "0.0,a,submit,0,0.0", "0.0,b,submit,0,0.0", "0.0,a,run,2,1200.0", "0.0,b,run,2,1000.0",
    ]  # fmt: skip
    assert sum(",complete," in line for line in lines) == 2
    power = Path("power.csv").read_text().splitlines()
    assert power[0].startswith("time_s,jobs_running,gpus_used,power_jobs_w")
    assert power[1].split(",")[1:4] == ["2", "4", "470.000"]
    assert power[-1].split(",")[1:4] == ["0", "0", "0.000"]


def test_a_policy_that_passes_the_limit_is_measured_against_what_it_kept(
    made: dict[str, str], cli: Cli
) -> None:
    policies = "powerflow(profiles=perfect),powerflow(profiles=perfect,mode=paper)"
    document = answered(cli, "compare", made["elastic"], "--policies", policies)
    rows = {row["method"]: row for row in document["rows"]}
    strict = rows["powerflow(profiles=perfect)"]
    paper = rows["powerflow(profiles=perfect,mode=paper)"]
    assert (strict["bound_scope"], paper["bound_scope"]) == ("all", "accepted")
    assert paper["objective"] < strict["objective"]
    assert paper["gap_to_bound"] >= 0


def test_a_trace_stands_in_for_jobs(cli: Cli) -> None:
    header = "submit_time,model_name,batch_size,num_gpu,duration\n"
    Path("trace.csv").write_text(f"{header}5,ncf,4096,3,600\n")
    pool = ["--set", "gpus=8", "--set", "pool=t4"]
    answer = cli("generate", "elastic", "--trace", "trace.csv", *pool, "-o", "p.json")
    assert answer.code == 0
    assert "1 request for GPUs rounded up" in answer.out
    assert cli("generate", "elastic", *pool, "--trace", "nowhere.csv").code == 2
    neither = cli("generate", "elastic", "--models", "trace.csv", *pool)
    assert "--jobs, --trace" in neither.err


# -- queueing ----------------------------------------------------------------------------


def test_jobs_that_leave_are_held_against_a_bound_for_the_others(cli: Cli) -> None:
    params = ["--size", "150", "--set", "patience=const", "--set", "load=1.6"]
    assert cli("generate", "queueing", *params, "-o", "p.json").code == 0
    document = answered(cli, "compare", "p.json", "--policies", "fifo,sjf")
    (fifo,) = (row for row in document["rows"] if row["method"] == "fifo")
    assert fifo["bound_scope"] == "accepted"
    assert fifo["metrics"]["success_rate"] < 1


def test_what_a_log_lost_on_the_way_is_said(cli: Cli) -> None:
    first = "1 0 5 60 4 -1 -1 4 120 -1 1 3 1 -1 2 -1 -1 -1\n"
    second = first.replace("1 0 5 60", "2 5 5 -1", 1)
    Path("log.swf").write_text(f"; UnixStartTime: 0\n{first}{second}")
    answer = cli("generate", "queueing", "--jobs", "log.swf", "-o", "p.json")
    assert answer.code == 0
    assert "1 job without a run time left out" in answer.out


NAMES = ("=1+1", "+5%", "-x", "@a", "'=2", "''-y", "plain", "-5")


def test_names_that_a_spreadsheet_would_compute_are_escaped_and_read_back(cli: Cli) -> None:
    rows = "".join(f'"{name}",{k},60,1\n' for k, name in enumerate(NAMES))
    jobs = {"jobs": "job,arrival_s,duration_s,gpus\n" + rows}
    given = options(Path(), jobs, "nodes=1 gpus_per_node=8")
    assert cli("generate", "queueing", *given, "-o", "p.json").code == 0
    # an apostrophe before such a sign is read as one that was put there
    assert optgap.load("p.json").jobs.names[:4] == ("=1+1", "+5%", "-x", "@a")
    assert cli("run", "p.json", "--policy", "fifo", "--schedule", "out.csv").code == 0
    with open("out.csv", newline="") as file:
        shown = [row["job"] for row in csv.DictReader(file)]
    assert shown[:5] == ["'=1+1", "'+5%", "'-x", "'@a", "'=2"]
    assert shown[6:] == ["plain", "-5"]
    verdict = answered(cli, "check", "p.json", "out.csv")
    assert verdict["feasible"]
    assert verdict["serves_all"]


# -- all names, and bad input ------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_every_policy_and_method_stands_in_one_table(family: str, cli: Cli) -> None:
    spec = FAMILIES[family]
    optgap.save(optgap.generate(family, seed=3, **SMALL[family]), "p.json")
    answer = cli("compare", "p.json", "--methods", "all", "--json", "-", "-q")
    document = json.loads(answer.out)
    assert answer.code == 0
    assert {row["method"] for row in document["rows"]} == {*spec.policies, *spec.methods}
    assert any(row["status"] == "optimal" for row in document["rows"])
    policies = [row for row in document["rows"] if row["kind"] == "policy"]
    assert all(row["gap_to_bound"] >= 0 for row in policies)


NODES, TASKS = (TABLES["placement"][0][name].partition("\n")[0] for name in ("nodes", "tasks"))
NO_EDIT, LENIENT = ("", "", ""), ("strict=false",)
"""Of no table; one that names a table and nothing in it gives all of its text. Without checks of
units a reader's own are left."""

BAD: list[tuple[str, tuple[str, str, str], tuple[str, ...], str]] = [
    ("consolidation", ("tasks", "a,12", "a,40"), (), "memory_gb: found 40.0, expected at most 32"),
    ("consolidation", ("tasks", "a,12,0,1", "a,12,0,3"), (), "gpus: found 3, expected at most 2"),
    ("consolidation", ("tasks", ",1.2,", ",0.9,"), (), "row 2, column kappa"),
    ("consolidation", ("series", "c,10,10\n", ""), (), "found 1 samples"),
    ("consolidation", ("series", "a,0,50", "a,0,nan"), (), "row 2, column util_percent"),
    ("consolidation", ("series", "a,0,50", "a,0,180"), LENIENT, "row 2, column util_percent"),
    ("consolidation", ("series", "", "task,t_s,util_percent\n"), (), "no rows"),
    ("consolidation", ("tasks", "b,10", "d,6,0,1,30,1,\nb,10"), (), "task d: found no samples"),
    ("consolidation", ("series", "c,0", "b,20,1\nc,0"), (), "task b: found 3 samples, expected 2"),
    ("consolidation", ("series", "a,10,60", "a,10,50"), (), "task a: found 50 throughout"),
    ("consolidation", ("series", "b,10", "b,11"), (), "11 s between samples"),
    ("consolidation", ("series", "a,0", "d,0"), (), "row 2, column task"),
    ("consolidation", ("tasks", "memory_gb", "memory"), (), "a column memory_gb"),
    ("consolidation", ("tasks", "", "task,memory_gb\n"), (), "no rows"),
    ("consolidation", ("tasks", "b,10", "a,10"), (), "a twice"),
    ("consolidation", ("tasks", "1.2,50", "1.2,120"), LENIENT, "row 2, column util_percent"),
    ("consolidation", NO_EDIT, ("f_min_mhz=2000",), "f_min"),
    ("consolidation", NO_EDIT, ("capacity=most",), "one of none, mean, slot, peak"),
    ("consolidation", NO_EDIT, ("goal=energy", "capacity=slot"), "none, mean or peak"),
    ("consolidation", NO_EDIT, ("kappa=0.5",), "--set: kappa: found 0.5"),
    ("consolidation", NO_EDIT, ("beta=-1",), "--set: GPU.beta: found -1"),
    ("consolidation", NO_EDIT, ("server_static_w=-1",), "--set: server_static_w"),
    ("coscheduling", ("profiles", "a,1,100", "a,1,0"), (), "row 2, column runtime_s: found 0"),
    (
        "coscheduling",
        ("profiles", "100,300", "100,nan"),
        (),
        "row 2, column avg_power_per_gpu_w: found 'nan'",
    ),
    ("coscheduling", ("profiles", "b,1,", "b,8,"), (), "at least 8 GPUs needed"),
    ("coscheduling", ("profiles", "runtime_s", "time"), (), "a column runtime_s"),
    ("coscheduling", ("profiles", "a,1,", "a,0,"), (), "row 2, column gpu_count"),
    ("coscheduling", ("profiles", "a,2", "a,1"), (), "row 3, column gpu_count: found 1 GPUs of a"),
    ("coscheduling", ("jobs", "a,1", "c,1"), (), "row 2, column app: found 'c'"),
    ("coscheduling", ("jobs", "a,1", "a,-1"), (), "row 2, column count"),
    ("coscheduling", ("jobs", "a,1\nb,2", "a,0"), (), "no jobs"),
    (
        "coscheduling",
        ("profiles", "", "app,gpu_count,runtime_s,avg_power_per_gpu_w\n"),
        (),
        "no rows",
    ),
    ("coscheduling", NO_EDIT, ("numa=0",), "numa: found 0"),
    ("coscheduling", NO_EDIT, ("numa=-1",), "numa"),
    ("coscheduling", NO_EDIT, ("gpus=0",), "gpus: found 0"),
    ("coscheduling", NO_EDIT, ("idle_w=nan",), "idle_w"),
    ("coscheduling", NO_EDIT, ("tau=-1",), "tau"),
    ("coscheduling", NO_EDIT, ("goal=speed",), "goal"),
    ("elastic", ("jobs", "m,8,100", "m,8,0"), (), "column iterations"),
    ("elastic", ("jobs", "m,8,100", "m,1,100"), (), "found no batch 1"),
    ("elastic", ("jobs", "m,8,100", "m,0,100"), (), "column batch"),
    ("elastic", ("jobs", "a,0,m", "a,0,x"), (), "column model"),
    ("elastic", ("jobs", "a,0", "a,-1"), (), "column submit_s"),
    ("elastic", ("models", "[160, 240]", "[160, -5]"), (), "power_w at 2 GPUs, 1000 MHz"),
    ("elastic", NO_EDIT, ("eta=1.2",), "from 0 to 1"),
    ("elastic", NO_EDIT, ("eta=0.01",), "needs to run"),
    ("elastic", NO_EDIT, ("cap=energy",), "one of power, none"),
    ("elastic", NO_EDIT, ("gpus=3",), "multiple"),
    ("queueing", ("jobs", "a,0,100", "a,0,0"), (), "row 2, column duration_s: found 0.0"),
    ("queueing", ("jobs", "0,100,2", "0,100,0"), (), "row 2, column gpus: found 0"),
    ("queueing", ("jobs", "0,100,2", "0,100,9"), (), "column gpus: found 9, expected at most 8"),
    ("queueing", ("jobs", "10,120", "10,0"), (), "row 2, estimate_s"),
    ("queueing", ("jobs", "a,0", "a,-1"), (), "row 2, column arrival_s"),
    ("queueing", ("jobs", "b,5", "a,5"), (), "row 3, job: found job a again, as in row 2"),
    ("queueing", ("jobs", ",train,1,20", ""), (), "4 cells"),
]
LISTS = [
    ("nodes", "", NODES, "found no nodes below the header, expected at least one"),
    ("nodes", "n1", "n0", "row 3, column sn: found 'n0' … in row 2 too"),
    ("nodes", "8000", "100000001", "row 3, column cpu_milli: found 100000001 … at m"),
    ("nodes", ",2,G2", ",63,G2", "row 2, column gpu: found 63, expected at most 62"),
    ("nodes", "G2", "G9", "row 2, column model: found 'G9' … figures: … G2"),
    ("tasks", "", TASKS, "found no tasks below the header"),
    ("tasks", "p2", "p1", "row 4, column name: found 'p1', expected every name"),
    ("tasks", "1,500", "1,1001", "row 2, column gpu_milli: found 1001"),
    ("tasks", "2,1000", "2,900", "row 3, column gpu_milli: found 900"),
    ("tasks", "G2", "G2|G9", "row 3, column gpu_spec: found 'G2|G9' … among … G2"),
    ("tasks", "2000", "16001", "row 3, column cpu_milli: found 16001 … most 16000"),
    ("tasks", ",20,", ",4097,", "row 3, column memory_mib: found 4097"),
    ("tasks", "2,1000", "3,1000", "row 3, column num_gpu: found 3 … at most 2"),
    ("order", "", "seq,task\n", "found no arrivals below the header"),
    ("order", "1,p0", "2,p0", "row 3, column seq: found 2, expected 1, the next"),
    ("order", "p2", "p9", "row 2, column task: found 'p9', expected a task of the trace"),
    ("ranks", "1,n0", "0,n0", "row 3, column rank: found 0, expected every rank once"),
    ("ranks", "n0", "n1", "row 3, column node: found 'n1', expected every node"),
    ("ranks", "n1", "n9", "row 2, column node: found 'n9', expected a node of"),
    ("ranks", "0,", "2,", "row 2, column rank: found 2, expected a rank below 2"),
    ("ranks", "1,n0\n", "", "found no rank for node n0, expected one for every node"),
    ("devices", "150", "29", "row 2, column full_w: found 29 … idle_w, 30"),
    ("devices", "G2", "X,1,2\nX", "row 3, column model: found 'X'"),
]
"""Of placement: a file, what is replaced in it by what, and what is said."""
BAD += [
    ("placement", (name, old, new), LENIENT, f"{name}.csv: … {said}")
    for name, old, new, said in LISTS
]


@pytest.mark.parametrize(("family", "edit", "settings", "said"), BAD)
def test_bad_input_ends_in_one_line(
    family: str, edit: tuple[str, str, str], settings: tuple[str, ...], said: str, cli: Cli
) -> None:
    tables, given = TABLES[family]
    name, old, new = edit
    if name:
        tables = {**tables, name: tables[name].replace(old, new, 1) if old else new}
    asked = options(Path(), tables, given | dict(setting.split("=") for setting in settings))
    refused(cli("generate", family, *asked, "-o", "problem.json"), *said.split(" … "))
    assert not Path("problem.json").exists()
