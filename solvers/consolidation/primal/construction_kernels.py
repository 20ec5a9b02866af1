"""Compiled loop: tasks placed one by one where they add the least power."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled
from optgap.solvers.consolidation.numerics import FloatArray, IntArray

MOST_RESIDENTS = 160
"""Tasks on one GPU at most, in construction and annealing: the length of an array."""


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
