from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import enumeration
import pytest
from conftest import RESULT_KEYS, TWO_NODES, two_nodes_problem
from hypothesis import given
from strategies import placement_problems
from trust.agreement import examples

from optgap.comparing.comparison import Comparison, ComparisonRow, ComparisonSet
from optgap.comparing.gaps import chosen, compare, sweep
from optgap.models.errors import InputError, RefereeError
from optgap.models.jsonio import Fields
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.result import Outcome, Status, Termination
from optgap.models.spec import Entry, entries
from optgap.registry import FAMILIES

pytestmark = pytest.mark.usefixtures("enumerated")


def refuse_all(task: Any, state: Any) -> None:
    return None


def crash(task: Any, state: Any) -> None:
    raise KeyError("x")


def names(item: Comparison | ComparisonSet) -> list[str]:
    """The first column of a table, with "" for a rule."""
    return [row[0] if row else "" for row in item.table()[1]]


def test_every_policy_is_measured_against_the_best_bound() -> None:
    table = compare(TWO_NODES, methods="loose,enumerate,loose(scale=0.5)")
    assert table.best_bound == table.best_known == 495.0
    assert table.bound_by == "enumeration"
    assert table.gap == 0.0
    head = [f"two nodes: {TWO_NODES.summary}", "best bound 495.000 W, by enumeration"]
    assert str(table).splitlines()[:2] == head
    assert [row.result.method for row in table.rows[:3]] == [
        "loose", "enumerate", "loose(scale=0.5)",
    ]  # fmt: skip
    assert len(table.rows) == 3 + len(FAMILIES["placement"].policies)
    for row in table.rows[3:]:
        objective = row.result.objective
        assert row.bound_scope == "all"
        assert row.gap_to_bound == row.gap_to_best == (objective - 495) / 495
        assert (row.result.bound, row.result.bound_by) == (495.0, "enumeration")
    assert table.row("loose").result.bound == pytest.approx(0.9 * 495)
    assert table.row("loose").gap_to_bound is None


def test_a_policy_that_turns_tasks_down_meets_a_bound_for_what_it_took() -> None:
    problem = two_nodes_problem(extra=2)  # six GPUs asked for, four there
    table = compare(problem, policies="pwr,bestfit", parts=True)
    assert table.best_bound is None
    assert table.best_known is None
    assert table.row("enumerate").result.status == "infeasible"
    row = table.row("pwr")
    assert row.bound_scope == "accepted"
    assert row.result.solution is not None
    accepted = enumeration.optimum(problem.restrict(row.result.solution))
    assert row.result.bound == accepted[0]
    assert row.gap_to_bound == (row.result.objective - accepted[0]) / accepted[0]  # type: ignore[operator]
    turns = iter((0, 1))

    def apart(task: Any, state: Any) -> int | None:
        return next(turns) if task.gpu_milli == 500 else None

    # two halves of a GPU on two nodes: the best of this part is what the method has on one
    row = compare(problem, policies=[apart], parts=True).row("apart")
    assert row.bound_scope == "accepted"
    assert row.gap_to_best == row.gap_to_bound
    assert row.gap_to_bound > 0.1


def test_no_method_runs_once_one_has_proven_that_there_is_no_solution() -> None:
    table = compare(two_nodes_problem(extra=2), ["pwr", crash], "enumerate,broken,loose")
    assert table.infeasible.method == table.to_json()["infeasible_by"] == "enumerate"
    assert [row.result.message for row in table.rows[1:3]] == ["not run"] * 2
    assert {row.result.termination for row in table.rows[:4]} == {"completed"}
    assert names(table) == ["enumerate", "", "pwr", "crash"]
    assert table.row("pwr").result.objective is not None  # policies ran before
    assert {row.gap_to_bound for row in table.rows} == {None}
    assert "no solution serves all that is asked, as enumerate proves" in str(table)
    assert "not run, as nothing serves all: broken, loose" in str(table)
    assert "policies have no gap, as nothing serves all (--parts bounds" in str(table)


def test_what_is_about_a_part_says_so_and_stands_below_all_others() -> None:
    def half(task: Any, state: Any) -> int | None:
        return None if task.gpu_milli == 500 else 0

    one = compare(TWO_NODES, [half, "pwr", "random"])
    assert names(one) == ["enumerate", "", "pwr", "random", "", "half"]
    assert one.table()[1][-1][-2] == "accepted part"
    assert [row.result.method for row in one.rows] == ["enumerate", "half", "pwr", "random"]
    both = ComparisonSet("extra", (0, 1), (one, compare(TWO_NODES, [half, "pwr"])))
    _, rows, _ = both.table()
    assert rows[-1][0] == "half"
    assert all(cell.endswith("†") for cell in rows[-1][1:])
    assert not any("*" in cell for row in rows for cell in row)
    for shown in (one, both):
        assert any("accepted part: the policy rejected" in note for note in shown.notes())
        assert "accepted part" in shown._repr_html_()


