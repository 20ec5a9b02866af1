"""Large neighbourhood search: a part of the incumbent is destroyed and placed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import cost_levels, level_counts
from optgap.solvers.consolidation.branch_and_price.heuristic import PrimalHeuristic, SearchState
from optgap.solvers.consolidation.branch_and_price.node import Node
from optgap.solvers.consolidation.branch_and_price.tree import Tree
from optgap.solvers.consolidation.config import DEFAULT, LnsParams
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import Column, Counts, IntArray, Placement
from optgap.solvers.consolidation.primal.diving import Dive, near_best


class ServerNeighbourhoods:
    """A few servers at a time, whose tasks are placed anew by branch-and-price.

    Parameters
    ----------
    heuristics: makes what those trees are given.
    """

    before_proof = False

    def __init__(
        self,
        heuristics: Callable[[Instance], Sequence[PrimalHeuristic]],
        seed: int,
        params: LnsParams = DEFAULT.lns,
    ) -> None:
        self.heuristics, self.params = heuristics, params
        self.rng = np.random.default_rng(seed)
        self.done: set[tuple[int, ...]] = set()
        """Tasks whose placement on their servers cannot be improved, as far as is known."""

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Not by this."""

    def improve(self, state: SearchState, limits: Limits) -> None:
        """Some neighbourhoods; none where there are too few servers."""
        instance, incumbent = state.generation.instance, state.incumbent
        own = limits.within(self.params.turn_s * instance.tasks / 100)
        tries = self.params.tries if incumbent.awake_servers > self.params.few_servers else 0
        for _ in range(tries):
            if own.stop is None and incumbent.placement is not None:
                self._neighbourhood(incumbent, incumbent.placement, own)

    def _neighbourhood(self, incumbent: Incumbent, placement: Placement, limits: Limits) -> None:
        """One choice of servers, unless it is known to be of no use."""
        gpus = int(incumbent.instance.server_gpus[0])
        homes = [sorted({g // gpus for g in own}) for own in placement]
        awake = sorted({i for own in homes for i in own})
        size = min(len(awake), int(self.rng.choice(self.params.servers)))
        chosen = set(self.rng.choice(awake, size, replace=False).tolist())
        tasks = [ell for ell, own in enumerate(homes) if chosen.issuperset(own)]
        inside = {ell for ell, own in enumerate(homes) if chosen.intersection(own)}
        key = (size, *sorted(tasks))
        alone = 2 <= len(tasks) <= self.params.most_tasks and len(inside) == len(tasks)
        if alone and key not in self.done:
            self.done.add(key)
            self._solve(incumbent, np.array(tasks), sorted(chosen), placement, limits)

    def _solve(
        self,
        incumbent: Incumbent,
        tasks: IntArray,
        servers: list[int],
        placement: Placement,
        limits: Limits,
    ) -> None:
        """The tasks on their servers, as well as there is time for."""
        width = int(incumbent.instance.server_gpus[0])
        part = incumbent.instance.part(tasks, len(servers))
        local = {i * width + k: j * width + k for j, i in enumerate(servers) for k in range(width)}
        back = {there: here for here, there in local.items()}
        found = Incumbent(part)
        found.offer([tuple(local[g] for g in placement[ell]) for ell in tasks.tolist()])
        before, levels = found.watts, cost_levels(part)
        counts, seed = level_counts(part, levels), int(self.rng.integers(2**31))
        tree = Tree(part, levels, counts, found, self.heuristics(part), seed)
        tree.run(limits.within(self.params.each_s))
        if found.watts < before - 1e-9 and found.placement is not None:
            better = list(placement)
            for ell, gpus in zip(tasks.tolist(), found.placement, strict=True):
                better[ell] = tuple(sorted(back[g] for g in gpus))
            incumbent.offer(better)


class PartialDives:
    """Dives from a part of the incumbent; the first ones from nothing."""

    before_proof = False

    def __init__(self, params: LnsParams = DEFAULT.lns) -> None:
        self.params = params
        self.dives = 0

    def realise(self, state: SearchState, node: Node, counts: Counts, limits: Limits) -> None:
        """Not by this."""

    def improve(self, state: SearchState, limits: Limits) -> None:
        """One dive."""
        noise = float(self.dives > 0)
        dive = Dive(state.generation, limits, state.rng, noise)
        instance, assignment = state.generation.instance, state.root.assignment
        kept, servers = None, 0
        if self.dives >= self.params.from_nothing and state.incumbent.placement is not None:
            share = state.rng.uniform(*self.params.kept_share)
            kept, pairs = kept_part(instance, state.incumbent.placement, share, state.rng)
            assignment = assignment.assign(pairs)
            if instance.gang and state.rng.random() < self.params.same_servers:
                servers = state.incumbent.awake_servers
        self.dives += 1
        box = near_best(state, servers)
        state.incumbent.offer(dive.straight(box, assignment, state.cutoff, kept))


def kept_part(
    instance: Instance, placement: Placement, share: float, rng: np.random.Generator
) -> tuple[Counter[Column], list[tuple[int, int]]]:
    """Columns of about a share of a placement, and where its tasks of several GPUs are.

    Whole servers where a task's GPUs are in one, which are numbered anew; else GPUs.
    """
    contents, home = instance.residents(placement), instance.gpu_server
    units = sorted({int(home[g]) for g in contents}) if instance.gang else sorted(contents)
    taken = rng.permutation(units)[: int(share * len(units))].tolist()
    number = {unit: k for k, unit in enumerate(taken)}
    inside = (g for g in contents if (int(home[g]) if instance.gang else g) in number)
    kept = Counter(tuple(contents[g]) for g in inside)
    wide = np.flatnonzero(instance.width > 1).tolist() if instance.gang else []
    homes = [(ell, number.get(int(home[placement[ell][0]]), -1)) for ell in wide]
    return kept, [one for one in homes if one[1] >= 0]
