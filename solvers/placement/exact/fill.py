"""How tasks that share GPUs reach them in the counted formulation.

Two ways to say the same: one column per *pattern* (which sizes are on a GPU together), or,
where sizes are too many and too small for that, a flow through the fill levels of a GPU from
0 upwards, larger tasks first; every unit of flow is one GPU. Both know the milli-GPU that a
filled GPU has left, which is what fragmentation depends on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from optgap.models.placement.arrays import FloatArray
from optgap.solvers.backends.linear import LinearBuilder

Terms = list[tuple[int, float]]

MOST_PATTERNS = 2000
"""Beyond this many patterns the flow is the smaller formulation."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes in milli-GPU of tasks that share GPUs, descending, and how many tasks have them.

    `exact`: a filled GPU holds just the tasks counted on it, so that what it has left is known;
    without it a filled GPU offers room that may stay empty.
    """

    milli: tuple[int, ...]
    count: tuple[int, ...]
    exact: bool


class Filling(Protocol):
    """The columns of one unit that fill its shared GPUs."""

    @property
    def ends(self) -> list[tuple[int, int]]:
        """(column, milli-GPU left): the columns add up to the GPUs in use."""

    def put(self, values: FloatArray, contents: Sequence[int]) -> None:
        """Count one more GPU, carrying tasks of these sizes."""

    def take(self, values: FloatArray) -> list[list[int]]:
        """The sizes that each GPU in use has room for."""


class Fill(Protocol):
    """A way to write fillings down."""

    def add(self, builder: LinearBuilder, gpus: int, shared: dict[int, Terms]) -> Filling:
        """Add the columns of a unit with so many GPUs; `shared` holds −tasks by size."""


def fill_for(sizes: Sizes, most: int = MOST_PATTERNS) -> Fill:
    """Patterns, or the flow where there would be more than `most`."""
    found = patterns(sizes, most)
    return FlowFill(sizes) if found is None else PatternFill(sizes, found)


def patterns(sizes: Sizes, most: int) -> list[tuple[int, ...]] | None:
    """Every way to fill a GPU, as counts by size; None when there are more than `most`.

    Without `sizes.exact` only those to which no further task can be added.
    """
    found: list[tuple[int, ...]] = []
    stack: list[tuple[tuple[int, ...], int]] = [((), 1000)]
    while stack:
        chosen, left = stack.pop()
        i = len(chosen)
        if i < len(sizes.milli):
            for k in range(min(sizes.count[i], left // sizes.milli[i]) + 1):
                stack.append(((*chosen, k), left - k * sizes.milli[i]))
            continue
        room = any(
            k < number and milli <= left
            for k, number, milli in zip(chosen, sizes.count, sizes.milli, strict=True)
        )
        if any(chosen) and (sizes.exact or not room):
            found.append(chosen)
            if len(found) > most:
                return None
    return sorted(found)


@dataclass(frozen=True, slots=True)
class PatternFill:
    """One column per pattern."""

    sizes: Sizes
    patterns: list[tuple[int, ...]]

    def add(self, builder: LinearBuilder, gpus: int, shared: dict[int, Terms]) -> Filling:
        sizes, columns = self.sizes, {}
        for p, pattern in enumerate(self.patterns):
            used = [i for i, k in enumerate(pattern) if k]
            if sizes.exact and not all(shared[sizes.milli[i]] for i in used):
                continue
            limits = [sizes.count[i] // pattern[i] for i in used] if sizes.exact else []
            columns[p] = builder.variable(0, min([gpus, *limits]), integer=True)
        for i, milli in enumerate(sizes.milli):
            if shared[milli]:
                terms = [(column, float(self.patterns[p][i])) for p, column in columns.items()]
                builder.row([*terms, *shared[milli]], 0, 0 if sizes.exact else np.inf)
        return PatternFilling(self, columns)


@dataclass(frozen=True, slots=True)
class PatternFilling:
    """The pattern columns of one unit."""

    fill: PatternFill
    columns: dict[int, int]

    @property
    def ends(self) -> list[tuple[int, int]]:
        milli = self.fill.sizes.milli
        return [
            (column, 1000 - sum(k * s for k, s in zip(self.fill.patterns[p], milli, strict=True)))
            for p, column in self.columns.items()
        ]

    def put(self, values: FloatArray, contents: Sequence[int]) -> None:
        wanted = [contents.count(milli) for milli in self.fill.sizes.milli]
        for p, column in self.columns.items():
            if all(k >= w for k, w in zip(self.fill.patterns[p], wanted, strict=True)) and (
                not self.fill.sizes.exact or list(self.fill.patterns[p]) == wanted
            ):
                values[column] += 1
                return
        raise ValueError(f"no pattern holds {contents}")

    def take(self, values: FloatArray) -> list[list[int]]:
        gpus = []
        for p, column in self.columns.items():
            slots = [
                milli
                for milli, k in zip(self.fill.sizes.milli, self.fill.patterns[p], strict=True)
                for _ in range(k)
            ]
            gpus += [list(slots) for _ in range(round(values[column]))]
        return gpus


@dataclass(frozen=True, slots=True)
class FlowFill:
    """One column per (size, fill level before it), and one per level that a GPU ends at."""

    sizes: Sizes

    def add(self, builder: LinearBuilder, gpus: int, shared: dict[int, Terms]) -> Filling:
        arcs = {
            (i, level): builder.variable(0, min(gpus, self.sizes.count[i]), integer=True)
            for i, level in self._arcs(shared)
        }
        flow: dict[int, Terms] = defaultdict(list)
        for (i, level), column in arcs.items():
            flow[level].append((column, -1.0))
            flow[level + self.sizes.milli[i]].append((column, 1.0))
        ends = {level: builder.variable(0, gpus, integer=True) for level in sorted(flow) if level}
        for level, column in ends.items():
            builder.row([*flow[level], (column, -1.0)], 0, 0)
        for i, milli in enumerate(self.sizes.milli):
            if shared[milli]:
                terms = [(column, 1.0) for (j, _level), column in arcs.items() if j == i]
                builder.row([*terms, *shared[milli]], 0, 0 if self.sizes.exact else np.inf)
        return FlowFilling(self, arcs, ends)

    def _arcs(self, shared: dict[int, Terms]) -> list[tuple[int, int]]:
        """(size, level before it), as far as levels are reached by larger sizes first."""
        arcs: set[tuple[int, int]] = set()
        levels = {0}
        for i, milli in enumerate(self.sizes.milli):
            if not shared[milli]:
                continue
            for start in sorted(levels):
                steps = range(start, 1001 - milli, milli)[: self.sizes.count[i]]
                arcs |= {(i, level) for level in steps}
                levels |= {level + milli for level in steps}
        return sorted(arcs)


@dataclass(frozen=True, slots=True)
class FlowFilling:
    """The flow columns of one unit."""

    fill: FlowFill
    arcs: dict[tuple[int, int], int]
    levels: dict[int, int]

    @property
    def ends(self) -> list[tuple[int, int]]:
        return [(column, 1000 - level) for level, column in self.levels.items()]

    def put(self, values: FloatArray, contents: Sequence[int]) -> None:
        level = 0
        for milli in sorted(contents, reverse=True):
            values[self.arcs[self.fill.sizes.milli.index(milli), level]] += 1
            level += milli
        values[self.levels[level]] += 1

    def take(self, values: FloatArray) -> list[list[int]]:
        left = {arc: round(values[column]) for arc, column in self.arcs.items()}
        gpus = []
        for end in sorted(self.levels, reverse=True):
            for _ in range(round(values[self.levels[end]])):
                slots: list[int] = []
                level = end
                while level:  # walk one unit of flow back to the empty GPU
                    i, level = next(
                        (i, level - milli)
                        for i, milli in enumerate(self.fill.sizes.milli)
                        if left.get((i, level - milli), 0) > 0
                    )
                    left[i, level] -= 1
                    slots.append(self.fill.sizes.milli[i])
                gpus.append(slots)
        return gpus