def test_a_star_marks_what_was_stopped_and_a_line_says_by_what() -> None:
    late = replace(compare(TWO_NODES, "pwr").rows[1].result, termination=Termination.TIME_LIMIT)
    table = compare(TWO_NODES, "fgd")
    table = replace(table, rows=(*table.rows, ComparisonRow(late, "all", 0.1)))
    assert names(table) == ["enumerate", "", "fgd", "pwr*"]
    assert "* stopped by its time limit: pwr" in table.notes()
    cut = replace(late, termination=Termination.WORK_LIMIT)
    less = replace(table, rows=(*table.rows[:2], ComparisonRow(cut, "all", 0.1)))
    assert "* stopped by its work budget: pwr" in less.notes()
    assert ComparisonSet("x", (1,), (table,)).table()[1][-1] == ("pwr", "10.00*")


def test_a_method_that_serves_a_part_is_no_yardstick_for_all() -> None:
    table = compare(TWO_NODES, policies="pwr", methods="partial,loose")
    row = table.row("partial")
    assert row.result.objective == 150.0
    assert (row.gap_to_bound, row.gap_to_best) == (None, None)
    assert table.best_known == table.row("pwr").result.objective
    assert table.known_by == "pwr"


def test_a_method_shows_its_own_bound_or_none() -> None:
    table = compare(TWO_NODES, policies="pwr", methods="guess,enumerate,found,loose(scale=0.999)")
    assert table.row("guess").result.objective == 495.0
    assert table.row("guess").result.bound is None
    assert table.row("guess").gap_to_bound == 0
    assert table.row("found").result.bound_by == "enumeration"
    # half a watt below what is known contradicts nothing
    near = compare(TWO_NODES, policies="pwr", methods="guess,loose(scale=0.999)")
    assert near.best_bound == pytest.approx(0.999 * 495)
    assert near.row("guess").gap_to_bound == pytest.approx(1 / 0.999 - 1)


def test_a_part_is_bounded_by_the_best_bound_where_the_method_looks_for_solutions() -> None:
    """The bound of 0.9 times the optimum, and not the optimum that the search would prove."""
    problem = two_nodes_problem(extra=2)
    row = compare(problem, policies="pwr", methods="found", parts=True).row("pwr")
    assert row.result.solution is not None
    least = enumeration.optimum(problem.restrict(row.result.solution))
    assert row.result.bound_by == "a share"
    assert row.result.bound == pytest.approx(0.9 * least[0])
    # alone in its scope it is no yardstick for itself
    assert (row.bound_scope, row.gap_to_best) == ("accepted", None)
    assert row.gap_to_bound is not None


def test_a_part_that_nobody_bounds_is_said_to_have_no_bound() -> None:
    said = "no bound for the part that it serves"
    row = compare(two_nodes_problem(extra=2), policies="pwr", methods="none").row("pwr")
    assert row.result.message.endswith(f"; {said}")
    assert (row.bound_scope, row.gap_to_bound, row.result.bound) == (None, None, None)
    row = compare(two_nodes_problem(extra=2), policies="pwr", methods="broken").row("pwr")
    assert row.result.message.endswith(f"; {said}; broken: ZeroDivisionError: on purpose")
    # all of it is no part
    assert compare(TWO_NODES, policies="pwr", methods="none").row("pwr").result.message == ""


def test_a_policy_below_the_bound_for_everything_is_no_contradiction() -> None:
    table = compare(TWO_NODES, policies=[refuse_all, "pwr"])
    row = table.row("refuse_all")
    assert row.result.objective == 150.0
    assert table.best_bound == 495.0
    assert (row.bound_scope, row.gap_to_bound, row.result.gap) == (None, None, None)
    assert table.best_known == 495.0


def test_a_maximising_table_compares_partial_solutions() -> None:
    problem = two_nodes_problem(extra=2, goal="accepted_gpu")
    table = compare(problem, policies=[refuse_all, "bestfit"], methods="enumerate,loose(scale=2)")
    assert table.best_bound == table.best_known == 4000.0
    assert table.row("refuse_all").gap_to_bound == 1.0
    assert table.row("bestfit").bound_scope == "all"


