"""Problem of improving a present placement by a limited number of migrations.

The placement problem says which tasks fit on which nodes. A running cluster adds tasks that must
stay, nodes that a task may not go to, and further resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import BoolArray, IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.placement.kernels import accepts
from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.solution import PlacementSolution
from optgap.models.result import Evaluation, Violation


@dataclass(frozen=True, slots=True)
class Move:
    """Migration of a task to another node, or to other GPUs of its node.

    Parameters
    ----------
    task, from_node, to_node: indices.
    gpu_mask: GPUs of `to_node` that the task then uses, bit g for GPU g.
    """

    task: int
    from_node: int
    to_node: int
    gpu_mask: int


class Further(NamedTuple):
    """All limits on moves but GPUs; the problem may be a relaxation of these.

    The R resources have `names`, nodes a `capacity` of each, (R, N), and tasks take `asks`, (T, R).
    """

    names: tuple[str, ...]
    capacity: IntArray
    asks: IntArray

    @classmethod
    def of(cls, problem: PlacementProblem) -> Further:
        """Return the problem's own limits."""
        tasks, cluster = problem.tasks, problem.cluster
        most, one = (np.full(len(of), n) for of, n in ((cluster, TASKS_PER_NODE), (tasks, 1)))
        return cls(
            ("tasks", "cpu", "memory"),
            np.array([most, cluster.cpu_milli, cluster.memory_mib]),
            np.array([one, tasks.cpu_milli, tasks.memory_mib]).T,
        )


def admitted(problem: PlacementProblem) -> list[BoolArray]:
    """Return for every task the nodes (N,) with GPU models that it takes."""
    specs, models = problem.tasks.gpu_specs, problem.cluster.models
    where = {spec: accepts((spec,), models)[0] for spec in {*specs}}
    return [where[spec] for spec in specs]


@dataclass(frozen=True, eq=False)
class MigrationProblem:
    """Placement problem with the present placement, and the tasks that may move.

    Parameters
    ----------
    problem: tasks and nodes; the objective is power.
    current: present node and GPUs of every task.
    movable: (T,) whether a task may move at all.
    allowed: for every task the nodes (N,) to which it may move; it may stay on others, too.
    further: further limits on moves.
    fixed_w: constant W of devices outside the problem.
    """

    problem: PlacementProblem
    current: PlacementSolution
    movable: BoolArray
    allowed: Sequence[BoolArray]
    further: Further
    fixed_w: float = 0.0

    @classmethod
    def of(
        cls,
        problem: PlacementProblem,
        current: PlacementSolution,
        movable: Sequence[bool] | BoolArray | None = None,
        allowed: Sequence[BoolArray] | None = None,
        *,
        source: str = "migrations",
        further: Further | None = None,
        fixed_w: float = 0.0,
    ) -> MigrationProblem:
        """Check the current placement, and make the problem.

        By default every task may move to every node that has its GPU models.

        Raises
        ------
        InputError: for a current placement that breaks a constraint or leaves a task out.
        """
        made = cls(
            problem,
            current,
            np.ones(len(problem.tasks), bool) if movable is None else np.asarray(movable, bool),
            allowed or admitted(problem),
            further or Further.of(problem),
            fixed_w,
        )
        broken = made.check(current)
        if broken:
            first = broken[0]
            found = NoQuote(f"{first.constraint}: {first.found}")
            raise InputError(source, first.where, found, f"at most {first.limit}")
        if not problem.serves_all(current):
            k = int(np.flatnonzero(current.node < 0)[0])
            raise InputError(source, f"task {k}", NoQuote("no node"), "a node for every task")
        return made

    def may_go(self, k: int, n: int) -> bool:
        """Tell whether task `k` may be on node `n`, however full the node is."""
        here = n == int(self.current.node[k])
        return here or bool(self.movable[k] and self.allowed[k][n])

    def evaluate(self, solution: PlacementSolution) -> Evaluation:
        """Return the referee's numbers, with the devices outside the problem."""
        found = self.problem.evaluate(solution)
        metrics = dict(found.metrics)
        for name in ("power_w", "power_gpu_w"):
            metrics[name] += self.fixed_w
        return replace(found, objective=found.objective + self.fixed_w, metrics=metrics)

    def moved(self, solution: PlacementSolution) -> IntArray:
        """Return the tasks that are on another node or on other GPUs than now."""
        differs = (solution.node != self.current.node) | (
            solution.gpu_mask != self.current.gpu_mask
        )
        return np.flatnonzero(differs)

    def check(self, solution: PlacementSolution, most: int | None = None) -> list[Violation]:
        """Return every broken constraint; with `most`, moving more tasks breaks one.

        A task that moves must be movable, and allowed on its new node.
        """
        found = self.problem.check(solution)
        if found:
            return found
        names = self.problem.cluster.names
        moved = self.moved(solution)
        for k in moved.tolist():
            n = int(solution.node[k])
            where = f"task {k} on {names[n]}"
            if not self.movable[k]:
                found.append(Violation("a task that must stay", where, "moved", "stays"))
            elif not self.may_go(k, n):
                found.append(Violation("a node that the task may go to", where, names[n], "none"))
        for n in sorted(set(solution.node[moved].tolist())):
            found += self._short(n, np.flatnonzero(solution.node == n))
        if most is not None and len(moved) > most:
            found.append(Violation("migrations", "solution", len(moved), most))
        return found

    def _short(self, n: int, there: IntArray) -> list[Violation]:
        """Return the further limits that a node with new tasks exceeds."""
        more, name = self.further, self.problem.cluster.names[n]
        used = more.asks[there].sum(axis=0)
        return [
            Violation(more.names[r], name, int(used[r]), int(more.capacity[r, n]))
            for r in np.flatnonzero(used > more.capacity[:, n]).tolist()
        ]

    def follow(
        self, moves: Iterable[Move], checked: int = 0
    ) -> tuple[PlacementSolution, list[Violation]]:
        """Return the placement after the moves in turn, and the first move that does not fit.

        The first `checked` moves are known to fit.
        """
        node, mask = self.current.node.copy(), self.current.gpu_mask.copy()
        found: list[Violation] = []
        for step, move in enumerate(moves):
            was, here = int(node[move.task]), move.from_node
            node[move.task], mask[move.task] = move.to_node, move.gpu_mask
            if step < checked:
                continue
            if was != here:
                where = f"step {step}"
                found.append(Violation("a move from where the task is", where, here, "elsewhere"))
            broken = self._step_broken(node, mask, move)
            found += [broken] if broken else []
            if found:
                break
        return PlacementSolution.of_arrays(node, mask), found

    def _step_broken(self, node: IntArray, mask: IntArray, move: Move) -> Violation | None:
        """Return the violation on the node that a task has just reached, in the referee's words."""
        problem, n = self.problem, move.to_node
        if not self.may_go(move.task, n) or not self.movable[move.task]:
            name = problem.cluster.names[n]
            return Violation("a node that the task may go to", f"task {move.task}", name, "none")
        there = np.flatnonzero(node == n)
        part = problem.subset(there.tolist())
        broken = part.check(PlacementSolution.of_arrays(node[there], mask[there]))
        broken = broken or self._short(n, there)
        return broken[0] if broken else None
