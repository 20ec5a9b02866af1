"""Input that cannot be used: one line on standard error, exit code 2, and nothing written."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, refused, two_nodes_problem

import optgap
from optgap.models.errors import InputError, meant, one_of
from optgap.models.placement import PlacementSolution


@pytest.fixture(autouse=True)
def folder(here: Path) -> None:
    """A directory with a problem, a solution, and files that are neither."""
    problem = two_nodes_problem()
    optgap.save(problem, "problem.json")
    optgap.save(PlacementSolution.of([None] * 4), "solution.json", problem)
    Path("directory").mkdir()
    files = {
        "nodes.csv": "sn,cpu_milli,memory_mib,gpu,model\nn0,16000,4096,2,G2\n",
        "tasks.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,10,1,500\n",
        "bad.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,10,1,1500\n",
        "grid.toml": '[[grid]]\nfamily = "queueing"\npolices = ["sjf"]\n',
        "mine.py": "def p(task, state):\n    return None\n",
    }
    for name, content in files.items():
        Path(name).write_text(content)


NO_PROBLEMS: dict[str, tuple[str, str, str]] = {
    # what is replaced in the whole file, "" for all of it, by what, and what is said
    "twice": ("", '{"schema": "x", "schema": "y"}', "field schema"),
    "schemaless": ("", "{}", "field schema"),
    "numbered": ("", '{"schema": 3}', "field schema"),
    "deep": ("", "[" * 100_000, "wrong.json"),
    "schema": ("problem/1", "problem/9", "problem/1"),
    "other": ("placement.problem", "juggling.problem", "problem/1"),
    "negative": ("16000", "-16000", "field nodes.cpu_milli[0]"),
    "vast": ("16000", "100000001", "at most 100000000 milli-vCPU"),
    "float": ("16000", "16000.5", "field nodes.cpu_milli[0]"),
}
NO_FILES = [
    ("missing.json", "optgap: missing.json: no such file or directory; name a readable file"),
    ("directory", "is a directory"),
    ("solution.json", "problem/1"),
]


@pytest.mark.parametrize(("name", "said"), [*NO_FILES, *((name, "") for name in NO_PROBLEMS)])
@pytest.mark.parametrize("command", ["run", "compare", "check"])
def test_a_problem_file_that_is_none(cli: Cli, command: str, name: str, said: str) -> None:
    if name in NO_PROBLEMS:
        old, new, said = NO_PROBLEMS[name]
        name, text = "wrong.json", Path("problem.json").read_text()
        Path(name).write_text(text.replace(old or text, new, 1))
    extra = {"run": ["--policy", "fgd"], "compare": [], "check": ["solution.json"]}[command]
    refused(cli(command, name, *extra, "--json", "out.json"), name, said)
    assert not Path("out.json").exists()


@pytest.mark.parametrize(
    "edit",
    [
        lambda placements: placements[0].update(task="else"),
        lambda placements: placements[0].update(node="nowhere"),
        lambda placements: placements[0].update(seq=99),
        lambda placements: placements.append(placements[0]),
    ],
)
def test_a_solution_of_something_else(cli: Cli, edit: Callable[[Any], None]) -> None:
    document = json.loads(Path("solution.json").read_text())
    edit(document["placements"])
    Path("wrong.json").write_text(json.dumps(document))
    refused(cli("check", "problem.json", "wrong.json"), "wrong.json")
    refused(cli("check", "problem.json", "missing.json"), "missing.json")


def test_a_result_without_a_solution_cannot_be_checked(cli: Cli) -> None:
    result = optgap.run(optgap.load("problem.json"), "fgd").to_json()
    Path("bare.json").write_text(json.dumps({**result, "solution": None}))
    refused(cli("check", "problem.json", "bare.json"), "field solution")


MEANINGLESS = [
    ("run problem.json --policy ''", "--policy"),
    ("run problem.json --policy 'pwr+fgd(alpha=x)'", "'x'", "a finite number"),
    ("run problem.json --policy 'pwr+fgd(alpha=2)'", "2"),
    ("run problem.json --policy pwr+fgd --set alpha", "key=value"),
    ("run problem.json --policy pwr+fgd --set limits=1", "limits"),
    ("run problem.json --policy fgd --set seed=1", "seed"),
    ("run problem.json --policy mine.py:q", "found 'q'"),
    ("run problem.json --policy none.py:p", "none.py"),
    ("run problem.json", "--policy"),
    ("run", "PROBLEM.json"),
    ("run problem.json --policy fgd --seed -1", "--seed"),
    ("run problem.json --policy fgd --seed x", "--seed"),
    ("run problem.json --policy fgd --time-limit 0", "--time-limit"),
    ("run problem.json --policy fgd --time-limit nan", "--time-limit"),
    ("run problem.json --policy fgd --time-limit -1", "--time-limit"),
    ("run problem.json --policy fgd --nonsense", "--nonsense"),
    ("solve problem.json --set x=1", "x"),
    ("compare problem.json --policies fgd,", "--policies"),
    ("compare problem.json --policies 'fgd(' --methods auto", "--policies"),
    ("compare problem.json --set x=1", "x"),
    ("compare problem.json --preset small", "--preset"),
    ("compare problem.json --sweep load=1", "--sweep"),
    ("compare placement --preset small --sweep size", "--sweep"),
    ("compare placement --preset small --sweep size=2,x", "'x'"),
    ("generate placement --preset small --size 0", "--size"),
    ("generate placement --set size=0", "0"),
    ("generate placement --set load=heavy", "'heavy'"),
    ("generate placement --set size=1 --size 2", "size"),
    ("generate placement --nodes nodes.csv", "--tasks"),
    ("generate placement --nodes none.csv --tasks tasks.csv", "none.csv"),
    (
        "generate placement --nodes nodes.csv --tasks bad.csv",
        "bad.csv",
        "row 2",
        "gpu_milli",
        "1500",
    ),
    ("generate placement --nodes nodes.csv --tasks nodes.csv", "name"),
    ("generate placement --nodes nodes.csv --tasks tasks.csv --preset small", "--preset"),
    ("compare --preset small", "needs a family"),
    ("compare --policies fgd", "needs a family"),
    ("compare --set a=1", "needs a family"),
    ("explain problem.json", "Missing option '--policy'"),
    ("explain missing.json --policy fgd", "missing.json: no such file"),
    ("explain problem.json --policy fgd --set x=1", "found 'x', expected"),
    ("explain problem.json --policy fgd --preset small", "conflicts with a problem file"),
    ("explain nothing --policy fgd", "or a problem file"),
    ("explain problem.json --policy fgd --json a/b.json", "no such folder"),
    ("report nothing.json -o r.html", "nothing.json: no such file"),
    ("report problem.json -o r.html", "problems only"),
    ("report problem.json", "--output"),
    ("report problem.json -o no/r.html", "no such folder"),
    ("report problem.json -o x --json x", "two outputs"),
    ("audit kubernets x.json", "did you mean 'kubernetes'"),
    ("audit placement x.json", "a log beside the problem"),
    ("audit slurm x y", "one file"),
    ("audit slurm missing.txt", "missing.txt"),
    ("audit kubernetes x.json --set pool=a", "expected one of plain"),
    ("audit slurm x --column Queued=Submit", "not for slurm"),
    ("audit slurm x --set gpus=two", "an integer"),
    ("audit slurm x --set gpus=0", "at least 1"),
    ("audit slurm x --set seed=3", "gpus, pool, wait, zone"),
    ("nonsense", "nonsense"),
    ("--nonsense", "--nonsense"),
]


@pytest.mark.parametrize(("line", "said"), [(line, said) for line, *said in MEANINGLESS])
def test_arguments_that_mean_nothing(cli: Cli, line: str, said: list[str]) -> None:
    before = sorted(os.listdir())
    refused(cli(*shlex.split(line)), *said)
    assert sorted(set(os.listdir()) - {"__pycache__"}) == before


SLIPS = (
    ("slove problem.json", "solve"),
    ("families plcement", "placement"),
    ("generate placment", "placement"),
    ("compare elastc", "elastic"),
    ("generate placement --preset smal", "small"),
    ("generate placement --set sise=3", "size"),
    ("generate queueing --set goal=makspan", "makespan"),
    ("generate elastic --set pool=a10", "a100"),
    ("run problem.json --policy fdg", "fgd"),
    ("run problem.json --policy PWR_FGD", "pwr+fgd"),
    ("run problem.json --policy 'pwr+fgd(alhpa=0.2)'", "alpha"),
    ("run problem.json --policy fgd --set scoer=exact", "score"),
    ("run problem.json --policy fgd --set score=exat", "exact"),
    ("run problem.json --policy optgap.comparing.overview:compare_al", "compare_all"),
    ("explain problem.json --policy firstfits", "firstfit"),
    ("solve problem.json --method bound-pattern", "bound-patterns"),
    ("solve problem.json --method milp --set backend=hihgs", "highs"),
    ("solve problem.json --bound-only --method patern", "patterns"),
    ("compare problem.json --policies pwr,bestfitt", "bestfit"),
    ("compare problem.json --methods exat", "exact"),
    ("compare placement --preset small --set gaol=power", "goal"),
    ("generate --fetch openbb", "openb"),
    ("fit linear-powr power.csv", "linear-power"),
    ("sweep grid.toml", "policies"),
    ("sweep grid.toml --engine proceses", "processes"),
)


@pytest.mark.parametrize(("line", "name"), SLIPS)
def test_a_slip_is_answered_with_the_name_that_was_meant(line: str, name: str, cli: Cli) -> None:
    answer = cli(*shlex.split(line))
    refused(answer)
    assert answer.err.endswith(f"; did you mean {name!r}?\n"), answer.err


def test_a_method_given_as_a_policy_is_told_to_be_one(cli: Cli) -> None:
    told = cli("run", "problem.json", "--policy", "milp").err
    assert "milp is a method of placement" in told
    told = cli("run", "problem.json", "--policy", "hps").err
    assert "hps is a policy of queueing" in told


def test_nothing_is_guessed_where_nothing_is_like_it() -> None:
    names = ["pwr", "fgd", "gpupacking", "gpuclustering"]
    assert meant("xyz", names) == ""
    assert meant("gpu", names) == ""  # two of them
    assert meant("packing", names) == "gpupacking"
    assert "did you mean" not in str(InputError("--policy", "", "xyz", one_of(names)))
    long = [f"policy-{k:03}" for k in range(500)]
    assert str(InputError("x", "", "policy-4999", one_of(long))).endswith("mean 'policy-499'?")


@pytest.mark.parametrize("command", ["solve", "run", "compare", "explain"])
def test_a_family_before_a_file_is_told_that_the_file_says_it(command: str, cli: Cli) -> None:
    policy = ("--policy", "fgd") if command in ("run", "explain") else ()
    answer = cli(command, "placement", "problem.json", *policy)
    refused(answer, f"optgap: {command}: found problem.json besides, expected ")
    assert answer.err.endswith("PROBLEM.json alone (a problem's file says its family)\n")


@pytest.mark.parametrize("place", ["directory", "nowhere/out.json", "problem.json/out.json"])
@pytest.mark.parametrize(
    "line",
    [
        *(f"run problem.json --policy fgd {out}" for out in ("--json", "-o", "--placements")),
        "run problem.json --policy fgd --series",
        "compare problem.json --plot",
        "generate placement --preset small -o",
        "check problem.json solution.json --json",
        "generate --fetch list --json",
    ],
)
def test_output_that_cannot_be_written(cli: Cli, line: str, place: str) -> None:
    before = sorted(os.listdir())
    refused(cli(*line.split(), place), place)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("place", ["out", "-"])
def test_two_outputs_need_two_places(cli: Cli, place: str) -> None:
    arguments = ["run", "problem.json", "--policy", "fgd", "--json", place, "--placements", place]
    refused(cli(*arguments), place, "two outputs")
    assert not Path("out").exists()


def test_a_file_that_was_there_survives_a_failed_run(cli: Cli) -> None:
    Path("out.json").write_text("precious")
    refused(cli("run", "problem.json", "--policy", "mine.py:q", "--json", "out.json"))
    assert Path("out.json").read_text() == "precious"


PROBLEM, TASKS = "problem.json", "tasks.csv"


@pytest.mark.parametrize("form", ["{}", "./{}", "linked-{}"])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (PROBLEM, ["run", PROBLEM, "--policy", "fgd", "--json"]),
        (PROBLEM, ["solve", PROBLEM, "-o"]),
        (PROBLEM, ["check", PROBLEM, "solution.json", "--json"]),
        (PROBLEM, ["compare", PROBLEM, "--json"]),
        (PROBLEM, ["explain", PROBLEM, "--policy", "fgd", "--json"]),
        (PROBLEM, ["report", PROBLEM, "-o"]),
        (PROBLEM, ["audit", "placement", PROBLEM, "solution.json", "--problem"]),
        (TASKS, ["fit", "linear-power", TASKS, "-o"]),
        (TASKS, ["generate", "placement", "--nodes", "nodes.csv", "--tasks", TASKS, "-o"]),
    ],
)
def test_no_output_takes_the_place_of_an_input(
    cli: Cli, name: str, arguments: list[str], form: str
) -> None:
    place = form.format(name)
    Path(f"linked-{name}").symlink_to(name)
    before = Path(name).read_text()
    refused(cli(*arguments, place), place, "read and written")
    assert Path(name).read_text() == before


@pytest.mark.parametrize("name", ["--placements", "--series"])
@pytest.mark.parametrize("place", ["x.png", "x.SVG", "x.pdf"])
def test_a_table_is_not_written_under_the_name_of_a_picture(
    cli: Cli, name: str, place: str
) -> None:
    refused(cli("run", "problem.json", "--policy", "fgd", name, place), place, "CSV", "--plot")
    assert not Path(place).exists()


def test_a_log_as_run_writes_it_is_checked_and_one_of_another_problem_refused(cli: Cli) -> None:
    assert cli("run", "problem.json", "--policy", "fgd", "--placements", "log.csv").code == 0
    told = cli("check", "problem.json", "log.csv")
    assert told.code == 0
    assert "violations         0" in told.out
    Path("log.csv").write_text("task,node\nelse,a\n")
    refused(cli("check", "problem.json", "log.csv"), "log.csv", "a log of this problem")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("sn;cpu_milli;memory_mib;gpu;model\nn0;16000;4096;2;G2\n", "semicolons between cells"),
        ("sn\tcpu_milli\tmemory_mib\tgpu\tmodel\nn0\t1\t1\t1\tG2\n", "tabs between cells"),
        ("PK\x03\x04 …", "a zip archive, as .xlsx files are"),
        ("PAR1…", "a Parquet file"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,16000,4096,2,H200\n", "a table `devices`"),
    ],
)
def test_a_table_in_another_form_is_told_by_its_form(cli: Cli, content: str, said: str) -> None:
    Path("nodes.csv").write_text(content)
    refused(cli("generate", "placement", "--nodes", "nodes.csv", "--tasks", "tasks.csv"), said)


@pytest.mark.parametrize(
    ("header", "row", "said"),
    [
        ("submit_s,duration_s", "1772366400000,60", "1772366400000 ms would be 1772366400 s"),
        ("submit_s", "0", "submit_s alone"),
    ],
)
def test_times_that_cannot_be_meant_are_told(cli: Cli, header: str, row: str, said: str) -> None:
    columns = f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,{header}"
    Path("tasks.csv").write_text(f"{columns}\np0,1000,10,1,500,{row}\n")
    refused(cli("generate", "placement", "--nodes", "nodes.csv", "--tasks", "tasks.csv"), said)


def test_what_is_made_of_tables_says_that_arrivals_are_drawn_and_times_not_used(cli: Cli) -> None:
    tables = ["--nodes", "nodes.csv", "--tasks", "tasks.csv"]
    made = cli("generate", "placement", *tables, "--set", "load=1.3", "-o", "p.json").out
    assert "\n  arrivals: 5 drawn from 1 tasks, load=1.3\n" in made
    assert "drawn" not in cli("generate", "placement", *tables, "-o", "p.json").out
    Path("c.csv").write_text("task,memory_gb,submit_s,duration_s\na,1,0,60\nb,1,30,60\n")
    made = cli("generate", "consolidation", "--tasks", "c.csv", "-o", "c.json").out
    assert "\n  times: submit_s orders tasks that are there at once (goal=energy" in made
    over_time = ["--set", "goal=energy", "-o", "c.json"]
    assert "times:" not in cli("generate", "consolidation", "--tasks", "c.csv", *over_time).out


HUGE = 10**20


@pytest.mark.parametrize(("header", "processors"), [(64, HUGE), (HUGE, 4)])
def test_a_log_of_more_processors_than_there_are_is_one_line(
    cli: Cli, header: int, processors: int
) -> None:
    line = f"1 0 0 100 {processors} -1 -1 {processors} 200 -1 1 1 1 1 1 -1 -1 -1\n"
    Path("log.swf").write_text(f"; MaxProcs: {header}\n{line}")
    refused(cli("audit", "swf", "log.swf"), f"found '{HUGE}'")


def test_an_integer_of_400_digits_in_a_table_of_measurements_is_one_line(cli: Cli) -> None:
    problem = optgap.generate("elastic", "tiny", size=2).to_json()
    problem["classes"][0]["time_s"][0][0] = int("9" * 400)
    Path("p.json").write_text(json.dumps(problem))
    refused(cli("run", "p.json", "--policy", "fifo"), "field classes[0].time_s")


def test_a_node_of_a_model_without_power_figures_is_one_line(cli: Cli) -> None:
    problem = optgap.generate("placement", "alibaba-time", size=4).to_json()
    problem["nodes"]["model"][0] = "XYZ"
    for more in ({}, {"sleep_after_s": 60.0}):
        problem["over_time"].update(more)
        Path("p.json").write_text(json.dumps(problem))
        refused(cli("run", "p.json", "--policy", "fgd"), "p.json")
