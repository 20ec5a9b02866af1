"""Results are decided by work: a clock that runs twenty times as fast changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import optgap
from optgap.models.clock import CompileTimer
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import cats_testbed, measured, mixed, pai
from optgap.models.limits import Limits
from optgap.models.result import Result, Status
from optgap.registry import family

WORKING = CompileTimer.working
PROBLEMS: dict[str, Callable[[], ConsolidationProblem]] = {
    "mixed": lambda: mixed(seed=0, size=20),
    "measured": lambda: measured(seed=0, size=5),
    "testbed": lambda: cats_testbed(seed=0),
    "pai": lambda: pai(seed=0, size=10, present=8),
}
"""A small problem of each preset."""


def at(speed: float, monkeypatch: pytest.MonkeyPatch, run: Callable[[], Result]) -> str:
    """All that a result says but for its times, by a clock that runs so many times as fast."""
    monkeypatch.setattr(CompileTimer, "working", lambda clock: speed * WORKING(clock))
    found = run()
    solution = None if found.solution is None else found.solution.to_json(found.problem)
    told = found.status, found.termination, found.objective, found.bound, found.metrics
    return repr((*told, found.bound_by, found.message, solution))


def unmoved(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Result]) -> None:
    assert at(20.0, monkeypatch, run) == at(0.05, monkeypatch, run)


def runs(name: str) -> list[tuple[str, str]]:
    """Every method and policy that treats the preset's problem, without parameters."""
    goal = PROBLEMS[name]().objective.goal
    spec = family("consolidation")
    methods = [m for m, e in spec.methods.items() if not e.goals or goal in e.goals]
    return [(name, method) for method in methods] + [(name, policy) for policy in spec.policies]


@pytest.mark.parametrize(("name", "label"), [pair for name in PROBLEMS for pair in runs(name)])
def test_no_result_hangs_on_the_clock(
    name: str, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, policies = PROBLEMS[name](), family("consolidation").policies
    if label == "printed":  # takes minutes for twenty tasks
        problem = problem.subset(range(4))
    ask: Any = optgap.run if label in policies else optgap.solve
    unmoved(monkeypatch, lambda: ask(problem, label))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("gang", ["server", "free"])
def test_a_budget_ends_a_search_at_the_same_place(
    gang: Any, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = mixed(seed=1, size=40, gang=gang)
    whole = Limits()
    best = optgap.solve(problem, "exact", limits=whole)
    assert best.status is Status.OPTIMAL

    def cut() -> Result:
        limits = Limits(work=share * whole.spent)
        found = optgap.solve(problem, "exact", limits=limits)
        assert found.bound <= best.objective * (1 + 1e-9)  # type: ignore[operator]
        return found

    unmoved(monkeypatch, cut)


def test_repacking_ends_its_events_at_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = pai(seed=1, size=16, present=12)
    unmoved(monkeypatch, lambda: optgap.run(problem, "opt_repack", units=1e-3))


def test_the_default_problem_repacked_is_optimal() -> None:
    found = optgap.run(optgap.generate("consolidation"), "opt_repack")
    assert found.objective == pytest.approx(3188.076, abs=1e-3)
