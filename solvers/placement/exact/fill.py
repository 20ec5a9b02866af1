"""Assignment of tasks that share GPUs in the counted formulation.

They are a flow through the fill levels of a GPU from 0 upwards, larger tasks first; every unit of
flow is one GPU. It knows the milli-GPU that a filled GPU has left, which is what fragmentation
depends on.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from optgap.models.placement.arrays import FloatArray
from optgap.solvers.backends.linear import LinearBuilder

Terms = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes in milli-GPU of tasks that share GPUs, descending, and how many tasks have them.

    `exact`: a filled GPU holds just the tasks counted on it, so that what it has left is known;
    without it a filled GPU offers room that may stay empty.
    """

    milli: tuple[int, ...]
    count: tuple[int, ...]
    exact: bool

    def arcs(self, shared: dict[int, Terms]) -> list[tuple[int, int]]:
        """Return (size, level before it), as far as levels are reached by larger sizes first."""
        arcs: set[tuple[int, int]] = set()
        levels = {0}
        for i, milli in enumerate(self.milli):
            if not shared[milli]:
                continue
            for start in sorted(levels):
                steps = range(start, 1001 - milli, milli)[: self.count[i]]
                arcs |= {(i, level) for level in steps}
                levels |= {level + milli for level in steps}
        return sorted(arcs)


class Filling:
    """The columns of one unit that fill its shared GPUs.

    Attributes
    ----------
    arcs: column by size and the fill level before it. levels: column by the level that a GPU ends
        at.
    """

    def __init__(
        self, sizes: Sizes, builder: LinearBuilder, gpus: int, shared: dict[int, Terms]
    ) -> None:
        """Add the columns of a unit with so many GPUs; `shared` holds −tasks by size."""
        self.sizes = sizes
        self.arcs = {
            (i, level): builder.variable(0, min(gpus, sizes.count[i]), integer=True)
            for i, level in sizes.arcs(shared)
        }
        flow: dict[int, Terms] = defaultdict(list)
        for (i, level), column in self.arcs.items():
            flow[level].append((column, -1.0))
            flow[level + sizes.milli[i]].append((column, 1.0))
        self.levels = {n: builder.variable(0, gpus, integer=True) for n in sorted(flow) if n}
        for level, column in self.levels.items():
            builder.row([*flow[level], (column, -1.0)], 0, 0)
        for i, milli in enumerate(sizes.milli):
            if shared[milli]:
                terms = [(column, 1.0) for (j, _level), column in self.arcs.items() if j == i]
                builder.row([*terms, *shared[milli]], 0, 0 if sizes.exact else np.inf)

    @property
    def ends(self) -> list[tuple[int, int]]:
        """(column, milli-GPU left): the columns add up to the GPUs in use."""
        return [(column, 1000 - level) for level, column in self.levels.items()]

    def take(self, values: FloatArray) -> list[list[int]]:
        """Return the sizes that each GPU in use has room for."""
        left = {arc: round(values[column]) for arc, column in self.arcs.items()}
        gpus = []
        for end in sorted(self.levels, reverse=True):
            for _ in range(round(values[self.levels[end]])):
                slots: list[int] = []
                level = end
                while level:  # walk one unit of flow back to the empty GPU
                    i, level = next(
                        (i, level - milli)
                        for i, milli in enumerate(self.sizes.milli)
                        if left.get((i, level - milli), 0) > 0
                    )
                    left[i, level] -= 1
                    slots.append(self.sizes.milli[i])
                gpus.append(slots)
        return gpus
