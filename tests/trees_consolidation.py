"""Trees of small consolidation problems, and all placements of tiny ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.problem import Gang, Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds import (
    CostLevels,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.branch_and_price.tree import Tree
from optgap.solvers.consolidation.instance import Instance, instance_of
from optgap.solvers.consolidation.numerics import IntArray, Placement
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.diving import Diving

MOST_PLACEMENTS = 20_000


def grown(problem: ConsolidationProblem, *, heuristics: bool = False) -> Tree | None:
    """A tree that knows one placement; None where counts do not fix the power, or there is none."""
    instance = instance_of(problem)
    levels = cost_levels(instance, 600)
    incumbent, rng = Incumbent(instance), np.random.default_rng(0)
    construct(incumbent, Limits(), rng, 1)
    if incumbent.placement is None or not counts_fix_power(instance, levels):
        return None
    given = Diving() if heuristics else None
    counts = level_counts(instance, levels)
    return Tree(instance, levels, counts, incumbent, heuristic=given)


def tree_of(problem: ConsolidationProblem, **more: bool) -> Tree:
    """The same where there is one for certain."""
    tree = grown(problem, **more)  # type: ignore[arg-type]
    assert tree is not None
    return tree


def counts_of_placement(instance: Instance, levels: CostLevels, placement: Placement) -> IntArray:
    """GPUs by level, and servers."""
    inside = Instance.residents(list(placement))
    top = np.array([levels.of[tasks].max() for tasks in inside.values()])
    servers = len({int(instance.gpu_server[g]) for g in inside})
    counts = [int((top >= q).sum()) for q in range(len(levels.quanta))]
    return np.array([*counts, servers], dtype=np.int64)


def all_counts(instance: Instance, levels: CostLevels) -> list[IntArray] | None:
    """Of every placement; None where there are too many to look at."""
    gpus = range(instance.gpus)
    choices = [list(itertools.combinations(gpus, int(v))) for v in instance.width]
    if math.prod(map(len, choices)) > MOST_PLACEMENTS:
        return None
    found = {}
    load = np.zeros((instance.gpus, len(instance.demand)), dtype=np.int64)

    def place(placement: tuple[tuple[int, ...], ...]) -> None:
        ell = len(placement)
        if ell == instance.tasks:
            counts = counts_of_placement(instance, levels, list(placement))
            found[tuple(counts.tolist())] = counts
            return
        for chosen in map(list, choices[ell]):
            load[chosen] += instance.demand[:, ell]
            if (load[chosen] <= instance.max_capacity).all():
                place((*placement, tuple(chosen)))
            load[chosen] -= instance.demand[:, ell]

    place(())
    return list(found.values())


@st.composite
def tight_problems(
    draw: st.DrawFn, gangs: tuple[Gang, ...] = ("server", "server", "free")
) -> ConsolidationProblem:
    """Two servers or three, about full, of tasks of which several have several GPUs."""
    span = draw(st.integers(2, 3))
    tasks = [
        Task(
            f"t{k}",
            float(draw(st.sampled_from((2, 4, 5, 6, 8, 11)))),
            draw(st.sampled_from((1, 1, 2, 2, span))),
            draw(st.sampled_from((1.1, 1.2, 1.5))),
        )
        for k in range(draw(st.integers(3, 6)))
    ]
    gang = draw(st.sampled_from(gangs))
    servers = [Server((0,) * span, draw(st.sampled_from((0.0, 150.0))))] * draw(st.integers(2, 3))
    kinds = [GpuKind(memory_gb=16.0)]
    return ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none", gang=gang))
