"""The decision at one event, exactly: a multiple-choice knapsack with two capacities (Eq. 18-19).

Each active job takes one configuration (n, f) or waits; GPUs and power are limited; the sum of
remaining times is minimal. Lagrangian prices λ (s per GPU) and μ (s per W) bound it, reduced
costs fix most jobs, and dynamic programming over the Pareto-optimal (GPUs, power, cost) states
of the others proves the optimum. No solver is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.elastic.problem import ElasticProblem, Floats, Ints

GOLDEN = (math.sqrt(5) - 1) / 2
MOST_STATES = 400_000
AROUND = 1.5
"""How far from a hint the price of power is looked for, at first."""
GROWTH = 1.6
"""Of the room from one round to the next: the last one costs most."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The configurations of each class that no other beats in time, GPUs and power at once.

    Parameters
    ----------
    first: (C+1,) where each class begins in the arrays that follow.
    time_s, gpus, watts: (Z,) T_iter, n, and power as the limit counts it.
    count, clock: (Z,) indices into the problem's counts and clocks.
    """

    first: Ints
    time_s: Floats
    gpus: Ints
    watts: Floats
    count: Ints
    clock: Ints

    @classmethod
    def of(cls, problem: ElasticProblem) -> Choices:
        """Those of a problem's classes."""
        idle = problem.idle_w * problem.counts[None, :, None]
        counted = np.maximum(problem.power_w, idle)
        return cls.from_tables(problem.time_s, counted, problem.counts)

    @classmethod
    def from_tables(cls, time_s: Floats, watts: Floats, counts: Ints) -> Choices:
        """From (C, K, F) tables; infinite time where there is no configuration."""
        rows: list[tuple[float, int, float, int, int]] = []
        first = [0]
        for c in range(len(time_s)):
            k, f = np.nonzero(np.isfinite(time_s[c]))
            t, w, n = time_s[c, k, f], watts[c, k, f], counts[k]
            keep = undominated(t, n.astype(float), w)
            rows += zip(t[keep], n[keep], w[keep], k[keep], f[keep], strict=True)
            first.append(len(rows))
        columns = list(zip(*rows, strict=True))
        return cls(
            np.array(first, dtype=np.int64),
            np.array(columns[0], dtype=np.float64),
            np.array(columns[1], dtype=np.int64),
            np.array(columns[2], dtype=np.float64),
            np.array(columns[3], dtype=np.int64),
            np.array(columns[4], dtype=np.int64),
        )


