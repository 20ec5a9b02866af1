"""The placement referee: plain Python over one node at a time.

It shares nothing with the compiled event loop, the formulations or the bounds, so that
agreement with them is evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.fragmentation import node_fragmentation
from optgap.models.result import Evaluation, Violation

if TYPE_CHECKING:
    from optgap.models.placement.problem import PlacementProblem
    from optgap.models.placement.solution import PlacementSolution


def check(problem: PlacementProblem, solution: PlacementSolution) -> list[Violation]:
    """Return every broken constraint of Eq. 6, node by node and task by task."""
    found, by_node = check_tasks(problem, solution)
    for node, members in sorted(by_node.items()):
        found += _check_node(problem, solution, node, members)
    return found


def check_tasks(
    problem: PlacementProblem, solution: PlacementSolution
) -> tuple[list[Violation], dict[int, list[int]]]:
    """Return what is wrong with a task's own node and GPUs, and the tasks of each node."""
    if len(solution) != len(problem.tasks):
        size = len(problem.tasks)
        return [Violation("one placement per task", "solution", len(solution), size)], {}
    found: list[Violation] = []
    cluster, tasks = problem.cluster, problem.tasks
    by_node: dict[int, list[int]] = {}
    for k in range(len(tasks)):
        node = int(solution.node[k])
        if node == -1:
            if solution.gpu_mask[k]:
                found.append(Violation("no GPUs for an unplaced task", f"task {k}", "some", "none"))
        elif not 0 <= node < len(cluster):
            found.append(Violation("a node of the cluster", f"task {k}", node, len(cluster) - 1))
        else:
            by_node.setdefault(node, []).append(k)
            found += _check_task(problem, solution, k, node)
    return found, by_node


def _check_task(
    problem: PlacementProblem, solution: PlacementSolution, k: int, node: int
) -> list[Violation]:
    task = problem.tasks.task_class(k)
    gpus = solution.gpus(k)
    where = f"task {k} on {problem.cluster.names[node]}"
    found: list[Violation] = []
    if len(gpus) != task.num_gpu:
        found.append(Violation("as many GPUs as requested", where, len(gpus), task.num_gpu))
    if gpus and gpus[-1] >= problem.cluster.gpus[node]:
        found.append(
            Violation("GPUs of the node", where, gpus[-1], int(problem.cluster.gpus[node]) - 1)
        )
    if task.num_gpu and task.gpu_spec:
        model = problem.cluster.models[node]
        if model not in task.gpu_spec.split("|"):
            found.append(Violation("GPU model (Cond. 5)", where, model, task.gpu_spec))
    return found


def _check_node(
    problem: PlacementProblem, solution: PlacementSolution, node: int, members: list[int]
) -> list[Violation]:
    cluster, tasks = problem.cluster, problem.tasks
    where = cluster.names[node]
    cpu = sum(int(tasks.cpu_milli[k]) for k in members)
    memory = sum(int(tasks.memory_mib[k]) for k in members)
    load: dict[int, int] = {}
    for k in members:
        for g in solution.gpus(k):
            load[g] = load.get(g, 0) + int(tasks.gpu_milli[k])
    found: list[Violation] = []
    if cpu > cluster.cpu_milli[node]:
        limit = int(cluster.cpu_milli[node])
        found.append(Violation("CPU capacity in milli-vCPU (Cond. 1)", where, cpu, limit))
    if memory > cluster.memory_mib[node]:
        limit = int(cluster.memory_mib[node])
        found.append(Violation("memory capacity in MiB (Cond. 2)", where, memory, limit))
    if len(members) > TASKS_PER_NODE:
        found.append(Violation("tasks per node", where, len(members), TASKS_PER_NODE))
    for g, milli in sorted(load.items()):
        if milli > 1000:
            found.append(
                Violation("GPU capacity in milli-GPU (Cond. 3)", f"{where} GPU {g}", milli, 1000)
            )
    return found


