"""The counted formulation: how many tasks of each class go to each unit.

A unit is one node, or several nodes of one type taken together. With one unit per node the
formulation is exact; with one unit per node type it is a relaxation (every constraint below is
the sum of the nodes' own), small and free of symmetry, whose optimum is a bound.

Per unit of q nodes with G GPUs and CPU capacity K each:

    Σ_c cpu_c x_c ≤ qK,  Σ_c mem_c x_c ≤ q·memory                              (Cond. 1, 2)
    Σ_p a_sp λ_p = Σ_{c of share size s} x_c,  Σ whole GPUs + Σ λ_p + W = qG     (Cond. 3, 4)
    CPU use ≤ q·last_0 + Σ_i (last_i − last_{i−1}) z_i,  q ≥ z_1 ≥ z_2 ≥ …       (Eq. 1)
    CPU use + t·u_t ≤ qK,  blocked ≥ what could be served − most·u_t              (Eq. 4)

λ_p counts GPUs filled with pattern p, which are the paths of a flow (`fill`), W idle GPUs, z_i
nodes beyond step i of the CPU power staircase and u_t nodes with at least t milli-vCPU free.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.solvers.backends.linear import LinearBuilder, LinearModel
from optgap.solvers.placement.aggregate import fragment
from optgap.solvers.placement.exact.fill import Filling, Terms
from optgap.solvers.placement.exact.tables import Counted, cpu_steps, is_share


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes of type `type_index` taken together."""

    type_index: int
    nodes: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.nodes)


@dataclass(slots=True)
class UnitColumns:
    """The columns of one unit.

    Parameters
    ----------
    tasks: x_c by class.
    filling: λ, the GPUs in use by tasks that share them; None on nodes without GPUs.
    idle: W.
    steps: z_i.
    free: u_t by CPU need t.
    gathered: by k, how many nodes have k idle GPUs.
    """

    tasks: dict[int, int] = field(default_factory=dict)
    filling: Filling | None = None
    idle: int = -1
    steps: list[int] = field(default_factory=list)
    free: dict[int, int] = field(default_factory=dict)
    gathered: dict[int, int] = field(default_factory=dict)


