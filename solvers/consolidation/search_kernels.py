"""Compiled loops: building placements, and improving them by annealing."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.packing import FloatArray, IntArray

MOST_RESIDENTS = 160
"""Tasks on one GPU at most, during a search."""
TRADE, MOVE = 0.1, 0.35
"""Of the steps for a task whose GPUs are in one server, those in which it changes places with one
of as many GPUs in another, and with those in which it goes there alone."""


@compiled
def gpu_cost(
    count: int,
    held: IntArray,
    skip: int,
    extra: int,
    clock: FloatArray,
    static: FloatArray,
    slope: FloatArray,
) -> float:
    """What a GPU costs without resident number `skip` (−1: none) and with task `extra` (−1)."""
    top = -1.0
    for m in range(count):
        if m != skip and clock[held[m]] > top:
            top = clock[held[m]]
    if extra >= 0 and clock[extra] > top:
        top = clock[extra]
    if top < 0:
        return 0.0
    cost = 0.0
    for m in range(count):
        if m != skip:
            watts = static[held[m]] + slope[held[m]] * top
            cost = max(cost, watts)
    if extra >= 0:
        cost = max(cost, static[extra] + slope[extra] * top)
    return cost


@inner
def slot_of(held: IntArray, task: int) -> int:
    """Where a task is among those that a GPU holds."""
    slot = 0
    while held[slot] != task:
        slot += 1
    return slot


@inner
def shuffle(items: IntArray, wanted: int, count: int, draw: np.random.Generator) -> None:
    """Bring as many of the first `count` items as are wanted to the front, drawn at random."""
    for m in range(wanted):
        pick = m + draw.integers(0, count - m)
        items[m], items[pick] = items[pick], items[m]


@compiled
def construct(
    order: IntArray,
    width: IntArray,
    rows: IntArray,
    limits: IntArray,
    gpu_kind: IntArray,
    gpu_server: IntArray,
    server_start: IntArray,
    server_w: FloatArray,
    clock: FloatArray,
    static: FloatArray,
    slope: FloatArray,
    shares: FloatArray,
    gang: bool,
    alike: bool,
    place: IntArray,
    start: IntArray,
) -> bool:
    """Each task in turn where it adds the least power, then where it leaves the least room.

    `place[start[l]:start[l+1]]` receives the GPUs of task l. Returns whether all found a place.
    Where all servers are `alike`, the first sleeping ones stand for the others.
    """
    count = len(rows)
    gpus = len(gpu_kind)
    servers = len(server_w)
    left = np.zeros((gpus, count), dtype=np.int64)
    for g in range(gpus):
        for r in range(count):
            left[g, r] = limits[gpu_kind[g], r]
    held = np.zeros((gpus, MOST_RESIDENTS), dtype=np.int64)
    many = np.zeros(gpus, dtype=np.int64)
    cost = np.zeros(gpus)
    awake = np.zeros(servers, dtype=np.int64)
    added = np.zeros(gpus)
    room = np.zeros(gpus)
    chosen = np.zeros(gpus, dtype=np.int64)
    touched = 0
    for ell in order:
        v = width[ell]
        near = servers
        if alike:
            near = min(servers, touched + (1 if gang else v))
        last = server_start[near]
        best_added, best_room, best_server = 1e300, 1e300, -1
        single, single_added, single_room = -1, 1e300, 1e300
        asleep_seen = False
        for g in range(last):
            added[g] = 1e300
            if many[g] >= MOST_RESIDENTS:
                continue
            fits = True
            for r in range(count):
                if rows[r, ell] > left[g, r]:
                    fits = False
                    break
            if not fits:
                continue
            k = gpu_kind[g]
            added[g] = gpu_cost(many[g], held[g], -1, ell, clock[k], static[k], slope[k]) - cost[g]
            space = 0.0
            for r in range(count):
                space += shares[r] * (left[g, r] - rows[r, ell]) / max(1, limits[k, r])
            room[g] = space
            if v == 1:
                total = added[g]
                if awake[gpu_server[g]] == 0:
                    total += server_w[gpu_server[g]]
                better = total < single_added - 1e-9
                if not better and total <= single_added + 1e-9:
                    better = space < single_room - 1e-12
                if better:
                    single, single_added, single_room = g, total, space
        if v == 1:
            if single < 0:
                return False
            chosen[0] = single
        elif gang:
            for i in range(near):
                total, space, found = 0.0, 0.0, 0
                if awake[i] == 0:
                    if asleep_seen and i > 0 and server_w[i] == server_w[i - 1]:
                        continue
                    asleep_seen = True
                    total = server_w[i]
                lo, hi = server_start[i], server_start[i + 1]
                for _ in range(v):
                    pick = -1
                    for g in range(lo, hi):
                        if added[g] >= 1e299:
                            continue
                        taken = False
                        for m in range(found):
                            if chosen[m] == g:
                                taken = True
                        if taken:
                            continue
                        if pick < 0 or (added[g], room[g]) < (added[pick], room[pick]):
                            pick = g
                    if pick < 0:
                        break
                    chosen[found] = pick
                    found += 1
                    total += added[pick]
                    space += room[pick]
                if found == v and (
                    total < best_added - 1e-9 or (total <= best_added + 1e-9 and space < best_room)
                ):
                    best_added, best_room, best_server = total, space, i
            if best_server < 0:
                return False
            lo, hi = server_start[best_server], server_start[best_server + 1]
            found = 0
            for _ in range(v):
                pick = -1
                for g in range(lo, hi):
                    if added[g] >= 1e299:
                        continue
                    if pick < 0 or (added[g], room[g]) < (added[pick], room[pick]):
                        pick = g
                chosen[found] = pick
                added[pick] = 1e300
                found += 1
        else:
            for found in range(v):
                pick = -1
                for g in range(last):
                    if added[g] >= 1e299:
                        continue
                    if pick < 0 or (added[g], room[g]) < (added[pick], room[pick]):
                        pick = g
                if pick < 0:
                    return False
                chosen[found] = pick
                added[pick] = 1e300
        for m in range(v):
            g = chosen[m]
            touched = max(touched, gpu_server[g] + 1)
            place[start[ell] + m] = g
            held[g, many[g]] = ell
            many[g] += 1
            if many[g] == 1:
                awake[gpu_server[g]] += 1
            for r in range(count):
                left[g, r] -= rows[r, ell]
            k = gpu_kind[g]
            cost[g] = gpu_cost(many[g], held[g], -1, -1, clock[k], static[k], slope[k])
    return True


@compiled
def anneal(
    place: IntArray,
    start: IntArray,
    width: IntArray,
    rows: IntArray,
    limits: IntArray,
    gpu_kind: IntArray,
    gpu_server: IntArray,
    server_start: IntArray,
    server_w: FloatArray,
    clock: FloatArray,
    static: FloatArray,
    slope: FloatArray,
    shares: FloatArray,
    gang: bool,
    usable: int,
    steps: int,
    hot: float,
    cold: float,
    fill: float,
    target: float,
    draw: np.random.Generator,
) -> float:
    """Moves and swaps; `place` ends as the cheapest placement met. Returns its power, W.

    What is annealed is power minus `fill` times the sum of squared loads, which pays for filling
    GPUs that are full and emptying those that are not. Only GPUs below `usable` are moved to.
    Stops at `target`.
    """
    count, tasks = rows.shape
    gpus = len(gpu_kind)
    servers = len(server_w)
    left = np.zeros((gpus, count), dtype=np.int64)
    load = np.zeros(gpus)
    for g in range(gpus):
        for r in range(count):
            left[g, r] = limits[gpu_kind[g], r]
    held = np.zeros((gpus, MOST_RESIDENTS), dtype=np.int64)
    many = np.zeros(gpus, dtype=np.int64)
    awake = np.zeros(servers, dtype=np.int64)
    weight = np.zeros((len(limits), tasks))
    for k in range(len(limits)):
        for ell in range(tasks):
            for r in range(count):
                weight[k, ell] += shares[r] * rows[r, ell] / max(1, limits[k, r])
    for ell in range(tasks):
        for m in range(start[ell], start[ell + 1]):
            g = place[m]
            held[g, many[g]] = ell
            many[g] += 1
            load[g] += weight[gpu_kind[g], ell]
            for r in range(count):
                left[g, r] -= rows[r, ell]
    cost = np.zeros(gpus)
    now = 0.0
    for g in range(gpus):
        k = gpu_kind[g]
        cost[g] = gpu_cost(many[g], held[g], -1, -1, clock[k], static[k], slope[k])
        now += cost[g]
        if many[g]:
            if awake[gpu_server[g]] == 0:
                now += server_w[gpu_server[g]]
            awake[gpu_server[g]] += 1
    best = now
    keep = place.copy()
    entries = start[tasks]
    owner = np.zeros(entries, dtype=np.int64)
    for ell in range(tasks):
        for m in range(start[ell], start[ell + 1]):
            owner[m] = ell
    candidates = np.zeros(max(1, gpus), dtype=np.int64)
    for step in range(steps):
        if best <= target + 1e-9:
            break
        heat = hot * (cold / hot) ** (step / steps)
        entry = draw.integers(0, entries)
        ell = int(owner[entry])
        a = int(place[entry])
        kind = draw.random()
        if width[ell] > 1 and gang and kind < TRADE:
            # change places with a task of as many GPUs in another server
            one = int(owner[draw.integers(0, entries)])
            v = width[ell]
            lo0, lo1 = start[ell], start[one]
            if width[one] != v or gpu_server[place[lo1]] == gpu_server[a]:
                continue
            for m in range(v):
                candidates[m] = place[lo1 + m]
            shuffle(candidates, v, v, draw)
            fits = True
            for m in range(v):
                g, b = place[lo0 + m], candidates[m]
                for r in range(count):
                    more = rows[r, one] - rows[r, ell]
                    if more > left[g, r] or -more > left[b, r]:
                        fits = False
            if not fits:
                continue
            power = 0.0
            change = 0.0
            for m in range(v):
                for side in range(2):
                    g = place[lo0 + m] if side == 0 else candidates[m]
                    out, into = (ell, one) if side == 0 else (one, ell)
                    k = gpu_kind[g]
                    slot = slot_of(held[g], out)
                    power += gpu_cost(many[g], held[g], slot, into, clock[k], static[k], slope[k])
                    power -= cost[g]
                    after = load[g] + weight[k, into] - weight[k, out]
                    change -= fill * (after**2 - load[g] ** 2)
            change += power
            if change > 0 and draw.random() >= np.exp(-change / heat):
                continue
            now += power
            for m in range(v):
                for side in range(2):
                    g = place[lo0 + m] if side == 0 else candidates[m]
                    out, into = (ell, one) if side == 0 else (one, ell)
                    k = gpu_kind[g]
                    held[g, slot_of(held[g], out)] = into
                    for r in range(count):
                        left[g, r] += rows[r, out] - rows[r, into]
                    load[g] += weight[k, into] - weight[k, out]
                    cost[g] = gpu_cost(many[g], held[g], -1, -1, clock[k], static[k], slope[k])
            for m in range(v):
                place[lo1 + m] = place[lo0 + m]
                place[lo0 + m] = candidates[m]
        elif width[ell] > 1 and gang and kind < MOVE:
            # move the whole task to another server
            lo0 = start[ell]
            v = width[ell]
            i = int(draw.integers(0, servers))
            if server_start[i] >= usable or gpu_server[a] == i:
                continue
            found = 0
            for g in range(server_start[i], min(server_start[i + 1], usable)):
                if many[g] >= MOST_RESIDENTS - 1:
                    continue
                fits = True
                for r in range(count):
                    if rows[r, ell] > left[g, r]:
                        fits = False
                        break
                if fits:
                    candidates[found] = g
                    found += 1
            if found < v:
                continue
            shuffle(candidates, v, found, draw)
            change = 0.0
            old = gpu_server[a]
            lost = 0
            for m in range(v):
                g = place[lo0 + m]
                slot = slot_of(held[g], ell)
                k = gpu_kind[g]
                change += gpu_cost(many[g], held[g], slot, -1, clock[k], static[k], slope[k])
                change -= cost[g]
                w = weight[k, ell]
                change -= fill * ((load[g] - w) ** 2 - load[g] ** 2)
                if many[g] == 1:
                    lost += 1
                g = candidates[m]
                k = gpu_kind[g]
                change += gpu_cost(many[g], held[g], -1, ell, clock[k], static[k], slope[k])
                change -= cost[g]
                w = weight[k, ell]
                change -= fill * ((load[g] + w) ** 2 - load[g] ** 2)
            if awake[old] == lost:
                change -= float(server_w[old])
            if awake[i] == 0:
                change += float(server_w[i])
            if change > 0 and draw.random() >= np.exp(-change / heat):
                continue
            for m in range(v):
                for side in range(2):
                    g = place[lo0 + m] if side == 0 else candidates[m]
                    k = gpu_kind[g]
                    sign = 1 if side == 0 else -1
                    if side == 0:
                        slot = slot_of(held[g], ell)
                        many[g] -= 1
                        held[g, slot] = held[g, many[g]]
                        load[g] -= weight[k, ell]
                        if many[g] == 0:
                            awake[gpu_server[g]] -= 1
                            if awake[gpu_server[g]] == 0:
                                now -= server_w[gpu_server[g]]
                    else:
                        if many[g] == 0:
                            if awake[gpu_server[g]] == 0:
                                now += server_w[gpu_server[g]]
                            awake[gpu_server[g]] += 1
                        held[g, many[g]] = ell
                        many[g] += 1
                        load[g] += weight[k, ell]
                    for r in range(count):
                        left[g, r] += sign * rows[r, ell]
                    now -= cost[g]
                    cost[g] = gpu_cost(many[g], held[g], -1, -1, clock[k], static[k], slope[k])
                    now += cost[g]
            for m in range(v):
                place[lo0 + m] = candidates[m]
        else:
            # one share moves to another GPU, or changes places with one there
            if width[ell] > 1 and gang:
                i = int(gpu_server[a])
                b = int(server_start[i]) + int(
                    draw.integers(0, server_start[i + 1] - server_start[i])
                )
            else:
                b = int(draw.integers(0, usable))
            if a == b:
                continue
            other = -1
            slot_b = -1
            swap = kind > 0.55
            if swap:
                if many[b] == 0:
                    continue
                slot_b = int(draw.integers(0, many[b]))
                other = int(held[b, slot_b])
                if other == ell:
                    continue
                if width[other] > 1 and gang and gpu_server[a] != gpu_server[b]:
                    continue
            elif many[b] >= MOST_RESIDENTS - 1:
                continue
            fits = True
            for r in range(count):
                back = rows[r, other] if swap else 0
                if rows[r, ell] > left[b, r] + back or back > left[a, r] + rows[r, ell]:
                    fits = False
                    break
            if not fits:
                continue
            if width[ell] > 1:
                for m in range(start[ell], start[ell + 1]):
                    if place[m] == b:
                        fits = False
            if swap and width[other] > 1:
                for m in range(start[other], start[other + 1]):
                    if place[m] == a:
                        fits = False
            if not fits:
                continue
            slot_a = slot_of(held[a], ell)
            ka, kb = gpu_kind[a], gpu_kind[b]
            cost_a = gpu_cost(many[a], held[a], slot_a, other, clock[ka], static[ka], slope[ka])
            cost_b = gpu_cost(many[b], held[b], slot_b, ell, clock[kb], static[kb], slope[kb])
            power = cost_a - cost[a] + cost_b - cost[b]
            gain_a = -weight[ka, ell]
            gain_b = weight[kb, ell]
            if swap:
                gain_a += weight[ka, other]
                gain_b -= weight[kb, other]
            else:
                if many[a] == 1 and awake[gpu_server[a]] == 1 and gpu_server[a] != gpu_server[b]:
                    power -= server_w[gpu_server[a]]
                if many[b] == 0 and awake[gpu_server[b]] == 0:
                    power += server_w[gpu_server[b]]
            change = power - fill * (
                (load[a] + gain_a) ** 2 - load[a] ** 2 + (load[b] + gain_b) ** 2 - load[b] ** 2
            )
            if change > 0 and draw.random() >= np.exp(-change / heat):
                continue
            now += power
            cost[a], cost[b] = cost_a, cost_b
            load[a] += gain_a
            load[b] += gain_b
            for r in range(count):
                back = rows[r, other] if swap else 0
                left[a, r] += rows[r, ell] - back
                left[b, r] += back - rows[r, ell]
            if swap:
                held[a, slot_a] = other
                held[b, slot_b] = ell
                for m in range(start[other], start[other + 1]):
                    if place[m] == b:
                        place[m] = a
                        break
            else:
                many[a] -= 1
                held[a, slot_a] = held[a, many[a]]
                if many[a] == 0:
                    awake[gpu_server[a]] -= 1
                if many[b] == 0:
                    awake[gpu_server[b]] += 1
                held[b, many[b]] = ell
                many[b] += 1
            place[entry] = b
        if now < best - 1e-9:
            best = now
            keep[:] = place
    place[:] = keep
    return best
