"""Why a problem has no solution, or is none for a method, where that takes no solver to see."""

from __future__ import annotations

from collections import Counter

from optgap.models.errors import InputError
from optgap.models.placement import PlacementProblem
from optgap.models.placement.cluster import TASKS_PER_NODE, NodeType
from optgap.models.placement.tasks import TaskClass


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


def impossible(problem: PlacementProblem) -> str:
    """Why the tasks cannot all be placed, in one line; "" when nothing simple says so."""
    return never_fits(problem) or _totals(problem) or _by_model(problem)


def together(by: str) -> str:
    """The message where only a solver could tell."""
    return (
        "every task fits a node and the totals suffice, but no placement of all of them exists "
        f"(proven by {by})"
    )


def never_fits(problem: PlacementProblem) -> str:
    """Which task fits no node, or not as many as it takes, even when all are empty; "" if none."""
    lost = problem.never_fits
    if not lost:
        return ""
    k = lost[0]
    task, parts = problem.tasks.task_class(k), int(problem.tasks.parts[k])
    if parts > 1:
        name = problem.subjects[int(problem.tasks.gang[k])]
        return f"task {name} (arrival {k}) fits fewer than {parts} nodes even when empty"
    reasons: Counter[str] = Counter()
    for t in problem.cluster.type_of.tolist():
        reasons[_obstacle(task, problem.cluster.types[t])] += 1
    why = "; ".join(f"{number} {reason}" for reason, number in reasons.most_common())
    others = f" (and {len(lost) - 1} more tasks)" if len(lost) > 1 else ""
    return f"task {k} ({problem.tasks.names[k]}) fits no node{others}: of the nodes, {why}"


def _obstacle(task: TaskClass, node: NodeType) -> str:
    """The first thing that keeps a task off an empty node."""
    if task.num_gpu and not node.gpus:
        return "have no GPU"
    if task.num_gpu and not task.accepts(node.model):
        return f"have {node.model} GPUs, not {task.gpu_spec}"
    if task.num_gpu > node.gpus:
        return f"have {node.gpus} GPUs, not {task.num_gpu}"
    if task.cpu_milli > node.cpu_milli:
        return f"have {node.cpu_milli} milli-vCPU, not {task.cpu_milli}"
    return f"have {node.memory_mib} MiB, not {task.memory_mib}"


def _totals(problem: PlacementProblem) -> str:
    cluster, tasks = problem.cluster, problem.tasks
    alone = int(tasks.num_gpu[tasks.gpu_milli > 500].sum())
    for what, wanted, there in (
        ("milli-GPU", int(tasks.demand_milli.sum()), cluster.gpu_capacity_milli),
        ("milli-vCPU", int(tasks.cpu_milli.sum()), int(cluster.cpu_milli.sum())),
        ("MiB", int(tasks.memory_mib.sum()), int(cluster.memory_mib.sum())),
        ("GPUs (more than half of each)", alone, int(cluster.gpus.sum())),
        ("places", len(tasks), TASKS_PER_NODE * len(cluster)),
    ):
        if wanted > there:
            return f"the tasks ask for {wanted} {what}, the cluster has {there}"
    return ""


def _by_model(problem: PlacementProblem) -> str:
    """Tasks bound to some GPU models may ask for more than these have."""
    cluster, tasks = problem.cluster, problem.tasks
    wanted: Counter[frozenset[str]] = Counter()
    for k in range(len(tasks)):
        models = tasks.task_class(k).allowed_models
        if models:
            wanted[frozenset(models)] += int(tasks.demand_milli[k])
    for bound in wanted:
        total = sum(number for other, number in wanted.items() if other <= bound)
        there = 1000 * sum(
            int(gpus)
            for gpus, model in zip(cluster.gpus, cluster.models, strict=True)
            if model in bound
        )
        if total > there:
            names = ", ".join(sorted(bound))
            return f"tasks bound to {names} ask for {total} milli-GPU, these nodes have {there}"
    return ""
