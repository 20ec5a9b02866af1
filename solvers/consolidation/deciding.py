"""Whether there is a placement with given counts: a search among all sets that it could use.

Where counts of GPUs are held down to a vector (N, Z), the linear program leaves little between its
value and what the vector costs, and sets whose reduced cost is more than that are in no placement
with such counts. Often a few hundred are left, sometimes a hundred thousand: a search among them,
or an integer program over them, finds a placement, or there is none.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from optgap.models.limits import Limits
from optgap.solvers.consolidation.covering import Covering, Decision, Question, Verdict
from optgap.solvers.consolidation.generation import Set
from optgap.solvers.consolidation.master import Binding, Box, Master, Relaxed
from optgap.solvers.consolidation.set_programs import SetProgram, Together

MOST_LISTED, MOST_NODES = 120_000, 5_000_000
"""Sets that are listed, and sets that are looked at for that, at most."""
MOST_TOGETHER = 4000
"""The same where sets are told apart by server, or tasks are many."""
POOLS, BESIDE = (500, 2000, 6000), 2000
"""Sets of the least reduced cost that an integer program with servers is solved over first, then;
and first where nothing can be denied and placements are looked for otherwise, too."""
SPREAD, MOST_PROGRAMMED = (12, 24), 20_000
"""Where there are no servers: sets for each task, those of the least reduced cost, of programs that
place in seconds or are denied in less; and sets of a program at most."""
NEARLY = 1.5
"""Times a pool up to which all sets are taken at once."""
NARROWER, NARROWEST = 0.5, 0.02
"""Where there are too many sets, half of what lies between bound and cost is listed, and half of
that, and so on: it proves nothing, but may find a placement."""
QUICK_S, FIRST_S, ALONE_S, TURNS, LONGER = 0.2, 0.2, 0.6, 2, 2.0
"""Seconds per hundred tasks that each has at first, where there are several, and where a search or
a program is alone, as most need no more; turns that are as long, and how much longer the next are.
"""
SELDOM_DENIED, WAYS_FIRST, LARGE = 2000, 4, 4000
"""Sets beyond which a placement is looked for otherwise first, and how often: half as often where
counts may be denied; and those beyond which a look takes longer."""
SLACK_W = 1e-4
"""What sums may be off by."""
Look = Covering | SetProgram


def decide(
    master: Master,
    low: tuple[int, ...],
    vector: tuple[int, ...],
    most: float,
    limits: Limits,
    gang: bool,
    otherwise: Callable[[], bool] | None = None,
    placing: bool = True,
    partly: bool = True,
) -> Decision:
    """Look for a placement for at most `most` W whose counts are at most `vector`.

    Parameters
    ----------
    low: what no placement has less of.
    gang: a task's GPUs are in one server. Without, they may be anywhere, and a denial holds for
        both.
    otherwise: what is tried beside, again and again, where a quick look decides nothing; True
        where that makes more looks needless.
    placing: a placement is of use; else nothing but a denial is looked for.
    partly: programs over some of the sets are of use; else nothing is decided where there are more
        than `MOST_TOGETHER`.
    """
    relaxed, watts = relax(master, low, vector, most, limits)
    if relaxed.bound > watts:
        return Decision(Verdict.DENIED)
    number = MOST_TOGETHER if gang or not partly else MOST_LISTED
    sets, part = _listed(master, relaxed.bound, watts, limits, number, placing and partly)
    if not sets:
        return Decision(Verdict.OPEN)
    asked = Question(master, sets, vector, watts, part)
    beside = otherwise if placing else None
    if beside is not None and (part or len(sets) > SELDOM_DENIED):
        for _ in range(WAYS_FIRST if part else WAYS_FIRST // 2):
            if limits.stop is not None or beside():
                return Decision(Verdict.OPEN)
    share = master.pack.tasks / 100
    if not gang:
        seconds = (QUICK_S if otherwise is None else FIRST_S) * share
        return _searched(asked, limits, seconds, otherwise)
    programs = _together(asked, beside is not None)
    quick = (QUICK_S if beside is None else ALONE_S) * share
    if beside is not None:  # where sets are missing nothing is denied, and no look need end
        quick = limits.remaining if part else quick * max(1.0, len(sets) / LARGE)
    return _looked(programs, limits, quick, otherwise, 0.0 if part else quick)


def relax(
    master: Master,
    low: tuple[int, ...],
    vector: tuple[int, ...],
    most: float,
    limits: Limits,
) -> tuple[Relaxed, float]:
    """The linear program of counts at most `vector`, and what a placement may cost, W.

    Where its bound is more than that, there is no placement with such counts.
    """
    # counts that are fixed would take the prices away; servers that are counted may sleep
    least = (a if a < b else 0 for a, b in zip(low[:-1], vector, strict=False))
    master.confine(Box((*least, vector[-1]), vector))
    master.bind(Binding.none(master.pack.tasks, master.servers))
    asleep = master.static_w * (vector[-1] - low[-1])  # counted all the same
    watts = min(most + asleep, master.watts(vector)) + SLACK_W
    return master.run(limits, enough=watts, priced=True), watts


def _listed(
    master: Master, bound: float, watts: float, limits: Limits, most: int, placing: bool
) -> tuple[list[Set], bool]:
    """Sets that a placement for no more than `watts` can use, and whether some are missing.

    None where there are too many; where a placement is of use, those of least reduced cost.
    """
    share = 1.0
    while limits.stop is None and share >= NARROWEST:
        sets, complete = master.listed(bound + share * (watts - bound), most, MOST_NODES)
        if complete:
            return [one for _, one in sets], share < 1.0
        if not placing:
            break
        share *= NARROWER
    return [], True


def _searched(
    asked: Question,
    limits: Limits,
    seconds: float,
    otherwise: Callable[[], bool] | None,
) -> Decision:
    """A search alone, then by turns with an integer program, or beside it.

    Parameters
    ----------
    seconds: of the first look.
    """
    search = Covering(asked)
    answer = search.solve(limits.within(seconds))
    if decides(answer, search):
        return answer
    if limits.stop is not None:
        return Decision(Verdict.OPEN)
    whole = [] if len(asked.sets) > MOST_PROGRAMMED else [SetProgram(asked)]
    if otherwise is None:
        return _looked([search, *whole], limits, seconds, None)
    longer, ended, over = itertools.count(1), threading.Event(), False

    def also() -> bool:
        nonlocal answer, over
        if not search.denied:
            answer = search.solve(limits.within(seconds * next(longer)), 0, ended)
        over = decides(answer, search) or otherwise()
        return over

    few = [one for one in map(asked.spread, SPREAD) if len(one.sets) * NEARLY < len(asked.sets)]
    found = _looked([*map(SetProgram, few), *whole], limits, math.inf, also, ended=ended)
    ended.clear()
    while found.verdict is Verdict.OPEN and limits.stop is None and not (asked.part or over):
        also()
    return answer if decides(answer, search) else found


def decides(answer: Decision, look: Look) -> bool:
    """Whether a look has told all that was asked."""
    denied = answer.verdict is Verdict.DENIED and not look.part
    return denied or answer.verdict is Verdict.PLACED


def _together(asked: Question, ways: bool) -> list[Together]:
    """Programs over more and more sets.

    Parameters
    ----------
    ways: placements are looked for otherwise, too.
    """
    pools = POOLS if not ways else (BESIDE,) if asked.part else ()
    few = [asked.first(pool) for pool in pools if pool * NEARLY < len(asked.sets)]
    return [Together(one) for one in (*few, asked)]


def _looked(
    programs: Sequence[Look],
    limits: Limits,
    seconds: float,
    otherwise: Callable[[], bool] | None,
    alone: float = 0.0,
    ended: threading.Event | None = None,
) -> Decision:
    """Rounds of looks at programs, until one decides: a denial where it has all sets.

    Parameters
    ----------
    seconds: of each look of the first round; a program that is alone and has all sets goes on, as
        each look begins anew. alone: before anything else is tried beside. ended: set once there
        are no more looks.
    """
    done = threading.Event()

    def look() -> Decision:
        left = list(programs)
        for turn in itertools.count():
            if not left or done.is_set() or limits.stop is not None:
                break
            each = seconds * LONGER ** (turn // TURNS)
            if len(left) == 1 and not left[0].part:
                each = math.inf
            for one in left:
                answer = one.solve(limits.within(each), turn, done)
                if decides(answer, one):
                    return answer
            left = [one for one in left if not one.denied]
        return Decision(Verdict.OPEN)

    if otherwise is None:
        return look()
    # the solver lets go of the interpreter: beside it there is time to look in other ways
    with ThreadPoolExecutor(1) as thread:
        looks = thread.submit(look)
        if ended is not None:
            looks.add_done_callback(lambda _: ended.set())
        wait([looks], timeout=alone)
        try:
            while not looks.done() and limits.stop is None and not otherwise():
                pass
        finally:
            done.set()
    return looks.result()
