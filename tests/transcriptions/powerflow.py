"""PowerFlow once more: Algorithm 1, buddy placement, and a slow event loop for elastic policies.

Shares no code with the package and reads only a problem's own tables: seconds per iteration and
watts by GPU count and clock. Where the printed listing is damaged or silent, docs/errata.md says
what is read here: GPU counts double, "first GPU" before "saves energy, too" before the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from optgap.models.elastic import ElasticProblem

Config = tuple[int, int]
"""(index of the GPU count, index of the clock)."""
Answer = tuple[dict[int, Config], float]
"""What runs and how; and when to ask again at the latest."""


# -- Algorithm 1 --------------------------------------------------------------------------------


@dataclass
class Algorithm1:
    """Resource allocation for some jobs with so many iterations left each."""

    problem: ElasticProblem
    remaining: dict[int, float]
    strict: bool = True
    per_n: bool = False
    limit: float = field(init=False)
    config: dict[int, Config] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.limit = self.problem.power_limit_w * (1 + 1e-6)

    def t(self, j: int, c: Config) -> float:
        return float(self.problem.time_s[self.problem.jobs.of_class[j], c[0], c[1]])

    def p(self, j: int, c: Config) -> float:
        return float(self.problem.power_w[self.problem.jobs.of_class[j], c[0], c[1]])

    def e(self, j: int, c: Config) -> float:
        return self.t(j, c) * self.p(j, c)

    def f_star(self, j: int, k: int) -> int:
        """The most energy-efficient clock, Eq. 16-17: least time × energy; the lower of equals."""
        k = k if self.per_n else 0
        clocks = range(len(self.problem.frequencies_mhz))
        return min(clocks, key=lambda f: (self.t(j, (k, f)) * self.e(j, (k, f)), f))

    def priority(self, j: int, a: Config, b: Config) -> tuple[int, float] | None:
        """Eq. 20-21. What is left to do cancels in the ratio, as do JCT and E of the cluster."""
        saved = self.t(j, a) - self.t(j, b)
        cost = self.e(j, b) - self.e(j, a)
        if saved <= 0:
            return None
        if cost <= 0:
            return 1, self.remaining[j] * saved
        return 0, saved / cost

    def total(self) -> float:
        return sum(self.p(j, c) for j, c in self.config.items())

    def allowed(self, j: int, to: Config) -> bool:
        """Strict: a step only if the limit holds after it, or it lowers the power."""
        more = self.p(j, to) - (self.p(j, self.config[j]) if j in self.config else 0.0)
        return not self.strict or more <= 0 or self.total() + more <= self.limit

    def run(self) -> dict[int, Config]:
        counts, per = self.problem.counts.tolist(), self.problem.gpus_per_node
        g = self.problem.gpus
        while g > 0:  # line 10
            steps = []
            for j in self.remaining:
                if j not in self.config:
                    to = (0, self.f_star(j, 0))
                    rank: tuple[int, float] | None = (2, -self.remaining[j] * self.e(j, to))
                    more = counts[0]
                else:
                    k = self.config[j][0]
                    if k + 1 == len(counts) or not math.isfinite(self.t(j, (k + 1, 0))):
                        continue
                    to = (k + 1, self.f_star(j, k + 1))
                    rank, more = self.priority(j, self.config[j], to), counts[k + 1] - counts[k]
                if rank is not None and more <= g and self.allowed(j, to):
                    steps.append((rank, -j, to, more))
            if not steps:
                break
            _, minus_j, to, more = max(steps)  # line 12: largest marginal return
            self.config[-minus_j] = to
            before, g = g, g - more  # line 14
            whole_nodes = g % per == 0 or g // per < before // per  # line 18
            if not self.strict and whole_nodes and self.total() >= self.limit:  # line 19
                break
        top = len(self.problem.frequencies_mhz) - 1
        while self.strict or self.total() <= self.limit:  # line 25
            rises = []
            for j, (k, f) in self.config.items():
                if f < top and self.allowed(j, (k, f + 1)):
                    rank = self.priority(j, (k, f), (k, f + 1))
                    if rank is not None:
                        rises.append((rank, -j))
            if not rises:
                break
            j = -max(rises)[1]  # line 27
            self.config[j] = (self.config[j][0], self.config[j][1] + 1)  # line 28
        return self.config


# -- buddy placement ----------------------------------------------------------------------------


class Buddy:
    """Free aligned blocks per node, split in halves and merged again up to a whole node."""

    def __init__(self, nodes: int, per: int) -> None:
        self.per = per
        self.free = {(per, node, 0) for node in range(nodes)}  # (size, node, offset)

    def allocate(self, n: int) -> tuple[int, ...] | None:
        """First GPU of every block; None where there is none."""
        if n > self.per:
            whole = sorted(b for b in self.free if b[0] == self.per)[: n // self.per]
            if len(whole) < n // self.per:
                return None
            self.free -= set(whole)
            return tuple(node * self.per for _, node, _ in whole)
        able = [b for b in self.free if b[0] >= n]
        if not able:
            return None
        size, node, offset = min(able)  # the smallest, then the lowest node and offset
        self.free.remove((size, node, offset))
        while size > n:
            size //= 2
            self.free.add((size, node, offset + size))
        return (node * self.per + offset,)

    def release(self, blocks: Sequence[int], n: int) -> None:
        for first in blocks:
            size = min(n, self.per)
            node, offset = divmod(first, self.per)
            while size < self.per and (size, node, offset ^ size) in self.free:
                self.free.remove((size, node, offset ^ size))
                offset, size = min(offset, offset ^ size), size * 2
            self.free.add((size, node, offset))


# -- the event loop -----------------------------------------------------------------------------


class Slow:
    """Asks a policy at every submission, end and wake-up; restarts cost nothing.

    `segments`: (job, start, end, count index, clock index), one for as long as nothing changes.
    """

    def __init__(self, problem: ElasticProblem) -> None:
        self.problem = problem
        self.submit = problem.jobs.submit_s.tolist()
        self.left = dict(enumerate(problem.jobs.iterations.tolist()))
        self.active: list[int] = []
        self.running: dict[int, Config] = {}
        self.since: dict[int, float] = {}
        self.executed = dict.fromkeys(self.left, 0.0)  # s on GPUs
        self.segments: list[tuple[int, float, float, int, int]] = []
        self.now = 0.0

    def speed(self, j: int, config: Config) -> float:
        return 1 / float(self.problem.time_s[self.problem.jobs.of_class[j], config[0], config[1]])

    def gpus(self, config: Config) -> int:
        return int(self.problem.counts[config[0]])

    def run(self, decide: Callable[[Slow], Answer]) -> list[tuple[int, float, float, int, int]]:
        coming = list(self.left)
        wake = math.inf
        while coming or self.active:
            ends = [self.now + self.left[j] / self.speed(j, c) for j, c in self.running.items()]
            then = min([wake, *ends, *(self.submit[j] for j in coming[:1])])
            assert then < math.inf
            for j, config in self.running.items():
                self.left[j] -= (then - self.now) * self.speed(j, config)
                self.executed[j] += then - self.now
            self.now = then
            for j in [
                j for j in self.running if self.left[j] / self.speed(j, self.running[j]) < 2e-6
            ]:
                self.change(j, None)
                self.active.remove(j)
            while coming and self.submit[coming[0]] <= self.now + 1e-6:
                self.active.append(coming.pop(0))
            if self.active:
                chosen, wake = decide(self)
                for j in self.active:
                    self.change(j, chosen.get(j))
            else:
                wake = math.inf
        return sorted(self.segments)

    def change(self, j: int, config: Config | None) -> None:
        before = self.running.get(j)
        if before == config:
            return
        if before is not None:
            self.segments.append((j, self.since[j], self.now, *before))
            del self.running[j]
        if config is not None:
            self.running[j], self.since[j] = config, self.now


def powerflow(strict: bool, per_n: bool) -> Callable[[Slow], Answer]:
    """Algorithm 1 from scratch at every event."""

    def decide(s: Slow) -> Answer:
        step = Algorithm1(s.problem, {j: s.left[j] for j in s.active}, strict, per_n)
        chosen = step.run()
        if not chosen:  # f* alone may be above the limit: the first that fits runs below it
            order = sorted(
                s.active, key=lambda j: (s.left[j] * step.e(j, (0, step.f_star(j, 0))), j)
            )
            j = next(j for j in order if step.p(j, (0, 0)) <= step.limit)
            clocks = range(len(s.problem.frequencies_mhz))
            chosen = {j: (0, max(f for f in clocks if step.p(j, (0, f)) <= step.limit))}
        return chosen, math.inf

    return decide
