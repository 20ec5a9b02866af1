"""Between placements and the counts of the counted formulation."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from optgap.models.placement import PlacementSolution
from optgap.models.placement.arrays import FloatArray
from optgap.solvers.placement.exact.counted import CountedModel, UnitColumns
from optgap.solvers.placement.exact.tables import Counted, cpu_steps, is_share


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What a placement makes of one node.

    Parameters
    ----------
    tasks: tasks by class.
    cpu_milli: CPU in use.
    shared: the sizes on every GPU that is shared.
    idle: idle GPUs.
    """

    tasks: Counter[int]
    cpu_milli: int
    shared: list[list[int]]
    idle: int


def node_uses(counted: Counted, solution: PlacementSolution) -> list[NodeUse]:
    """The use of every node."""
    problem = counted.problem
    members: dict[int, list[int]] = defaultdict(list)
    for k, n in enumerate(solution.node.tolist()):
        if n >= 0:
            members[n].append(k)
    uses = []
    for n in range(len(problem.cluster)):
        shared: dict[int, list[int]] = defaultdict(list)
        whole = 0
        for k in members[n]:
            task = problem.tasks.task_class(k)
            if is_share(task):
                shared[solution.gpus(k)[0]].append(task.gpu_milli)
            else:
                whole += task.num_gpu
        tasks = Counter(int(problem.tasks.class_of[k]) for k in members[n])
        cpu = sum(int(problem.tasks.cpu_milli[k]) for k in members[n])
        idle = int(problem.cluster.gpus[n]) - whole - len(shared)
        uses.append(NodeUse(tasks, cpu, list(shared.values()), idle))
    return uses


def claim(model: CountedModel, solution: PlacementSolution) -> float:
    """The objective of a solution by the formulation itself."""
    return float(model.model.objective(encode(model, solution)))


def encode(model: CountedModel, solution: PlacementSolution) -> FloatArray:
    """The columns' values at a solution; those of several nodes together add up."""
    values = np.zeros(model.model.variables)
    uses = node_uses(model.counted, solution)
    for unit, columns in zip(model.units, model.columns, strict=True):
        for n in unit.nodes:
            _put(values, model.counted, unit.type_index, columns, uses[n])
    return values


def _put(values: FloatArray, counted: Counted, t: int, columns: UnitColumns, use: NodeUse) -> None:
    for c, number in use.tasks.items():
        values[columns.tasks[c]] += number
    node = counted.types[t]
    before = {column: values[column] for _, _, column, _ in columns.blocked}
    if columns.filling is not None:
        for sizes in use.shared:
            columns.filling.put(values, sizes)
        values[columns.idle] += use.idle
    steps = cpu_steps(counted.problem.power, node.cpu_milli)[1:]
    for step, column in zip(steps, columns.steps, strict=False):
        values[column] += use.cpu_milli >= step.first
    free = node.cpu_milli - use.cpu_milli
    for need, column in columns.free.items():
        values[column] += free >= need
    for wanted, column in columns.gathered.items():
        values[column] += use.idle >= wanted
    for column, need, served, _most in columns.blocked:
        if free < need:
            values[column] += values[served] - before[served]
    for column, need, wanted in columns.scattered:
        if free < need or use.idle < wanted:
            values[column] += use.idle


def decode(model: CountedModel, values: FloatArray) -> PlacementSolution:
    """The placement behind the columns' values, where every unit is a single node."""
    counted = model.counted
    waiting: dict[int, list[int]] = defaultdict(list)
    for k in reversed(range(len(counted.problem.tasks))):
        waiting[int(counted.problem.tasks.class_of[k])].append(k)
    placed: list[tuple[int, tuple[int, ...]] | None] = [None] * len(counted.problem.tasks)
    for unit, columns in zip(model.units, model.columns, strict=True):
        (node,) = unit.nodes
        here = {
            c: [waiting[c].pop() for _ in range(round(values[column]))]
            for c, column in columns.tasks.items()
        }
        for k, gpus in _gpus(counted, columns, here, values).items():
            placed[k] = (node, gpus)
    return PlacementSolution.of(placed)


def _gpus(
    counted: Counted, columns: UnitColumns, here: dict[int, list[int]], values: FloatArray
) -> dict[int, tuple[int, ...]]:
    """The GPUs of every task on one node."""
    rooms = columns.filling.take(values) if columns.filling is not None else []
    by_size: dict[int, list[int]] = defaultdict(list)
    chosen: dict[int, tuple[int, ...]] = {}
    for c, members in here.items():
        if is_share(counted.classes[c]):
            by_size[counted.classes[c].gpu_milli] += members
    following = 0
    for room in rooms:
        taken = [by_size[milli].pop() for milli in room if by_size[milli]]
        chosen |= dict.fromkeys(taken, (following,))
        following += bool(taken)
    for c, members in here.items():
        wanted = counted.classes[c].num_gpu
        if is_share(counted.classes[c]):
            continue
        for k in members:
            chosen[k] = tuple(range(following, following + wanted))
            following += wanted
    return chosen
