"""CATS and its comparators once more: plain Python after the paper's Algorithms 1 to 4.

Shares no code with the package and reads only a problem's own data. Everything is worked out anew
at every event: lists of residents per GPU, progress of every task, and from those all else.
Readings that the listings leave open (docs/errata.md): awake GPUs come before sleeping ones, the
thresholds are tested on means, several residents count by their sum from now on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from optgap.models.consolidation import ConsolidationProblem

U_MAX = 100.0  # α, the utilisation threshold
RHO_MAX = 0.0  # β, the correlation threshold
DELTA_MHZ = 15.0
EPS = 1e-9

Rule = Callable[["Slow", int], list[int] | None]


class Slow:
    """One run at one kind of GPU; `start`, `where` and `clocks` are what came out."""

    def __init__(self, problem: ConsolidationProblem, rule: Rule, dfs: bool) -> None:
        self.rule, self.dfs = rule, dfs
        self.tasks, self.period = problem.tasks, problem.period_s
        self.timed = problem.objective.goal == "energy"
        self.q = problem.rules.contention
        self.kind = problem.kinds[0]
        self.server_of = [i for i, s in enumerate(problem.servers) for _ in s.gpus]
        self.gpus = range(len(self.server_of))
        self.servers = range(len(problem.servers))
        self.residents: list[list[int]] = [[] for _ in self.gpus]
        self.f = [0.0] * len(self.gpus)  # 0: asleep
        self.progress: dict[int, float] = {}  # of running tasks, s at f_max
        self.where: dict[int, list[int]] = {}
        self.start: dict[int, float] = {}
        self.clocks: list[tuple[float, int, float]] = []
        self.queue: list[int] = []
        self.now = 0.0

    # -- what the rules ask -----------------------------------------------------------------

    def own(self, i: int) -> list[int]:
        return [g for g in self.gpus if self.server_of[g] == i]

    def awake(self, i: int) -> bool:
        return any(self.residents[g] for g in self.own(i))

    def mean(self, task: int) -> float:
        series = self.tasks[task].util_percent.tolist()
        return round(sum(series) / len(series), 6)

    def sample(self, task: int) -> int:
        series = self.tasks[task].util_percent
        return min(len(series) - 1, int((self.progress[task] + 1e-6) / self.period))

    def free_memory(self, g: int) -> float:
        return self.kind.memory_gb - sum(self.tasks[r].memory_gb for r in self.residents[g])

    def fits(self, task: int, g: int) -> bool:
        return self.tasks[task].memory_gb <= self.free_memory(g) + EPS

    def used(self, g: int) -> float:
        return sum(self.mean(r) for r in self.residents[g])

    # -- time: progress at (f/f_max)^β / s(U) ------------------------------------------------

    def rate(self, task: int) -> float:
        slowest = math.inf
        for g in self.where[task]:
            total = sum(self.tasks[r].util_percent[self.sample(r)] for r in self.residents[g])
            contention = max(1.0, total / 100) ** self.q
            slowest = min(slowest, (self.f[g] / self.kind.f_max_mhz) ** self.kind.beta / contention)
        return slowest

    def to_go(self, task: int) -> float:
        """Progress to the end of the sample or of the task."""
        k, duration = self.sample(task), self.tasks[task].duration_s
        last = k == len(self.tasks[task].util_percent) - 1
        end = duration if last else min(duration, (k + 1) * self.period)
        return end - self.progress[task]

    def run(self) -> Slow:
        coming = list(range(len(self.tasks)))
        while coming or (self.timed and self.progress):
            if not self.timed:
                self.arrive(coming.pop(0))
                continue
            rates = {t: self.rate(t) for t in self.progress}
            step = min((self.to_go(t) / rates[t] for t in self.progress), default=math.inf)
            arrival = self.tasks[coming[0]].submit_s if coming else math.inf
            step = min(step, arrival - self.now)
            for t, rate in rates.items():
                self.progress[t] += rate * step
            if self.now + step == arrival or step == arrival - self.now:
                self.now = arrival
                self.arrive(coming.pop(0))
                continue
            self.now += step
            for t in [
                t for t in self.progress if self.tasks[t].duration_s <= self.progress[t] + EPS
            ]:
                self.end(t)
        return self

    def arrive(self, task: int) -> None:
        if not self.try_to_place(task) and self.timed:
            self.queue.append(task)

    def end(self, task: int) -> None:
        del self.progress[task]
        for g in self.where[task]:
            self.residents[g].remove(task)
        self.power_state_manager(self.where[task])
        for waiting in list(self.queue):  # first come, first served, passing over
            if self.try_to_place(waiting):
                self.queue.remove(waiting)

    def try_to_place(self, task: int) -> bool:
        chosen = self.rule(self, task)
        if chosen is None:
            return False
        self.start[task], self.where[task], self.progress[task] = self.now, sorted(chosen), 0.0
        for g in chosen:
            self.residents[g].append(task)
        self.power_state_manager(chosen)
        return True

    def power_state_manager(self, gpus: Sequence[int]) -> None:
        for g in sorted(gpus):
            before = self.f[g]
            if not self.residents[g]:  # Algorithm 3
                self.f[g] = 0.0
                continue
            self.f[g] = before or self.kind.f_max_mhz
            while self.dfs and algorithm_4(self, g):
                pass
            if self.f[g] != before:
                self.clocks.append((self.now, g, self.f[g]))


def algorithm_4(s: Slow, g: int) -> bool:
    """Frequency adaptation: one interval τ of GPU g; whether the clock has changed."""
    f, f_min, f_max = s.f[g], s.kind.f_min_mhz, s.kind.f_max_mhz
    violation, slack = False, True
    for t in s.residents[g]:
        predicted = (f_max / f) ** s.kind.beta  # e^pred / e, Eq. 5
        allowed = s.tasks[t].kappa  # e^max / e
        if predicted > allowed * (1 + 1e-12):
            violation = True
        elif predicted >= 0.95 * allowed:
            slack = False
    if violation:
        s.f[g] = min(f_max, f + DELTA_MHZ)
    elif slack:
        s.f[g] = max(f_min, f - DELTA_MHZ)
    return s.f[g] != f


# -- Algorithms 1 and 2 -------------------------------------------------------------------------


def pearson(x: Sequence[float], y: Sequence[float]) -> float:
    """ρ of Eq. 15, cut to the shorter; 0 where it is 0/0."""
    n = min(len(x), len(y))
    if n < 2:
        return 0.0
    x, y = x[:n], y[:n]
    a, b = sum(x) / n, sum(y) / n
    cov = sum((p - a) * (q - b) for p, q in zip(x, y, strict=True))
    var = sum((p - a) ** 2 for p in x) * sum((q - b) ** 2 for q in y)
    return cov / math.sqrt(var) if var > 1e-9 else 0.0


def utilisation(s: Slow, g: int) -> list[float]:
    """u(G_ij): the sum of the residents' series from now on; a series' last sample lasts."""
    rest = [s.tasks[r].util_percent.tolist()[s.sample(r) :] for r in s.residents[g]]
    longest = max(len(series) for series in rest)
    return [sum(series[min(t, len(series) - 1)] for series in rest) for t in range(longest)]


def cats(s: Slow, task: int) -> list[int] | None:
    """Algorithm 1, then Algorithm 2."""
    buffer = {}
    own = s.tasks[task].util_percent.tolist()
    for g in s.gpus:
        if s.fits(task, g) and s.residents[g]:
            u = utilisation(s, g)
            mean_g, mean_l = sum(u) / len(u), sum(own) / len(own)
            delta_g = pearson(u, own)
            delta_mu = abs(mean_g - mean_l) / 100
            if delta_g <= RHO_MAX + EPS and mean_g + mean_l <= U_MAX + EPS:
                buffer[g] = (delta_mu, delta_g)
    scores = {g: 0.5 * delta_g - 0.5 * delta_mu for g, (delta_mu, delta_g) in buffer.items()}
    return dispatch(s, task, scores)


def cats_as_printed(s: Slow, task: int) -> list[int] | None:
    """Algorithms 1 and 2 with no threshold tested."""
    scores = {}
    own = s.tasks[task].util_percent.tolist()
    for g in s.gpus:
        if s.fits(task, g) and s.residents[g]:
            u = utilisation(s, g)
            delta_g = pearson(u, own)
            delta_mu = abs(sum(u) / len(u) - sum(own) / len(own)) / 100
            scores[g] = 0.5 * delta_g - 0.5 * delta_mu
    return dispatch(s, task, scores)


def dispatch(s: Slow, task: int, scores: dict[int, float]) -> list[int] | None:
    """The least scores; sleeping GPUs fill up, in the server where fewest have to be woken."""
    v = s.tasks[task].gpus
    asleep = [g for g in s.gpus if not s.residents[g] and s.fits(task, g)]
    if v == 1:
        if scores:
            return [min(scores, key=lambda g: (scores[g], g))]
        asleep.sort(key=lambda g: (not s.awake(s.server_of[g]), g))
        return asleep[:1] or None
    found = []
    for i in s.servers:
        ranked = sorted((scores[g], g) for g in s.own(i) if g in scores)[:v]
        chosen = [g for _, g in ranked]
        opened = [g for g in s.own(i) if g in asleep][: v - len(chosen)]
        if len(chosen) + len(opened) == v:
            total = math.fsum(score for score, _ in ranked)
            found.append((len(opened), not s.awake(i), total, i, chosen + opened))
    return min(found)[4] if found else None


# -- comparators --------------------------------------------------------------------------------


def hotcloud(s: Slow, task: int) -> list[int] | None:
    """The first awake GPU on which the average utilisations stay within the threshold."""
    scores = {}
    for g in s.gpus:
        if s.fits(task, g) and s.residents[g] and s.used(g) + s.mean(task) <= U_MAX + 1e-7:
            scores[g] = float(g)
    return dispatch(s, task, scores)


def first(s: Slow, task: int) -> list[int] | None:
    """The first awake GPU whose utilisation now and the task's first sample stay below q."""
    scores = {}
    for g in s.gpus:
        if s.fits(task, g) and s.residents[g]:
            now = sum(s.tasks[r].util_percent[s.sample(r)] for r in s.residents[g])
            if now + s.tasks[task].util_percent[0] < 100 - 1e-7:
                scores[g] = float(g)
    return dispatch(s, task, scores)