def undominated(*criteria: Floats) -> Ints:
    """Indices of rows that no other row is at most in every criterion; the first of equals."""
    table = np.stack(criteria, axis=1)
    order = np.lexsort(table.T[::-1])
    kept: list[int] = []
    for i in order.tolist():
        if not any((table[j] <= table[i]).all() for j in kept):
            kept.append(i)
    return np.array(sorted(kept), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One decision.

    Parameters
    ----------
    choices: configurations by class.
    of_class, remaining: (A,) class and iterations left of each job.
    gpus, limit_w: what is there.
    wait_s: H, what a job that waits counts for; infinite where all must run.
    """

    choices: Choices
    of_class: Ints
    remaining: Floats
    gpus: int
    limit_w: float
    wait_s: float

    def objective(self, chosen: Ints) -> float:
        """Σ remaining time of a choice (index into the choices, −1 to wait), s."""
        runs = chosen >= 0
        times = self.remaining[runs] * self.choices.time_s[chosen[runs]]
        waiting = int((~runs).sum())
        return math.fsum(times.tolist()) + (waiting * self.wait_s if waiting else 0.0)

    def feasible(self, chosen: Ints) -> bool:
        """Whether both capacities are kept, and nobody waits who must not."""
        held = chosen[chosen >= 0]
        watts = math.fsum(self.choices.watts[held].tolist())
        waits = (chosen < 0).any() and not math.isfinite(self.wait_s)
        gpus = int(self.choices.gpus[held].sum())
        return not waits and gpus <= self.gpus and watts <= self.limit_w * (1 + 1e-12)


@dataclass(frozen=True, eq=False)
class Solved:
    """What is known of a decision.

    Parameters
    ----------
    chosen: (A,) index into the choices, −1 to wait; None when nothing was found.
    objective, bound: s; equal up to the tolerance when `proven`.
    """

    chosen: Ints | None
    objective: float
    bound: float
    proven: bool
    states: int = 0
    power_price: float = 0.0

    @property
    def gap(self) -> float:
        """(objective − bound)/bound."""
        return (self.objective - self.bound) / self.bound if self.bound > 0 else 0.0


def horizon(problem: ElasticProblem, of_class: Ints, remaining: Floats) -> float:
    """H: twice the longest that any of these jobs could take on any configuration, s.

    Twice, so that no job is as well off waiting as running.
    """
    slowest = np.where(np.isfinite(problem.time_s), problem.time_s, 0.0).max(axis=(1, 2))
    return 2 * float((remaining * slowest[of_class]).max())


def solve(
    snapshot: Snapshot, gap: float = 1e-9, most_states: int = MOST_STATES, near: float = 0.0
) -> Solved:
    """The optimum with proof, up to a relative gap.

    Parameters
    ----------
    near: the price of power of a decision like this one (`Solved.power_price`), to begin with.
    """
    c = snapshot.choices
    limit = min(snapshot.limit_w, 1e300)
    arrays = (snapshot.of_class, snapshot.remaining, c.first, c.time_s, c.gpus, c.watts)
    ends = (snapshot.gpus, limit, snapshot.wait_s, gap)
    price, bound, best, value = _prices(*arrays, *ends, near)
    inside = near * 1.05 / AROUND < price[1] < near * AROUND / 1.05
    if near > 0 and not inside and not value - bound <= gap * abs(value):  # it is somewhere else
        price, bound, best, value = _prices(*arrays, *ends, 0.0)
    found = math.isfinite(value)
    if found:
        value = _improve(*arrays, best, snapshot.gpus, limit, snapshot.wait_s)
        value = snapshot.objective(best)
    bound = bound - 1e-12 * abs(bound)
    room = max((value - bound) / 1024 if found else 1e-4 * abs(bound), 1e-9 * abs(bound), 1e-9)
    states = 0
    while not (found and value - bound <= gap * abs(value)):
        # every choice within `room` of the bound, or the knowledge that there is none
        chosen, reached, complete, wide = _core(
            *arrays, price[0], price[1], bound, room, snapshot.gpus, limit, snapshot.wait_s,
            most_states,
        )  # fmt: skip
        states = max(states, wide)
        if not complete:
            break
        if reached < np.inf:
            best, found = chosen, True
            value = snapshot.objective(best)
            floor = max(bound, value * (1 - 1e-12))
            return Solved(best, value, floor, True, states, price[1])
        bound_now = bound + room
        if found and value - bound_now <= gap * abs(value):
            return Solved(best, value, min(value, bound_now), True, states, price[1])
        if room > 1e3 * (abs(bound) + 1.0) and not found:
            return Solved(None, math.inf, math.inf, True, states)
        room *= GROWTH
        if found:  # what is known is within this much
            room = min(room, (value - bound) * (1 + 1e-9))
    else:
        return Solved(best, value, min(bound, value), True, states, price[1])
    return Solved(best if found else None, value, bound, False, states, price[1])


@compiled
def _evaluate(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any,
    gpu_price: float, power_price: float, wait_s: float, chosen: Any,
) -> Any:  # fmt: skip
    """Σ_j min_c (cost + λ·n + μ·w); fills `chosen`; with GPUs, power and cost of the choice."""
    total, used, power, cost = 0.0, 0, 0.0, 0.0
    for j in range(len(of_class)):
        least, pick = wait_s, -1
        for z in range(first[of_class[j]], first[of_class[j] + 1]):
            value = remaining[j] * time_s[z] + gpu_price * gpus[z] + power_price * watts[z]
            if value < least:
                least, pick = value, z
        chosen[j] = pick
        total += least
        if pick >= 0:
            used += gpus[pick]
            power += watts[pick]
            cost += remaining[j] * time_s[pick]
        else:
            cost += wait_s
    return total, used, power, cost


@compiled
def _best_gpu_price(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any,
    power_price: float, capacity: int, limit: float, wait_s: float, top: float, best: Any,
    value: float,
) -> Any:  # fmt: skip
    """The λ of the best bound at this μ, that bound, and the best feasible choice seen."""
    chosen = np.empty(len(of_class), np.int64)
    low, high = 0.0, top
    found, bound = 0.0, -np.inf
    for step in range(48):
        price = 0.0
        if step == 1:
            price = high
        elif step > 1:
            floor = max(low, high * 1e-9)
            price = math.sqrt(floor * high) if floor < 0.5 * high else 0.5 * (low + high)
        total, used, power, cost = _evaluate(
            of_class, remaining, first, time_s, gpus, watts, price, power_price, wait_s, chosen
        )
        reached = total - price * capacity - power_price * limit
        if reached > bound:
            bound, found = reached, price
        if used <= capacity and power <= limit and cost < value:
            value = cost
            best[:] = chosen
        if used <= capacity:
            if step == 0:
                break
            high = min(high, price)
        else:
            low = max(low, price)
        if step > 1 and high - low < 1e-8 * high:
            break
    return found, bound, value


@compiled
def _prices(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any,
    capacity: int, limit: float, wait_s: float, gap: float, near: float,
) -> Any:  # fmt: skip
    """Prices of a near-best Lagrangian bound, that bound, and the best feasible choice seen.

    gap: relative, at which to stop; near: prices to look around, 0 where there are none.
    """
    size = len(of_class)
    best = np.full(size, -1, np.int64)
    value = np.inf
    if wait_s < np.inf:
        value = wait_s * size
    top = 0.0
    for j in range(size):
        for z in range(first[of_class[j]], first[of_class[j] + 1]):
            top = max(top, remaining[j] * time_s[z])
    if wait_s < np.inf:
        top = max(top, wait_s)
    top *= 2.0
    least_w = np.inf
    for z in range(len(watts)):
        least_w = min(least_w, watts[z])
    jobs = (of_class, remaining, first, time_s, gpus, watts)
    limits = (capacity, limit, wait_s, top, best)
    found = np.zeros(2)
    gpu_price, bound, value = _best_gpu_price(*jobs, 0.0, *limits, value)
    found[0] = gpu_price
    if limit >= 1e300:
        return found, bound, best, value
    low, high = math.log(top / least_w * 1e-10), math.log(top / least_w)
    if near > 0:
        low, high = math.log(near / AROUND), math.log(near * AROUND)
    a = high - GOLDEN * (high - low)
    b = low + GOLDEN * (high - low)
    price_a, at_a, value = _best_gpu_price(*jobs, math.exp(a), *limits, value)
    price_b, at_b, value = _best_gpu_price(*jobs, math.exp(b), *limits, value)
    for _ in range(40):
        if at_a > bound:
            bound, found[0], found[1] = at_a, price_a, math.exp(a)
        if at_b > bound:
            bound, found[0], found[1] = at_b, price_b, math.exp(b)
        if value - bound <= max(gap, 1e-9) * abs(value) or high - low < 1e-6:
            break
        if at_a < at_b:
            low, a, price_a, at_a = a, b, price_b, at_b
            b = low + GOLDEN * (high - low)
            price_b, at_b, value = _best_gpu_price(*jobs, math.exp(b), *limits, value)
        else:
            high, b, price_b, at_b = b, a, price_a, at_a
            a = high - GOLDEN * (high - low)
            price_a, at_a, value = _best_gpu_price(*jobs, math.exp(a), *limits, value)
    return found, bound, best, value


@compiled
def _improve(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any, chosen: Any,
    capacity: int, limit: float, wait_s: float,
) -> float:  # fmt: skip
    """Exchange single configurations while that saves time and fits; the new value."""
    size = len(of_class)
    used, power, cost = 0, 0.0, 0.0
    for j in range(size):
        if chosen[j] >= 0:
            used += gpus[chosen[j]]
            power += watts[chosen[j]]
            cost += remaining[j] * time_s[chosen[j]]
        else:
            cost += wait_s
    for _ in range(4 * size + 20):
        saved, who, what = 1e-12, -1, -1
        for j in range(size):
            z0 = chosen[j]
            n0 = gpus[z0] if z0 >= 0 else 0
            w0 = watts[z0] if z0 >= 0 else 0.0
            now = remaining[j] * time_s[z0] if z0 >= 0 else wait_s
            for z in range(first[of_class[j]], first[of_class[j] + 1]):
                gain = now - remaining[j] * time_s[z]
                fits = used - n0 + gpus[z] <= capacity
                if gain > saved and fits and power - w0 + watts[z] <= limit * (1 - 1e-12):
                    saved, who, what = gain, j, z
        if who < 0:
            break
        z0 = chosen[who]
        if z0 >= 0:
            used -= gpus[z0]
            power -= watts[z0]
        used += gpus[what]
        power += watts[what]
        cost -= saved
        chosen[who] = what
    return cost


@compiled
def _other_prices(gpu_price: float, power_price: float, limit: float) -> Any:
    """(Q, 2) prices around the best ones: states that use too much or too little fail at them."""
    steps = np.array([0.6, 0.8, 0.92, 1.08, 1.25, 1.6])
    prices = np.empty((3 * len(steps), 2))
    for i in range(len(steps)):
        prices[3 * i] = gpu_price * steps[i], power_price
        prices[3 * i + 1] = gpu_price, power_price * steps[i]
        prices[3 * i + 2] = gpu_price * steps[i], power_price / steps[i]
    if limit >= 1e300:
        prices[:, 1] = 0.0
    return prices


@compiled
def _suffixes(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any, wait_s: float,
    order: Any, prices: Any, capacity: int, limit: float,
) -> Any:  # fmt: skip
    """(Q, A+1) least that the jobs from a position on add at each price, less what is there."""
    size = len(order)
    found = np.zeros((len(prices), size + 1))
    for q in range(len(prices)):
        found[q, size] = -prices[q, 0] * capacity
        if prices[q, 1] > 0:
            found[q, size] -= prices[q, 1] * limit
        for i in range(size - 1, -1, -1):
            j = order[i]
            least = wait_s
            for z in range(first[of_class[j]], first[of_class[j] + 1]):
                full = remaining[j] * time_s[z] + prices[q, 0] * gpus[z] + prices[q, 1] * watts[z]
                least = min(least, full)
            found[q, i] = found[q, i + 1] + least
    return found


@compiled
def _core(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any,
    gpu_price: float, power_price: float, bound: float, room: float, capacity: int, limit: float,
    wait_s: float, most: int,
) -> Any:  # fmt: skip
    """Dynamic programming over all choices whose value is at most bound + room.

    A choice costs what the bound counts, plus its reduced cost, plus the price of what is left
    unused: so every such choice has reduced costs of at most `room`. Returns the best choice,
    its value (infinite when there is none), whether all were looked at, and the most states
    kept at a time.
    """
    size = len(of_class)
    best = np.full(size, -1, np.int64)
    reduced_min = np.empty(size)
    for j in range(size):
        least = wait_s
        for z in range(first[of_class[j]], first[of_class[j] + 1]):
            least = min(
                least, remaining[j] * time_s[z] + gpu_price * gpus[z] + power_price * watts[z]
            )
        reduced_min[j] = least
    options = np.zeros(size, np.int64)
    for j in range(size):
        options[j] = 1 if wait_s - reduced_min[j] <= room and wait_s < np.inf else 0
        for z in range(first[of_class[j]], first[of_class[j] + 1]):
            full = remaining[j] * time_s[z] + gpu_price * gpus[z] + power_price * watts[z]
            options[j] += full - reduced_min[j] <= room
    order = np.argsort(options, kind="mergesort")
    away = _other_prices(gpu_price, power_price, limit)
    suffix = _suffixes(
        of_class, remaining, first, time_s, gpus, watts, wait_s, order, away, capacity, limit
    )
    ceiling = bound + room + 1e-9 * (abs(bound) + room)
    passed = 0.0  # Σ reduced_min of the jobs dealt with
    used = np.zeros(1, np.int64)
    power = np.zeros(1)
    extra = np.zeros(1)
    parents = []
    picks = []
    widest = 1
    for i in range(size):
        j = order[i]
        passed += reduced_min[j]
        total = len(used) * options[j]
        if total > 8 * most:
            return best, np.inf, False, widest
        new_used = np.empty(total, np.int64)
        new_power, new_extra = np.empty(total), np.empty(total)
        parent, pick = np.empty(total, np.int64), np.empty(total, np.int64)
        m = 0
        for z in range(first[of_class[j]] - 1, first[of_class[j] + 1]):
            if z < first[of_class[j]]:
                if wait_s == np.inf:
                    continue
                n, w, cost, choice = 0, 0.0, wait_s, -1
            else:
                n, w, choice = gpus[z], watts[z], z
                cost = remaining[j] * time_s[z] + gpu_price * n + power_price * w
            more = cost - reduced_min[j]
            if more > room:
                continue
            for s in range(len(used)):
                if extra[s] + more > room or used[s] + n > capacity or power[s] + w > limit:
                    continue
                spent = passed + extra[s] + more
                spent -= gpu_price * (used[s] + n) + power_price * (power[s] + w)
                hopeless = False
                for q in range(len(away)):
                    least = spent + away[q, 0] * (used[s] + n) + away[q, 1] * (power[s] + w)
                    if least + suffix[q, i + 1] > ceiling:
                        hopeless = True
                        break
                if hopeless:
                    continue
                new_used[m], new_power[m] = used[s] + n, power[s] + w
                new_extra[m], parent[m], pick[m] = extra[s] + more, s, choice
                m += 1
        if m == 0:
            return best, np.inf, True, widest
        keep = pareto(new_used[:m], new_power[:m], new_extra[:m], gpu_price, power_price)
        if len(keep) > most:
            return best, np.inf, False, widest
        used, power, extra = new_used[keep], new_power[keep], new_extra[keep]
        parents.append(parent[keep])
        picks.append(pick[keep])
        widest = max(widest, len(used))
    top, where = np.inf, -1
    for s in range(len(used)):
        full = extra[s] + gpu_price * (capacity - used[s])
        if limit < 1e300:
            full += power_price * (limit - power[s])
        if full < top:
            top, where = full, s
    if top > room:
        return best, np.inf, True, widest
    answer = np.empty(size, np.int64)
    for i in range(size - 1, -1, -1):
        answer[order[i]] = picks[i][where]
        where = parents[i][where]
    return answer, bound + top, True, widest


@compiled
def pareto(used: Any, power: Any, extra: Any, gpu_price: float, power_price: float) -> Any:
    """States that no other beats: cost without prices is extra − λ·n − μ·w."""
    cost = extra - gpu_price * used - power_price * power
    order = np.argsort(power, kind="mergesort")
    order = order[np.argsort(used[order], kind="mergesort")]
    keep = np.zeros(len(order), np.bool_)
    # least cost seen so far at each power, over fewer or as many GPUs: a staircase
    stairs_w = np.empty(len(order) + 1)
    stairs_c = np.empty(len(order) + 1)
    height = 0
    for s in order:
        spot = np.searchsorted(stairs_w[:height], power[s], side="right")
        if spot > 0 and stairs_c[spot - 1] <= cost[s] + 1e-12 * abs(cost[s]):
            continue
        keep[s] = True
        last = spot
        while last < height and stairs_c[last] >= cost[s]:
            last += 1
        if last == spot:
            for x in range(height, spot, -1):
                stairs_w[x], stairs_c[x] = stairs_w[x - 1], stairs_c[x - 1]
            height += 1
        elif last > spot + 1:
            shift = last - spot - 1
            for x in range(spot + 1, height - shift):
                stairs_w[x], stairs_c[x] = stairs_w[x + shift], stairs_c[x + shift]
            height -= shift
        stairs_w[spot], stairs_c[spot] = power[s], cost[s]
    return np.flatnonzero(keep)
