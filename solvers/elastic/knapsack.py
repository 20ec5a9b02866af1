"""Compiled parts of `snapshot.solve`: prices, exchanges, and dynamic programming over states.

Arguments that come in every function: of_class, remaining: (A,) of the jobs; first, time_s, gpus,
watts: the configurations of the classes, see `snapshot.Choices`; capacity, limit: GPUs and W that
are there, the latter 1e300 where power is not limited; wait_s: what a job that waits costs. Loops
stand where NumPy has a function, as compiling its sorts and selections takes seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optgap.models.compiled import compiled
from optgap.models.elastic.arrays import Floats

MOST_CUTS = 160
"""Largest number of cuts of the region of prices; half as many are usual."""
NO_LIMIT = 1e300


@compiled
def evaluate(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any,
    gpu_price: float, power_price: float, wait_s: float, chosen: Any,
) -> Any:  # fmt: skip
    """Σ_j min_c (cost + λ·n + μ·w); fills `chosen`; with GPUs, power and cost of the choice."""
    total, used, power, cost = 0.0, 0, 0.0, 0.0
    for j in range(len(of_class)):
        least, pick, left = wait_s, -1, remaining[j]
        for z in range(first[of_class[j]], first[of_class[j] + 1]):
            value = left * time_s[z] + (gpu_price * gpus[z] + power_price * watts[z])
            if value < least:
                least, pick = value, z
        chosen[j] = pick
        total += least
        if pick >= 0:
            used += gpus[pick]
            power += watts[pick]
            cost += left * time_s[pick]
        else:
            cost += wait_s
    return total, used, power, cost


@compiled
def cut(xs: Any, ys: Any, size: int, x: float, y: float, gx: float, gy: float) -> Any:
    """Return the part of a convex polygon with gx·(x' − x) + gy·(y' − y) ≥ 0: its corners, and
    its centre of gravity, or that of its corners where it has no area.
    """
    old_x, old_y = np.empty(size), np.empty(size)
    for i in range(size):
        old_x[i], old_y[i] = xs[i], ys[i]
    m = 0
    for i in range(size):
        k = (i + 1) % size
        here = gx * (old_x[i] - x) + gy * (old_y[i] - y)
        there = gx * (old_x[k] - x) + gy * (old_y[k] - y)
        if here >= 0:
            xs[m], ys[m] = old_x[i], old_y[i]
            m += 1
        if (here > 0 and there < 0) or (here < 0 and there > 0):
            share = here / (here - there)
            xs[m] = old_x[i] + share * (old_x[k] - old_x[i])
            ys[m] = old_y[i] + share * (old_y[k] - old_y[i])
            m += 1
    area, cx, cy = 0.0, 0.0, 0.0
    for i in range(1, m - 1):
        ux, uy = xs[i] - xs[0], ys[i] - ys[0]
        vx, vy = xs[i + 1] - xs[0], ys[i + 1] - ys[0]
        twice = abs(ux * vy - uy * vx)
        area += twice
        cx += twice * (ux + vx)
        cy += twice * (uy + vy)
    if not area > 1e-300:
        cx, cy, corners = 0.0, 0.0, max(m, 1)
        for i in range(corners):
            cx += xs[i]
            cy += ys[i]
        return m, cx / corners, cy / corners
    return m, xs[0] + cx / (3 * area), ys[0] + cy / (3 * area)


@compiled
def best_prices(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any,
    capacity: int, limit: float, wait_s: float, gap: float,
) -> Any:  # fmt: skip
    """Prices (λ, μ) of the best Lagrangian bound, that bound, and the best feasible choice seen.

    The bound is concave in the prices, and what is bought too much of says in which half of a
    region better ones lie: each step asks at the centre of gravity of what is left and cuts it
    there, which takes away at least 1/e of its area. Ends where no better bound is possible, or
    at a relative gap.
    """
    size = len(of_class)
    best, chosen = np.full(size, -1, np.int64), np.empty(size, np.int64)
    value = wait_s * size if wait_s < np.inf else np.inf
    top = 0.0
    for j in range(size):
        for z in range(first[of_class[j]], first[of_class[j] + 1]):
            top = max(top, remaining[j] * time_s[z])
    if wait_s < np.inf:
        top = max(top, wait_s)
    drawn = np.inf
    for z in range(len(watts)):
        if watts[z] > 0.0:  # a start may draw nothing
            drawn = min(drawn, watts[z])
    unit_x, unit_y = 2.0 * top, 2.0 * top / (drawn if drawn < np.inf else 1.0)
    limited = limit < NO_LIMIT
    xs, ys = np.zeros(2 * MOST_CUTS), np.zeros(2 * MOST_CUTS)
    size_now = 4 if limited else 2
    xs[1], xs[2] = 1.0, 1.0
    ys[2], ys[3] = 1.0, 1.0
    found, bound, ceiling = np.zeros(2), -np.inf, np.inf
    x, y, snaps = 0.0, 0.0, 0
    for _ in range(MOST_CUTS):
        total, used, power, cost = evaluate(
            of_class, remaining, first, time_s, gpus, watts, x * unit_x, y * unit_y, wait_s,
            chosen,
        )  # fmt: skip
        reached = total - x * unit_x * capacity
        gx, gy = (used - capacity) * unit_x, 0.0
        if limited:
            reached -= y * unit_y * limit
            gy = (power - limit) * unit_y
        if reached > bound:
            bound = reached
            found[0], found[1] = x * unit_x, y * unit_y
        if used <= capacity and power <= limit and cost < value:
            value = cost
            for j in range(size):
                best[j] = chosen[j]
        if (gx <= 0 and gy <= 0 and x == 0 and y == 0) or snaps == 2:
            break
        if snaps == 0:
            far = -np.inf
            for i in range(size_now):
                far = max(far, reached + gx * (xs[i] - x) + gy * (ys[i] - y))
            ceiling = min(ceiling, far)
            if limited:
                size_now, next_x, next_y = cut(xs, ys, size_now, x, y, gx, gy)
            else:
                if x > 0:
                    xs[0 if gx > 0 else 1] = x
                next_x, next_y = (xs[0] + xs[1]) / 2, 0.0
            close = ceiling - bound <= 1e-10 * abs(bound) or value - bound <= gap * abs(value)
            if size_now >= 2 and not close:
                x, y = next_x, next_y
                continue
        # at the end without the one price, then without the other, where that is as good
        x, y = (found[0] / unit_x, 0.0) if snaps == 0 else (0.0, found[1] / unit_y)
        snaps += 1
    return found, bound, best, value


@compiled
def improve(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any, chosen: Any,
    capacity: int, limit: float, wait_s: float,
) -> None:  # fmt: skip
    """Exchange single configurations of `chosen` while that saves time and fits."""
    size = len(of_class)
    used, power = 0, 0.0
    for j in range(size):
        if chosen[j] >= 0:
            used += gpus[chosen[j]]
            power += watts[chosen[j]]
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
        chosen[who] = what


def other_prices(gpu_price: float, power_price: float) -> Floats:
    """Return prices around the best, (Q, 2), at which states that use too much or little fail."""
    rows = [
        pair
        for x in (0.6, 0.8, 0.92, 1.08, 1.25, 1.6)
        for pair in ((gpu_price * x, power_price), (gpu_price, power_price * x),
                     (gpu_price * x, power_price / x))
    ]  # fmt: skip
    return np.array(rows)


@compiled
def least_costs(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any, prices: Any,
    wait_s: float,
) -> Any:  # fmt: skip
    """Return (Q, A) the least that each job adds at each of the prices."""
    found = np.empty((len(prices), len(of_class)))
    for q in range(len(prices)):
        for j in range(len(of_class)):
            least = wait_s
            for z in range(first[of_class[j]], first[of_class[j] + 1]):
                priced = prices[q, 0] * gpus[z] + prices[q, 1] * watts[z]
                least = min(least, remaining[j] * time_s[z] + priced)
            found[q, j] = least
    return found


@compiled
def pareto(used: Any, power: Any, cost: Any, starts: Any, slack: float) -> Any:
    """Indices of states, by (GPUs, power), to which no other is as good in all three.

    starts: (R + 1,) the runs in which the states come in that order already. A state also goes
    where another is at most `slack` dearer, and as good in GPUs and power.
    """
    order, other = np.empty(len(used), np.int64), np.empty(len(used), np.int64)
    for state in range(len(used)):
        order[state] = state
    runs = len(starts) - 1
    ends = np.empty(runs + 1, np.int64)
    for r in range(runs + 1):
        ends[r] = starts[r]
    while runs > 1:  # pairs of runs are merged until there is one
        kept = 0
        for r in range(0, runs, 2):
            a, middle = ends[r], ends[r + 1]
            end = ends[r + 2] if r + 1 < runs else middle
            b = middle
            for place in range(a, end):
                take = b >= end
                if not take and a < middle:
                    s, t = order[a], order[b]
                    take = used[s] < used[t] or (used[s] == used[t] and power[s] <= power[t])
                if take:
                    other[place] = order[a]
                    a += 1
                else:
                    other[place] = order[b]
                    b += 1
            ends[kept] = ends[r]
            kept += 1
        ends[kept] = ends[runs]
        runs = kept
        order, other = other, order
    # least cost so far at each power, over fewer or as many GPUs: a staircase
    stairs_w, stairs_c = np.empty(len(order) + 1), np.empty(len(order) + 1)
    height, kept = 0, 0
    for s in order:
        spot, above = 0, height  # the first stair of more power
        while spot < above:
            middle = (spot + above) // 2
            if stairs_w[middle] <= power[s]:
                spot = middle + 1
            else:
                above = middle
        if spot > 0 and stairs_c[spot - 1] <= cost[s] + slack:
            continue
        order[kept] = s
        kept += 1
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
    return order[:kept]


@compiled
def _expanded(
    begin: int, costs: Any, gpus: Any, watts: Any, wait: float, used: Any, power: Any, extra: Any,
    total: int, prices: Any, rest: Any, passed: float, room: float, ceiling: float, capacity: int,
    limit: float, test: int,
) -> Any:  # fmt: skip
    """Return every state with every choice of the next job, as far as it may end within the room.

    Parameters
    ----------
    begin: the job's first configuration; costs: reduced costs of all; wait: that of waiting.
    used, power, extra: (S,) GPUs, power and reduced costs of the states; total: room for new ones.
    rest: (1 + Q,) what the jobs after this one add at least, see `core`.
    passed: Σ least of the jobs dealt with.
    test: the prices at which a state is tried first.

    Returns
    -------
    The new states' GPUs, power, reduced costs, parents, choices and least values; (R + 1,) the runs
    of one choice each in which they come; and where to try first next.
    """
    wide, gpu_price, power_price = len(prices), prices[0, 0], prices[0, 1]
    new_used = np.empty(total, np.int64)
    new_power, new_extra, promise = np.empty(total), np.empty(total), np.empty(total)
    parent, pick = np.empty(total, np.int64), np.empty(total, np.int64)
    starts = np.empty(len(costs) + 2, np.int64)
    m, runs = 0, 0
    for x in range(-1, len(costs)):
        n, w, choice, more = 0, 0.0, -1, wait
        if x >= 0:
            choice, more = begin + x, costs[x]
            n, w = gpus[choice], watts[choice]
        if not more <= room:
            continue
        starts[runs] = m
        runs += 1
        for s in range(len(used)):
            if extra[s] + more > room or used[s] + n > capacity or power[s] + w > limit:
                continue
            all_n, all_w = used[s] + n, power[s] + w
            spent = passed + extra[s] + more - gpu_price * all_n - power_price * all_w
            highest = -np.inf
            for q in range(wide):
                p = (test + q) % wide  # that which failed last fails most
                total_cost = spent + prices[p, 0] * all_n + prices[p, 1] * all_w
                total_cost += rest[p]
                highest = max(highest, total_cost)
                if total_cost > ceiling:
                    test = p
                    break
            if highest > ceiling:
                continue
            new_used[m], new_power[m], new_extra[m] = all_n, all_w, extra[s] + more
            parent[m], pick[m], promise[m] = s, choice, highest
            m += 1
    starts[runs] = m
    states = (new_used[:m], new_power[:m], new_extra[:m], parent[:m], pick[:m], promise[:m])
    return states, starts[: runs + 1], test


@compiled
def _promising(keep: Any, promise: Any, most: int) -> Any:
    """Return those of the states `keep` with the `most` least promises, in order."""
    low, high = np.inf, -np.inf
    for s in keep:
        low, high = min(low, promise[s]), max(high, promise[s])
    high += 1.0 + abs(high)
    middle = low + (high - low) / 2
    while low < middle < high:  # `most` or fewer are below `low`, more are below `high`
        below = 0
        for s in keep:
            below += promise[s] < middle
        if below > most:
            high = middle
        else:
            low = middle
        middle = low + (high - low) / 2
    found, m, room = np.empty(most, np.int64), 0, most
    for s in keep:
        room -= promise[s] < low
    for s in keep:
        equal = promise[s] == low and room > 0
        if promise[s] < low or equal:
            found[m] = s
            m += 1
            room -= equal
    return found[:m]


@compiled
def core(
    of_class: Any, remaining: Any, first: Any, time_s: Any, gpus: Any, watts: Any, prices: Any,
    least: Any, bound: float, room: float, slack: float, capacity: int, limit: float,
    wait_s: float, most: int, narrow: bool,
) -> Any:  # fmt: skip
    """Dynamic programming over all choices whose value is at most bound + room.

    A choice costs what the bound counts, plus its reduced cost, plus the price of what is left
    unused: so every such choice has reduced costs of at most `room`.

    Parameters
    ----------
    prices: (1 + Q, 2) those of the bound, and others; least: (1 + Q, A) `least_costs` at them.
    slack: what a state may cost more than one that it yields to; the value found is at most
        A·slack above the least.
    most: states kept at a time; where there are more, `narrow` goes on with the most promising,
        otherwise that is the end.

    Returns
    -------
    The best choice, whether there is one, and whether all were looked at.
    """
    size = len(of_class)
    gpu_price, power_price = prices[0, 0], prices[0, 1]
    options = np.zeros(size, np.int64)  # how many choices of each job may be part of the best
    order = np.empty(size, np.int64)  # jobs of few choices first
    for j in range(size):
        options[j] = wait_s - least[0, j] <= room
        for z in range(first[of_class[j]], first[of_class[j] + 1]):
            priced = gpu_price * gpus[z] + power_price * watts[z]
            options[j] += remaining[j] * time_s[z] + priced - least[0, j] <= room
        i = j
        while i > 0 and options[order[i - 1]] > options[j]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = j
    # (A+1, Q) what the jobs from a position of `order` on add at least, less what is there
    rest = np.zeros((size + 1, len(prices)))
    for q in range(len(prices)):
        rest[size, q] = -prices[q, 0] * capacity
        if prices[q, 1] > 0:
            rest[size, q] -= prices[q, 1] * limit
        for i in range(size - 1, -1, -1):
            rest[i, q] = rest[i + 1, q] + least[q, order[i]]
    ceiling = bound + room + 1e-9 * (abs(bound) + room)
    passed = 0.0  # Σ least of the jobs dealt with
    used, power, extra = np.zeros(1, np.int64), np.zeros(1), np.zeros(1)
    parents = []
    picks = []
    complete, test = True, 0
    best = np.full(size, -1, np.int64)
    for i in range(size):
        j = order[i]
        passed += least[0, j]
        total = len(used) * options[j]
        if total > 8 * most and not narrow:
            return best, False, False
        begin = first[of_class[j]]
        costs = np.empty(first[of_class[j] + 1] - begin)
        for x in range(len(costs)):
            priced = gpu_price * gpus[begin + x] + power_price * watts[begin + x]
            costs[x] = remaining[j] * time_s[begin + x] + priced - least[0, j]
        states, starts, test = _expanded(
            begin, costs, gpus, watts, wait_s - least[0, j], used, power, extra, total, prices,
            rest[i + 1], passed, room, ceiling, capacity, limit, test,
        )  # fmt: skip
        new_used, new_power, new_extra, parent, pick, promise = states
        if len(new_used) == 0:
            return best, False, complete
        cost = np.empty(len(new_used))
        for s in range(len(cost)):
            cost[s] = new_extra[s] - gpu_price * new_used[s] - power_price * new_power[s]
        keep = pareto(new_used, new_power, cost, starts, slack)
        if len(keep) > most:
            if not narrow:
                return best, False, False
            complete = False
            keep = _promising(keep, promise, most)
        used, power, extra = np.empty(len(keep), np.int64), np.empty(len(keep)), np.empty(len(keep))
        came, took = np.empty(len(keep), np.int64), np.empty(len(keep), np.int64)
        for x in range(len(keep)):
            s = keep[x]
            used[x], power[x], extra[x] = new_used[s], new_power[s], new_extra[s]
            came[x], took[x] = parent[s], pick[s]
        parents.append(came)
        picks.append(took)
    where, lowest = 0, np.inf
    for s in range(len(used)):
        full = extra[s] + gpu_price * (capacity - used[s])  # with the price of what is left unused
        if limit < NO_LIMIT:
            full += power_price * (limit - power[s])
        if full < lowest:
            where, lowest = s, full
    if lowest > room:
        return best, False, complete
    for i in range(size - 1, -1, -1):
        best[order[i]] = picks[i][where]
        where = parents[i][where]
    return best, True, complete
