"""Reasons why a problem has no solution, or none for a method, that need no solver."""

from __future__ import annotations

from optgap.models.errors import InputError
from optgap.models.placement import PlacementProblem
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.result import Outcome, Status


def at_most(problem: PlacementProblem, method: str, nodes: int, tasks: int) -> None:
    """Refuse a problem that is too large for a method.

    Raises
    ------
    InputError: saying how large it may be, and which method takes any size.
    """
    for name, found, most in (
        ("nodes", len(problem.cluster), nodes),
        ("tasks", len(problem.tasks), tasks),
    ):
        if found > most:
            expected = f"at most {most} {name} for {method} (patterns takes any size)"
            raise InputError("problem", name, found, expected)


def hopeless(problem: PlacementProblem) -> Outcome | None:
    """Return a proof of infeasibility that needs no solver, where every task must be placed."""
    accepting = problem.objective.at_a_moment.goal == "accepted_gpu"
    reason = "" if accepting else impossible(problem)
    if not reason:
        return None
    return Outcome(None, Status.INFEASIBLE, bound_by="capacities", message=reason)


def impossible(problem: PlacementProblem) -> str:
    """Return why the tasks cannot all be placed, in one line; "" when nothing simple says so."""
    cluster, tasks = problem.cluster, problem.tasks
    why = never_fits(problem) or problem.why_not(range(len(tasks)))
    alone = int(tasks.num_gpu[tasks.gpu_milli > 500].sum())
    for what, wanted, there in (
        ("GPUs (more than half of each)", alone, int(cluster.gpus.sum())),
        ("places", len(tasks), TASKS_PER_NODE * len(cluster)),
    ):
        if not why and wanted > there:
            why = f"the tasks ask for {wanted} {what}, the cluster has {there}"
    return why


def together(by: str) -> str:
    """Return the message where only a solver could tell."""
    return (
        "every task fits a node and the totals suffice, but no placement of all of them exists "
        f"(proven by {by})"
    )


def never_fits(problem: PlacementProblem) -> str:
    """Say which task fits too few nodes even when all are empty; "" if none."""
    lost = problem.never_fits
    if not lost:
        return ""
    others = f" (and {len(lost) - 1} more tasks)" if len(lost) > 1 else ""
    name = f"task {problem.subjects[lost[0]]} (arrival {lost[0]})"
    return f"{name} fits no node{others}: {problem.why_not([lost[0]])}"
