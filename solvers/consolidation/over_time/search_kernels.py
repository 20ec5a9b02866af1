"""Compiled annealing of schedules: who shares a GPU with whom, and at which clock."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.case import Case
from optgap.solvers.consolidation.over_time.replay_kernels import (
    IMPOSSIBLE,
    Plan,
    Scratch,
    awake_energy,
    replay,
)


@inner
def mark(case: Case, place: IntArray, task: int, marked: IntArray) -> None:
    """Mark a task's GPUs."""
    for m in range(case.width[task]):
        marked[place[task, m]] = 1


@inner
def part_of(case: Case, plan: Plan, gangs: IntArray, marked: IntArray) -> tuple[IntArray, IntArray]:
    """GPUs and tasks of the closed part that holds the GPUs with a mark; marks the others, too.

    Parameters
    ----------
    gangs: tasks with several GPUs. marked: (G,) 1 for a GPU of the part.
    """
    grew = True
    while grew:
        grew = False
        for task in gangs:
            if plan.place[task, 0] < 0:
                continue
            hit, whole = False, True
            for m in range(case.width[task]):
                inside = marked[plan.place[task, m]] > 0
                hit, whole = hit or inside, whole and inside
            if hit and not whole:
                grew = True
                mark(case, plan.place, task, marked)
    tasks = np.empty(len(case.submit), dtype=np.int64)
    count = 0
    for task in range(len(case.submit)):
        g = plan.place[task, 0]
        if g >= 0 and marked[g] > 0:
            tasks[count] = task
            count += 1
    return np.flatnonzero(marked), tasks[:count]


@inner
def refresh(case: Case, s: Scratch, plan: Plan, gangs: IntArray, marked: IntArray) -> bool:
    """Replay what the marked GPUs are part of, and the static energy of their servers."""
    gpus, tasks = part_of(case, plan, gangs, marked)
    if replay(case, s, plan, gpus, tasks, np.zeros((0, 3))) < 0:
        return False
    if case.server_w.max() > 0.0:
        refresh_servers(case, plan, gpus)
    return True


@compiled
def refresh_servers(case: Case, plan: Plan, gpus: IntArray) -> None:
    """Static energy of the servers that some GPUs are in."""
    seen = np.zeros(len(case.server_w), dtype=np.int64)
    tasks = np.empty(len(case.submit), dtype=np.int64)
    for g in gpus:
        seen[case.gpu_server[g]] = 1
    for i in range(len(seen)):
        if not seen[i]:
            continue
        count = 0
        for task in range(len(case.submit)):
            for m in range(case.width[task]):
                g = plan.place[task, m]
                if g >= 0 and case.gpu_server[g] == i:
                    tasks[count] = task
                    count += 1
                    break
        plan.static[i] = awake_energy(case, plan, i, tasks[:count])


@inner
def put(case: Case, plan: Plan, task: int, target: int, draws: FloatArray) -> bool:
    """Move a task to a GPU, and a gang to that GPU and others; False if that cannot be."""
    width = case.width[task]
    if width == 1:
        plan.place[task, 0] = target
        return True
    first, last = 0, len(case.gpu_kind)
    if case.one_server:
        server = case.gpu_server[target]
        first, last = case.server_start[server], case.server_start[server + 1]
    if last - first < width:
        return False
    taken = np.zeros(last - first, dtype=np.int64)
    taken[target - first] = 1
    plan.place[task, 0] = target
    for m in range(1, width):
        g = int(draws[m % len(draws)] * 7919 * (last - first)) % (last - first)
        if draws[0] < 0.5 and m < last - first:  # those beside it
            g = (target - first + m) % (last - first)
        while taken[g]:
            g = (g + 1) % (last - first)
        taken[g] = 1
        plan.place[task, m] = first + g
    return True


@inner
def propose(
    case: Case, plan: Plan, singles: IntArray, usable: int, draws: FloatArray, touched: IntArray
) -> int:
    """Change a plan by one move; how many tasks it touched, whose numbers go into `touched`.

    Moves: a new clock; a task to where another is, or to any GPU; two tasks change places; all
    tasks of two GPUs from one arrival on change places.
    """
    tasks = len(case.submit)
    task = int(draws[0] * tasks)
    other = int(draws[1] * tasks)
    kind = draws[2]
    touched[0] = task
    if kind < 0.15:
        plan.level[task] = int(draws[1] * 5) / 4.0
        return 1
    if kind < 0.55:
        target = int(draws[3] * usable)
        if draws[4] < 0.85:
            target = plan.place[other, int(draws[5] * case.width[other])]
        return 1 if put(case, plan, task, target, draws[5:]) else 0
    if kind < 0.8:
        if task == other or case.width[task] != case.width[other]:
            return 0
        for m in range(case.width[task]):
            plan.place[task, m], plan.place[other, m] = plan.place[other, m], plan.place[task, m]
        touched[1] = other
        return 2
    a, b = plan.place[task, 0], plan.place[other, 0]
    if draws[4] < 0.2:
        b = int(draws[3] * usable)
    if a == b:
        return 0
    count = 0
    for k in singles:
        if case.submit[k] >= case.submit[task] and (plan.place[k, 0] == a or plan.place[k, 0] == b):
            plan.place[k, 0] = b if plan.place[k, 0] == a else a
            touched[count] = k
            count += 1
    return count


