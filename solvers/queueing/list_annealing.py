"""Simulated annealing over lists of jobs and nodes, within a window of the list; compiled.

A move changes a few places of the list or the node of one job. What lies before the window is
kept as a state of the cluster, so only what follows is scheduled again: until the cost exceeds what
would be accepted, or until everything is as it was before the move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.solvers.engines.annealing import Random, allowed, draw, random_of
from optgap.solvers.queueing.list_schedule import (
    LATE,
    NOBODY,
    Machine,
    Plan,
    Stream,
    copy_machine,
    decode,
    machine_of,
    plan_of,
    slack,
)


class ListSearch(NamedTuple):
    """Everything that annealing works on.

    Parameters
    ----------
    stream: the jobs.
    plan, best: the list now, and the best one so far, both with their schedules.
    before, now: the cluster before the window, and the one at work.
    start, node: the schedule being tried.
    after: per place of the list the cost of the jobs from there on, and the last of their ends.
    costs: of `plan` and of `best`, shape (2,).
    random: the state of the random numbers.
    """

    stream: Stream
    plan: Plan
    best: Plan
    before: Machine
    now: Machine
    start: FloatArray
    node: IntArray
    after: FloatArray
    costs: FloatArray
    random: Random


class Moves(NamedTuple):
    """Rules by which lists change.

    Parameters
    ----------
    earlier, behind, anywhere: shares of the moves that take a waiting job ahead, put one of its
        predecessors behind it, or take any job anywhere; the others change a node.
    reach: places that a job is moved by, at most.
    doubt: see `decode`.
    """

    earlier: float
    behind: float
    anywhere: float
    reach: int
    doubt: float


def search_of(stream: Stream, order: IntArray, nodes: int, seed: int) -> ListSearch:
    """Return a search from one list on an idle cluster, no job with a wish."""
    count, held, g = len(order), int(stream.at[-1]), stream.g
    most = min(count, nodes * g)
    return ListSearch(
        stream,
        plan_of(order, held),
        plan_of(order, held),
        machine_of(nodes, g, most),
        machine_of(nodes, g, most),
        np.zeros(count),
        np.zeros(held, dtype=np.int64),
        np.zeros((2, count + 1)),
        np.full(2, np.inf),
        random_of(seed),
    )


@inner
def look_back(search: ListSearch, first: int, stop: int) -> None:
    """Sum up again what jobs from each place of the list on cost, for some places."""
    stream, plan, after = search.stream, search.plan, search.after
    for p in range(stop - 1, first - 1, -1):
        j = plan.order[p]
        now = plan.start[j]
        wait = (now - stream.arrival[j]) * (1e-3 if stream.makespan else 1.0)
        cost = wait + LATE * max(0.0, now - stream.latest[j] - slack(now))
        after[0, p] = after[0, p + 1] + cost
        after[1, p] = max(after[1, p + 1], now + stream.duration[j])


@compiled
def schedule(search: ListSearch, begin: Machine) -> float:
    """Schedule the list from this cluster on; returns its cost, which is now the plan's."""
    stream, plan, machine = search.stream, search.plan, search.now
    copy_machine(begin, machine)
    count = len(plan.order)
    decode(
        stream, plan, machine, plan.start, plan.node,
        (0, count, count), search.after, np.inf, np.inf,
    )  # fmt: skip
    search.after[0, count] = search.after[1, count] = 0.0
    look_back(search, 0, count)
    _note(search)
    cost: float = search.costs[0]
    return cost


@inner
def _note(search: ListSearch) -> None:
    """Note what the list costs that has been scheduled, and the list if it is the best so far."""
    at, plan, best, clock = search.stream.at, search.plan, search.best, search.now.clock
    search.costs[0] = clock[1] + (len(plan.order) * clock[2] if search.stream.makespan else 0.0)
    if search.costs[0] >= search.costs[1]:
        return
    for p in range(len(plan.order)):
        j = best.order[p] = plan.order[p]
        best.waits[j], best.start[j] = plan.waits[j], plan.start[j]
        for h in range(at[j], at[j + 1]):
            best.wish[h], best.node[h] = plan.wish[h], plan.node[h]
    search.costs[1] = search.costs[0]