class CountedModel:
    """Builds the formulation for some units; `model` is ready to be solved."""

    def __init__(self, counted: Counted, units: Sequence[Unit]) -> None:
        self.counted = counted
        self.units = list(units)
        self.builder = LinearBuilder("max" if counted.accepting else "min")
        self.columns = [UnitColumns() for _ in self.units]
        for u in range(len(self.units)):
            self._unit(u)
        self._demands()
        self.model: LinearModel = self.builder.build()

    def _unit(self, u: int) -> None:
        unit, columns = self.units[u], self.columns[u]
        counted, builder, q = self.counted, self.builder, self.units[u].count
        node = counted.types[unit.type_index]
        for c, task in enumerate(counted.classes):
            most = min(int(counted.demand[c]), q * int(counted.most[c, unit.type_index]))
            if most:
                gain = float(task.demand_milli) if counted.accepting else 0.0
                columns.tasks[c] = builder.variable(0, most, gain, integer=True)
        builder.row(
            [(x, counted.classes[c].memory_mib) for c, x in columns.tasks.items()],
            upper=q * node.memory_mib,
        )
        builder.row(self._cpu(u), upper=q * node.cpu_milli)
        if int(counted.demand.sum()) > TASKS_PER_NODE:
            builder.row([(x, 1.0) for x in columns.tasks.values()], upper=q * TASKS_PER_NODE)
        if node.gpus:
            self._gpus(u)
        if counted.power_weight:
            self._power(u)
        if counted.frag_weight and node.gpus:
            self._fragmentation(u)

    def _cpu(self, u: int) -> Terms:
        classes = self.counted.classes
        return [(x, float(classes[c].cpu_milli)) for c, x in self.columns[u].tasks.items()]

    def _gpus(self, u: int) -> None:
        """Tasks that share reach GPUs through `filling`; whole ones take theirs for themselves."""
        counted, builder, columns = self.counted, self.builder, self.columns[u]
        gpus = self.units[u].count * counted.types[self.units[u].type_index].gpus
        shared: dict[int, Terms] = {milli: [] for milli in counted.sizes.milli}
        whole: Terms = []
        for c, x in columns.tasks.items():
            task = counted.classes[c]
            if is_share(task):
                shared[task.gpu_milli].append((x, -1.0))
            elif task.num_gpu:
                whole.append((x, float(task.num_gpu)))
        columns.filling = Filling(counted.sizes, builder, gpus, shared)
        columns.idle = builder.variable(0, gpus, integer=True)
        used: Terms = [(column, 1.0) for column, _left in columns.filling.ends]
        builder.row([*whole, *used, (columns.idle, 1.0)], gpus, gpus)

    def _power(self, u: int) -> None:
        counted, builder, columns = self.counted, self.builder, self.columns[u]
        unit, weight, power = self.units[u], self.counted.power_weight, self.counted.problem.power
        node = counted.types[unit.type_index]
        if node.gpus:
            idle, full = power.gpu_idle_w[node.model], power.gpu_full_w[node.model]
            builder.offset += weight * full * node.gpus * unit.count
            builder.add_cost(columns.idle, -weight * (full - idle))
        steps = cpu_steps(power, node.cpu_milli)
        builder.offset += weight * steps[0].watts * unit.count
        up: Terms = []
        down: Terms = []
        for before, step in itertools.pairwise(steps):
            z = builder.variable(0, unit.count, weight * (step.watts - before.watts), integer=True)
            if columns.steps:
                builder.row([(columns.steps[-1], 1.0), (z, -1.0)], lower=0)
            columns.steps.append(z)
            up.append((z, float(before.last - step.last)))
            down.append((z, float(before.first - step.first)))
        used = self._cpu(u)
        if up:
            builder.row([*used, *up], upper=steps[0].last * unit.count)
        if any(step.watts < before.watts for before, step in itertools.pairwise(steps)):
            builder.row([*used, *down], lower=0)

    def _fragmentation(self, u: int) -> None:
        counted, builder, columns = self.counted, self.builder, self.columns[u]
        weight = counted.frag_weight
        parts = fragment(counted.problem.workload, counted.types[self.units[u].type_index])
        ends = columns.filling.ends if columns.filling else []
        for column, left in ends:
            builder.add_cost(column, weight * float(parts.active[left]))
        builder.add_cost(columns.idle, weight * parts.idle)
        needs = {need for need, _ in parts.thresholds} | {need for need, _, _ in parts.several}
        for need in sorted(needs - {0}):
            self._free(u, need)
        for need, served in parts.thresholds:
            for column, left in [(columns.idle, 1000), *ends]:
                self._blocked(u, need, column, weight * float(served[left]))
        for need, wanted, cost in parts.several:
            self._several(u, need, wanted, weight * cost)

    def _free(self, u: int, need: int) -> None:
        """Count the nodes with at least `need` milli-vCPU free; called with rising needs."""
        columns, unit = self.columns[u], self.units[u]
        node = self.counted.types[unit.type_index]
        free = self.builder.variable(0, unit.count, integer=True)
        self.builder.row([*self._cpu(u), (free, float(need))], upper=unit.count * node.cpu_milli)
        if columns.free:
            lower = columns.free[max(columns.free)]
            self.builder.row([(lower, 1.0), (free, -1.0)], lower=0)
        columns.free[need] = free

    def _blocked(self, u: int, need: int, served: int, cost: float) -> None:
        """Charge `cost` for each of the `served` GPUs on nodes with less than `need` CPU free."""
        if not cost or not need:
            return
        columns, unit = self.columns[u], self.units[u]
        free = columns.free[need]
        gpus = self.counted.types[unit.type_index].gpus
        limit = int(self.builder.upper_limit(served))
        most = min(gpus, limit)
        blocked = self.builder.variable(0, limit, cost, integer=True)
        self.builder.row([(blocked, 1.0), (served, -1.0), (free, float(most))], lower=0)

    def _several(self, u: int, need: int, wanted: int, cost: float) -> None:
        """Charge `cost` for each idle GPU that a class with several GPUs cannot use."""
        columns, unit, builder = self.columns[u], self.units[u], self.builder
        gpus = self.counted.types[unit.type_index].gpus
        if wanted not in columns.gathered:
            column = builder.variable(0, unit.count, integer=True)
            builder.row([(columns.idle, 1.0), (column, -float(wanted))], lower=0)
            columns.gathered[wanted] = column
        useless = builder.variable(0, unit.count * gpus, cost, integer=True)
        gathered = columns.gathered[wanted]
        builder.row([(useless, 1.0), (columns.idle, -1.0), (gathered, float(gpus))], lower=0)
        if need:
            free = columns.free[need]
            builder.row([(useless, 1.0), (columns.idle, -1.0), (free, float(gpus))], lower=0)

    def _demands(self) -> None:
        for c, number in enumerate(self.counted.demand):
            terms = [(columns.tasks[c], 1.0) for columns in self.columns if c in columns.tasks]
            lower = 0.0 if self.counted.accepting else float(number)
            self.builder.row(terms, lower, float(number))
