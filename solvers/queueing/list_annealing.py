"""Simulated annealing over lists of jobs, nodes and rules, within a window of the list; compiled.

A move changes a few places of the list or the node of one job. What lies before the window is
kept as a state of the cluster, so only what follows is scheduled again: until the cost exceeds what
would be accepted, or until everything is as it was before the move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import compiled, inner
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.solvers.queueing.list_schedule import (
    CLOSEST_END,
    NOBODY,
    WAIT,
    Machine,
    Plan,
    Stream,
    copy_machine,
    cost_of,
    decode,
    machine_of,
    plan_of,
)

PRIME = 2147483647
"""2³¹ − 1: random numbers are Park and Miller's, alike in both ways a kernel is run."""


class Search(NamedTuple):
    """Everything that annealing works on.

    Parameters
    ----------
    stream: the jobs.
    plan, best: the list now, and the best one so far, both with their schedules.
    before, now: the cluster before the window, and the one at work.
    start, node: the schedule being tried.
    after: per place of the list the cost of the jobs from there on, and the last of their ends.
    costs: of `plan` and of `best`, shape (2,).
    random: the state of the random numbers, 1 to `PRIME` − 1, shape (1,).
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
    random: IntArray


class Moves(NamedTuple):
    """How lists are changed.

    Parameters
    ----------
    earlier, behind, anywhere: shares of the moves that take a waiting job ahead, put one of its
        predecessors behind it, or take any job anywhere; the others change a node or a rule.
    reach: places that a job is moved by, at most.
    doubt: see `decode`.
    """

    earlier: float
    behind: float
    anywhere: float
    reach: int
    doubt: float


def search_of(stream: Stream, order: IntArray, nodes: int, rule: int, seed: int) -> Search:
    """A search from one list on an idle cluster, every job with the same rule."""
    count, held, g = len(order), int(stream.at[-1]), stream.g
    most = min(count, nodes * g)
    return Search(
        stream,
        plan_of(order, held, rule),
        plan_of(order, held, rule),
        machine_of(nodes, g, most),
        machine_of(nodes, g, most),
        np.zeros(count),
        np.zeros(held, dtype=np.int64),
        np.zeros((2, count + 1)),
        np.full(2, np.inf),
        np.array([1 + (seed * 48271 + 12345) % (PRIME - 1)], dtype=np.int64),
    )


@inner
def draw(random: IntArray) -> float:
    """A random number, above 0 and below 1."""
    random[0] = random[0] * 48271 % PRIME
    number: float = random[0] / PRIME
    return number


@inner
def below(random: IntArray, n: int) -> int:
    """A random whole number from 0 to n − 1."""
    return int(draw(random) * n)


@inner
def total(search: Search, cost: float, last: float) -> float:
    """The cost of a whole list: of its jobs, and of its last end where that counts."""
    return cost + (len(search.plan.order) * last if search.stream.makespan else 0.0)


@inner
def look_back(search: Search, first: int, stop: int) -> None:
    """Sum up again what jobs from each place of the list on cost, for some places."""
    stream, plan, after = search.stream, search.plan, search.after
    for p in range(stop - 1, first - 1, -1):
        j = plan.order[p]
        after[0, p] = after[0, p + 1] + cost_of(stream, j, plan.start[j])
        after[1, p] = max(after[1, p + 1], plan.start[j] + stream.duration[j])


@compiled
def schedule(search: Search) -> float:
    """Schedule the list from `before` on; returns its cost, which is now the plan's."""
    stream, plan, machine = search.stream, search.plan, search.now
    copy_machine(search.before, machine)
    count = len(plan.order)
    decode(
        stream, plan, machine, plan.start, plan.node,
        (0, count, count), search.after, np.inf, np.inf,
    )  # fmt: skip
    search.after[:, len(plan.order)] = 0.0
    look_back(search, 0, len(plan.order))
    search.costs[0] = total(search, machine.clock[1], machine.clock[2])
    if search.costs[0] < search.costs[1]:
        _keep(search)
    cost: float = search.costs[0]
    return cost


@inner
def _keep(search: Search) -> None:
    """Note the list as the best so far."""
    at, plan, best = search.stream.at, search.plan, search.best
    for p in range(len(plan.order)):
        j = best.order[p] = plan.order[p]
        best.rule[j], best.start[j] = plan.rule[j], plan.start[j]
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


@inner
def _waiting(search: Search, first: int, stop: int) -> int:
    """A place of the window with a job that waits, or any place after a few attempts."""
    p = first
    for _ in range(8):
        p = first + below(search.random, stop - first)
        j = search.plan.order[p]
        if search.plan.start[j] > search.stream.arrival[j]:
            break
    return p