def evaluate(problem: PlacementProblem, solution: PlacementSolution) -> Evaluation:
    """Objective and metrics of a solution.

    Metrics: `power_w`, `power_cpu_w`, `power_gpu_w` (EOPC and its parts); `frag_gpu_milli`,
    `frag_share` (of GPU capacity), `frag_ratio` (of the free GPU); `arrived_gpu_milli`,
    `used_gpu_milli`, `used_cpu_milli`, `allocated_share` (used / capacity), `grar`
    (used / arrived); `active_gpus`, `active_packages`; `tasks`, `failed_tasks`,
    `never_fit_tasks` (no node could take them even when empty).

    A solution that `check` objects to is evaluated all the same, with free amounts that may
    be negative; its numbers mean nothing.
    """
    cluster, tasks, power = problem.cluster, problem.tasks, problem.power
    free_cpu = [int(c) for c in cluster.cpu_milli]
    gpu_free = [[1000] * int(g) for g in cluster.gpus]
    used_gpu = failed = 0
    for k in range(len(tasks)):
        node = int(solution.node[k])
        if not 0 <= node < len(cluster):
            failed += 1
            continue
        free_cpu[node] -= int(tasks.cpu_milli[k])
        for g in solution.gpus(k):
            if g < len(gpu_free[node]):
                gpu_free[node][g] -= int(tasks.gpu_milli[k])
        used_gpu += int(tasks.num_gpu[k]) * int(tasks.gpu_milli[k])

    cpu_w = gpu_w = fragment = 0.0
    active_gpus = active_packages = 0
    # Most nodes are in one of few states: ask for each state once.
    seen: dict[tuple[str, int, int, tuple[int, ...]], tuple[float, float, float]] = {}
    for n in range(len(cluster)):
        state = (cluster.models[n], int(cluster.cpu_milli[n]), free_cpu[n], tuple(gpu_free[n]))
        if state not in seen:
            model, capacity, free, gpus = state
            seen[state] = (
                power.cpu_w(capacity, free),
                power.gpu_w(model, gpus),
                node_fragmentation(problem.workload, model, free, gpus).fragment,
            )
        node_cpu_w, node_gpu_w, node_fragment = seen[state]
        cpu_w += node_cpu_w
        gpu_w += node_gpu_w
        fragment += node_fragment
        active_gpus += sum(1 for r in gpu_free[n] if r < 1000)
        active_packages += power.active_packages(state[1], state[2])

    capacity_milli = cluster.gpu_capacity_milli
    arrived = int(tasks.demand_milli.sum())
    idle = capacity_milli - used_gpu
    metrics: dict[str, float | int] = {
        "power_w": cpu_w + gpu_w,
        "power_cpu_w": cpu_w,
        "power_gpu_w": gpu_w,
        "frag_gpu_milli": fragment,
        "frag_share": fragment / capacity_milli if capacity_milli else 0.0,
        "frag_ratio": fragment / idle if idle else 0.0,
        "arrived_gpu_milli": arrived,
        "used_gpu_milli": used_gpu,
        "used_cpu_milli": int(cluster.cpu_milli.sum()) - sum(free_cpu),
        "allocated_share": used_gpu / capacity_milli if capacity_milli else 0.0,
        "grar": used_gpu / arrived if arrived else 1.0,
        "active_gpus": active_gpus,
        "active_packages": active_packages,
        "tasks": len(tasks),
        "failed_tasks": failed,
        "never_fit_tasks": len(problem.never_fits),
    }
    return Evaluation(_objective(problem, cpu_w + gpu_w, fragment, used_gpu), metrics)


def _objective(problem: PlacementProblem, power_w: float, fragment: float, used_gpu: int) -> float:
    goal = problem.objective
    if goal.goal == "accepted_gpu":
        return float(used_gpu)
    if goal.goal == "power":
        return power_w
    if goal.goal == "fragmentation":
        return fragment
    return goal.alpha * power_w + (1 - goal.alpha) * goal.watts_per_gpu * (fragment / 1000)