@pytest.mark.parametrize(
    ("extra", "name", "said"),
    [(0, "liar", "no solution"), (0, "loose(scale=1.1)", "wrong"), (2, "loose(scale=2)", "wrong")],
)
def test_a_proof_against_a_known_solution_is_an_error(extra: int, name: str, said: str) -> None:
    """Also one for the part that a policy served."""
    with pytest.raises(RefereeError, match=said):
        compare(two_nodes_problem(extra=extra), policies="pwr", methods=name, parts=not extra)


def test_one_failure_leaves_the_other_rows_alone() -> None:
    table = compare(TWO_NODES, ["pwr", crash], "narrow,broken,enumerate")
    failures = {row.result.method: row.failure for row in table.rows}
    assert failures == {
        "narrow": "objective", "broken": "fault", "enumerate": "", "pwr": "", "crash": "input",
    }  # fmt: skip
    assert {row.result.status for row in table.rows if row.failure} == {"error"}
    assert {row.result.seconds for row in table.rows if row.failure} == {0.0}
    assert "ZeroDivisionError: on purpose" in table.row("broken").result.message
    assert "objective is power" in str(table)
    assert table.best_bound == 495.0


def test_an_interrupt_leaves_the_rest_of_the_rows_empty() -> None:
    limits = Limits(progress=lambda phase, incumbent, bound: stop_at_fgd(phase))

    def stop_at_fgd(phase: str) -> None:
        if phase.startswith("fgd"):
            limits.interrupted.set()

    table = compare(TWO_NODES, "pwr,fgd,bestfit", limits=limits)
    assert table.termination is Termination.INTERRUPTED
    assert [row.result.termination for row in table.rows] == [
        "interrupted", "completed", "interrupted", "interrupted",
    ]  # fmt: skip
    assert table.row("pwr").result.objective is not None  # policies run before bounds
    assert table.row("bestfit").result.message == "not started"


def weak(problem: PlacementProblem, *, limits: Limits, seed: int) -> Outcome:
    """A bound that is half of the optimum where its budget or its time is up."""
    limits.spend(30.0)
    found = enumeration.optimum(problem)
    proven = (1.0 if limits.stop is None else 0.5) * found[0]
    return Outcome(None, Status.BOUND_ONLY, bound=proven, bound_by="weak")


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch, enumerated: None) -> None:
    """A method that takes 30 units of an exact method's budget."""
    import optgap.solvers.placement as room

    table = entries(lambda: {"weak": weak}, Entry("weak", "", "exact"))
    monkeypatch.setattr(room, "METHODS", {**enumeration.METHODS, **table})


@pytest.mark.usefixtures("cut")
def test_what_a_budget_cut_is_told_above_the_table_and_by_how_much() -> None:
    table = compare(TWO_NODES, "random", "weak,guess", effort=0.5)
    row = table.row("random")
    assert table.row("weak").result.termination is Termination.WORK_LIMIT
    assert table.termination is Termination.WORK_LIMIT
    shown, least = row.gap_to_bound, row.gap_at_least
    assert shown is not None
    assert (row.result.objective, table.best_bound) == (pytest.approx(495 * (1 + least)), 247.5)
    assert table.to_json()["unfinished"][0] == {
        "method": "weak", "why": "work_limit", "share_of_work": 1.0, "units": 30.0, "limit": 30.0,
        "kind": "bound", "accepted_by": "",
    }  # fmt: skip
    first, second = table.head()[-2:]
    assert first == (
        "! bound unfinished: weak was stopped by its work budget (30 units; --effort 4 goes on)"
    )
    points = 100 * (shown - least)
    assert second.startswith(f"! gaps below may be too large: random's by {points:.2f} points at")
    assert second.endswith("each is at least the gap to best known")
    assert "gap to best known (%)" in table.table()[0]
    again = Comparison.from_json(Fields(json.loads(json.dumps(table.to_json())), "x"))
    assert again.head() == table.head()
    assert not compare(TWO_NODES, "random", "weak,guess").unfinished


@pytest.mark.usefixtures("cut")
def test_what_a_time_limit_cut_is_told_too() -> None:
    table = compare(TWO_NODES, "random", "weak", time_limit=1e-9)
    assert table.row("random").result.termination is Termination.COMPLETED  # never cut
    assert not table.row("weak").result.repeatable
    first = table.head()[-2]
    assert first.startswith(
        "! bound unfinished: weak was stopped by --time-limit 1e-09 after 30 un"
    )