def admitted(s: Slow, task: int) -> list[int]:
    return [g for g in s.gpus if s.fits(task, g) and s.used(g) + s.mean(task) <= U_MAX + EPS]


def packing(product: bool) -> Rule:
    """BestFit and DotProd: the server of least rank, then its GPUs with the least left."""

    def rule(s: Slow, task: int) -> list[int] | None:
        room, v = admitted(s, task), s.tasks[task].gpus
        request = (s.mean(task), s.tasks[task].memory_gb)
        largest = (U_MAX, s.kind.memory_gb)
        widest = max(len(s.own(i)) for i in s.servers)

        def free(g: int) -> tuple[float, float]:
            return U_MAX - s.used(g), s.free_memory(g)

        ranks = []
        for i in s.servers:
            if sum(g in room for g in s.own(i)) < v:
                continue
            rank = 0.0
            for k in (0, 1):
                left = sum(free(g)[k] for g in s.own(i)) / (largest[k] * widest)
                asked = request[k] * v / (largest[k] * widest)
                rank += left * asked if product else 0.5 * (left - asked)
            ranks.append((round(rank, 12), i))
        if not ranks:
            return None
        own = [g for g in s.own(min(ranks)[1]) if g in room]
        rest = {g: sum(0.5 * (free(g)[k] - request[k]) / largest[k] for k in (0, 1)) for g in own}
        return sorted(own, key=lambda g: (round(rest[g], 12), g))[:v]

    return rule


