"""A schedule as one list of jobs per node; what a change of the lists comes to, compiled.

On a node jobs start in the order of its list: each as soon as it has come and enough GPUs are free
on all of its nodes, and none before the one ahead of it on any of them. Every schedule is given by
the lists of its jobs by start, or by lists that start some of them earlier. A change on one node
is followed along its list until the node is as it was before, and onto other nodes by the jobs
that hold several. What happens on the other nodes is not looked at.

Times are in s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import bare, compiled
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.solvers.queueing.list_schedule import LATE, Stream, cost_of, held_gpus, slack

NONE, ENDED = -1, -2
GIVEN_UP = np.inf


class Lists(NamedTuple):
    """Lists of jobs per node, with their schedule. J jobs hold H places on N nodes of g GPUs.

    A place is one node that a job holds: job j's places are those from ``stream.at[j]`` to
    ``stream.at[j + 1]``. Place H + k stands for the beginning of node k's list.

    Parameters
    ----------
    stream: the jobs.
    job, gpus: per place whose it is, and the GPUs held there, shape (H,).
    node, key: per place its node, and by what the list is ascending, shape (H + N,); a job has one
        key, and places where lists begin have −inf.
    before, after: the neighbours of a place in its list, or `NONE`, shape (H + N,).
    free_at: when each GPU of the node is free once the job has started, ascending and no earlier
        than that start, shape (H + N, g).
    start: per job, shape (J,).
    last: the last end on each node, shape (N,).
    order, rank: the jobs by start when keys were last made, and the place of each among them.
    cost: of the schedule, shape (1,); see `cost_of`.
    random: the state of the random numbers, as in `list_annealing`, shape (1,).
    """

    stream: Stream
    job: IntArray
    gpus: IntArray
    node: IntArray
    key: FloatArray
    before: IntArray
    after: IntArray
    free_at: FloatArray
    start: FloatArray
    last: FloatArray
    order: IntArray
    rank: IntArray
    cost: FloatArray
    random: IntArray


class Trial(NamedTuple):
    """What a change that is tried comes to.

    Parameters
    ----------
    touched: the jobs scheduled again, and last how many they are, shape (J + 1,).
    tried: when they start, s, shape (J,).
    left: per place of theirs what `Lists.free_at` would be, shape (H, g).
    nodes: the nodes with a change, and last how many they are, shape (N + 1,).
    place: per node its place among them, or `NONE`, shape (N,).

    and for each of them, shapes (N,) and (N, g):

    behind: the place of its list behind which it changes first.
    edited: the greatest key taken from its list or put into it.
    coming: the place to be scheduled next; `NONE` where all others stay as they were, `ENDED`
        behind the last one.
    free: when its GPUs are free, ascending.
    """

    touched: IntArray
    tried: FloatArray
    left: FloatArray
    nodes: IntArray
    place: IntArray
    behind: IntArray
    edited: FloatArray
    coming: IntArray
    free: FloatArray


def lists_of(stream: Stream, nodes: int, random: IntArray) -> Lists:
    """Lists without a schedule."""
    count, held, g = len(stream.arrival), int(stream.at[-1]), stream.g
    return Lists(
        stream,
        np.repeat(np.arange(count), np.diff(stream.at)),
        held_gpus(stream).astype(np.int64),
        np.zeros(held + nodes, dtype=np.int64),
        np.full(held + nodes, -np.inf),
        np.full(held + nodes, NONE),
        np.full(held + nodes, NONE),
        np.zeros((held + nodes, g)),
        np.zeros(count),
        np.zeros(nodes),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
        np.zeros(1),
        random,
    )


def trial_of(lists: Lists) -> Trial:
    """Room for the changes that are tried."""
    count, held, nodes, g = len(lists.start), len(lists.job), len(lists.last), lists.stream.g
    return Trial(
        np.zeros(count + 1, dtype=np.int64),
        np.zeros(count),
        np.zeros((held, g)),
        np.zeros(nodes + 1, dtype=np.int64),
        np.full(nodes, NONE),
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes),
        np.zeros(nodes, dtype=np.int64),
        np.zeros((nodes, g)),
    )


def number(lists: Lists) -> None:
    """Make the keys the places of the jobs by start: many changes make them hard to tell apart."""
    at = lists.stream.at
    lists.order[:] = np.lexsort((lists.key[at[:-1]], lists.start))
    lists.rank[lists.order] = np.arange(len(lists.order))
    lists.key[: len(lists.job)] = lists.rank[lists.job]


def take(lists: Lists, start: FloatArray, node: IntArray) -> None:
    """Make the lists those of a schedule, whose jobs start no later in them."""
    held = len(lists.job)
    lists.start[:], lists.node[:held] = start, node
    lists.node[held:] = np.arange(len(lists.last))
    lists.key[:held] = 0.0
    number(lists)
    _schedule(lists)


@compiled
def _schedule(lists: Lists) -> None:
    """Link the places of all lists by their keys, and start the jobs."""
    stream, held, free_at = lists.stream, len(lists.job), lists.free_at
    lists.before[:], lists.after[:], free_at[held:] = NONE, NONE, 0.0
    tail = held + np.arange(len(lists.last))
    lists.cost[0] = 0.0
    for j in lists.order:
        now = stream.arrival[j]
        for h in range(stream.at[j], stream.at[j + 1]):
            now = max(now, free_at[tail[lists.node[h]], lists.gpus[h] - 1])
        lists.start[j] = now
        lists.cost[0] += cost_of(stream, j, now)
        for h in range(stream.at[j], stream.at[j + 1]):
            k = lists.node[h]
            link(lists, h, tail[k])
            free_at[h] = free_at[tail[k]]
            hold(free_at, h, lists.gpus[h], now, now + stream.duration[j])
            tail[k] = h
    for k in range(len(tail)):
        lists.last[k] = free_at[tail[k], stream.g - 1]
    if stream.makespan:
        lists.cost[0] += len(lists.order) * lists.last.max()


@bare
def hold(free: FloatArray, row: int, n: int, now: float, end: float) -> None:
    """Take the n GPUs of a row that are free first from now until `end`, and put it in order.

    The others are free from now on.
    """
    g = free.shape[1]
    i = n
    while i < g and free[row, i] <= end:
        free[row, i - n] = max(free[row, i], now)
        i += 1
    for x in range(i - n, i):
        free[row, x] = end


@bare
def link(lists: Lists, h: int, behind: int) -> None:
    """Put a place into a list, behind another one."""
    following = lists.after[behind]
    lists.before[h], lists.after[h], lists.after[behind] = behind, following, h
    if following != NONE:
        lists.before[following] = h


@bare
def unlink(lists: Lists, h: int) -> None:
    """Take a place out of its list."""
    behind, following = lists.before[h], lists.after[h]
    lists.after[behind] = following
    if following != NONE:
        lists.before[following] = behind


@bare
def change(lists: Lists, trial: Trial, behind: int, key: float) -> None:
    """Note that something with a key leaves a list, or enters it, behind a place."""
    k, size = lists.node[behind], trial.nodes[-1]
    x = trial.place[k]
    if x == NONE:
        trial.place[k], trial.nodes[size], trial.nodes[-1] = size, k, size + 1
        trial.behind[size], trial.edited[size] = behind, key
        return
    trial.edited[x] = max(trial.edited[x], key)
    if lists.key[behind] < lists.key[trial.behind[x]]:
        trial.behind[x] = behind


@bare
def forget(trial: Trial) -> None:
    """Note no changes."""
    for x in range(trial.nodes[-1]):
        trial.place[trial.nodes[x]] = NONE
    trial.nodes[-1] = 0


@bare
def follow(lists: Lists, trial: Trial, most: float) -> float:
    """What all that was noted by `change` costs; `GIVEN_UP` once it is over `most`.

    Jobs are scheduled again in the order of their keys, so that all nodes of a job are as it
    finds them when its turn comes. A node is done where it is as it was before.
    """
    arrival, duration, latest, _, at, g, makespan = lists.stream
    key, after, free_at, start = lists.key, lists.after, lists.free_at, lists.start
    touched, tried, left, nodes, place, behind, edited, coming, free = trial
    weight, cost, count = 1e-3 if makespan else 1.0, 0.0, 0
    for x in range(nodes[-1]):
        coming[x] = after[behind[x]] if after[behind[x]] != NONE else ENDED
        for i in range(g):
            free[x, i] = free_at[behind[x], i]
    while True:
        least, first = np.inf, NONE
        for x in range(nodes[-1]):
            h = coming[x]
            if h >= 0 and key[h] < least:
                least, first = key[h], h
        if first == NONE:
            break
        j = lists.job[first]
        now = arrival[j]
        for h in range(at[j], at[j + 1]):
            if place[lists.node[h]] == NONE:
                change(lists, trial, lists.before[h], -np.inf)
                coming[place[lists.node[h]]] = NONE
            x = place[lists.node[h]]
            if coming[x] != h:  # nothing changed up to here, whatever is to change behind it
                for i in range(g):
                    free[x, i] = free_at[lists.before[h], i]
            now = max(now, free[x, lists.gpus[h] - 1])
        cost += (now - start[j]) * weight
        if now > latest[j] or start[j] > latest[j]:
            cost += LATE * max(0.0, now - latest[j] - slack(now))
            cost -= LATE * max(0.0, start[j] - latest[j] - slack(start[j]))
        tried[j] = now
        touched[count] = j
        count += 1
        for h in range(at[j], at[j + 1]):
            x = place[lists.node[h]]
            hold(free, x, lists.gpus[h], now, now + duration[j])
            same = least > edited[x]
            for i in range(g):
                left[h, i] = free[x, i]
                same = same and free[x, i] == free_at[h, i]
            coming[x] = NONE if same else after[h] if after[h] != NONE else ENDED
        if cost > most:
            return GIVEN_UP
    touched[-1] = count
    return cost + (len(start) * _longer(lists, trial) if makespan else 0.0)


@bare
def _longer(lists: Lists, trial: Trial) -> float:
    """How much later the last end is, s; less than 0 if earlier."""
    was, now, g = 0.0, 0.0, lists.stream.g
    for k in range(len(lists.last)):
        was = max(was, lists.last[k])
        x = trial.place[k]
        ended = x != NONE and trial.coming[x] == ENDED
        now = max(now, trial.free[x, g - 1] if ended else lists.last[k])
    return now - was


@bare
def accept(lists: Lists, trial: Trial, cost: float) -> None:
    """Make the schedule tried that of the lists."""
    at, g = lists.stream.at, lists.stream.g
    for t in range(trial.touched[-1]):
        j = trial.touched[t]
        lists.start[j] = trial.tried[j]
        for h in range(at[j], at[j + 1]):
            for i in range(g):
                lists.free_at[h, i] = trial.left[h, i]
    for x in range(trial.nodes[-1]):
        if trial.coming[x] == ENDED:
            lists.last[trial.nodes[x]] = trial.free[x, g - 1]
    lists.cost[0] += cost
