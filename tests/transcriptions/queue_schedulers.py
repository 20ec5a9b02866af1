"""An independent, slow simulator of the queueing policies: lists, loops and the rules as written.

Nothing of the package's event loop is used here: free GPUs are a list, the waiting jobs are a
list, and every round scores every job that fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

from optgap.models.queueing import QueueingProblem

Held = list[tuple[int, int]]


class Slow:
    """One run: `start` maps jobs to start times and `nodes` to what they hold."""

    def __init__(self, problem: QueueingProblem) -> None:
        self.problem = problem
        count = problem.nodes if problem.placement == "node" else 1
        self.g = problem.gpus // count
        self.free = [self.g] * count
        jobs = problem.jobs
        self.arrival = jobs.arrival_s.tolist()
        self.duration = jobs.duration_s.tolist()
        self.t = jobs.estimate_s.tolist()
        self.n = jobs.gpus.tolist()
        self.it = jobs.iterations.tolist()
        self.family = jobs.families
        self.leave = [a + p for a, p in zip(self.arrival, jobs.patience_s.tolist(), strict=True)]
        self.waiting: list[int] = []
        self.running: dict[int, float] = {}
        self.start: dict[int, float] = {}
        self.nodes: dict[int, Held] = {}
        self.now = 0.0

    # -- the cluster ----------------------------------------------------------------------

    def place(self, n: int, free: Sequence[int] | None = None) -> Held | None:
        """Nodes for n GPUs by best fit, or None."""
        free = list(self.free if free is None else free)
        held: Held = []
        whole, rest = divmod(n, self.g)
        for k in range(len(free)):
            if len(held) < whole and free[k] == self.g:
                held.append((k, self.g))
                free[k] = 0
        if len(held) < whole:
            return None
        if rest:
            able = [(f, k) for k, f in enumerate(free) if f >= rest]
            if not able:
                return None
            held.append((min(able)[1], rest))
        return held

    def fits(self, j: int) -> bool:
        return self.place(self.n[j]) is not None

    def begin(self, j: int, held: Held | None = None) -> None:
        held = held or self.place(self.n[j])
        assert held is not None
        for k, gpus in held:
            self.free[k] -= gpus
            assert self.free[k] >= 0
        self.waiting.remove(j)
        self.start[j], self.nodes[j] = self.now, held
        self.running[j] = self.now + self.duration[j]

    # -- the loop ---------------------------------------------------------------------------

    def run(self, choose: Callable[[Slow], Sequence[int] | None]) -> Slow:
        """Until nothing is left; `choose` starts jobs itself and says whether to ask again."""
        times = sorted(set(self.arrival) | {x for x in self.leave if x < math.inf})
        left = set(range(len(self.n)))
        while times or self.running:
            upcoming = [*times[:1], *self.running.values()]
            self.now = min(upcoming)
            times = [x for x in times if x > self.now]
            for j in [j for j, end in self.running.items() if end <= self.now]:
                del self.running[j]
                for k, gpus in self.nodes[j]:
                    self.free[k] += gpus
            for j in sorted(left):
                if self.arrival[j] <= self.now:
                    self.waiting.append(j)
                    left.remove(j)
            self.waiting = [j for j in self.waiting if self.leave[j] > self.now]
            while self.waiting:
                chosen = choose(self)
                if not chosen:
                    break
        return self

    def wait(self, j: int) -> float:
        return self.now - self.arrival[j]

    def able(self) -> list[int]:
        return [j for j in self.waiting if self.fits(j)]


def by_key(key: Callable[[Slow, int], float], strict: bool = False) -> Callable[[Slow], list[int]]:
    """The least key first, among all or among those that fit."""

    def choose(s: Slow) -> list[int]:
        pool = s.waiting if strict else s.able()
        pool = sorted(pool, key=lambda j: (key(s, j), j))[:1]
        if not pool or not s.fits(pool[0]):
            return []
        s.begin(pool[0])
        return pool

    return choose


def nine(x: float) -> float:
    return math.floor(x * 1e9 + 0.5) / 1e9


def hps_score(s: Slow, j: int, fixed: bool) -> float:
    wait = s.wait(j)
    if fixed:
        aging = 1 + min(max((wait - 300) / 1500, 0.0), 1.0)
    else:
        aging = 2 * min(wait / 1800, 1) if wait > 300 else 1.0
    return nine(aging / (1 + s.t[j] / 3600) / (1 + s.n[j] / 4))


def earliest(s: Slow, n: int) -> tuple[float, list[int]]:
    """When n GPUs can be had if nothing else starts, and what is free then."""
    free = list(s.free)
    ends = sorted((max(s.start[j] + s.t[j], s.now), j) for j in s.running)
    for time in sorted({end for end, _ in ends}):
        for end, j in ends:
            if end == time:
                for k, gpus in s.nodes[j]:
                    free[k] += gpus
        if s.place(n, free) is not None:
            return time, free
    raise AssertionError("an empty cluster has room")


def hps(fixed: bool, reserve: float = math.inf) -> Callable[[Slow], list[int]]:
    def choose(s: Slow) -> list[int]:
        pool = s.able()
        oldest = s.waiting[0]
        if s.wait(oldest) > reserve:
            if s.fits(oldest):
                s.begin(oldest)
                return [oldest]
            limit = earliest(s, s.n[oldest])[0] - s.now
            pool = [j for j in pool if s.t[j] <= limit]
        pool.sort(key=lambda j: (-hps_score(s, j, fixed), j))
        if pool:
            s.begin(pool[0])
        return pool[:1]

    return choose


def adaptive(s: Slow) -> list[int]:
    pool = s.able()
    if not pool:
        return []
    q = len(s.waiting)
    we, wf, wr = (0.5, 0.2, 0.3) if q <= 10 else (0.3, 0.4, 0.3) if q <= 50 else (0.2, 0.6, 0.2)

    def minmax(values: dict[int, float], j: int) -> float:
        low, high = min(values.values()), max(values.values())
        return 0.0 if low == high else (values[j] - low) / (high - low)

    work = {j: s.t[j] * s.n[j] for j in pool}
    size = {j: float(s.n[j]) for j in pool}

    def score(j: int) -> float:
        fair = min(s.wait(j) / 1800, 1)
        return nine(we * (1 - minmax(work, j)) + wf * fair + wr * (1 - minmax(size, j)))

    pool.sort(key=lambda j: (-score(j), j))
    s.begin(pool[0])
    return pool[:1]


def easy(s: Slow) -> list[int]:
    oldest = s.waiting[0]
    if s.fits(oldest):
        s.begin(oldest)
        return [oldest]
    time, free = earliest(s, s.n[oldest])
    for j in s.waiting[1:]:
        held = s.place(s.n[j])
        if held is None:
            continue
        then = list(free)
        for k, gpus in held:
            then[k] -= gpus
        if s.t[j] <= time - s.now or s.place(s.n[oldest], then) is not None:
            s.begin(j)
            return [j]
    return []


def shortest_reserve(after: float) -> Callable[[Slow], list[int]]:
    """By run time; the first wide job that cannot start and has waited books nodes."""

    def expected(s: Slow, j: int) -> float:
        end = s.start[j] + s.t[j]
        return end if end > s.now else s.now + max(60.0, (s.now - s.start[j]) / 2)

    def choose(s: Slow) -> list[int]:
        last = [s.now] * len(s.free)
        for j in s.running:
            for k, _ in s.nodes[j]:
                last[k] = max(last[k], expected(s, j))
        booked: list[int] = []
        until = math.inf
        for j in sorted(s.waiting, key=lambda j: (s.t[j], j)):
            end, (whole, rest) = s.now + s.t[j], divmod(s.n[j], s.g)
            nodes = [k for k in range(len(s.free)) if k not in booked or end <= until]
            idle = [k for k in nodes if s.free[k] == s.g][:whole]
            held = [(k, s.g) for k in idle]
            able = [k for k in nodes if k not in idle and s.free[k] >= rest > 0]
            if rest and able:

                def score(k: int, end: float = end, rest: int = rest) -> tuple[bool, float, int]:
                    extension = max(0.0, end - last[k])
                    return s.free[k] == s.g, extension + 600 * (s.free[k] - rest), k

                held.append((min(able, key=score), rest))
            if len(held) == whole + (rest > 0):
                s.begin(j, held)
                return [j]
            if s.n[j] >= s.g and not booked and s.wait(j) >= after:
                booked = sorted(range(len(s.free)), key=lambda k: (last[k], k))
                booked = booked[: whole + (rest > 0)]
                until = max(last[k] for k in booked)
        return []

    return choose


def efficiency(s: Slow, j: int) -> float:
    return round(s.it[j] / (s.n[j] * s.t[j]), 9)


def pbs(stage: str = "after_rule1") -> Callable[[Slow], list[int]]:
    def pairs(s: Slow, pool: list[int]) -> list[int]:
        found = []
        for a, b in combinations(sorted(pool), 2):
            n = s.n[a] + s.n[b]
            close = abs(s.t[a] - s.t[b]) <= 0.25 * max(s.t[a], s.t[b])
            if n <= 8 and close and any(f >= n for f in s.free):
                work = s.n[a] * s.t[a] + s.n[b] * s.t[b]
                found.append((-nine((s.it[a] + s.it[b]) / work), a, b))
        if not found:
            return []
        _, a, b = min(found)
        _, node = min((f, k) for k, f in enumerate(s.free) if f >= s.n[a] + s.n[b])
        s.begin(a, [(node, s.n[a])])
        s.begin(b, [(node, s.n[b])])
        return [a, b]

    def one(s: Slow, pool: list[int]) -> list[int]:
        s.begin(pool[0])
        return pool[:1]

    def choose(s: Slow) -> list[int]:
        pool = s.able()
        if not pool:
            return []
        if stage == "first" and (chosen := pairs(s, pool)):
            return chosen
        ranked = sorted(pool, key=lambda j: (-efficiency(s, j), j))
        if len(ranked) == 1 or efficiency(s, ranked[0]) >= 1.1 * efficiency(s, ranked[1]):
            return one(s, ranked)
        if stage == "after_rule1" and (chosen := pairs(s, pool)):
            return chosen
        small = [j for j in pool if s.n[j] < 4]
        if small:
            return one(s, sorted(small, key=lambda j: (s.t[j], j)))
        brief = [j for j in pool if s.t[j] < 7200]
        if brief:
            return one(s, sorted(brief, key=lambda j: (s.n[j], s.t[j], j)))
        return one(s, sorted(pool, key=lambda j: (s.t[j], j)))

    return choose


def sbs(every: int, unit_s: float = 3600.0) -> Callable[[Slow], list[int]]:
    """The batch of highest score: of all in families of up to `every` jobs, else of neighbours."""

    def batches(s: Slow, pool: list[int]) -> list[list[int]]:
        found: list[list[int]] = []
        for family in sorted({s.family[j] for j in pool}):
            members = [j for j in pool if s.family[j] == family]
            by_time = sorted(members, key=lambda j: (s.t[j], s.n[j], j))
            by_size = sorted(members, key=lambda j: (s.n[j], s.t[j], j))
            for size in (2, 3, 4):
                if sum(s.family[j] == family for j in s.waiting) <= every:
                    found += [list(batch) for batch in combinations(by_time, size)]
                    continue
                for order in (by_time, by_size):
                    found += [order[k : k + size] for k in range(len(order) - size + 1)]
        return found

    def choose(s: Slow) -> list[int]:
        pool = s.able()
        if not pool:
            return []
        most = min(8, sum(s.free))
        best: tuple[tuple[float, int, list[int]], list[int]] | None = None
        for batch in batches(s, pool):
            score = batch_score(s, batch, most, unit_s)
            if score is None or not together(s, batch):
                continue
            entry = ((-score, -len(batch), sorted(batch)), batch)
            if best is None or entry[0] < best[0]:
                best = entry
        if best is not None:
            for j in sorted(best[1], key=lambda j: -s.n[j]):
                s.begin(j)
            return best[1]
        pool.sort(key=lambda j: (-efficiency(s, j) / (1 + s.n[j] / 4), j))
        s.begin(pool[0])
        return pool[:1]

    return choose


def batch_score(s: Slow, batch: list[int], most: int, unit_s: float) -> float | None:
    gpus = [s.n[j] for j in batch]
    if sum(gpus) > most:
        return None
    times = [s.t[j] / unit_s for j in batch]

    def variance(values: Sequence[float]) -> float:
        total = 0.0
        for x in values:
            total += x
        mean, squares = total / len(values), 0.0
        for x in values:
            squares += (x - mean) ** 2
        return squares / len(values)

    similar = 1 / (1 + variance(times) + variance(gpus))
    if nine(similar) < 0.5:
        return None
    work = sum(s.it[j] for j in batch)
    return nine(work / (sum(gpus) * max(s.t[j] for j in batch)) * similar)


def together(s: Slow, batch: list[int]) -> bool:
    free = list(s.free)
    for j in sorted(batch, key=lambda j: -s.n[j]):
        held = s.place(s.n[j], free)
        if held is None:
            return False
        for k, gpus in held:
            free[k] -= gpus
    return True


RULES: dict[str, Callable[[Slow], Sequence[int] | None]] = {
    "fifo": by_key(lambda s, j: j, strict=True),
    "sjf": by_key(lambda s, j: s.n[j]),
    "shortest": by_key(lambda s, j: s.t[j]),
    "shortest-gpu": by_key(lambda s, j: s.t[j] * s.n[j]),
    "hps": hps(False),
    "hps_fixed": hps(True),
    "hps(reserve_after_s=1800)": hps(False, 1800),
    "adaptive": adaptive,
    "pbs": pbs(),
    "pbs(pair_stage=first)": pbs("first"),
    "pbs(pair_stage=off)": pbs("off"),
    "sbs": sbs(every=12),
    "sbs(every=0,lookahead=0)": sbs(every=0),
    "sbs(time_unit_s=1)": sbs(every=12, unit_s=1.0),
    "easy": easy,
    "shortest-reserve": shortest_reserve(600),
    "shortest-reserve(reserve_after_s=0)": shortest_reserve(0),
}
