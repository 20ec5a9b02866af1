"""Placement of every task from fractional numbers of node patterns.

The LP's whole numbers are kept, what remains is a small integer program over the same
patterns, and the incumbent is then improved by re-solving random groups of nodes (large
neighbourhood search). Nothing here proves anything; the bound does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from optgap.models.limits import Limits
from optgap.models.placement.arrays import IntArray
from optgap.solvers.backends.growing import Growing
from optgap.solvers.placement.aggregate import Aggregate, Contents
from optgap.solvers.placement.columns import Column, ColumnGeneration
from optgap.solvers.placement.nodes import Node, inserted


@dataclass(frozen=True, slots=True)
class RoundingEffort:
    """Effort of the search for good integer solutions, in counts.

    Parameters
    ----------
    keep: shares of the program's whole numbers of patterns that are kept, tried in turn.
    first_nodes: search-tree nodes for the first integer program.
    rounds: neighbourhoods re-solved.
    group: used nodes in the first neighbourhoods.
    patience: rounds without improvement after which neighbourhoods grow by a quarter.
    most: used nodes per neighbourhood at most.
    columns: patterns per node of a neighbourhood at most, by reduced cost.
    tree_nodes: search-tree nodes for each neighbourhood.
    """

    keep: tuple[float, ...] = (1.0, 0.95, 0.8, 0.5, 0.0)
    first_nodes: int = 60
    rounds: int = 30
    group: int = 16
    patience: int = 4
    most: int = 25
    columns: int = 20
    tree_nodes: int = 10


class Rounding:
    """Builds an integer solution from a finished column generation.

    Parameters
    ----------
    generation: the column generation; its last LP solution and prices are used.
    effort: how hard to try.
    rng: chooses neighbourhoods.
    """

    def __init__(
        self, generation: ColumnGeneration, effort: RoundingEffort, rng: np.random.Generator
    ) -> None:
        self.generation = generation
        self.aggregate: Aggregate = generation.aggregate
        self.effort = effort
        self.rng = rng
        self.solution = generation.last
        self.columns: list[Column] = sorted(
            generation.master.columns,
            key=lambda c: self.solution.reduced_cost(c.type_index, c.contents, c.cost),
        )

    # -- building -------------------------------------------------------------------------

    def build(self, limits: Limits) -> list[Node] | None:
        """Nodes that serve every task (or leave out what may be left out); None if not found."""
        amounts = self.generation.last.nodes
        for keep in self.effort.keep:
            if limits.stop:
                return None
            whole = np.floor(keep * amounts + 1e-6).astype(np.int64)
            kept: list[Node] = []
            for column, n in zip(self.generation.master.columns, whole, strict=True):
                kept += [(column.type_index, column.contents)] * int(n)
            demand = self.aggregate.demand_counter(weightless=False)
            kept = _trim(kept, demand)
            count = self._free(kept)
            rest = self._integer(
                demand, count, [], self.effort.first_nodes, limits=limits, most=None
            )
            if rest is not None:
                return self._insert_left_over(kept + rest)
        return self._insert_left_over([])

    def improve(self, nodes: list[Node], limits: Limits, bound: float) -> list[Node]:
        """Re-solve groups of nodes until the rounds are over or the bound is met."""
        best = self.cost(nodes)
        size, failures = self.effort.group, 0
        for _ in range(self.effort.rounds):
            if limits.stop or best - bound <= 1e-9 * max(1.0, abs(bound)):
                break
            limits.progress("neighbourhoods", best, bound)
            candidate = self._neighbour(nodes, size, limits)
            cost = math.inf if candidate is None else self.cost(candidate)
            failures = 0 if cost < best - 1e-9 * abs(best) else failures + 1
            if candidate is not None and cost <= best:
                nodes, best = candidate, cost
            if size >= len(nodes):
                break  # that was everything at once: again would be the same
            if failures >= self.effort.patience:
                size, failures = min(self.effort.most, size + size // 4), 0
        return nodes

    def _neighbour(self, nodes: Sequence[Node], size: int, limits: Limits) -> list[Node] | None:
        """Return the nodes with a group of `size` re-solved."""
        group = self._choose(nodes, size)
        inside = [nodes[k] for k in group]
        chosen = set(group)
        outside = [node for k, node in enumerate(nodes) if k not in chosen]
        demand: Counter[int] = Counter()
        for _t, contents in inside:
            demand.update(contents.tasks)
        again = self._integer(
            demand,
            self._free(outside),
            inside,
            self.effort.tree_nodes,
            limits=limits,
            most=self.effort.columns * size,
        )
        return None if again is None else outside + again

    def cost(self, nodes: Iterable[Node]) -> float:
        """Cost of these nodes and the idle rest, in the objective's unit."""
        served: Counter[int] = Counter()
        total = self.aggregate.base
        for t, contents in nodes:
            total += self.aggregate.cost(t, contents)
            served.update(contents.tasks)
        if self.generation.may_leave_out:
            left = self.aggregate.demand_counter(weightless=True)
            left.subtract(served)
            total += sum(n * float(self.generation.unserved_cost[c]) for c, n in left.items())
        return total

    def _choose(self, nodes: Sequence[Node], size: int) -> list[int]:
        """Return a group of nodes: half of them the worst priced, half at random."""
        size = min(size, len(nodes))
        loss = np.array([self._loss(t, contents) for t, contents in nodes])
        noisy = loss * self.rng.random(len(nodes))
        worst = np.argsort(-noisy, kind="stable")[: (size + 1) // 2]
        rest = np.setdiff1d(np.arange(len(nodes)), worst)
        extra = self.rng.choice(rest, size=min(size // 2, len(rest)), replace=False)
        return sorted(int(k) for k in np.concatenate([worst, extra]))

    def _loss(self, t: int, contents: Contents) -> float:
        cost = self.aggregate.cost(t, contents)
        return max(0.0, self.solution.reduced_cost(t, contents, cost))

    def _free(self, used: Iterable[Node]) -> IntArray:
        count = self.aggregate.count.copy()
        for t, _contents in used:
            count[t] -= 1
        return count

    # -- the integer program --------------------------------------------------------------

    def _integer(
        self,
        demand: Counter[int],
        count: IntArray,
        incumbent: Sequence[Node],
        tree_nodes: int,
        *,
        limits: Limits,
        most: int | None,
    ) -> list[Node] | None:
        """Serve `demand` on `count` free nodes per type at least cost, from trimmed patterns."""
        demand = +demand
        options = self._options(demand, count, incumbent, most)
        if not demand:
            return []
        program = self._model(options, demand, count, tree_nodes)
        if incumbent:
            amount = Counter(incumbent)
            program.start([float(amount[option]) for option in options])
        if not program.run(limits):
            return list(incumbent) or None
        values = program.values
        chosen: list[Node] = []
        for option, value in zip(options, values[: len(options)], strict=True):
            chosen += [option] * round(float(value))
        left = Counter(demand)
        return _trim(chosen, left)

    def _options(
        self, demand: Counter[int], count: IntArray, incumbent: Sequence[Node], most: int | None
    ) -> list[Node]:
        options: dict[Node, None] = dict.fromkeys(incumbent)
        for column in self.columns:
            if count[column.type_index] <= 0:
                continue
            contents = _within(column.contents, demand)
            if contents.tasks:
                options[column.type_index, contents] = None
            if most is not None and len(options) >= most:
                break
        return list(options)

    def _model(
        self,
        options: Sequence[Node],
        demand: Counter[int],
        count: IntArray,
        tree_nodes: int,
    ) -> Growing:
        program = Growing(
            random_seed=int(self.rng.integers(1 << 30)), mip_max_nodes=tree_nodes, mip_rel_gap=1e-6
        )
        row = {c: k for k, c in enumerate(demand)}
        for n in demand.values():
            program.row(n, n if self.aggregate.frag_weight else math.inf)
        for n in count:
            program.row(upper=n)
        for t, contents in options:
            tasks = contents.tasks
            rows = [*(row[c] for c in tasks), len(row) + t]
            values = [*(float(n) for n in tasks.values()), 1.0]
            program.column(self.aggregate.cost(t, contents), rows, values, upper=count[t])
        if self.generation.may_leave_out:
            for c in demand:
                cost = self.generation.unserved_cost[c]
                program.column(cost, [row[c]], [1.0], upper=demand[c])
        program.whole()
        return program

    def _insert_left_over(self, nodes: list[Node]) -> list[Node] | None:
        """Put every task not served yet where it costs least."""
        return inserted(self.aggregate, nodes, self.generation.may_leave_out)


def _within(contents: Contents, demand: Counter[int]) -> Contents:
    """Return the contents without tasks that `demand` does not ask for."""
    surplus = Counter({c: n - demand[c] for c, n in contents.tasks.items() if n > demand[c]})
    return contents.without(surplus) if surplus else contents


def _trim(nodes: Iterable[Node], demand: Counter[int]) -> list[Node]:
    """Return the nodes without surplus tasks; what they serve is taken off `demand`."""
    kept: list[Node] = []
    for t, contents in nodes:
        contents = _within(contents, demand)
        tasks = contents.tasks
        if tasks:
            demand.subtract(tasks)
            kept.append((t, contents))
    return kept
