"""Simulated annealing over lists of jobs per node, compiled.

A move puts a job next to another one, on that one's node or on its own ones, or lets two jobs
change places. What it comes to is seen by following the lists that it changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import bare, compiled
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.solvers.queueing.list_annealing import below, draw
from optgap.solvers.queueing.node_lists import (
    NONE,
    Lists,
    Trial,
    accept,
    change,
    follow,
    forget,
    link,
    unlink,
)

FRONT, BACK, EXCHANGE = range(3)
"""A job goes before another one, behind it, or changes places with it."""


class NodeMoves(NamedTuple):
    """How lists of nodes are changed.

    Parameters
    ----------
    earlier, behind, anywhere: shares of the moves that put a waiting job before one that starts
        earlier, put such a one behind it, or put any job next to any other; the others let a
        waiting job change places with one of as many nodes.
    reach: how far apart in the order of starts the two are, at most.
    ahead: share of those put behind that are taken from a few places ahead on the same node.
    stays: share of the jobs put elsewhere that keep their nodes.
    doubt: a change is given up as soon as what it has changed so far costs more by this than would
        be accepted, s; what follows rarely makes up for it.
    """

    earlier: float = 0.35
    behind: float = 0.30
    anywhere: float = 0.15
    reach: int = 40
    ahead: float = 0.5
    stays: float = 0.2
    doubt: float = np.inf


class Origin(NamedTuple):
    """The one or two jobs of a move, and where they were.

    Parameters
    ----------
    job, key: they and their keys, shape (2,).
    node, behind: per place of theirs its node, and the place ahead of it, shape (2, N).
    """

    job: IntArray
    key: FloatArray
    node: IntArray
    behind: IntArray


@compiled
def anneal_nodes(lists: Lists, trial: Trial, moves: NodeMoves, heat: float, tries: int) -> int:
    """Try moves at a temperature, s; returns how many were accepted."""
    accepted, nodes, random = 0, len(lists.last), lists.random
    origin = Origin(
        np.zeros(2, dtype=np.int64),
        np.zeros(2),
        np.zeros((2, nodes), dtype=np.int64),
        np.zeros((2, nodes), dtype=np.int64),
    )
    for _ in range(tries):
        how = _pick(lists, moves, origin)
        stays = draw(random) < moves.stays
        count = _move(lists, trial, origin, how, stays)
        if count <= 0:
            _undo(lists, origin, -count)
            forget(trial)
            continue
        most = -heat * np.log(draw(random))
        cost = follow(lists, trial, most + moves.doubt)
        if cost <= most:
            accept(lists, trial, cost)
            accepted += 1
        else:
            _undo(lists, origin, count)
        forget(trial)
    return accepted


@bare
def _pick(lists: Lists, moves: NodeMoves, origin: Origin) -> int:
    """Choose a job to move, and the one that says where to; returns how."""
    random, order, rank, job = lists.random, lists.order, lists.rank, origin.job
    kind, away = draw(random), 1 + below(random, moves.reach)
    one = 0
    for _ in range(8):  # one that waits, if a few attempts find any
        one = below(random, len(order))
        if lists.start[one] > lists.stream.arrival[one]:
            break
    ahead = order[max(0, rank[one] - away)]
    if kind < moves.earlier:
        job[0], job[1] = one, ahead
        return FRONT
    kind -= moves.earlier
    if kind < moves.behind:
        job[0], job[1] = ahead, one
        if draw(random) < moves.ahead:
            job[0] = _ahead_on_a_node(lists, one)
        return BACK
    kind -= moves.behind
    if kind < moves.anywhere:
        one = order[below(random, len(order))]
    away = below(random, 2 * moves.reach + 1) - moves.reach
    job[0], job[1] = one, order[min(max(0, rank[one] + away), len(order) - 1)]
    if kind < moves.anywhere:
        return FRONT if draw(random) < 0.5 else BACK
    return EXCHANGE


@bare
def _ahead_on_a_node(lists: Lists, j: int) -> int:
    """A job a few places ahead of another one on one of its nodes; itself if it is the first."""
    at, random, before = lists.stream.at, lists.random, lists.before
    h = before[at[j] + below(random, at[j + 1] - at[j])]
    for _ in range(below(random, 6)):
        if h < len(lists.job) and before[h] < len(lists.job):
            h = before[h]
    return int(lists.job[h]) if h < len(lists.job) else j


@bare
def _move(lists: Lists, trial: Trial, origin: Origin, how: int, stays: bool) -> int:
    """Move one job to where the other one says, or both; returns how many, 0 if none can.

    Less than 0 if one has now the key of another on some node: nodes might differ in their order.

    Parameters
    ----------
    origin: whose jobs they are; where they were is written here.
    how: before or behind the other, one of its nodes becomes one of the other's, unless it `stays`
        on its own; they change places only if they have as many nodes and none in common.
    """
    at, node, key = lists.stream.at, lists.node, lists.key
    one, other = origin.job[0], origin.job[1]
    width, count, chosen = at[one + 1] - at[one], 1, 0
    beside, new = at[other] + below(lists.random, at[other + 1] - at[other]), key[at[other]]
    if one == other:
        return 0
    if how == EXCHANGE:
        count = 2
        if at[other + 1] - at[other] != width or _meet(lists, one, other):
            return 0
    else:
        new, chosen = _between(lists, beside, how), below(lists.random, width)
        if new == key[beside]:
            return 0
        for h in range(at[one], at[one + 1]):
            stays = stays or node[h] == node[beside]
    tied = False
    for m in range(count):
        begin = at[origin.job[m]]
        origin.key[m] = key[begin]
        for c in range(width):
            h = begin + c
            origin.node[m, c], origin.behind[m, c] = node[h], lists.before[h]
            change(lists, trial, lists.before[h], key[h])
            unlink(lists, h)
    for m in range(count):
        goal = new if m == 0 else origin.key[0]
        for c in range(width):
            h, near = at[origin.job[m]] + c, origin.behind[0, c]
            if how == EXCHANGE:
                near = origin.behind[1 - m, c]
            elif c == chosen and not stays:
                near = beside
            near = _ahead_of(lists, near, goal)
            following = lists.after[near]
            tied = tied or key[near] == goal or (following != NONE and key[following] == goal)
            key[h], node[h] = goal, node[near]
            link(lists, h, near)
            change(lists, trial, near, goal)
    return -count if tied else count


@bare
def _meet(lists: Lists, one: int, other: int) -> bool:
    """Whether two jobs have a node in common."""
    at, node = lists.stream.at, lists.node
    for h in range(at[one], at[one + 1]):
        for i in range(at[other], at[other + 1]):
            if node[h] == node[i]:
                return True
    return False


@bare
def _between(lists: Lists, h: int, how: int) -> float:
    """A key between that of a place and its neighbour's; its own if there is none any more."""
    key = lists.key
    side = lists.before[h] if how == FRONT else lists.after[h]
    far = key[h] - 2.0 if how == FRONT else key[h] + 2.0
    if side != NONE and abs(key[side] - key[h]) < 2.0:
        far = key[side]
    new: float = key[h] + (far - key[h]) * (0.25 + 0.5 * draw(lists.random))
    return new if new != far else key[h]


@bare
def _ahead_of(lists: Lists, near: int, key: float) -> int:
    """The last place ahead of a key in the list of a place."""
    after = lists.after
    while lists.key[near] > key:
        near = lists.before[near]
    while after[near] != NONE and lists.key[after[near]] < key:
        near = after[near]
    return near


@bare
def _undo(lists: Lists, origin: Origin, count: int) -> None:
    """Take a move of so many jobs back."""
    at = lists.stream.at
    for m in range(count):
        for h in range(at[origin.job[m]], at[origin.job[m] + 1]):
            unlink(lists, h)
    for m in range(count):
        begin = at[origin.job[m]]
        for h in range(begin, at[origin.job[m] + 1]):
            lists.key[h], lists.node[h] = origin.key[m], origin.node[m, h - begin]
            link(lists, h, origin.behind[m, h - begin])
