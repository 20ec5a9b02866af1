from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import enumeration
import pytest
from conftest import two_nodes_problem
from hypothesis import given
from hypothesis import strategies as st
from strategies import placement_problems, timed_placement_problems
from strategies_consolidation import consolidation_problems
from strategies_coscheduling import coscheduling_problems
from strategies_elastic import elastic_problems
from strategies_queueing import queueing_problems, stream

import optgap
from optgap.documents import load, load_problem, load_solution, save
from optgap.models.errors import InputError
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.registry import FAMILIES


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@given(problem=placement_problems(), data=st.data())
def test_any_solution_survives_its_file(
    place: Path, problem: PlacementProblem, data: st.DataObject
) -> None:
    options = [enumeration.choices(problem, k) for k in range(len(problem.tasks))]
    solution = PlacementSolution.of([data.draw(st.sampled_from(o)) for o in options])
    save(solution, place / "solution.json", problem)
    assert load(place / "solution.json", problem) == solution
    assert load_solution(place / "solution.json", problem) == solution


PROBLEMS = {
    "placement": placement_problems() | timed_placement_problems(),
    "consolidation": consolidation_problems(),
    "coscheduling": coscheduling_problems(),
    "elastic": elastic_problems(),
    "queueing": queueing_problems() | st.integers(0, 30).map(stream),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_survives_its_files(place: Path, family: str) -> None:
    @given(problem=PROBLEMS[family])
    def survive(problem: Any) -> None:
        save(problem, place / "problem.json")
        again = load_problem(place / "problem.json")
        assert again.to_json() == problem.to_json()
        result = optgap.run(problem, next(iter(FAMILIES[family].policies)))
        save(result, place / "result.json")
        kept = load(place / "result.json", again)
        assert (kept.to_json(), kept.gap) == (result.to_json(), result.gap)
        assert load(place / "result.json").to_json() == result.to_json()
        if result.solution is not None:
            solution = load_solution(place / "result.json", again)
            assert solution.to_json(again) == result.solution.to_json(problem)
            assert again.evaluate(solution) == problem.evaluate(result.solution)
            assert again.check(solution) == problem.check(result.solution)

    survive()


def test_a_result_is_written_with_or_without_its_problem(place: Path) -> None:
    problem = two_nodes_problem()
    result = optgap.run(problem, "fgd")
    save(result, place / "without.json")
    save(result, place / "with.json", problem)
    assert (place / "with.json").read_text() == (place / "without.json").read_text()


def test_files_are_plain_json_with_finite_numbers(place: Path) -> None:
    save(two_nodes_problem(), place / "p.json")
    text = (place / "p.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["schema"] == "optgap.placement.problem/1"


def test_a_solution_needs_its_problem(place: Path) -> None:
    problem = two_nodes_problem()
    save(PlacementSolution.of([None] * 4), place / "s.json", problem)
    with pytest.raises(InputError, match="a solution without its problem"):
        load(place / "s.json")
    with pytest.raises(InputError, match=r"'optgap\.placement\.problem/1'"):
        load_problem(place / "s.json")
    (place / "x.json").write_text('{"schema": "juggling/1"}')
    with pytest.raises(InputError, match="found 'juggling/1'"):
        load(place / "x.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "splendid"),
        ("termination", None),
        ("kind", "magic"),
        ("seconds", -1.0),
        ("objective", "low"),
        ("metrics", []),
        ("seed", 1.5),
        ("solution", 3),
        ("schema", "optgap.result/2"),
    ],
)
def test_a_result_with_a_wrong_field_names_it(place: Path, field: str, value: object) -> None:
    document = optgap.run(two_nodes_problem(), "fgd").to_json()
    (place / "bad.json").write_text(json.dumps({**document, field: value}))
    with pytest.raises(InputError, match=f"field {field}"):
        load(place / "bad.json")
