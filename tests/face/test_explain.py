from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import enumeration
import pytest
from conftest import TWO_NODES, two_nodes_problem
from hypothesis import given
from hypothesis import strategies as st

import optgap
from optgap.explaining import Explanation, explain
from optgap.explaining.parts import Ends, Ran
from optgap.models.errors import InputError, RefereeError
from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.plotting.waterfall import explanation_figure

pytestmark = pytest.mark.usefixtures("enumerated")


def refuse_all(task: Any, state: Any) -> None:
    return None


def first_only(task: Any, state: Any) -> Any:
    nodes = state.feasible(task)
    return nodes[0] if task.name == "t0" else None


def amounts(answer: Explanation) -> dict[str, float | None]:
    return {part.name: part.amount(answer.sense) for part in answer.parts}


def only(monkeypatch: pytest.MonkeyPatch, *names: str, **own: Any) -> None:
    """Leave the placement family these policies, and functions of the test's own."""
    from optgap.heuristics import placement as room
    from optgap.models.spec import Entry

    table = {name: room.POLICIES[name] for name in names}
    table |= {
        name: Entry(name, "", functions=lambda name=name: {name: own[name]})  # type: ignore[misc]
        for name in own
    }
    monkeypatch.setattr(room, "POLICIES", table)


def test_a_gap_is_unproven_plus_online_plus_heuristic() -> None:
    answer = explain(TWO_NODES, "random", "loose,enumerate", seed=3)
    found = amounts(answer)
    assert found["unproven"] == 0
    assert answer.known_by == "enumerate"
    assert sum(v or 0 for v in found.values()) == pytest.approx(answer.objective - 495)
    assert "proven optimal" in answer.part("unproven").because
    assert answer.gap == pytest.approx((answer.objective - 495) / 495)


values = st.floats(0, 10, allow_nan=False)


@given(
    values,
    values,
    st.lists(values, min_size=1, max_size=6),
    st.sampled_from(["min", "max"]),
)
def test_no_part_of_any_results_is_negative(
    bound: float,
    known: float,
    policies: list[float],
    sense: Any,
) -> None:
    """Test the parts over bounds, best known solutions and policies in their order."""
    sign = 1 if sense == "min" else -1
    known += bound
    online = [Ran(f"p{k}", sign * (known + x)) for k, x in enumerate(policies)]
    ends = Ends(sense, sign * bound, "b", sign * known, "k", online[0], online)
    parts = ends.parts
    assert all((part.amount(sense) or 0.0) >= 0 for part in parts)
    assert (parts[0].start, parts[-1].end) == (sign * bound, online[0].objective)
    for before, after in pairwise(parts):
        assert before.end == after.start


def test_the_best_online_policy_pays_nothing_for_a_heuristic() -> None:
    answer = explain(TWO_NODES, "greedy-exact")
    assert answer.online_objective == answer.objective
    assert amounts(answer)["heuristic"] == 0
    assert "best online policy that ran" in answer.part("heuristic").because
    assert answer.costly == ()
    assert "none cost anything" in str(answer)


def test_the_price_of_being_online_is_that_of_the_best_policy_and_at_most() -> None:
    problem = optgap.generate("placement", "small", seed=0)
    answer = explain(problem, "pwr+fgd", "none")  # enough to enumerate
    assert amounts(answer)["online"] == 0  # no method with hindsight ran
    assert "reaches the best known online" in answer.part("online").because
    assert amounts(answer)["heuristic"] == 0
    assert (answer.online_by, answer.online_objective) == ("pwr+fgd", 6540.0)
    assert answer.per_event_objective == 6585.0
    assert explanation_figure(answer).axes[0].patches


def test_the_best_policy_is_told_with_what_it_knows() -> None:
    """Test the sentences of a best policy that knows more than the explained one."""
    own, like, free = Ran("a", 9.0), Ran("b", 7.0), Ran("c", 5.0, ("durations",))
    ends = Ends("min", 4.0, "proof", 4.0, "exact", own, [own, like, free])
    found = {part.name: part for part in ends.parts}
    assert {name: part.amount("min") for name, part in found.items()} == {
        "unproven": 0.0, "online": 1.0, "heuristic": 4.0
    }  # fmt: skip
    assert found["online"].because == (
        "at most: c is the best of 3 online policies that ran; a better one would make this less"
        "; c knows durations, a does not"
    )
    open_ends = Ends("min", 4.0, "proof", 4.2, "x", own, [own, like])
    assert "the bound lie 5.00 %, part of it may be online's" in open_ends.parts[1].because