@inner
def _wish(search: Search, j: int) -> None:
    """Another node or another rule for job j."""
    stream, plan, begin = search.stream, search.plan, search.stream.at[j]
    nodes = len(search.now.free)
    last = stream.at[j + 1] - 1
    if draw(search.random) < 0.5:
        plan.wish[begin] = NOBODY
        plan.rule[j] = below(search.random, CLOSEST_END + 2)
        return
    h = begin + below(search.random, last + 1 - begin)
    k = below(search.random, nodes)
    for other in range(begin, last + 1):
        if plan.wish[other] == k:
            plan.wish[other] = plan.wish[h]
    plan.wish[h] = k


@compiled
def anneal(
    search: Search, moves: Moves, first: int, stop: int, heats: tuple[float, float], tries: int
) -> int:
    """Try moves within places `first` to `stop`, at temperatures from one to another.

    Returns how many moves were accepted.
    """
    plan, stream, accepted = search.plan, search.stream, 0
    copy_machine(search.before, search.now)
    nodes, count = len(search.now.free), len(plan.order)
    kept_wish = np.empty(nodes, dtype=np.int64)
    for i in range(tries):
        heat = heats[0] * (heats[1] / heats[0]) ** (i / tries)
        kind, p, q = draw(search.random), first, first
        if kind < moves.earlier + moves.behind:
            p = _waiting(search, first, stop)
            q = max(first, p - 1 - below(search.random, moves.reach))
            if kind >= moves.earlier:
                p, q = q, p
        elif kind < moves.earlier + moves.behind + moves.anywhere:
            p = first + below(search.random, stop - first)
            q = p - moves.reach + below(search.random, 2 * moves.reach + 1)
            q = min(max(q, first), stop - 1)
        elif nodes > 1:
            p = q = _waiting(search, first, stop)
        if p == q and (nodes == 1 or kind < moves.earlier + moves.behind + moves.anywhere):
            continue
        job = plan.order[p]
        rule = plan.rule[job]
        for h in range(stream.at[job], stream.at[job + 1]):
            kept_wish[h - stream.at[job]] = plan.wish[h]
        if p == q:
            _wish(search, job)
        _shift(plan.order, p, q)
        most = search.costs[0] - heat * np.log(draw(search.random))
        copy_machine(search.before, search.now)
        end = decode(
            stream, plan, search.now, search.start, search.node,
            (first, count, max(p, q)), search.after, most, moves.doubt,
        )  # fmt: skip
        if end < 0:
            _shift(plan.order, q, p)
            plan.rule[job] = rule
            for h in range(stream.at[job], stream.at[job + 1]):
                plan.wish[h] = kept_wish[h - stream.at[job]]
            continue
        accepted += 1
        _accept(search, first, end)
    return accepted


@inner
def _accept(search: Search, first: int, end: int) -> None:
    """Make the schedule tried the plan's; jobs wish for the nodes that they have."""
    stream, plan = search.stream, search.plan
    for p in range(first, end):
        j = plan.order[p]
        plan.start[j] = search.start[j]
        for h in range(stream.at[j], stream.at[j + 1]):
            plan.node[h] = plan.wish[h] = search.node[h]
    look_back(search, first, end)
    search.costs[0] = total(search, search.now.clock[1], search.now.clock[2])
    if search.costs[0] < search.costs[1]:
        _keep(search)


@compiled
def enter_window(search: Search, machine: Machine, first: int) -> None:
    """Make `before` the cluster at place `first` of the list, from `machine` at its start."""
    copy_machine(machine, search.before)
    search.now.starts[0] += first
    look_back(search, 0, len(search.plan.order))
    decode(
        search.stream, search.plan, search.before, search.start, search.node,
        (0, first, first), search.after, np.inf, np.inf,
    )  # fmt: skip


def return_to_best(search: Search) -> None:
    """Go back to the best list so far."""
    for mine, best in zip(search.plan, search.best, strict=True):
        mine[:] = best
    search.costs[0] = search.costs[1]


def wish_for_nodes(search: Search, rule: int) -> None:
    """Order the list by start, and let every job wish for the node it has, with one rule else."""
    wait_for_nodes(search)
    search.plan.rule[:] = rule


def wait_for_nodes(search: Search) -> None:
    """Order the list by start, and let every job wait for the node it has."""
    plan = search.plan
    plan.order[:] = plan.order[np.argsort(plan.start[plan.order], kind="stable")]
    plan.wish[:] = plan.node
    plan.rule[:] = WAIT
