"""What PowerFlow compares itself with, once more: FIFO, AFS, Tiresias, Gandiva, Zeus, elastic FIFO.

Its paper names them in a sentence each. These follow their own papers, at one common clock and
without a limit on power; `docs/errata.md` says what had to be filled in.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from transcriptions.powerflow import Answer, Buddy, Config, Slow

QUEUES_GPU_S = (3250.0, 7200.0)
QUANTUM_S = 60.0
GITTINS_GPU_S = 3250.0

Policy = Callable[[Slow], Answer]


def top(s: Slow) -> int:
    return len(s.problem.frequencies_mhz) - 1


def requested(s: Slow, j: int) -> int:
    """Index of the GPU count that a job asks for."""
    return s.problem.counts.tolist().index(int(s.problem.jobs.requested[j]))


def zeus_clock(eta: float) -> Callable[[Slow, int], int]:
    """argmin over F of (η·P + (1 − η)·MAXPOWER)·T_iter, the higher clock of equals."""

    def clock(s: Slow, j: int) -> int:
        c, k = s.problem.jobs.of_class[j], requested(s, j)
        p, t = s.problem.power_w[c, k].tolist(), s.problem.time_s[c, k].tolist()
        cost = [(eta * p[f] + (1 - eta) * p[-1]) * t[f] for f in range(len(p))]
        return max(f for f in range(len(p)) if cost[f] == min(cost))

    return clock


class Fifo:
    """First come, first served: the head of the queue waits for its GPUs, and for a block."""

    def __init__(self) -> None:
        self.buddy: Buddy | None = None
        self.places: dict[int, tuple[int, ...]] = {}

    def __call__(self, s: Slow) -> Answer:
        self.buddy = self.buddy or Buddy(s.problem.nodes, s.problem.gpus_per_node)
        for j in [j for j in self.places if j not in s.active]:
            self.buddy.release(self.places.pop(j), int(s.problem.jobs.requested[j]))
        for j in s.active:
            if j not in self.places:
                found = self.buddy.allocate(int(s.problem.jobs.requested[j]))
                if found is None:
                    break
                self.places[j] = found
        return {j: (requested(s, j), top(s)) for j in s.active if j in self.places}, math.inf


# -- elastic ------------------------------------------------------------------------------------


def afs(s: Slow) -> Answer:
    """AFS-L: one tournament per step, pairs in order of submission; counts double."""
    counts, f = s.problem.counts.tolist(), top(s)
    share: dict[int, int] = {}
    free = s.problem.gpus

    def speed(j: int, k: int) -> float:
        return s.speed(j, (k, f))

    def following(j: int) -> int:
        return share[j] + 1 if j in share else 0

    def step(j: int) -> int:
        k = following(j)
        return counts[k] - (counts[share[j]] if j in share else 0)

    def able(j: int) -> bool:
        k = following(j)
        if k == len(counts) or (j in share and speed(j, k) <= speed(j, share[j])):
            return False
        return step(j) <= free

    def length(j: int) -> float:
        return s.left[j] / speed(j, share[j]) if j in share else math.inf

    def winner(one: int, other: int) -> int:
        if one not in share and other not in share:
            return other if s.left[other] / speed(other, 0) < s.left[one] / speed(one, 0) else one
        a, b = (other, one) if length(other) < length(one) else (one, other)  # shorter, longer
        new_a, old_a = speed(a, following(a)), speed(a, share[a])
        gain_a = (new_a - old_a) / old_a
        gain_b = 1.0
        if b in share:
            new_b, old_b = speed(b, following(b)), speed(b, share[b])
            gain_b = (new_b - old_b) / new_b
        return b if gain_b > gain_a else a

    while free > 0:
        candidates = [j for j in s.active if able(j)]
        if not candidates:
            break
        best = candidates[0]
        for j in candidates[1:]:
            best = winner(best, j)
        free -= step(best)
        share[best] = following(best)
    return {j: (k, f) for j, k in share.items()}, math.inf


def elastic_queue(by_length: bool) -> Policy:
    """Elastic FIFO and SRTF: one GPU each in order, then doubled in turn while that helps."""

    def decide(s: Slow) -> Answer:
        counts, f = s.problem.counts.tolist(), top(s)
        order = list(s.active)
        if by_length:
            order.sort(key=lambda j: (s.left[j] / s.speed(j, (requested(s, j), f)), j))
        share: dict[int, int] = {}
        free = s.problem.gpus
        for j in order:
            if free >= counts[0]:
                share[j] = 0
                free -= counts[0]
        growing = list(share)
        while growing:
            for j in list(growing):
                k = share[j]
                more = counts[k + 1] - counts[k] if k + 1 < len(counts) else math.inf
                if more > free or s.speed(j, (k + 1, f)) <= s.speed(j, (k, f)):
                    growing.remove(j)
                else:
                    share[j] = k + 1
                    free -= more
        return {j: (k, f) for j, k in share.items()}, math.inf

    return decide


# -- Tiresias -----------------------------------------------------------------------------------


class Tiresias:
    """Queues by attained service; in a queue running jobs first, then by first start."""

    def __init__(self, gittins: bool = False, clock: Callable[[Slow, int], int] | None = None):
        self.gittins, self.clock = gittins, clock
        self.first_start: dict[int, float] = {}
        self.attained: dict[int, float] = {}
        self.services: list[float] = []  # of jobs that are done

    def index(self, a: float) -> float:
        """#{r ≤ Δ} / Σ min(r, Δ) over what is left of past services."""
        rest = [x - a for x in self.services if x > a]
        ends = sum(r <= GITTINS_GPU_S for r in rest)
        return ends / sum(min(r, GITTINS_GPU_S) for r in rest) if rest else 0.0

    def __call__(self, s: Slow) -> Answer:
        n = {j: int(s.problem.jobs.requested[j]) for j in s.active}
        for j in [j for j in self.attained if j not in n]:
            del self.attained[j]
            self.services.append(round(int(s.problem.jobs.requested[j]) * s.executed[j], 6))
        for j in s.active:
            self.attained[j] = n[j] * s.executed[j]

        def queue(j: int) -> int:
            return sum(self.attained[j] + n[j] * 1.1e-6 >= q for q in QUEUES_GPU_S)

        def las(j: int) -> tuple[float, ...]:
            return queue(j), j not in s.running, self.first_start.get(j, math.inf), j

        def gittins(j: int) -> tuple[float, ...]:
            return queue(j), -self.index(round(self.attained[j], 6)), j

        free, chosen = s.problem.gpus, {}
        for j in sorted(s.active, key=gittins if self.gittins and self.services else las):
            if n[j] <= free:  # skip, do not stop
                free -= n[j]
                chosen[j] = (requested(s, j), self.clock(s, j) if self.clock else top(s))
                self.first_start.setdefault(j, s.now)
        wake = min(
            (
                s.now + (q - self.attained[j]) / n[j]
                for j in chosen
                for q in QUEUES_GPU_S
                if q > self.attained[j] + n[j] * 1.1e-6
            ),
            default=math.inf,
        )
        return chosen, wake