def fgd(s: Slow, task: int) -> list[int] | None:
    """Least growth of fragmentation, in whole points of the sigmoid; shares in milli-GPU."""
    classes = Counter(
        (max(10, round(s.mean(t)) * 10), s.tasks[t].gpus) for t in range(len(s.tasks))
    )
    ranked = sorted(classes.items(), key=lambda item: (-item[1], -item[0][0], -item[0][1]))
    typical, covered = [], 0
    while covered < 0.95 * len(s.tasks):
        typical.append(ranked[len(typical)])
        covered += typical[-1][1]

    def fragments(free: list[int]) -> float:
        total = 0.0
        for (share, need), count in typical:
            usable = [x for x in free if x >= share]
            wasted = sum(free) - sum(usable) if len(usable) >= need else sum(free)
            total += count / covered * wasted
        return total

    room, v = admitted(s, task), s.tasks[task].gpus
    share = round(s.mean(task) * 10)
    best: tuple[int, list[int]] | None = None
    for i in s.servers:
        free = {g: round((U_MAX - s.used(g)) * 10) for g in s.own(i)}
        able = [g for g in s.own(i) if g in room]
        options = [[g] for g in able] if v == 1 else [able[:v]] if len(able) >= v else []
        for option in options:
            after = [x - share if g in option else x for g, x in free.items()]
            change = (fragments(list(free.values())) - fragments(after)) / 1000
            score = int(100 / (1 + math.exp(-change)))
            if best is None or score > best[0]:
                best = (score, option)
    return best[1] if best else None


RULES: dict[str, tuple[Rule, bool]] = {
    "cats": (cats, True),
    "cats(dfs=False)": (cats, False),
    "cats(literal_thresholds=True)": (cats_as_printed, True),
    "hotcloud": (hotcloud, False),
    "first": (first, False),
    "bestfit": (packing(product=False), False),
    "dotprod": (packing(product=True), False),
    "fgd": (fgd, False),
}
