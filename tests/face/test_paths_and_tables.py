"""From Python: a path will do wherever a problem or a solution is expected, and tables make one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import pytest
from conftest import two_nodes_problem
from tables import held, options
from trust.samples import TABLES

import optgap
from optgap.contract import Problem
from optgap.models.errors import InputError
from optgap.registry import FAMILIES

CALLS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda problem: optgap.solve(problem).objective,
    "bound": lambda problem: optgap.bound(problem).bound,
    "run": lambda problem: optgap.run(problem, "pwr").objective,
    "compare": lambda problem: optgap.compare(problem, "pwr").best_bound,
    "explain": lambda problem: optgap.explain(problem, "pwr").objective,
    "conflict": lambda problem: optgap.conflict(problem),
    "check": lambda problem: optgap.check(problem, "solution.json").objective,
    "load": lambda problem: optgap.load("result.json", problem).objective,
    "save": lambda problem: optgap.save(optgap.load("solution.json", problem), "s.json", problem),
    "plot_solution": lambda problem: type(optgap.plot_solution("solution.json", problem)),
}


@pytest.fixture(autouse=True)
def _folder(here: Path) -> None:
    problem = two_nodes_problem()
    result = optgap.run(problem, "pwr")
    optgap.save(problem, "problem.json")
    optgap.save(result, "result.json")
    optgap.save(result.solution, "solution.json", "problem.json")


@pytest.mark.parametrize("name", CALLS)
def test_a_path_stands_for_the_problem_in_it(name: str) -> None:
    expected = CALLS[name](two_nodes_problem())
    assert CALLS[name]("problem.json") == expected
    assert CALLS[name](Path("problem.json")) == expected


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (3, "problem: found an int, expected a problem, or the path of a file with one"),
        ({"schema": "x"}, "problem: found a dict, expected a problem, or the path"),
        ("placement", r"found the family placement, expected .*optgap.generate\('placement'\)"),
        ("missing.json", "missing.json: no such file"),
        ("solution.json", "expected 'optgap.placement.problem/1'"),
    ],
)
def test_what_is_no_problem_is_told_what_is_expected(name: str, wrong: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        CALLS[name](wrong)


def test_a_solution_may_be_itself_a_result_a_document_or_a_path() -> None:
    problem = two_nodes_problem()
    result = optgap.run(problem, "pwr")
    document = json.loads(Path("solution.json").read_text())
    for given in (result.solution, result, document, "solution.json", Path("result.json")):
        assert optgap.check("problem.json", given).objective == result.objective
    assert optgap.check(problem, optgap.load("result.json")).objective == result.objective


@pytest.mark.parametrize("wrong", [None, 3, [(0, [0])], optgap.generate("queueing", "small")])
def test_what_is_no_solution_is_told_what_is_expected(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"solution: found an? .*expected a solution of placement"):
        optgap.check("problem.json", wrong)
    bound = optgap.bound("problem.json")
    with pytest.raises(InputError, match="found a result with no solution"):
        optgap.check("problem.json", bound)


CLOCKS = {"frequency_mhz": [600, 900], "power_w": [80.0, 110.0]}


def test_other_arguments_of_a_wrong_type_are_told_what_is_expected() -> None:
    for call, said in (
        (lambda: optgap.compare("problem.json", 3), "found an int, expected names"),
        (lambda: optgap.compare("problem.json", "pwr", None), "found a NoneType, expected names"),
        (lambda: optgap.solve("problem.json", 3), "found 3, expected a name"),
        (lambda: optgap.run("problem.json", None), "a function, or a class"),
        (lambda: optgap.generate(["placement"]), "expected one of placement"),
        (lambda: optgap.generate("queueing", "small", jobs="jobs.csv"), "conflicts with tables"),
        (lambda: optgap.save(3, "x.json"), "save: found an int, expected a problem, a solution"),
        (lambda: optgap.save(optgap.load("solution.json", "problem.json"), "x.json"), "problem="),
        (lambda: optgap.plot_solution(3), "no problem"),
        (lambda: optgap.load(None), "found a NoneType, expected the path of a file"),
        (lambda: optgap.save(optgap.load("problem.json"), None), "expected the path of a file"),
        (lambda: optgap.export("problem.json", None), "expected the path of a file"),
        (lambda: optgap.compare("problem.json", "pwr", "bound-pooled").plot(3), "path of a file"),
        (lambda: optgap.audit("slurm", None), "expected the path of a file"),
        (lambda: optgap.fit(CLOCKS, "linear-power", by=["a"]), "expected one of frequency_mhz"),
        (lambda: optgap.fit(CLOCKS, "linear-power", columns="a"), "a mapping, such as"),
    ):
        with pytest.raises(InputError, match=said):
            call()
    assert not Path("x.json").exists()


@pytest.mark.parametrize("limit", [0, -1.0, math.nan, math.inf, "3", True])
def test_a_time_limit_is_a_positive_number(limit: Any) -> None:
    for call in (optgap.run, optgap.compare):
        with pytest.raises(InputError, match="a positive number of seconds"):
            call("problem.json", "fgd", time_limit=limit)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(InputError, match="seed: found"):
        optgap.run("problem.json", "random", seed=seed)
    with pytest.raises(InputError, match="seed: found"):
        optgap.generate("placement", "small", seed=seed)


def test_generate_says_that_it_gives_a_problem() -> None:
    assert get_type_hints(optgap.generate)["return"] is Problem
    assert get_type_hints(optgap.problem)["return"] is Problem


def lasting(problem: Problem) -> dict[str, Any]:
    """A problem without the names of files that it comes from."""
    document = json.loads(json.dumps(problem.to_json()))
    return {k: v for k, v in document.items() if k not in ("name", "origin")}


@pytest.mark.parametrize("family", FAMILIES)
def test_tables_make_the_same_problem_as_paths_frames_and_on_the_command_line(
    family: str, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    texts, settings = TABLES[family]
    given = options(tmp_path, texts, settings)
    assert cli("generate", family, *given, "-o", "by-cli.json").code == 0
    expected = lasting(optgap.load("by-cli.json"))
    paths: dict[str, Any] = {name: tmp_path / f"{name}.csv" for name in texts}
    assert lasting(optgap.problem(family, **paths, **settings)) == expected
    assert lasting(optgap.problem(family, **held(texts), **settings)) == expected
    assert lasting(optgap.generate(family, **paths, **settings)) == expected


def test_a_frame_may_have_gaps_an_index_and_columns_of_numpy() -> None:
    frame = pd.DataFrame(
        {
            "job": ["a", "b"],
            "arrival_s": [0.5, 0],
            "duration_s": [1, 2.25],
            "gpus": [1, 2],
            "estimate_s": [3, None],
        }
    ).set_index("job")
    problem: Any = optgap.problem("queueing", jobs=frame, nodes=1)
    assert problem.jobs.names == ("b", "a")
    assert problem.jobs.estimate_s.tolist() == [2.25, 3]
    columns = {name: frame.reset_index()[name].to_numpy() for name in ("job", "arrival_s", "gpus")}
    again: Any = optgap.problem("queueing", jobs={**columns, "duration_s": [1, 2.25]}, nodes=1)
    assert again.jobs.duration_s.tolist() == [2.25, 1]


JOB = {"job": ["a"], "arrival_s": [0], "duration_s": [1], "gpus": [1]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, r"jobs: found nothing, expected a table jobs, of: jobs \(job,"),
        ({"tasks": "x.csv"}, "found tasks, expected a table jobs"),
        ({"jobs": 3}, "jobs: found an int, expected a path, or a table: job,arrival_s"),
        ({"jobs": "missing.csv"}, "missing.csv: no such file"),
        ({"jobs": {"job": ["a"], "gpus": [1, 2]}}, "jobs: found .*expected columns of one length"),
        ({"jobs": {"job": ["a"]}}, "jobs: columns: found job, expected a column arrival_s"),
        ({"jobs": {**JOB, "gpus": [1.5]}}, "row 0, column gpus: found '1.5', expected an integer"),
        ({"jobs": JOB, "x": 1}, "found 'x', expected a parameter of CSV files: nodes"),
    ],
)
def test_tables_that_make_no_problem_are_told_what_is_expected(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        optgap.problem("queueing", **arguments)


def test_a_column_may_be_told_to_be_of_one_table() -> None:
    nodes = {"sn": ["n0"], "cpu": [64], "memory_mib": [2048], "gpu": [2], "model": ["T4"]}
    tasks = {"name": ["a"], "cpu": [500], "memory_mib": [1024], "num_gpu": [1], "gpu_milli": [500]}
    columns = {"tasks.cpu": "cpu_milli", "nodes.cpu": "cpu_milli:vCPU"}
    made: Any = optgap.problem("placement", nodes=nodes, tasks=tasks, columns=columns)
    assert made.cluster.cpu_milli.tolist() == [64_000]
    assert set(made.tasks.cpu_milli.tolist()) == {500}
    with pytest.raises(InputError, match="cpus"):
        optgap.problem("placement", nodes=nodes, tasks=tasks,
                       columns={**columns, "nodes.cpus": "memory_mib"})  # fmt: skip
