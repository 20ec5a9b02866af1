"""A bound on the power that at most K migrations can reach, for every K at once.

Let S_n be the tasks of node n that stay. Arrivals never lower a node's power, and a task of c
whole GPUs needs c idle ones of one node wherever it goes. Such a task pays λ_k where it leaves
and a node earns as much where it arrives; since all that leave arrive somewhere, for any prices

    P ≥ Σ_n min_{S_n, arrivals} [P_n + Σ_{k left n} λ_k − Σ_{k came to n} λ_k].

λ_k = max(Q_c, c w_k), with w_k the least that a GPU costs more than an idle one where k may go and
Q_c a price of c GPUs together: high where few nodes have so many idle. Few nodes earn it, and tasks
that find no room are not counted as savings. Each node's saving by m departures is at most s_n(m),
GPUs and CPU packages added up as if either could choose its m tasks alone; the concave majorants of
the s_n, merged by slope, bound what K departures save together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from optgap.models.placement.arrays import FloatArray
from optgap.models.placement.migrations import MigrationProblem
from optgap.solvers.placement.migrations.state import NOTHING, State

ROUNDING = 1e-9
"""Relative: what floating-point sums may have added to a bound, taken off again."""
GROWTHS = (1.0, 1.15, 1.3)
"""How much dearer GPUs of one node are tried to be when twice as many are needed."""
Prices = dict[int, float]
"""Q_c in W by the number of GPUs c."""


class DepartureBound:
    """`at(K)` bounds the power after at most K migrations."""

    def __init__(self, migration: MigrationProblem) -> None:
        state = State(migration)
        self.now_w = migration.evaluate(migration.current).metrics["power_w"]
        least = _least_more(state)
        nodes = [_Node.of(state, n, least) for n in range(len(migration.problem.cluster))]
        least_cpu = _least_cpu(state)
        self.saved_w = [
            _saved(nodes, _Market(prices, least_cpu)) for prices in _tried(state, least_cpu)
        ]

    def at(self, most: int) -> float:
        """A lower bound in W for at most so many migrations."""
        saved = min(float(saved[min(most, len(saved) - 1)]) for saved in self.saved_w)
        return self.now_w - saved - (ROUNDING * abs(self.now_w) if saved else 0.0)


def _least_more(state: State) -> FloatArray:
    """(T,) w_k in W: what a GPU costs more than an idle one at least, for tasks of whole GPUs."""
    tasks, problem = state.tasks, state.migration.problem
    more = np.asarray(state.nodes["gpu_full_w"] - state.nodes["gpu_idle_w"])
    least = np.zeros(len(tasks))
    known: dict[int, float] = {}
    for k in np.flatnonzero(tasks.gpu_milli == 1000).tolist():
        allowed = state.allowed(k)
        if id(allowed) not in known:
            some = allowed & (problem.cluster.gpus > 0)
            known[id(allowed)] = float(more[some].min()) if some.any() else np.inf
        here = int(state.node[k])  # it may also take other GPUs of its own node
        least[k] = min(known[id(allowed)], float(more[here]))
    return least


def _least_cpu(state: State) -> dict[int, int]:
    """The least milli-vCPU that a task of so many whole GPUs needs, of those that may move."""
    least: dict[int, int] = {}
    for k in np.flatnonzero((state.tasks.gpu_milli == 1000) & state.migration.movable).tolist():
        count, cpu = int(state.tasks.num_gpu[k]), int(state.tasks.cpu_milli[k])
        least[count] = min(cpu, least.get(count, cpu))
    return least


@dataclass(frozen=True)
class _Market:
    """What arrivals bring a node at some prices.

    Parameters
    ----------
    prices: Q_c.
    least_cpu: milli-vCPU that a task of c GPUs needs.
    """

    prices: Prices
    least_cpu: dict[int, int]
    _known: dict[tuple[int, float, tuple[int, ...]], FloatArray] = field(default_factory=dict)

    def earned(self, idle: int, more: float, free_cpu: int) -> FloatArray:
        """(idle + 1,) W that arrivals bring at most, less what the GPUs that they take cost."""
        sizes = tuple(c for c, cpu in self.least_cpu.items() if cpu <= free_cpu)
        key = (idle, more, sizes)
        if key not in self._known:
            best = [0.0] * (idle + 1)
            for e in range(1, idle + 1):
                gains = (best[e - c] + self.prices[c] - c * more for c in sizes if c <= e)
                best[e] = max(best[e - 1], *gains, 0.0)
            self._known[key] = np.array(best)
        return self._known[key]


def _tried(state: State, sizes: Iterable[int]) -> Iterator[Prices]:
    """Prices to try: no more than idle GPUs cost anyway, and from there up."""
    more = np.unique(state.nodes["gpu_full_w"] - state.nodes["gpu_idle_w"]).tolist()
    yield dict.fromkeys(sizes, 0.0)
    for price in more:
        for growth in GROWTHS:
            yield {c: price * c * growth ** float(np.log2(c)) for c in sizes}


@dataclass(frozen=True)
class _Node:
    """What can leave a node, and what that saves.

    Parameters
    ----------
    gpus, idle: GPUs, and those of them without a task.
    more: W that a GPU in use costs more than an idle one.
    whole: movable tasks of whole GPUs: their number of GPUs, and w_k.
    shared: for each GPU that could be emptied, how many tasks share it.
    cpu_saved: W saved of CPUs by 0, 1, 2, … departures at most.
    cpu_free: milli-vCPU that are free by then at most.
    closed: whether nothing may arrive.
    """

    gpus: int
    idle: int
    more: float
    whole: tuple[tuple[int, float], ...]
    shared: tuple[int, ...]
    cpu_saved: tuple[float, ...]
    cpu_free: tuple[int, ...]
    closed: bool

    @classmethod
    def of(cls, state: State, n: int, least: FloatArray) -> _Node:
        """Node `n` as it is now."""
        movable, tasks, node = state.migration.movable, state.tasks, state.nodes[n]
        here = [k for k in sorted(state.on[n]) if movable[k]]
        whole, shared, idle = [], [], 0
        done: set[int] = set()
        for g in range(int(node["gpus"])):
            on = [k for k in sorted(state.on[n]) if state.mask[k] >> g & 1]
            idle += not on
            if not on or on[0] in done or not all(movable[k] for k in on):
                continue
            done.update(on)
            if tasks.gpu_milli[on[0]] == 1000:
                whole.append((int(tasks.num_gpu[on[0]]), float(least[on[0]])))
            else:
                shared.append(len(on))
        cpu = sorted((int(tasks.cpu_milli[k]) for k in here), reverse=True)
        free = tuple(accumulate(cpu, initial=int(state.free_cpu[n])))
        now = state.cpu_power(n, free[0])
        return cls(
            int(node["gpus"]),
            idle,
            float(node["gpu_full_w"] - node["gpu_idle_w"]),
            tuple(whole),
            tuple(shared),
            tuple(now - state.cpu_power(n, f) for f in free),
            free,
            bool(state.migration.closed[n]),
        )

    @cached_property
    def _emptied(self) -> FloatArray:
        """(departures + 1, GPUs + 1) W saved by emptying shared GPUs, by how many are idle then."""
        most = len(self.cpu_saved) - 1
        best = np.full((most + 1, self.gpus + 1), -np.inf)
        best[0, self.idle] = 0.0
        for count in self.shared:
            _leave(best, count, 1, self.more)
        return best

    def savings(self, market: _Market) -> list[float]:
        """s_n(0), s_n(1), …: W saved by so many departures, at most."""
        best = self._emptied.copy()
        for count, least in self.whole:
            _leave(best, 1, count, count * self.more - max(market.prices[count], count * least))
        if not self.closed:
            for m, free in enumerate(self.cpu_free):
                best[m] += market.earned(self.gpus, self.more, free)
        saved = list(accumulate(best.max(axis=1).tolist(), max))
        return [a + b for a, b in zip(saved, self.cpu_saved, strict=True)]


def _leave(best: FloatArray, tasks: int, gpus: int, gain: float) -> None:
    """Let a group of so many tasks leave so many GPUs, where that is better."""
    best[tasks:, gpus:] = np.maximum(best[tasks:, gpus:], best[:-tasks, :-gpus] + gain)


def _saved(nodes: Iterable[_Node], market: _Market) -> FloatArray:
    """W saved by 0, 1, 2, … departures in all of the cluster, at most."""
    base = 0.0
    slopes: list[float] = []
    for node in nodes:
        savings = node.savings(market)
        base += savings[0]
        slopes += _majorant([s - savings[0] for s in savings])
    return base + np.concatenate([[0.0], np.cumsum(sorted(slopes, reverse=True))])


def _majorant(savings: list[float]) -> list[float]:
    """The slopes of the least concave function above, in falling order."""
    hull: list[tuple[int, float]] = []
    for m, value in enumerate(savings):
        while len(hull) > 1:
            (m0, v0), (m1, v1) = hull[-2:]
            if (v1 - v0) * (m - m1) > (value - v1) * (m1 - m0):
                break
            hull.pop()
        hull.append((m, value))
    slopes: list[float] = []
    for (m0, v0), (m1, v1) in pairwise(hull):
        slope = (v1 - v0) / (m1 - m0)
        if slope > NOTHING:
            slopes += [slope] * (m1 - m0)
    return slopes
