"""Large neighbourhood search: the tasks of a few servers are solved anew by branch-and-price."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from optgap.models.limits import Limits, silent
from optgap.solvers.consolidation.bounds.level_counts import CostLevels, cost_levels, level_counts
from optgap.solvers.consolidation.branch_and_price.tree import PrimalHeuristic, SearchState, Tree
from optgap.solvers.consolidation.config import DEFAULT, LnsParams
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import IntArray, Placement
from optgap.solvers.consolidation.outcome import Incumbent


class ServerNeighbourhoods(PrimalHeuristic):
    """Neighbourhoods of a few servers.

    Parameters
    ----------
    heuristics: makes the heuristics of a neighbourhood's tree.

    Attributes
    ----------
    done: sizes and tasks of the neighbourhoods that were solved already.
    """

    def __init__(
        self,
        heuristics: Callable[[Instance, CostLevels], Sequence[PrimalHeuristic]],
        seed: int,
        params: LnsParams = DEFAULT.lns,
    ) -> None:
        self.heuristics, self.params = heuristics, params
        self.rng = np.random.default_rng(seed)
        self.done: set[tuple[int, ...]] = set()

    def improve(self, state: SearchState, limits: Limits) -> None:
        """Solve neighbourhoods for one turn."""
        instance, incumbent = state.generation.instance, state.incumbent
        own = limits.within(self.params.turn_s * instance.tasks / 100)
        for _ in range(self.params.tries):
            if own.stop is None and incumbent.placement is not None:
                self._neighbourhood(incumbent, incumbent.placement, own)

    def _neighbourhood(self, incumbent: Incumbent, placement: Placement, limits: Limits) -> None:
        """Solve the tasks of servers that are drawn, unless one has GPUs elsewhere as well."""
        gpus = int(incumbent.instance.server_gpus[0])
        homes = [sorted({g // gpus for g in own}) for own in placement]
        awake = sorted({i for own in homes for i in own})
        size = min(len(awake), int(self.rng.choice(self.params.servers)))
        chosen = set(self.rng.choice(awake, size, replace=False).tolist())
        tasks = [ell for ell, own in enumerate(homes) if chosen.issuperset(own)]
        inside = {ell for ell, own in enumerate(homes) if chosen.intersection(own)}
        key = (size, *sorted(tasks))
        alone = 2 <= len(tasks) <= self.params.max_tasks and len(inside) == len(tasks)
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
        """Solve the tasks on their servers, and offer the placement if it is better."""
        width = int(incumbent.instance.server_gpus[0])
        part = incumbent.instance.part(tasks, len(servers))
        whole = [i * width + k for i in servers for k in range(width)]
        local = {g: k for k, g in enumerate(whole)}
        found = Incumbent(part)
        found.offer([tuple(local[g] for g in placement[ell]) for ell in tasks.tolist()])
        before, levels = found.watts, cost_levels(part)
        counts, seed = level_counts(part, levels), int(self.rng.integers(2**31))
        tree = Tree(part, levels, counts, found, self.heuristics(part, levels), seed)
        tree.run(limits.each(min(self.params.neighbourhood_s, limits.remaining), silent))
        if found.watts < before - 1e-9 and found.placement is not None:
            better = list(placement)
            for ell, gpus in zip(tasks.tolist(), found.placement, strict=True):
                better[ell] = tuple(sorted(whole[g] for g in gpus))
            incumbent.offer(better)
