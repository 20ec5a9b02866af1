"""Integer programs over sets: whether they cover the tasks with given counts."""

from __future__ import annotations

import threading

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.covering import Decision, Question, Verdict
from optgap.solvers.consolidation.generation import Set
from optgap.solvers.consolidation.plunge import seated
from optgap.solvers.consolidation.programs import Program
from optgap.solvers.consolidation.search import Places

SLACK_W = 1e-4
"""What the covers that are looked for cost less than the one that is there to begin with."""


class SetProgram(Program):
    """The cheapest cover of tasks by sets, with no more GPUs of a level or more than a vector has.

    There is a cover to begin with, of a column of its own that has all tasks and costs a little
    more than a placement may: where no other is cheaper, there is no placement. A solver that may
    cut off what is dearer than a solution it knows denies in a fraction of the time that it takes
    over the same limit as a row.
    """

    def __init__(self, asked: Question) -> None:
        super().__init__()
        self.option("mip_heuristic_effort", 0.0)  # what there is, is found by branching as well
        self.option("mip_allow_restart", False)
        self.asked, self.part, self.denied = asked, asked.part, False
        self.width, self.own = asked.master.pack.width, asked.master.own.of
        self.used: list[tuple[Set, int]] = []
        """The set of each column, and its server or -1."""
        self.each = asked.each
        known = asked.gpu_watts + SLACK_W
        self.better = known - SLACK_W / 2
        self.column(known, 1.0, self._build())
        self.build()
        self.cheaper_than(self.columns - 1, self.better)

    def _set(self, inside: Set, server: int, rows: list[int]) -> None:
        """A column for a set: the rows of its tasks and of its server are given."""
        top = int(self.own[list(inside)].max())
        most = float(self.width[list(inside)].min())
        self.column(
            float(self.each[top]), most, dict.fromkeys([*rows, *self.levels[: top + 1]], 1.0)
        )
        self.used.append((inside, server))

    def _build(self) -> dict[int, float]:
        """Rows and columns; returns what covers all tasks."""
        cover = {self.row(v, self.infinity): v for v in self.width.astype(float).tolist()}
        self.levels = [self.row(-self.infinity, float(count)) for count in self.asked.vector[:-1]]
        for inside in self.asked.sets:
            self._set(inside, -1, list(inside))  # tasks have the first rows
        return cover

    def solve(self, limits: Limits, turn: int = 0, done: threading.Event | None = None) -> Decision:
        """The first placement that is found, or that there is none over these sets.

        Parameters
        ----------
        turn: how often it was looked at: each time in another way, as some take a hundredth of
            the time of others.
        done: ends this when it is set.
        """
        self.run(limits, done, turn)
        values = self.values
        if values is None or values[-1]:
            self.denied = self.solved
            return Decision(Verdict.DENIED if self.denied else Verdict.OPEN)
        places = self._places(values)
        return Decision(Verdict.OPEN if places is None else Verdict.PLACED, places)

    def _places(self, values: list[int]) -> Places | None:
        chosen: list[tuple[Set, int]] = []
        for one, amount in zip(self.used, values[:-1], strict=True):
            chosen += [one] * amount
        return seated(self.asked.master, chosen)


class Together(SetProgram):
    """The same, and a task of several GPUs has them in one server.

    Only sets with such a task are told apart by server. Servers are alike, and numbered as the
    tasks of several GPUs that are in them first, the widest first.
    """

    def _build(self) -> dict[int, float]:
        master, vector, inf = self.asked.master, self.asked.vector, self.infinity
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
        for one in self.asked.sets:
            tied = [place[ell] for ell in one if ell in place]
            for i in servers if tied else (-1,):
                rows = [narrow[ell] if ell in narrow else inside[ell, i] for ell in one]
                self._set(one, i, [*rows, seats[i]] if tied else rows)
        return dict.fromkeys([*narrow.values(), *once.values()], 1.0)

    def _places(self, values: list[int]) -> Places | None:
        first = len(self.homes)
        home = dict(one for one, value in zip(self.homes, values, strict=False) if value)
        chosen: list[tuple[Set, int]] = []
        for (one, i), amount in zip(self.used, values[first:-1], strict=True):
            kept = tuple(ell for ell in one if home.get(ell, i) == i)
            chosen += [(kept, i)] * amount if kept else []
        return seated(self.asked.master, chosen)
