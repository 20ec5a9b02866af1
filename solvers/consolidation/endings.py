"""The rest of a way down: placed as a problem of its own, and in the end by a search among sets.

A way down to given counts loses little while many sets are open, and a GPU or two with the last of
them; and its linear programs take long, as all tasks are in them. So what no whole set covers yet,
with the counts that are left, is made a smaller problem again and again, until it is small enough
for a search among all sets that its placements could use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.covering import Covering, Decision, Question, Verdict
from optgap.solvers.consolidation.deciding import SLACK_W, place, relax
from optgap.solvers.consolidation.generation import Set
from optgap.solvers.consolidation.master import Binding, Box, Master
from optgap.solvers.consolidation.packing import IntArray
from optgap.solvers.consolidation.plunge import Ending, Held, Plunge, seated
from optgap.solvers.consolidation.search import Places

EndedBy = Literal["search", "programs", "none"]

SMALLER = 0.6
"""Share of the tasks from which what is left is a problem of its own."""
FEW_LEFT, FEWER, END_S = 45, 0.75, 0.4
"""Tasks that are left to a search, times how many another one is tried with, and seconds for it."""
MOST_SETS, MOST_NODES = 8000, 500_000
"""Sets that it has, and that are looked at for them, at most."""
PROGRAMMED, LESS, LEAST, PROGRAM_S, LATER_S = 205, 0.72, 60, 10.0, 5.0
"""Tasks that are left to a first integer program, and share of them to each next one; with fewer
there is none; seconds for the first, and for others."""
CHOSEN = 2400
"""Sets of such a program, the best of each task."""
MOST_TURN = 1000
"""Ways to solve programs: some take a hundredth of the time of others."""


@dataclass(frozen=True)
class Rest:
    """What whole sets leave.

    Parameters
    ----------
    tasks: (n,) those that want GPUs still, in the order of the program's.
    master: its linear program. vector: counts that are left.
    """

    tasks: IntArray
    master: Master
    vector: tuple[int, ...]


def way_down(
    master: Master,
    vector: tuple[int, ...],
    binding: Binding,
    limits: Limits,
    rng: np.random.Generator,
    noise: float,
    ended: EndedBy = "search",
    most: int = PROGRAMMED,
) -> Places | None:
    """One way down to counts, drawn with `noise`.

    Parameters
    ----------
    ended: by what, in problems of its own, which have no servers; programs take longer.
    most: tasks that are left to the first of them.
    """
    end = None
    if ended == "search":
        end = ending(master, vector, limits, rng, noise)
    elif ended == "programs":
        end = programmed(master, vector, limits, rng, noise, most)
    return _down(Plunge(master, limits, rng, noise), vector, binding, end)


def _down(
    plunge: Plunge, vector: tuple[int, ...], binding: Binding, end: Ending | None
) -> Places | None:
    most = plunge.master.watts(vector) + SLACK_W
    return plunge.placed(up_to(vector), binding, most, most, end)


def ending(
    master: Master, vector: tuple[int, ...], limits: Limits, rng: np.random.Generator, noise: float
) -> Ending:
    """What ends one way down to counts; those of the smaller problems are drawn with `noise`."""
    few = FEW_LEFT

    def end(whole: Held) -> tuple[bool, Places | None]:
        nonlocal few
        left = _left(master, whole)
        number = int((left > 0).sum())
        if not number:
            return True, seated(master, _one_by_one(whole))
        if number > max(FEW_LEFT, SMALLER * master.pack.tasks):
            return False, None
        if number > FEW_LEFT:
            rest = _rest(master, vector, whole, left)
            none = Binding.none(number, 0)
            places = way_down(rest.master, rest.vector, none, limits, rng, noise)
            return True, _whole(master, whole, rest, places)
        if number > few:
            return False, None
        few = int(FEWER * number)
        rest = _rest(master, vector, whole, left)
        decision = _decided(rest.master, rest.vector, limits.within(END_S))
        over = decision.verdict is not Verdict.OPEN
        return over, _whole(master, whole, rest, decision.places)

    return end


def programmed(
    master: Master,
    vector: tuple[int, ...],
    limits: Limits,
    rng: np.random.Generator,
    noise: float,
    most: int = PROGRAMMED,
    seconds: float = PROGRAM_S,
) -> Ending:
    """What ends one way down to counts early: integer programs place what is left.

    They take seconds, and place where a way loses too much: most is lost with the last hundred
    tasks. Where sets are much alike the first does not, but one for fewer tasks and more sets of
    each.

    Parameters
    ----------
    most: tasks that are left to the first program. seconds: for it.
    """

    def end(whole: Held) -> tuple[bool, Places | None]:
        left = _left(master, whole)
        number = int((left > 0).sum())
        if not number:
            return True, seated(master, _one_by_one(whole))
        if number > max(most, SMALLER * master.pack.tasks):
            return False, None
        rest = _rest(master, vector, whole, left)
        fewer, places = most, None
        if number <= most:
            least, turn = up_to(rest.vector).low, int(rng.integers(MOST_TURN))
            own = limits.within(seconds)
            places = place(rest.master, least, rest.vector, CHOSEN // number, own, turn)
            fewer = int(LESS * number)
        if places is None and fewer >= LEAST and limits.stop is None:
            after = seconds if number > most else LATER_S
            further = programmed(rest.master, rest.vector, limits, rng, noise, fewer, after)
            plunge = Plunge(rest.master, limits, rng, noise)
            places = _down(plunge, rest.vector, Binding.none(number, 0), further)
        return True, _whole(master, whole, rest, places)

    return end


def _left(master: Master, whole: Held) -> IntArray:
    """(L,) GPUs that each task still wants."""
    left = master.pack.width.copy()
    for inside, amount in whole:
        left[list(inside)] -= amount
    return np.maximum(left, 0)


def _rest(master: Master, vector: tuple[int, ...], whole: Held, left: IntArray) -> Rest:
    counts = list(vector[:-1])
    for inside, amount in whole:
        for q in range(int(master.own.of[list(inside)].max()) + 1):
            counts[q] -= amount
    tasks = np.flatnonzero(left)
    pack = master.pack.part(tasks, len(master.pack.server_w))
    pack = replace(pack, width=left[tasks])
    below = (*counts, pack.servers_for(counts[0]))
    own = replace(master.own, of=master.own.of[tasks])
    rest = Master(pack, own, Box(below, below), 0)
    rest.add(_parts(master.sets, tasks))
    return Rest(tasks, rest, below)


def _parts(sets: list[Set], tasks: IntArray) -> Iterator[Set]:
    """Of sets with at most one task that is no longer there, the others, numbered anew."""
    number = {int(ell): k for k, ell in enumerate(tasks)}
    for one in sets:
        inside = tuple(number[ell] for ell in one if ell in number)
        if len(inside) >= max(1, len(one) - 1):
            yield inside


def up_to(vector: tuple[int, ...]) -> Box:
    """Counts that are no more: what a linear program needs less is seen as it is lost."""
    return Box((*(0 for _ in vector[:-1]), vector[-1]), vector)


def _whole(master: Master, whole: Held, rest: Rest, places: Places | None) -> Places | None:
    """A placement of all, from one of the rest."""
    if places is None:
        return None
    sets = _one_by_one(whole)
    for inside in rest.master.pack.contents(places).values():
        sets.append((tuple(int(rest.tasks[k]) for k in inside), -1))
    return seated(master, sets)


def _one_by_one(whole: Held) -> list[tuple[Set, int]]:
    """The set on each GPU, which may be in any server."""
    return [(inside, -1) for inside, amount in whole for _ in range(amount)]


def _decided(master: Master, vector: tuple[int, ...], limits: Limits) -> Decision:
    """One search among all sets, unless there are too many."""
    relaxed, watts = relax(master, up_to(vector).low, vector, math.inf, limits)
    if relaxed.bound > watts:
        return Decision(Verdict.DENIED)
    sets, complete = master.listed(watts, MOST_SETS, MOST_NODES)
    if not (complete and sets):
        return Decision(Verdict.OPEN)
    return Covering(Question(master, [one for _, one in sets], vector, watts)).solve(limits)
