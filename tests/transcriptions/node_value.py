"""Node value once more: V and R by recursion over dictionaries of states, and the score by hand.

Shares no code with the policy; takes the worth of a share from all patterns at once.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog
from transcriptions.pwr_fgd import Node, SlowRun

from optgap.models.placement import PlacementProblem
from optgap.models.placement.tasks import TaskClass

STEP_CPU, STEP_SHARE = 500, 20


def least_gpus(shares: list[int], popularity: list[float]) -> float:
    """GPUs per task that a fractional packing of the shares needs, every pattern listed."""
    ranges = [range(1000 // g + 1) for g in shares]
    patterns = [a for a in product(*ranges) if sum(map(lambda n, g: n * g, a, shares)) <= 1000]
    found = linprog(np.ones(len(patterns)), A_ub=-np.array(patterns).T, b_ub=-np.array(popularity))
    return float(found.fun)


class SlowValues:
    """V and R of one node type, given β by class of M."""

    def __init__(
        self,
        problem: PlacementProblem,
        node: Node,
        beta: list[float],
        q: tuple[float, float],
        rent_w: float,
    ) -> None:
        self.problem, self.node, self.beta, self.q = problem, node, beta, q
        power, cluster = problem.power, problem.cluster
        self.wake = power.gpu_full_w.get(node.model, 0.0) - power.gpu_idle_w.get(node.model, 0.0)
        models = sorted(set(cluster.models))
        places = range(len(cluster))
        owned = [
            sum(int(cluster.gpus[n]) for n in places if cluster.models[n] == x) for x in models
        ]
        common = [x for x, count in zip(models, owned, strict=True) if count == max(owned)][-1]
        self.w_gpu = 0.0
        if max(owned):
            self.w_gpu = power.gpu_full_w[common] - power.gpu_idle_w[common]
        self.w_cpu = (power.cpu.full_w - power.cpu.idle_w) / (2000 * power.cpu.cores)
        self.rent = rent_w if self.wake <= self.w_gpu else 0.0
        self.value, self.rents = cache(self._value), cache(self._rents)

    def worth(self, cpu: int, gpus: list[int]) -> float:
        """W = V + R of a node with so much free."""
        partly = [free for free in gpus if free < 1000]
        state = cpu // STEP_CPU, gpus.count(1000), max(partly, default=0) // STEP_SHARE
        return float(self.value(*state) + self.rents(*state))

    def watts(self, u: int) -> float:
        capacity = self.node.cpu_capacity
        free = min(u * STEP_CPU, capacity)
        return self.problem.power.cpu_w(capacity, free)

    def moves(self, m: int, u: int, j: int, r: int) -> list[tuple[float, tuple[int, int, int]]]:
        """The GPUs woken and the state after each way to serve class m."""
        w = self.problem.workload
        spec = w.gpu_specs[m]
        left = u - math.ceil(w.cpu_milli[m] / STEP_CPU)
        count, milli = int(w.num_gpu[m]), int(w.gpu_milli[m])
        if left < 0 or (count and spec and self.node.model not in spec.split("|")):
            return []
        if count == 0:
            return [] if left == u else [(0, (left, j, r))]
        if milli == 1000:
            return [(count, (left, j - count, r))] if count <= j else []
        wanted = math.ceil(milli / STEP_SHARE)
        found = [(0, (left, j, r - wanted))] if wanted <= r else []
        if j:
            found.append((1, (left, j - 1, max(r, (1000 - milli) // STEP_SHARE))))
        return found

    def _value(self, u: int, j: int, r: int) -> float:
        """The best of all accept sets, which are the first k classes by gain."""
        w = self.problem.workload
        gains = []
        for m in range(len(w)):
            pay = self.w_gpu * self.beta[m] + self.w_cpu * float(w.cpu_milli[m])
            ways = [
                pay - (self.watts(s[0]) - self.watts(u)) - self.wake * woken + self.value(*s)
                for woken, s in self.moves(m, u, j, r)
            ]
            if ways:
                gains.append((max(ways), float(w.popularity[m])))
        q = self.q[0] if j or STEP_SHARE * r >= 500 else max(self.q)
        best = total = mass = 0.0
        for gain, p in sorted(gains, reverse=True):
            total, mass = total + p * gain, mass + p
            best = max(best, (1 - q) * total / (q + (1 - q) * mass))
        return best

    def _rents(self, u: int, j: int, r: int) -> float:
        w = self.problem.workload
        earned = mass = 0.0
        for m in range(len(w)):
            ways = self.moves(m, u, j, r)
            if ways and w.num_gpu[m]:
                p = float(w.popularity[m])
                mass += p
                earned += p * (self.rent * self.beta[m] + self.rents(*ways[0][1]))
        return earned / mass if mass else 0.0


class SlowNodeValue(SlowRun):
    """The policy on `SlowValues`, one node at a time."""

    def __init__(
        self,
        problem: PlacementProblem,
        beta: list[float],
        q: tuple[float, float],
        rent_w: float,
        fragment_w: float,
    ) -> None:
        super().__init__(problem, "pwr", score="exact")
        self.fragment_w = fragment_w
        self.values: dict[Any, SlowValues] = {}
        for node in self.nodes:
            kind = self.kind(node)
            if kind not in self.values:
                self.values[kind] = SlowValues(problem, node, beta, q, rent_w)

    def kind(self, node: Node) -> Any:
        return node.model, node.cpu_capacity, len(node.gpus)

    def gain(self, task: TaskClass, node: Node, gpus: tuple[int, ...]) -> float:
        """−ΔP − fragment_w·ΔF + ΔW."""
        cpu, left = self.after(task, node, gpus)
        values = self.values[self.kind(node)]
        rest = values.worth(cpu, left) - values.worth(node.cpu, node.gpus)
        change = sum(
            float(p)
            * (self.useless(m, node, cpu, left) - self.useless(m, node, node.cpu, node.gpus))
            for m, p in enumerate(self.problem.workload.popularity)
        )
        return super().gain(task, node, gpus) - self.fragment_w / 1000 * change + rest
