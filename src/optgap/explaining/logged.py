"""What somebody really did with a problem, as a result beside those of policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optgap.contract import Problem
from optgap.models.result import Result, Status, Termination, Violation
from optgap.models.shown import counted
from optgap.versions import versions

NAME = "logged"
"""The row of what really happened."""


def logged_result(problem: Problem, solution: Any, broken: Sequence[Violation]) -> Result:
    """What happened, with the referee's numbers; its message says what it breaks (`broken`)."""
    goal = problem.objective.described
    now = problem.evaluate(solution)
    message = f"breaks {counted(len(broken), 'constraint')}" if broken else ""
    if not problem.serves_all(solution):
        message = "; ".join(filter(None, [message, "does not serve all"]))
    return Result(
        problem.family, NAME, "policy", Status.FEASIBLE, Termination.COMPLETED, now.objective,
        goal.unit, goal.sense, None, None, 0.0, None, versions(), dict(now.metrics), solution,
        message, problem,
    )  # fmt: skip
