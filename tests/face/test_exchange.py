"""Formulations out, solutions of other solvers in: every form of file, and what may be wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import TWO_NODES, Cli, refused
from strategies_consolidation import micro
from strategies_coscheduling import three_jobs
from strategies_elastic import two_jobs
from strategies_queueing import five_jobs
from trust.test_exchange import highs

import optgap
from optgap.models.consolidation import ConsolidationProblem, GpuKind
from optgap.models.errors import InputError
from optgap.registry import FAMILIES

pytestmark = pytest.mark.usefixtures("here")

POWER_W = 345.481
"""Of `micro` with capacity=mean, on two GPUs of one server."""


@pytest.fixture
def problem() -> ConsolidationProblem:
    return micro(capacity="mean")


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """What HiGHS says of each variable."""
    path = tmp_path_factory.mktemp("solved")
    optgap.export(micro(capacity="mean"), path / "model.lp")
    highs(path / "model.lp", path / "model.sol")
    lines = (path / "model.sol").read_text().splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("# Columns"))
    count = int(lines[first].split()[2])
    cells = (line.split() for line in lines[first + 1 : first + 1 + count])
    return {name: float(value) for name, value in cells}


Values = dict[str, float]


def of_highs(values: Values) -> str:
    listed = "\n".join(f"{name} {value!r}" for name, value in values.items())
    head = "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 345.481\n"
    return f"{head}# Columns {len(values)}\n{listed}\n# Rows 0\n\n# Dual solution values\nNone\n"


def of_gurobi(values: Values) -> str:
    rows = [f"{name} {value!r}" for name, value in values.items()]
    return "\n".join(["# Solution for model OBJ", "# Objective value = 345.481", *rows]) + "\n"


FORMS = {"HiGHS": of_highs, "Gurobi": of_gurobi}


@pytest.mark.parametrize("form", FORMS)
def test_the_solution_file_of_each_solver_is_read(
    form: str, problem: ConsolidationProblem, solved: Values
) -> None:
    path = Path("other.sol")
    path.write_text(FORMS[form](solved))
    result = optgap.read_solution(problem, path)
    assert result.objective == pytest.approx(POWER_W, abs=1e-3)
    assert result.status is optgap.Status.FEASIBLE
    assert result.bound is None
    assert result.message.startswith(f"read from a {form} file")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"x_9_9_9": 1.0}, "found 'x_9_9_9', expected a variable of this problem's"),
        ({"y_0_0": 0.5}, "y_0_0: found 0.5, expected an integer"),
        ({"y_0_0": 7.0}, "y_0_0: found 7.0, expected 0 to 1"),
        ({"y_0_0": float("nan")}, "y_0_0: found 'nan', expected a finite number"),
        ({"x_1_0_0": None}, "found no value of x_1_0_0, expected all "),
        (None, "row gpus_7_0: found 0.0, expected 1"),
    ],
)
def test_what_is_no_solution_of_the_formulation_is_told_in_a_line(
    form: str,
    change: dict[str, float] | None,
    told: str,
    problem: ConsolidationProblem,
    solved: Values,
) -> None:
    values = dict.fromkeys(solved, 0.0) if change is None else {**solved, **change}
    path = Path("other.sol")
    path.write_text(FORMS[form]({k: v for k, v in values.items() if v is not None}))
    with pytest.raises(InputError) as caught:
        optgap.read_solution(problem, path)
    assert told in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("form", FORMS)
def test_every_part_of_a_file_is_refused_or_is_all_of_the_solution(
    form: str, problem: ConsolidationProblem, solved: Values
) -> None:
    path, text = Path("other.sol"), FORMS[form](solved)
    broken, told = f"{text}\ny_0_0 0\n", "y_0_0 again"
    if form == "HiGHS":  # says how many values there are
        broken = text.partition("# Rows")[0].rstrip().rpartition("\n")[0]
        told = f"{len(solved)}, as it says there"
    path.write_text(broken)
    with pytest.raises(InputError, match=told):
        optgap.read_solution(problem, path)
    refused = 0
    for cut in range(0, len(text), 41):
        path.write_text(text[:cut])
        try:
            found = optgap.read_solution(problem, path)
        except InputError as error:
            refused += error.source == str(path)
        else:  # what is cut off is not needed, or zeros
            assert found.objective == pytest.approx(POWER_W, abs=1e-3)
    assert refused >= len(text) // 41 // 3


def test_a_solution_of_another_problem_is_refused(solved: Values) -> None:
    path = Path("other.sol")
    path.write_text(of_highs(solved))
    with pytest.raises(InputError, match=r"no value of|expected a variable of this problem"):
        optgap.read_solution(five_jobs(), path)
    with pytest.raises(InputError, match="row "):
        optgap.read_solution(micro(capacity="mean", kind=GpuKind(memory_gb=15.0)), path)


def test_a_solver_that_found_no_solution_ends_with_code_4(
    problem: ConsolidationProblem, cli: Cli
) -> None:
    optgap.save(problem, "p.json")
    text = "Model status\nInfeasible\n\n# Primal solution values\nNone\n"
    Path("other.sol").write_text(text)
    answer = cli("check", "p.json", "other.sol")
    assert (answer.code, len(answer.err.splitlines())) == (4, 1)
    assert "there is no solution" in answer.err


def test_the_commands_write_and_read_what_the_contract_says(
    problem: ConsolidationProblem, cli: Cli
) -> None:
    p, model, solution = "p.json", "m.mps", "m.sol"
    optgap.save(problem, p)
    form = ("--method", "printed(big_m=false)")
    told = json.loads(cli("export", p, "-o", model, *form, "--json", "-").out)
    assert told["schema"] == "optgap.export/1"
    assert told["method"] == "printed(big_m=False)"
    assert (told["format"], told["objective"], told["unit"]) == ("mps", "power", "W")
    highs(Path(model), Path(solution))
    answer = cli("check", p, solution, *form, "--json", "-")
    result = json.loads(answer.out)
    assert (answer.code, result["schema"]) == (0, "optgap.result/1")
    assert result["objective"] == pytest.approx(POWER_W, abs=1e-3)
    assert cli("export", p, "-o", "-").out.startswith("\\* CATS *\\\nMinimize\npower_6:")


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (micro(goal="energy"), "expected one of power"),
        (three_jobs("edp"), "expected one of energy, makespan"),
        (optgap.generate("elastic"), "expected at most 32, as all run at once; or an earlier"),
    ],
    ids=["energy", "edp", "elastic"],
)
def test_what_a_formulation_has_no_term_for_is_refused_by_name(
    problem: optgap.Problem, told: str, cli: Cli
) -> None:
    p, model = "p.json", Path("m.lp")
    optgap.save(problem, p)
    refused(cli("export", p, "-o", str(model)), told)
    assert not model.exists()
    assert cli("export", p, "-o", "m.txt").code == 2


def test_a_time_limit_leaves_no_half_of_a_file(cli: Cli) -> None:
    p, model = "p.json", Path("m.lp")
    cli("generate", "consolidation", "--size", "40", "-o", p)
    answer = cli("export", p, "-o", str(model), "--time-limit", "0.001")
    assert (answer.code, model.exists()) == (3, False)
    assert "nothing is written" in answer.err


def test_one_decision_of_pwr_fgd_is_the_last_step_of_the_greedy_policy() -> None:
    greedy = optgap.run(TWO_NODES, "greedy-exact")
    document = greedy.solution.to_json(TWO_NODES)  # type: ignore[union-attr]
    document["placements"].pop()
    placed, model, solution = (Path(name) for name in ("placed.json", "m.lp", "m.sol"))
    placed.write_text(json.dumps(document))
    optgap.export(TWO_NODES, model, placed=str(placed))
    highs(model, solution)
    result = optgap.read_solution(TWO_NODES, solution, placed=str(placed))
    assert result.objective == greedy.objective
    fixed = optgap.formulation(TWO_NODES, placed=str(placed)).linear
    assert (fixed.lower == fixed.upper).sum() >= 6


@pytest.mark.parametrize("problem", [three_jobs(), five_jobs(), two_jobs()], ids=str)
def test_times_count_from_the_first_event_and_come_back_by_the_problems_clock(
    problem: optgap.Problem,
) -> None:
    later = problem.moved(1.7e9)  # type: ignore[attr-defined]
    optgap.export(later, "m.lp")
    highs(Path("m.lp"), Path("m.sol"))
    found = optgap.read_solution(later, "m.sol")
    here = optgap.read_solution(problem, "m.sol")
    assert found.objective == pytest.approx(here.objective, abs=1e-5)


def test_the_page_of_formulations_names_files_that_there_are(root: Path) -> None:
    page = (root / "docs" / "formulations.md").read_text()
    named = re.findall(r"`(solvers/[a-z_/]+(?:\.py|/))`", page)
    assert len(named) >= 5
    for name in (*named, *(f"solvers/{family}/formulation.py" for family in FAMILIES)):
        assert (root / name).exists(), name