@compiled
def anneal(
    case: Case,
    s: Scratch,
    plan: Plan,
    best: Plan,
    gangs: IntArray,
    singles: IntArray,
    usable: int,
    draws: FloatArray,
    hot: float,
    cold: float,
) -> float:
    """Accept or refuse one move per row of `draws`; the best plan so far goes into `best`.

    Parameters
    ----------
    plan: all of it replayed; left where the search ends.
    gangs, singles: tasks with several GPUs, and with one. usable: GPUs that are looked at.
    hot, cold: temperatures of the first and the last move, J.
    """
    widest = plan.place.shape[1]
    tasks, gpus = len(case.submit), len(case.gpu_kind)
    touched = np.zeros(tasks + 2, dtype=np.int64)
    place, level = plan.place.copy(), plan.level.copy()
    start, end = plan.start.copy(), plan.end.copy()
    energy, static = plan.energy.copy(), plan.static.copy()
    total = energy.sum() + static.sum()
    least = best.energy.sum() + best.static.sum()
    for row in range(len(draws)):
        heat = hot * (cold / hot) ** (row / len(draws))
        count = propose(case, plan, singles, usable, draws[row], touched)
        marked = np.zeros(gpus, dtype=np.int64)
        for k in range(count):
            mark(case, place, touched[k], marked)
            mark(case, plan.place, touched[k], marked)
        valid = count > 0 and refresh(case, s, plan, gangs, marked)
        after = IMPOSSIBLE
        if valid:
            after = plan.energy.sum() + plan.static.sum()
        if valid and (after <= total or draws[row, 6] < np.exp((total - after) / heat)):
            total = after
            # what has not changed is equal in both
            for k in range(count):
                task = touched[k]
                level[task] = plan.level[task]
                for m in range(widest):
                    place[task, m] = plan.place[task, m]
            start[:], end[:] = plan.start, plan.end
            energy[:], static[:] = plan.energy, plan.static
            if total < least - 1e-9:
                least = total
                best.place[:], best.level[:] = plan.place, plan.level
                best.start[:], best.end[:] = plan.start, plan.end
                best.energy[:], best.static[:] = plan.energy, plan.static
        elif count > 0:
            for k in range(count):
                task = touched[k]
                plan.level[task] = level[task]
                for m in range(widest):
                    plan.place[task, m] = place[task, m]
            plan.start[:], plan.end[:] = start, end
            plan.energy[:], plan.static[:] = energy, static
        else:  # a move that could not be made may have begun
            for m in range(widest):
                plan.place[touched[0], m] = place[touched[0], m]
    return float(least)


@compiled
def insert(
    case: Case, s: Scratch, plan: Plan, gangs: IntArray, task: int, targets: IntArray
) -> bool:
    """Put a task where it adds least energy, of the GPUs in `targets` (a gang: from there on).

    Of equals the first; False if it fits nowhere.
    """
    chosen, least = -1, IMPOSSIBLE
    draws = np.zeros(2)
    before = plan.energy.sum() + plan.static.sum()
    energy, static = plan.energy.copy(), plan.static.copy()
    start, end = plan.start.copy(), plan.end.copy()
    for target in targets:
        if put(case, plan, task, target, draws):
            marked = np.zeros(len(case.gpu_kind), dtype=np.int64)
            mark(case, plan.place, task, marked)
            if refresh(case, s, plan, gangs, marked):
                added = plan.energy.sum() + plan.static.sum() - before
                if added < least - 1e-6:
                    chosen, least = target, added
        plan.energy[:], plan.static[:] = energy, static
        plan.start[:], plan.end[:] = start, end
        plan.place[task, :] = -1
    if chosen < 0:
        return False
    put(case, plan, task, chosen, draws)
    marked = np.zeros(len(case.gpu_kind), dtype=np.int64)
    mark(case, plan.place, task, marked)
    return refresh(case, s, plan, gangs, marked)