def test_a_policy_that_serves_part_is_explained_on_that_part() -> None:
    problem = two_nodes_problem(extra=2)  # six GPUs asked for, four there
    answer = explain(problem, first_only)
    assert answer.scope == "accepted"
    assert "1 tasks" in answer.problem_summary
    assert any("part" in note for note in answer.notes)
    accepted = enumeration.optimum(problem.restrict(optgap.run(problem, first_only).solution))
    assert answer.bound == accepted[0]


def test_a_policy_that_serves_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="nothing served"):
        explain(TWO_NODES, refuse_all)


def test_without_another_policy_two_prices_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "random")
    answer = explain(TWO_NODES, "random", seed=3)
    assert [part.name for part in answer.parts] == ["unproven", "online+heuristic"]
    assert "no other online policy" in answer.parts[1].because


def test_an_exact_per_event_policy_that_serves_less_is_no_yardstick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(monkeypatch, "fgd", "pwr", **{"greedy-exact": enumeration.partial})
    answer = explain(TWO_NODES, "fgd")
    assert answer.per_event_objective is None
    assert not any("greedy-exact" in text for text in [*answer.notes, *answer.reasons()])


def test_without_a_bound_the_unproven_part_is_unknown() -> None:
    answer = explain(two_nodes_problem(), "fgd", "narrow")  # another objective: no bound
    assert answer.bound is None
    assert amounts(answer)["unproven"] is None
    assert answer.gap is None
    assert "no bound is proven" in str(answer)
    assert "nothing is proven" in explanation_figure(answer).axes[0].get_xlabel()


def test_a_bound_that_the_policy_breaks_is_an_error() -> None:
    with pytest.raises(RefereeError):
        explain(TWO_NODES, "fgd", "loose(scale=9.0)")


def test_maximising_counts_what_is_missing() -> None:
    answer = explain(two_nodes_problem(extra=2, goal="accepted_gpu"), first_only)
    assert answer.scope == "all"
    assert answer.objective == 1000
    assert answer.best_known == 4000
    assert sum(v or 0 for v in amounts(answer).values()) == 3000
    assert "below" in explanation_figure(answer).axes[0].get_xlabel()


def test_what_a_limit_stopped_says_so() -> None:
    stopped = Limits()
    seen: list[str] = []

    def tell(phase: str, incumbent: float | None, bound: float | None) -> None:
        seen.append(phase)
        if phase.startswith("enumerate"):
            stopped.interrupted.set()

    answer = explain(TWO_NODES, "fgd", limits=Limits(None, stopped.interrupted, tell))
    assert answer.termination is Termination.INTERRUPTED
    assert any(phase.startswith("fgd") for phase in seen)


def test_the_costliest_decisions_are_drawn_in_time_order() -> None:
    problem = two_nodes_problem(extra=1)
    answer = explain(problem, "random", "enumerate", seed=1)
    times = [regret.time for regret in answer.top()]
    assert times == sorted(times)
    some = [replace(answer.regrets[0], time=k, cost=c) for k, c in enumerate((3.0, 0.0, 1.0, 5.0))]
    assert [regret.cost for regret in replace(answer, regrets=tuple(some)).top(2)] == [3.0, 5.0]
    assert answer.to_json()["decisions"].keys() == {"judged", "costly", "cost", "top"}
    assert "<table" in answer._repr_html_()
    assert explanation_figure(answer).axes


def test_any_policy_may_be_the_one_that_knows_best(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "random", "greedy-exact")
    answer = explain(TWO_NODES, "random", "loose", seed=3)
    assert (answer.known_by, answer.best_known) == ("greedy-exact", 495.0)


def test_another_policys_fault_is_told_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "fgd", "pwr", crash=enumeration.broken, nothing=enumeration.partial)
    answer = explain(TWO_NODES, "fgd")
    assert any("crash" in note for note in answer.notes)
    assert answer.best_known == 495.0
