"""The placement referee over time: every rule at every event, and exact integrals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.placement.arrays import BoolArray, FloatArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.referee import check_tasks
from optgap.models.placement.timeline import NodeEvents, node_events, node_values, rest_values
from optgap.models.result import Evaluation, Violation
from optgap.models.times import shown, slack_s

if TYPE_CHECKING:
    from optgap.models.placement.problem import PlacementProblem
    from optgap.models.placement.solution import PlacementSolution


def check(problem: PlacementProblem, solution: PlacementSolution) -> list[Violation]:
    """Return every broken constraint: of Eq. 6 at all times, and of when tasks may start.

    A task starts when it is submitted. Of a constraint that a node breaks at several times, the
    first is reported.
    """
    if solution.start_s is None:
        return [Violation("a start for every task placed", "solution", "none", "start_s")]
    if len(solution.start_s) != len(solution):
        return [Violation("one start per task", "solution", len(solution.start_s), len(solution))]
    found, _ = check_tasks(problem, solution)
    if found:
        return found
    return [*_starts(problem, solution.start_s, solution)] or [*_nodes(problem, solution)]


def _starts(
    problem: PlacementProblem, start_s: FloatArray, solution: PlacementSolution
) -> Iterator[Violation]:
    submit, slack = problem.tasks.submit_s, slack_s(problem.tasks.submit_s)
    in_time = np.abs(start_s - submit) <= slack
    for k in np.flatnonzero((solution.node >= 0) & ~in_time).tolist():
        yield Violation("start at submission", f"task {k}", float(start_s[k]), float(submit[k]))


def _nodes(problem: PlacementProblem, solution: PlacementSolution) -> Iterator[Violation]:
    events = node_events(problem, solution)
    cpu, memory = problem.cluster.cpu_milli, problem.cluster.memory_mib
    for k in _first(events, events.free_cpu_milli < 0):
        most = int(cpu[events.node[k]])
        found = most - int(events.free_cpu_milli[k])
        name = "CPU capacity in milli-vCPU (Cond. 1)"
        yield Violation(name, _where(problem, events, k), found, most)
    for k in _first(events, events.free_memory_mib < 0):
        most = int(memory[events.node[k]])
        found = most - int(events.free_memory_mib[k])
        yield Violation("memory capacity in MiB (Cond. 2)", _where(problem, events, k), found, most)
    for k in _first(events, events.running > TASKS_PER_NODE):
        found = int(events.running[k])
        yield Violation("tasks per node", _where(problem, events, k), found, TASKS_PER_NODE)
    # a GPU that is not there is checked with the tasks, and has -1
    there = np.arange(events.gpu_free_milli.shape[1]) < problem.cluster.gpus[events.node][:, None]
    over: BoolArray = (events.gpu_free_milli < 0) & there
    for k in _first(events, np.asarray(over.any(axis=1))):
        g = int(np.flatnonzero(over[k])[0])
        where = f"{problem.cluster.names[int(events.node[k])]} GPU {g}{_at(events, k)}"
        found = 1000 - int(events.gpu_free_milli[k, g])
        yield Violation("GPU capacity in milli-GPU (Cond. 3)", where, found, 1000)


def _first(events: NodeEvents, broken: BoolArray) -> list[int]:
    """Return the first event of each node after which `broken` is true."""
    found = np.flatnonzero(broken)
    _, first = np.unique(events.node[found], return_index=True)
    return sorted(found[first].tolist())


def _where(problem: PlacementProblem, events: NodeEvents, k: int) -> str:
    return problem.cluster.names[int(events.node[k])] + _at(events, k)


def _at(events: NodeEvents, k: int) -> str:
    return f" at {shown(float(events.time_s[k]))} s"


def evaluate(problem: PlacementProblem, solution: PlacementSolution) -> Evaluation:
    """Objective and metrics of a solution over time.

    Metrics: `energy_j`; `mean_power_w`, `mean_power_cpu_w`, `mean_power_gpu_w`,
    `mean_frag_gpu_milli`, `mean_frag_share` (of GPU capacity), `mean_used_gpu_milli`,
    `mean_allocated_share`: over the horizon, see `PlacementProblem`; `arrived_gpu_milli`,
    `used_gpu_milli`, `grar` (used / arrived) by the demand of tasks, `grar_time` by demand times
    `lasting_s`; `horizon_s`, `last_end_s` (from the horizon's begin); `tasks`, `failed_tasks`,
    `never_fit_tasks`.

    A solution that `check` objects to is evaluated all the same; its numbers mean nothing.
    """
    rules, tasks, cluster = problem.over_time, problem.tasks, problem.cluster
    assert rules is not None
    assert solution.start_s is not None
    events, rest = node_events(problem, solution), rest_values(problem)
    values = node_values(problem, events.node, events.free_cpu_milli, events.gpu_free_milli)
    horizon, at = rules.horizon_s, events.node

    def mean(after: FloatArray, empty: FloatArray) -> float:
        return math.fsum(empty) + math.fsum((after - empty[at]) * events.lasts_s) / horizon

    cpu_w, gpu_w = mean(values.cpu_w, rest.cpu_w), mean(values.gpu_w, rest.gpu_w)
    fragment = mean(values.fragment, rest.fragment)
    placed, demand = solution.node >= 0, tasks.demand_milli
    lasting = demand * problem.lasting_s
    used = math.fsum(lasting[placed]) / horizon
    asked = math.fsum(lasting) / horizon
    end = (solution.start_s + problem.lasting_s)[placed]
    capacity, arrived = cluster.gpu_capacity_milli, int(demand.sum())
    metrics: dict[str, float | int] = {
        "energy_j": (cpu_w + gpu_w) * horizon,
        "mean_power_w": cpu_w + gpu_w,
        "mean_power_cpu_w": cpu_w,
        "mean_power_gpu_w": gpu_w,
        "mean_frag_gpu_milli": fragment,
        "mean_frag_share": fragment / capacity if capacity else 0.0,
        "mean_used_gpu_milli": used,
        "mean_allocated_share": used / capacity if capacity else 0.0,
        "arrived_gpu_milli": arrived,
        "used_gpu_milli": int(demand[placed].sum()),
        "grar": int(demand[placed].sum()) / arrived if arrived else 1.0,
        "grar_time": used / asked if asked else 1.0,
        "horizon_s": horizon,
        "last_end_s": float(end.max() - rules.begin_s) if end.size else 0.0,
        "tasks": len(tasks),
        "failed_tasks": int((~placed).sum()),
        "never_fit_tasks": len(problem.never_fits),
    }
    return Evaluation(_objective(problem, metrics), metrics)


def _objective(problem: PlacementProblem, metrics: dict[str, float | int]) -> float:
    goal = problem.objective
    if goal.goal == "energy":
        return float(metrics["energy_j"])
    if goal.goal == "mean_accepted_gpu":
        return float(metrics["mean_used_gpu_milli"])
    per_watt, per_milli = goal.weights
    return per_watt * metrics["mean_power_w"] + per_milli * metrics["mean_frag_gpu_milli"]