# -- Gandiva ------------------------------------------------------------------------------------


class NodeSet:
    def __init__(self, nodes: list[int], slots: int) -> None:
        self.nodes, self.slots = nodes, slots
        self.jobs: list[int] = []


class Gandiva:
    """Sets of whole nodes, one GPU count each, that slice time where they are crowded."""

    def __init__(self, clock: Callable[[Slow, int], int] | None = None) -> None:
        self.clock = clock
        self.sets: dict[int, list[NodeSet]] = {}
        self.free: list[int] | None = None
        self.pending: list[int] = []
        self.turn = 0

    def __call__(self, s: Slow) -> Answer:
        self.g, self.per = s.problem.gpus, s.problem.gpus_per_node
        if self.free is None:
            self.free = list(range(s.problem.nodes))
        homes = [j for group in self.sets.values() for item in group for j in item.jobs]
        changed = False
        for size, group in self.sets.items():
            for item in list(group):
                changed |= any(j not in s.active for j in item.jobs)
                item.jobs = [j for j in item.jobs if j in s.active]
                if not item.jobs:
                    self.release(size, item)
        turn = math.floor((s.now + 1.1e-6) / QUANTUM_S)
        if turn > self.turn:
            self.turn, changed = turn, True
            for item in (item for group in self.sets.values() for item in group):
                if len(item.jobs) > item.slots:  # the prefix that ran goes to the tail
                    item.jobs = item.jobs[item.slots :] + item.jobs[: item.slots]
        fresh = [j for j in s.active if j not in homes and j not in self.pending]
        queue, self.pending = self.pending + fresh, []
        for j in queue:
            self.arrive(j, int(s.problem.jobs.requested[j]))
        if changed or fresh:
            self.rebalance()
        chosen: dict[int, Config] = {}
        crowded = False
        for item in (item for group in self.sets.values() for item in group):
            crowded |= len(item.jobs) > item.slots
            for j in item.jobs[: item.slots]:
                chosen[j] = (requested(s, j), self.clock(s, j) if self.clock else top(s))
        return chosen, (self.turn + 1) * QUANTUM_S if crowded else math.inf

    def nodes(self, size: int) -> int:
        return math.ceil(size / self.per)

    def create(self, size: int) -> NodeSet:
        assert self.free is not None
        k = self.nodes(size)
        item = NodeSet(self.free[:k], max(1, k * self.per // size))
        self.free = self.free[k:]
        self.sets.setdefault(size, []).append(item)
        return item

    def release(self, size: int, item: NodeSet) -> None:
        assert self.free is not None
        self.sets[size].remove(item)
        self.free = sorted(self.free + item.nodes)

    def least(self, size: int) -> NodeSet:
        return min(self.sets[size], key=lambda item: len(item.jobs))  # the older of equals

    def give_up(self, size: int) -> None:
        """The least loaded set goes; its jobs join what is then the least loaded."""
        item = self.least(size)
        self.release(size, item)
        for j in item.jobs:
            self.least(size).jobs.append(j)

    def arrive(self, j: int, size: int) -> None:
        assert self.free is not None
        group = self.sets.get(size)
        if group and len(self.least(size).jobs) + 1 <= self.least(size).slots:
            self.least(size).jobs.append(j)
        elif len(self.free) >= self.nodes(size):
            self.create(size).jobs.append(j)
        elif group:
            self.least(size).jobs.append(j)  # over-subscribed: time-slicing
        else:
            spare = sum((len(g) - 1) * self.nodes(c) for c, g in self.sets.items() if g)
            while spare + len(self.free) >= self.nodes(size) > len(self.free):
                rich = [c for c in self.sets if len(self.sets[c]) > 1]
                if not rich:
                    break
                self.give_up(max(rich, key=lambda c: len(self.sets[c]) * self.nodes(c)))
                spare = sum((len(g) - 1) * self.nodes(c) for c, g in self.sets.items() if g)
            if len(self.free) >= self.nodes(size):
                self.create(size).jobs.append(j)
            else:
                self.pending.append(j)

    def rebalance(self) -> None:
        """Classes get GPUs in proportion to what they ask for; first shrink, then grow."""
        assert self.free is not None
        demand = {c: c * sum(len(i.jobs) for i in g) for c, g in self.sets.items() if g}
        target = {c: min(d, d * self.g // sum(demand.values())) for c, d in demand.items()}

        def off(c: int, sets: int) -> int:
            return abs(target[c] - sets * self.nodes(c) * self.per)

        for c in sorted(demand):
            while len(self.sets[c]) > 1 and off(c, len(self.sets[c]) - 1) < off(
                c, len(self.sets[c])
            ):
                self.give_up(c)
        for c in sorted(demand):
            grown = False
            while len(self.free) >= self.nodes(c) and off(c, len(self.sets[c]) + 1) <= off(
                c, len(self.sets[c])
            ):
                self.create(c)
                grown = True
            if grown:  # deal all jobs of the class anew
                jobs = [j for item in self.sets[c] for j in item.jobs]
                for item in self.sets[c]:
                    item.jobs = []
                for j in jobs:
                    self.least(c).jobs.append(j)
                for item in [item for item in self.sets[c] if not item.jobs]:
                    self.release(c, item)