@examples(12)
@given(placement_problems(goals=("power",), max_nodes=2, max_tasks=4, max_gpus=2))
def test_a_gap_is_too_large_by_no_more_than_is_told(problem: PlacementProblem) -> None:
    """Test shown and least gap of a weak bound against the finished one."""
    names = "pwr,random,bestfit"
    rough = compare(problem, names, "guess,loose(scale=0.5)")
    exact = compare(problem, names, "enumerate")
    for row in rough.rows:
        true = exact.row(row.result.method).gap_to_bound if row.result.kind == "policy" else None
        if true is not None and row.bound_scope == "all" and row.gap_at_least is not None:
            assert row.gap_at_least <= true + 1e-9
            assert true <= (row.gap_to_bound or 0.0) + 1e-9


def test_the_json_has_the_promised_keys() -> None:
    document = json.loads(json.dumps(compare(TWO_NODES).to_json()))
    assert {"schema", "family", "problem", "best_bound", "best_known", "rows"} <= set(document)
    assert document["schema"] == "optgap.compare/1"
    assert set(document["problem"]) == {"name", "summary"}
    for row in document["rows"]:
        assert set(row) >= RESULT_KEYS - {"solution"} | {
            "gap_to_bound",
            "gap_to_best",
            "bound_scope",
        }
        assert "solution" not in row
        if row["gap"] is not None:
            gap = abs(row["objective"] - row["bound"]) / abs(row["bound"])
            assert row["gap"] == pytest.approx(gap)


def test_frame_and_html_hold_every_row() -> None:
    table = compare(TWO_NODES, "pwr,fgd")
    frame = table.to_frame()
    assert frame.index.tolist() == ["enumerate", "pwr", "fgd"]
    assert tuple(frame) == ("objective", "bound", "gap_to_bound", "gap_to_best", "low", "high",
                            "seconds")  # fmt: skip
    assert table.to_frame(full=True).loc["enumerate", "power_w"] == 495.0
    html = table._repr_html_()
    assert html.count("<tr>") == 4
    assert "pwr" in html


def test_settings_go_to_whoever_has_them() -> None:
    policies, methods = chosen("placement", "pwr+fgd,fgd", "loose,auto", {"alpha": "0.2"})
    assert policies == ["pwr+fgd(alpha=0.2)", "fgd"]
    assert methods == ["loose", "auto"]
    kept = chosen("placement", "pwr+fgd(alpha=0.3)", "auto", {"alpha": "0.2"})
    assert kept[0] == ["pwr+fgd(alpha=0.3)"]
    with pytest.raises(InputError, match="found 'beta'"):
        chosen("placement", "fgd", "loose", {"beta": "1"})


def test_a_sweep_makes_one_table_per_value() -> None:
    answer = sweep(
        "placement", "size", ["1", "2"], preset="small", policies="pwr,fgd", methods="loose", seed=3
    )
    assert answer.values == (1, 2)
    assert answer.methods == ("loose", "pwr", "fgd")
    header, rows, _ = answer.table()
    assert header == ("gap to bound (%)", "size=1", "size=2")
    assert [row[0] for row in rows] == ["pwr", "fgd"]
    document = answer.to_json()
    assert document["schema"] == "optgap.compare-set/1"
    assert [part["schema"] for part in document["comparisons"]] == ["optgap.compare/1"] * 2
    assert answer.to_frame().index.names == ["size", "name"]
    assert len(answer.to_frame()) == 6
    assert "size=2" in answer._repr_html_()
    with pytest.raises(InputError, match="parameter: found"):
        sweep("placement", "sizes", ["1"], preset="small")


def test_a_sweep_that_is_interrupted_ends_with_the_table_it_was_at() -> None:
    limits = Limits()
    told: list[str] = []

    def stop(phase: str, incumbent: float | None, bound: float | None) -> None:
        told.append(phase)
        limits.interrupted.set()

    limits = Limits(progress=stop)
    answer = sweep("placement", "size", ["1", "2"], policies="pwr", methods="loose", limits=limits,
                   preset="small")  # fmt: skip
    assert answer.values == (1,)
    assert told
    told.clear()
    sweep("placement", "size", ["1"], policies="pwr", methods="loose", preset="small",
          limits=Limits(progress=lambda phase, incumbent, bound: told.append(phase)))  # fmt: skip
    assert {"size=1: loose", "size=1: pwr"} <= set(told)
