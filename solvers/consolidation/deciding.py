"""Whether there is a placement with given counts: an integer program over all sets it could use.

Where counts of GPUs are held down to a vector (N, Z), the linear program leaves little between its
value and what the vector costs, and sets whose reduced cost is more than that are in no placement
with such counts. Often a few hundred are left: with all of them, an integer program over contents
of GPUs finds a placement, or there is none.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import Enum

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import Set
from optgap.solvers.consolidation.master import Binding, Box, Master, Relaxed
from optgap.solvers.consolidation.plunge import seated
from optgap.solvers.consolidation.programs import Program
from optgap.solvers.consolidation.search import Places

MOST_LISTED, MOST_NODES = 20_000, 5_000_000
"""Sets that are listed, and sets that are looked at for that, at most."""
MOST_TOGETHER = 4000
"""The same where sets are told apart by server, or tasks are many."""
POOLS, BESIDE = (500, 2000, 6000, MOST_LISTED), 2000
"""Sets of the least reduced cost that an integer program is solved over first, then, at last; and
first where nothing can be denied and placements are looked for otherwise, too."""
NEARLY = 1.5
"""Times a pool up to which all sets are taken at once."""
NARROWER, NARROWEST = 0.5, 0.02
"""Where there are too many sets, half of what lies between bound and cost is listed, and half of
that, and so on: it proves nothing, but may find a placement."""
QUICK_S, ALONE_S, TURNS, LONGER = 0.2, 0.6, 2, 2.0
"""Seconds per hundred tasks that each has at first, where there are several and where one is alone,
as most need no more; turns that are as long, and how much longer the next ones are."""
SELDOM_DENIED, WAYS_FIRST, LARGE = 2000, 4, 4000
"""Sets beyond which a placement is looked for otherwise first, and how often: half as often where
counts may be denied; and those beyond which a look takes longer."""
SLACK_W = 1e-4
"""What sums may be off by."""


class Verdict(Enum):
    """What is known of counts."""

    DENIED = "no placement has counts that are no more anywhere"
    PLACED = "a placement was found"
    OPEN = "neither"


@dataclass(frozen=True)
class Decision:
    """A verdict, and the placement where there is one."""

    verdict: Verdict
    places: Places | None = None


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
    beside = otherwise if placing else None
    if beside is not None and (part or len(sets) > SELDOM_DENIED):
        for _ in range(WAYS_FIRST if part else WAYS_FIRST // 2):
            if limits.stop is not None or beside():
                return Decision(Verdict.OPEN)
    pools = POOLS if beside is None else (BESIDE,) if part else ()
    program = _Together if gang else SetProgram
    programs = [
        program(master, sets[:size], vector, watts, part or size < len(sets))
        for size in (*(pool for pool in pools if pool * NEARLY < len(sets)), len(sets))
    ]
    quick = (QUICK_S if beside is None else ALONE_S) * master.pack.tasks / 100
    if beside is not None:  # where sets are missing nothing is denied, and no look need end
        quick = limits.remaining if part else quick * max(1.0, len(sets) / LARGE)
    answer = _looked(programs, limits, quick, otherwise)
    if part and answer.verdict is Verdict.DENIED:
        return Decision(Verdict.OPEN)
    return answer


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


def _looked(
    programs: list[SetProgram],
    limits: Limits,
    seconds: float,
    otherwise: Callable[[], bool] | None,
) -> Decision:
    """Rounds of looks at programs, the last of which has all sets, until one decides.

    Parameters
    ----------
    seconds: of each look of the first round.
    """
    done = threading.Event()

    def look() -> Decision:
        left = programs
        for turn in itertools.count():
            if not left or done.is_set() or limits.stop is not None:
                break
            each = seconds * LONGER ** (turn // TURNS)
            for one in left:
                answer = one.solve(limits.within(each), turn, done)
                decided = answer.verdict is Verdict.DENIED and one is programs[-1]
                if decided or answer.verdict is Verdict.PLACED:
                    return answer
            left = [one for one in left if not one.denied]
        return Decision(Verdict.OPEN)

    if otherwise is None:
        return look()
    # the solver lets go of the interpreter: beside it there is time to look in other ways
    with ThreadPoolExecutor(1) as thread:
        looks = thread.submit(look)
        if not programs[-1].part:
            wait([looks], timeout=seconds)
        try:
            while not looks.done() and limits.stop is None and not otherwise():
                pass
        finally:
            done.set()
    return looks.result()


class SetProgram(Program):
    """Tasks covered by sets, with no more GPUs of a level or more than a vector has.

    Parameters
    ----------
    watts: what GPUs and the vector's servers may cost.
    part: these are not all sets, so that only placements count, which are found sooner at costs
        that are drawn; what a program denies it denies sooner at equal ones.
    """

    def __init__(
        self,
        master: Master,
        sets: list[Set],
        vector: tuple[int, ...],
        watts: float,
        part: bool = False,
    ) -> None:
        super().__init__()
        self.option("mip_max_improving_sols", 1)
        self.part = part
        self.master, self.width, self.own = master, master.pack.width, master.own.of
        self.used: list[tuple[Set, int]] = []
        """The set of each column, and its server or -1."""
        self.each = np.cumsum(master.steps)
        self.watts = self.row(-self.infinity, watts - master.static_w * vector[-1])
        self.denied = False
        self._build(sets, vector)
        self.build()

    def _set(self, inside: Set, server: int, rows: list[int]) -> None:
        """A column for a set: the rows of its tasks and of its server are given."""
        top = int(self.own[list(inside)].max())
        most = float(self.width[list(inside)].min())
        ones = dict.fromkeys([*rows, *self.levels[: top + 1]], 1.0)
        self.column(1.0, most, {**ones, self.watts: float(self.each[top])})
        self.used.append((inside, server))

    def _build(self, sets: list[Set], vector: tuple[int, ...]) -> None:
        cover = [self.row(float(v), self.infinity) for v in self.width.tolist()]
        self.levels = [self.row(-self.infinity, float(count)) for count in vector[:-1]]
        for inside in sets:
            self._set(inside, -1, [cover[ell] for ell in inside])

    def solve(self, limits: Limits, turn: int = 0, done: threading.Event | None = None) -> Decision:
        """The first placement that is found, or that there is none over these sets.

        Parameters
        ----------
        turn: how often it was looked at: each time in another way, as some take a hundredth of
            the time of others.
        done: ends this when it is set.
        """
        if self.part:
            self.reprice(np.random.default_rng(turn).random(self.columns))
        self.run(limits, done, turn)
        self.denied = self.infeasible
        if self.denied:
            return Decision(Verdict.DENIED)
        values = self.values
        places = None if values is None else self._places(values)
        return Decision(Verdict.OPEN if places is None else Verdict.PLACED, places)

    def _places(self, values: list[int]) -> Places | None:
        chosen: list[tuple[Set, int]] = []
        for one, amount in zip(self.used, values, strict=True):
            chosen += [one] * amount
        return seated(self.master, chosen)


class _Together(SetProgram):
    """The same, and a task of several GPUs has them in one server.

    Only sets with such a task are told apart by server. Servers are alike, and numbered as the
    tasks of several GPUs that are in them first, the widest first.
    """

    def _build(self, sets: list[Set], vector: tuple[int, ...]) -> None:
        master, inf = self.master, self.infinity
        size = master.pack.rows[0]
        wide = [ell for ell in np.lexsort((-size, -self.width)).tolist() if self.width[ell] > 1]
        place = {ell: k for k, ell in enumerate(wide)}
        servers = range(vector[-1])
        narrow = {ell: self.row(1.0, inf) for ell in range(len(self.width)) if self.width[ell] == 1}
        inside = {(ell, i): self.row(0.0, inf) for ell in wide for i in servers}
        once = {ell: self.row(1.0, 1.0) for ell in wide}
        self.levels = [self.row(-inf, float(count)) for count in vector[:-1]]
        seats = [self.row(-inf, float(master.width)) for _ in servers]
        self.homes: list[tuple[int, int]] = []
        for ell in wide:
            for i in servers[: place[ell] + 1]:
                self.column(0.0, 1.0, {inside[ell, i]: -float(self.width[ell]), once[ell]: 1.0})
                self.homes.append((ell, i))
        for one in sets:
            tied = [place[ell] for ell in one if ell in place]
            for i in servers if tied else (-1,):
                rows = [narrow[ell] if ell in narrow else inside[ell, i] for ell in one]
                self._set(one, i, [*rows, seats[i]] if tied else rows)

    def _places(self, values: list[int]) -> Places | None:
        first = len(self.homes)
        home = dict(one for one, value in zip(self.homes, values, strict=False) if value)
        chosen: list[tuple[Set, int]] = []
        for (one, i), amount in zip(self.used, values[first:], strict=True):
            kept = tuple(ell for ell in one if home.get(ell, i) == i)
            chosen += [(kept, i)] * amount if kept else []
        return seated(self.master, chosen)