@inner
def _shift(order: IntArray, p: int, q: int) -> None:
    """Take the job at place p of a list to place q."""
    job, step = order[p], 1 if q > p else -1
    for k in range(p, q, step):
        order[k] = order[k + step]
    order[q] = job


@compiled
def try_moves(
    search: ListSearch,
    begin: Machine,
    moves: Moves,
    first: int,
    stop: int,
    heats: tuple[float, float],
    tries: int,
) -> int:
    """Try moves within places `first` to `stop`, at temperatures from one to another.

    `begin` is the cluster at the start of the list. Returns how many moves were accepted.
    """
    plan, stream, random, accepted = search.plan, search.stream, search.random, 0
    nodes, count, wish = len(search.now.free), len(plan.order), plan.wish
    copy_machine(begin, search.before)
    search.now.starts[0] += first
    look_back(search, 0, count)
    decode(
        stream, plan, search.before, search.start, search.node,
        (0, first, first), search.after, np.inf, np.inf,
    )  # fmt: skip
    kept_wish = np.empty(nodes, dtype=np.int64)
    near, far = moves.earlier + moves.behind, moves.earlier + moves.behind + moves.anywhere
    for i in range(tries):
        kind, p, q = draw(random), first, first
        if kind < near or (kind >= far and nodes > 1):
            for _ in range(8):  # a job that waits, or any after a few attempts
                p = first + int(draw(random) * (stop - first))
                if plan.start[plan.order[p]] > stream.arrival[plan.order[p]]:
                    break
            q = p
        if kind < near:
            q = max(first, p - 1 - int(draw(random) * moves.reach))
            if kind >= moves.earlier:
                p, q = q, p
        elif kind < far:
            p = first + int(draw(random) * (stop - first))
            q = p - moves.reach + int(draw(random) * (2 * moves.reach + 1))
            q = min(max(q, first), stop - 1)
        if p == q and (nodes == 1 or kind < far):
            continue
        job = plan.order[p]
        waits, at, end_at = plan.waits[job], stream.at[job], stream.at[job + 1]
        for h in range(at, end_at):
            kept_wish[h - at] = wish[h]
        if p == q and draw(random) < 0.5:  # whatever node is best then
            wish[at] = NOBODY
            plan.waits[job] = 0
        elif p == q:  # another node
            h = at + int(draw(random) * (end_at - at))
            k = int(draw(random) * nodes)
            for other in range(at, end_at):
                if wish[other] == k:
                    wish[other] = wish[h]
            wish[h] = k
        _shift(plan.order, p, q)
        most = search.costs[0] + allowed(i, tries, heats[0], heats[1], draw(random))
        copy_machine(search.before, search.now)
        end = decode(
            stream, plan, search.now, search.start, search.node,
            (first, count, max(p, q)), search.after, most, moves.doubt,
        )  # fmt: skip
        if end < 0:
            _shift(plan.order, q, p)
            plan.waits[job] = waits
            for h in range(at, end_at):
                wish[h] = kept_wish[h - at]
            continue
        accepted += 1
        for place in range(first, end):  # jobs wish for the nodes that they have
            j = plan.order[place]
            plan.start[j] = search.start[j]
            for h in range(stream.at[j], stream.at[j + 1]):
                plan.node[h] = wish[h] = search.node[h]
        look_back(search, first, end)
        _note(search)
    return accepted


def return_to_best(search: ListSearch) -> None:
    """Go back to the best list so far."""
    for mine, best in zip(search.plan, search.best, strict=True):
        mine[:] = best
    search.costs[0] = search.costs[1]


def wait_for_nodes(search: ListSearch) -> None:
    """Order the list by start, and let every job wait for the node it has."""
    plan = search.plan
    plan.order[:] = plan.order[np.argsort(plan.start[plan.order], kind="stable")]
    plan.wish[:] = plan.node
    plan.waits[:] = 1
