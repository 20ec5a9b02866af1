"""The strengthened compact model (14'): which GPU each task is on, frequencies eliminated.

Boolean h_gq says that GPU g costs level q or more. Beside (7)-(11) and the capacity rows:

    h_gq ⇒ h_g,q−1 ;   x_lg ⇒ h_g,q(l)
    Σ_{l: level ≥ q} a_lr x_lg ≤ limit_r h_gq                     every level, not only the lowest
    o_li ⇒ the v_l-th GPU of server i costs level q(l) or more    GPUs of a server in order
    Σ_g h_gq ≥ what the tasks of level q and above need
    equal servers are numbered by the first of their tasks, widest first       (gang = server)
    the counts of each server keep what levels.py states
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.backends import cpsat
from optgap.solvers.consolidation.levels import Levels
from optgap.solvers.consolidation.packing import QUANTUM_W, Packing
from optgap.solvers.consolidation.packing import IntArray as Ints

MOST_LITERALS = 1_500_000
Places = list[tuple[int, ...]]


class Compact:
    """The CP-SAT model.

    Parameters
    ----------
    servers: how many of the servers are looked at, from the first on.
    counts: GPUs of each level or more, at least; for GPUs of one kind.
    """

    def __init__(
        self, pack: Packing, own: Levels, servers: int, counts: tuple[int, ...] | None
    ) -> None:
        from ortools.sat.python import cp_model

        self.pack = pack
        self.model = cp_model.CpModel()
        self.gpus = int(np.searchsorted(pack.gpu_server, servers))
        self.servers = servers
        self.own = [own] if pack.uniform else _by_kind(pack)
        self.h = [self._levels(g) for g in range(self.gpus)]
        self.x: dict[tuple[int, int], Any] = {}
        self._tasks()
        self._rooms()
        self._order()
        if counts is not None:
            for q, count in enumerate(counts):
                self.model.add(sum(row[q] for row in self.h) >= count)
        self._objective()

    def _own(self, g: int) -> Levels:
        return self.own[0 if self.pack.uniform else int(self.pack.gpu_kind[g])]

    def _levels(self, g: int) -> list[Any]:
        row = [self.model.new_bool_var("") for _ in self._own(g).quanta]
        for lower, higher in itertools.pairwise(row):
            self.model.add_implication(higher, lower)
        return row

    def _server(self, i: int) -> range:
        lo, hi = np.searchsorted(self.pack.gpu_server, [i, i + 1])
        return range(int(lo), int(hi))

    def _tasks(self) -> None:
        """(7), x ⇒ h, and the server that a task of several GPUs is in."""
        pack, model = self.pack, self.model
        for ell in range(pack.tasks):
            v, gpus = int(pack.width[ell]), []
            for g in range(self.gpus):
                if (pack.rows[:, ell] <= pack.limits[int(pack.gpu_kind[g])]).all():
                    self.x[ell, g] = model.new_bool_var("")
                    model.add_implication(self.x[ell, g], self.h[g][int(self._own(g).of[ell])])
                    gpus.append(g)
            if v == 1:
                model.add_exactly_one(self.x[ell, g] for g in gpus)
            elif pack.gang:
                self._gang(ell, v)
            else:
                model.add(sum(self.x[ell, g] for g in gpus) == v)

    def _gang(self, ell: int, v: int) -> None:
        inside = [self.model.new_bool_var("") for _ in range(self.servers)]
        self.model.add_exactly_one(inside)
        for i, chosen in enumerate(inside):
            own = [self.x[ell, g] for g in self._server(i) if (ell, g) in self.x]
            self.model.add(sum(own) == v * chosen)
            for literal in own:
                self.model.add_implication(literal, chosen)
            if self.pack.uniform:
                nth = self._server(i)[v - 1]
                self.model.add_implication(chosen, self.h[nth][int(self.own[0].of[ell])])

    def _rooms(self) -> None:
        """(8) and the capacity rows, for the tasks of each level and above."""
        pack = self.pack
        for g in range(self.gpus):
            own, limits = self._own(g), pack.limits[int(pack.gpu_kind[g])]
            for q, h in enumerate(self.h[g]):
                here = [
                    (ell, self.x[ell, g]) for ell in own.above(q).tolist() if (ell, g) in self.x
                ]
                for r, limit in enumerate(limits.tolist()):
                    terms = [int(pack.rows[r, ell]) * x for ell, x in here]
                    self.model.add(sum(terms) <= limit * h)

    def _order(self) -> None:
        """Equal GPUs and servers in order; (9)-(11) with GPUs in order is one literal."""
        if not self.pack.uniform:
            return
        width = int(self.pack.server_gpus[0])
        for g in range(1, self.gpus):
            if not self.pack.gang or g % width:
                for lower, higher in zip(self.h[g - 1], self.h[g], strict=True):
                    self.model.add_implication(higher, lower)
        for i in range(1, self.servers):
            self.model.add_implication(self.h[i * width][0], self.h[(i - 1) * width][0])
        if self.pack.gang:
            self._number()

    def _number(self) -> None:
        """Servers by the first of their tasks, the widest and largest first; sleeping ones last."""
        order = np.lexsort((-self.pack.tallest, -self.pack.width)).tolist()
        for k, ell in enumerate(order[: self.servers - 1]):
            for g in range(self._server(k).stop, self.gpus):
                if (ell, g) in self.x:
                    self.model.add(self.x[ell, g] == 0)

    def _objective(self) -> None:
        terms: list[Any] = []
        for g in range(self.gpus):
            if self.pack.nested:
                steps = np.diff([0, *self._own(g).quanta])
                terms += [int(a) * h for a, h in zip(steps, self.h[g], strict=True)]
            else:
                terms.append(self._dearest(g))
        for i in range(self.servers):
            static = math.floor(float(self.pack.server_w[i]) / QUANTUM_W)
            if static:
                awake = self.model.new_bool_var("")
                for g in self._server(i):
                    self.model.add_implication(self.h[g][0], awake)
                terms.append(static * awake)
        self.terms = terms
        self.model.minimize(sum(terms))

    def _dearest(self, g: int) -> Any:
        """Power of a GPU whose residents have lines of their own: each at the highest clock."""
        pack, k = self.pack, int(self.pack.gpu_kind[g])
        tasks = [ell for ell in range(pack.tasks) if (ell, g) in self.x]
        highest = float((pack.static_w[k] + pack.slope[k] * pack.clock_mhz[k].max()).max())
        cost = self.model.new_int_var(0, math.ceil(highest / QUANTUM_W) + 1, "")
        for ell in tasks:
            for other in tasks:
                clock = max(pack.clock_mhz[k, ell], pack.clock_mhz[k, other])
                quanta = math.floor(
                    (pack.static_w[k, ell] + pack.slope[k, ell] * clock) / QUANTUM_W
                )
                both = [self.x[ell, g], self.x[other, g]]
                if ell == other or clock > pack.clock_mhz[k, ell]:
                    self.model.add(cost >= quanta).only_enforce_if(both)
        return cost

    def only_better(self, watts: float) -> None:
        """Look for placements of less than `watts` alone; there being none is a proof.

        What rounding costs down may have taken away is left out.
        """
        least = math.floor(watts / QUANTUM_W) - self.gpus - self.servers - 1
        self.model.add(sum(self.terms) <= least)

    def decode(self, solver: Any) -> Places:
        """The placement behind the values."""
        places: list[list[int]] = [[] for _ in range(self.pack.tasks)]
        for (ell, g), x in self.x.items():
            if solver.boolean_value(x):
                places[ell].append(g)
        return [tuple(gpus) for gpus in places]

    def run(
        self, limits: Limits, target: float, workers: int, seed: int
    ) -> tuple[Any, Places | None]:
        """CP-SAT's answer and its best placement; stops at `target` W."""
        found: list[Places] = []

        def enough(solution: Any) -> bool:
            found.append(self.decode(solution))
            return self.pack.total(found[-1]) <= target * (1 + 1e-9)

        answer = cpsat.run(
            self.model, limits, workers=workers, seed=seed, phase="compact model",
            scale=lambda quanta: quanta * QUANTUM_W, enough=enough,
        )  # fmt: skip
        best = min(found, key=self.pack.total) if found else None
        return answer, best


def _by_kind(pack: Packing) -> list[Levels]:
    """Levels of each kind of GPU by itself."""
    found = []
    for watts in pack.watts:
        each = np.floor(watts / QUANTUM_W * (1 + 1e-15)).astype(np.int64)
        quanta = np.unique(each)
        of: Ints = np.searchsorted(quanta, each)
        found.append(Levels(tuple(int(x) for x in quanta), of, True))
    return found


def fits(pack: Packing, servers: int, own: Levels) -> bool:
    """Whether the model is of a size worth building."""
    gpus = int(np.searchsorted(pack.gpu_server, servers))
    rows = gpus * len(own.quanta) * len(pack.most)
    extra = 0 if pack.nested else gpus * pack.tasks**2
    return gpus * pack.tasks + rows * 4 + extra <= MOST_LITERALS
