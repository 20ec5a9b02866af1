"""The most valuable contents of a node at given task prices, and a bound on their value.

Given a price π_c for every task class, a node of type t is worth at most

    V_t = max over contents a of  Σ_c π_c a_c − cost_t(a),

and Σ_c π_c d_c − Σ_t n_t·max(0, V_t) bounds the cost of serving the demands d from below
(Lagrangian duality: at any prices, not only the best). V_t is found by dynamic programming
over the node's GPUs and CPU units. Two things are relaxed, each in the direction that keeps the
bound valid: CPU needs are rounded down to units, and memory is priced (μ_t per MiB, chosen to make
V_t smallest) instead of enforced.
"""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from optgap.models.placement.arrays import BoolArray, FloatArray, IntArray
from optgap.solvers.placement import kernels
from optgap.solvers.placement.aggregate import UNITS, Aggregate, Band, Contents

Rounding = Literal["down", "up"]

THREADS = 2
"""The compiled programs release the interpreter lock; the result does not depend on this."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Result of pricing for one node type.

    `value` is at least V_t (with rounding ``down``); `contents` are attractive contents, best
    first, which may break the CPU or memory limit by what was relaxed.
    """

    type_index: int
    value: float
    contents: tuple[Contents, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """Task classes as items of the dynamic programs: index, size in units, value."""

    index: IntArray
    size: IntArray
    cpu: IntArray
    value: FloatArray


class Tables:
    """The dynamic programs for one set of admissible classes at one price vector."""

    def __init__(
        self, share: Items, multi: Items, cpu_only: Items, size: int, *, steps: int
    ) -> None:
        self.share, self.multi, self.cpu_only = share, multi, cpu_only
        self.size = size
        content, self.worth = kernels.share_one_gpu(size, steps, share.size, share.cpu, share.value)
        self.fill_level, self.need, self.item, self.parent = content.T.copy()

    def fill(self, gpus: int, residual_cost: FloatArray | None) -> Filled:
        """Extend to whole nodes; `residual_cost` is per step that is filled, (steps + 1,)."""
        worth = self.worth
        if residual_cost is not None:
            worth = worth - residual_cost[self.fill_level]
        # single-GPU contents by ascending need, only those worth more than all cheaper ones
        order = np.lexsort((-worth, self.need))
        order = order[self.fill_level[order] > 0]
        rising = np.maximum.accumulate(worth[order])
        label = order[np.flatnonzero(np.diff(rising, prepend=-np.inf) > 0)]
        multi = self.multi
        gpu_best = kernels.fill_gpus(
            self.size, gpus, self.need[label], worth[label], multi.size, multi.cpu, multi.value
        )
        best = kernels.add_cpu_tasks(gpu_best, self.cpu_only.cpu, self.cpu_only.value)
        return Filled(self, label, worth[label], gpu_best, best)

    def one_gpu(self, label: int) -> tuple[int, ...]:
        """Return the classes on a GPU with these contents."""
        items: list[int] = []
        while self.parent[label] >= 0:
            items.append(int(self.share.index[self.item[label]]))
            label = int(self.parent[label])
        return tuple(sorted(items))


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """Values of node contents by (GPUs in use, CPU units), and how to read the contents back."""

    tables: Tables
    label: IntArray
    gain: FloatArray
    gpu_best: FloatArray
    value: FloatArray

    def contents(self, j: int, u: int) -> Contents:
        """Return the contents behind entry (j, u)."""
        tables, multi, cpu_only = self.tables, self.tables.multi, self.tables.cpu_only
        lone, u = kernels.walk_cpu_tasks(
            self.value, self.gpu_best, cpu_only.cpu, cpu_only.value, j, u
        )
        need = tables.need[self.label]
        labels, several = kernels.walk_gpus(
            self.gpu_best, need, self.gain, multi.size, multi.cpu, multi.value, j, u
        )
        return Contents(
            tuple(sorted(tables.one_gpu(int(self.label[q])) for q in labels)),
            tuple(sorted(int(c) for c in multi.index[several])),
            tuple(sorted(int(c) for c in cpu_only.index[lone])),
        )


@dataclass(slots=True)
class Memo:
    """Tables made so far for one group of node types.

    By memory price, and by fragment cost besides.
    """

    tables: dict[float, Tables] = field(default_factory=dict)
    filled: dict[tuple[float, bytes], Filled] = field(default_factory=dict)


class Pricer:
    """Prices the contents of every node type.

    Parameters
    ----------
    aggregate: the counted problem.
    cpu_unit: CPU unit in milli-vCPU; smaller is tighter and slower.
    rounding: ``down`` for bounds; ``up`` so that every content found respects the CPU limit.
    """

    def __init__(self, aggregate: Aggregate, cpu_unit: float, rounding: Rounding = "down") -> None:
        self.aggregate = aggregate
        self.cpu_unit = cpu_unit
        self.rounding = rounding
        exact = aggregate.cpu_milli / cpu_unit
        near = np.floor(exact + 1e-9) if rounding == "down" else np.ceil(exact - 1e-9)
        if rounding == "down":  # to a whole number only where it is one
            near = np.where(near * cpu_unit <= aggregate.cpu_milli, near, near - 1)
        self.cpu_units: IntArray = near.astype(np.int64)
        # a task whose rounded need is nothing could be had without end: it gets no price
        self.priceable = (aggregate.num_gpu > 0) | (self.cpu_units > 0)
        self.gpu_unit = math.gcd(1000, *(int(m) for m in aggregate.gpu_milli if m))
        self.steps = 1000 // self.gpu_unit
        self.admissible = self._admissible()
        self.bands = [aggregate.bands(t) for t in range(len(aggregate.types))]
        self.idle_fragment = self._idle_fragments()
        self._size: dict[bytes, tuple[int, int]] = {}
        for t, node in enumerate(aggregate.types):
            key = self.admissible[t].tobytes()
            size, gpus = self._size.get(key, (0, 0))
            self._size[key] = (max(size, self._units(node.cpu_milli)), max(gpus, node.gpus))
        self.last_mu = np.zeros(len(aggregate.types))
        self.worth = np.zeros(UNITS)
        self._groups: dict[bytes, list[int]] = {}
        for t in range(len(aggregate.types)):
            self._groups.setdefault(self.admissible[t].tobytes(), []).append(t)

    @property
    def units(self) -> int:
        """CPU units of one node of every type, by which work is counted."""
        return sum(self._units(node.cpu_milli) for node in self.aggregate.types)

    def _units(self, milli: int) -> int:
        return int(milli / self.cpu_unit + 1e-9)

    def _admissible(self) -> list[BoolArray]:
        # CPU and GPU counts are left to the tables; this keeps types that differ only in
        # size on the same ones
        aggregate = self.aggregate
        return [
            np.array(
                [
                    c.memory_mib <= node.memory_mib and (c.num_gpu == 0 or c.accepts(node.model))
                    for c in aggregate.classes
                ]
            )
            for node in aggregate.types
        ]

    def _idle_fragments(self) -> list[float]:
        aggregate = self.aggregate
        if not aggregate.frag_weight:
            return [0.0] * len(aggregate.types)
        lowest = [bands[0] for bands in self.bands]
        weights = [aggregate.fragment_weights(t, band) for t, band in enumerate(lowest)]
        # bands start at the use up to which nothing has changed: the idle node is in the first
        return [float(idle[-1]) for _active, idle in weights]

    def price(
        self, prices: FloatArray, worth: FloatArray | None = None, most: int = 6
    ) -> list[Offer]:
        """Offers of all node types at these prices, up to `most` contents each.

        Parameters
        ----------
        worth: (2,) by how much less a GPU and a CPU package in use cost; nothing if None.
        """
        self.worth = np.zeros(UNITS) if worth is None else worth
        with ThreadPoolExecutor(THREADS) as pool:
            parts = list(pool.map(lambda g: self._group(g, prices, most), self._groups.values()))
        return sorted(itertools.chain.from_iterable(parts), key=lambda offer: offer.type_index)

    def _group(self, types: list[int], prices: FloatArray, most: int) -> list[Offer]:
        """Offers of node types that admit the same classes and so share their tables."""
        memo = Memo()
        return [self._offer(t, prices, most, memo) for t in types]

    def _offer(self, t: int, prices: FloatArray, most: int, memo: Memo) -> Offer:
        value, found = self._relaxed(t, prices, most, memo)
        return Offer(t, value, tuple(found))

    def _relaxed(
        self, t: int, prices: FloatArray, most: int, memo: Memo
    ) -> tuple[float, list[Contents]]:
        """Minimise V_t(μ) over the memory price μ by intersecting tangents; with what was found."""
        limit = self.aggregate.types[t].memory_mib
        found: list[Contents] = []

        def probe(mu: float) -> tuple[float, int]:
            value, contents = self._best(t, prices, mu, most=most, memo=memo)
            found.extend(contents[: most if len(found) < most else 2])
            return value + mu * limit, self._memory(contents[0])

        value, memory = probe(0.0)
        if memory <= limit or self.rounding == "up":
            self.last_mu[t] = 0.0
            return value, found
        left = (value, memory)  # V(0) and the memory it uses: a tangent at 0
        right: tuple[float, int] | None = None
        mu = self.last_mu[t] or 0.02 * max(value, 1e-9) / limit
        best, best_mu = value, 0.0
        for _ in range(7):
            value, memory = probe(mu)
            if value < best:
                best, best_mu = value, mu
            intercept = value - mu * (limit - memory)
            if memory > limit:
                left = (intercept, memory)
            else:
                right = (intercept, memory)
            if right is None:
                mu *= 4
                continue
            crossing = (left[0] - right[0]) / (left[1] - right[1])
            lower = left[0] + crossing * (limit - left[1])
            if best - lower <= 1e-4 * max(1.0, abs(best)) or crossing <= 0:
                break
            mu = crossing
        self.last_mu[t] = best_mu
        return best, found

    def _memory(self, contents: Contents) -> int:
        memory = self.aggregate.memory_mib
        return sum(n * int(memory[c]) for c, n in contents.tasks.items())

    def _best(
        self,
        t: int,
        prices: FloatArray,
        mu: float,
        *,
        most: int,
        memo: Memo,
    ) -> tuple[float, list[Contents]]:
        """Return the most valuable contents of type `t`, over CPU bands and numbers of GPUs.

        The empty node is among them. It must be: tasks worth less than their memory's price
        are not offered at all, which is no loss only because they can be left out.
        """
        aggregate = self.aggregate
        node = aggregate.types[t]
        gpus = np.arange(node.gpus + 1)
        options: list[tuple[float, int, int, Filled]] = []
        for band in self.bands[t]:
            filled, idle = self._filled(t, band, prices, mu, memo=memo)
            u = min(self._units(band.max_used_milli), filled.value.shape[1] - 1)
            worth = filled.value[: node.gpus + 1, u]
            worth = worth - (aggregate.gpu_cost[t] - self.worth[0]) * gpus
            worth = worth - (band.cpu_cost - self.worth[1] * band.packages)
            worth = worth - idle[::-1] + self.idle_fragment[t]
            options += [
                (float(w), int(j), u, filled) for j, w in enumerate(worth) if np.isfinite(w)
            ]
        options.sort(key=lambda option: -option[0])
        contents: list[Contents] = []
        for _worth, j, u, filled in options[:most]:
            item = filled.contents(j, u)
            if item not in contents:
                contents.append(item)
        return options[0][0], contents

    def _filled(
        self,
        t: int,
        band: Band,
        prices: FloatArray,
        mu: float,
        *,
        memo: Memo,
    ) -> tuple[Filled, FloatArray]:
        aggregate = self.aggregate
        mask = self.admissible[t].tobytes()
        if aggregate.frag_weight:
            active, idle = aggregate.fragment_weights(t, band)
            residual: FloatArray | None = active[1000 - self.gpu_unit * np.arange(self.steps + 1)]
        else:
            residual, idle = None, np.zeros(aggregate.types[t].gpus + 1)
        key = (mu, b"" if residual is None else residual.tobytes())
        if key not in memo.filled:
            size, gpus = self._size[mask]
            if mu not in memo.tables:
                memo.tables[mu] = self._make_tables(self.admissible[t], prices, mu, size)
            memo.filled[key] = memo.tables[mu].fill(gpus, residual)
        return memo.filled[key], idle

    def _make_tables(
        self, admissible: BoolArray, prices: FloatArray, mu: float, size: int
    ) -> Tables:
        aggregate = self.aggregate
        value = prices - mu * aggregate.memory_mib
        # a fragment can be worth filling at a loss, and a GPU, where one in use is worth more than
        # it costs; else power never is
        loss = bool(aggregate.frag_weight) or self.worth[0] > aggregate.gpu_cost.min()
        worthwhile = admissible if loss else admissible & (value > 0)
        steps = aggregate.gpu_milli // self.gpu_unit
        one = worthwhile & (aggregate.num_gpu == 1)
        several = worthwhile & (aggregate.num_gpu > 1)
        none = worthwhile & (aggregate.num_gpu == 0) & (value > 0) & self.priceable
        return Tables(
            self._items(one, steps, value, smaller_will_do=not aggregate.frag_weight),
            self._items(several, aggregate.num_gpu, value, smaller_will_do=False),
            self._items(none, np.zeros_like(steps), value, smaller_will_do=False),
            size,
            steps=self.steps,
        )

    def _items(
        self, chosen: BoolArray, size: IntArray, value: FloatArray, *, smaller_will_do: bool
    ) -> Items:
        """Return the chosen classes less those that another one beats in every respect."""
        index = np.flatnonzero(chosen)
        cpu, s, v = self.cpu_units[index], size[index], value[index]
        kept: list[int] = []
        for k in np.lexsort((np.arange(len(index)), cpu, -v)):
            rivals = np.array(kept, dtype=np.int64)
            same = s[rivals] <= s[k] if smaller_will_do else s[rivals] == s[k]
            if not np.any(same & (cpu[rivals] <= cpu[k])):
                kept.append(int(k))
        kept.sort()
        return Items(index[kept], s[kept], cpu[kept], v[kept])
