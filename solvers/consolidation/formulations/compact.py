"""The compact model on CP-SAT: assignment variables x_lg, with frequencies eliminated by (14').

Boolean h_gq says that GPU g has cost level q or more. Beside (7)-(11) and the capacity rows:

    h_gq ⇒ h_g,q−1 ;   x_lg ⇒ h_g,q(l)
    Σ_{l: level ≥ q} a_lr x_lg ≤ limit_r h_gq                     every level, not only the lowest
    Σ_g h_gq ≥ what the tasks of level q and above need
    h falls with the GPU, and with the server                     where these are identical
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optgap.models.limits import Limits
from optgap.models.result import Termination
from optgap.solvers.backends import cpsat
from optgap.solvers.consolidation.bounds.level_counts import (
    CostLevels,
    closed_form_w,
    cost_levels,
    level_counts,
    server_limit,
)
from optgap.solvers.consolidation.incumbent import Incumbent
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import QUANTUM_W, Counts, Placement
from optgap.solvers.consolidation.outcome import Bound


class Compact:
    """The CP-SAT model.

    Parameters
    ----------
    servers: number of servers in the model, from the first on.
    counts: (Q,) lower bounds on the GPUs of each level or more; for GPUs of one kind.
    """

    def __init__(
        self, instance: Instance, levels: CostLevels, servers: int, counts: Counts | None
    ) -> None:
        from ortools.sat.python import cp_model

        self.instance = instance
        self.model = cp_model.CpModel()
        self.gpus = int(instance.server_start[servers])
        self.servers = servers
        kinds = [cost_levels(instance, instance.tasks, watts) for watts in instance.watts]
        self.own = [levels] if instance.identical_servers else kinds
        self.h = [self._levels(g) for g in range(self.gpus)]
        self.x: dict[tuple[int, int], Any] = {}
        self._tasks()
        self._rooms()
        self._order()
        if counts is not None:
            for q, count in enumerate(counts):
                self.model.add(sum(row[q] for row in self.h) >= count)
        self._objective()

    def _own(self, g: int) -> CostLevels:
        return self.own[int(self.instance.gpu_kind[g])]

    def _levels(self, g: int) -> list[Any]:
        row = [self.model.new_bool_var("") for _ in self._own(g).quanta]
        for lower, higher in itertools.pairwise(row):
            self.model.add_implication(higher, lower)
        return row

    def _server(self, i: int) -> range:
        return range(*self.instance.server_start[i : i + 2].tolist())

    def _tasks(self) -> None:
        """(7), x ⇒ h, and the server that a task of several GPUs is in."""
        instance, model = self.instance, self.model
        for ell in range(instance.tasks):
            v, gpus = int(instance.width[ell]), []
            for g in range(self.gpus):
                if (instance.demand[:, ell] <= instance.capacity[int(instance.gpu_kind[g])]).all():
                    self.x[ell, g] = model.new_bool_var("")
                    model.add_implication(self.x[ell, g], self.h[g][int(self._own(g).of[ell])])
                    gpus.append(g)
            if v == 1:
                model.add_exactly_one(self.x[ell, g] for g in gpus)
            elif instance.gang:
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

    def _rooms(self) -> None:
        """(8) and the capacity rows, for the tasks of each level and above."""
        instance = self.instance
        for g in range(self.gpus):
            own, limits = self._own(g), instance.capacity[int(instance.gpu_kind[g])]
            for q, h in enumerate(self.h[g]):
                here = [
                    (ell, self.x[ell, g]) for ell in own.above(q).tolist() if (ell, g) in self.x
                ]
                for r, limit in enumerate(limits.tolist()):
                    terms = [int(instance.demand[r, ell]) * x for ell, x in here]
                    self.model.add(sum(terms) <= limit * h)

    def _order(self) -> None:
        """Equal GPUs and servers in order; (9)-(11) with GPUs in order is one literal."""
        if not self.instance.identical_servers:
            return
        width = int(self.instance.server_gpus[0])
        for g in range(1, self.gpus):
            if not self.instance.gang or g % width:
                for lower, higher in zip(self.h[g - 1], self.h[g], strict=True):
                    self.model.add_implication(higher, lower)
        for i in range(1, self.servers):
            self.model.add_implication(self.h[i * width][0], self.h[(i - 1) * width][0])

    def _objective(self) -> None:
        terms: list[Any] = []
        for g in range(self.gpus):
            if self.instance.cost_is_maximum:
                steps = np.diff([0, *self._own(g).quanta])
                terms += [int(a) * h for a, h in zip(steps, self.h[g], strict=True)]
            else:
                terms.append(self._dearest(g))
        for i in range(self.servers):
            static = math.floor(float(self.instance.server_w[i]) / QUANTUM_W)
            if static:
                awake = self.model.new_bool_var("")
                for g in self._server(i):
                    self.model.add_implication(self.h[g][0], awake)
                terms.append(static * awake)
        self.terms = terms
        self.model.minimize(sum(terms))

    def _dearest(self, g: int) -> Any:
        """Power of a GPU whose residents have lines of their own: each at the highest clock."""
        instance, k = self.instance, int(self.instance.gpu_kind[g])
        tasks = [ell for ell in range(instance.tasks) if (ell, g) in self.x]
        highest = float(
            (instance.static_w[k] + instance.slope[k] * instance.clock_mhz[k].max()).max()
        )
        cost = self.model.new_int_var(0, math.ceil(highest / QUANTUM_W) + 1, "")
        for ell in tasks:
            for other in tasks:
                clock = max(instance.clock_mhz[k, ell], instance.clock_mhz[k, other])
                quanta = math.floor(
                    (instance.static_w[k, ell] + instance.slope[k, ell] * clock) / QUANTUM_W
                )
                both = [self.x[ell, g], self.x[other, g]]
                if ell == other or clock > instance.clock_mhz[k, ell]:
                    self.model.add(cost >= quanta).only_enforce_if(both)
        return cost

    def only_better(self, watts: float) -> None:
        """Look for placements of less than `watts` alone; there being none is a proof.

        What rounding costs down may have taken away is left out.
        """
        least = math.floor(watts / QUANTUM_W) - self.gpus - self.servers - 1
        self.model.add(sum(self.terms) <= least)

    def decode(self, solver: Any) -> Placement:
        """The placement behind the values."""
        placement: list[list[int]] = [[] for _ in range(self.instance.tasks)]
        for (ell, g), x in self.x.items():
            if solver.boolean_value(x):
                placement[ell].append(g)
        return [tuple(gpus) for gpus in placement]

    def run(
        self, limits: Limits, target: float, workers: int, seed: int
    ) -> tuple[Any, Placement | None]:
        """CP-SAT's answer and its best placement; stops at `target` W."""
        found: list[Placement] = []

        def enough(solution: Any) -> bool:
            found.append(self.decode(solution))
            return self.instance.total(found[-1]) <= target * (1 + 1e-9)

        answer = cpsat.run(
            self.model, limits, workers=workers, seed=seed, phase="compact model",
            scale=lambda quanta: quanta * QUANTUM_W, enough=enough
        )  # fmt: skip
        best = min(found, key=self.instance.total) if found else None
        return answer, best


def literals(instance: Instance, servers: int, levels: CostLevels) -> int:
    """Approximate number of literals of the model."""
    gpus = int(instance.server_start[servers])
    rows = gpus * len(levels.quanta) * len(instance.max_capacity)
    extra = 0 if instance.cost_is_maximum else gpus * instance.tasks**2
    return gpus * instance.tasks + rows * 4 + extra


@dataclass(frozen=True)
class CompactAnswer:
    """The result of the compact model.

    Parameters
    ----------
    bound: the best lower bound known. termination: why the solver ended.
    infeasible: proven that there is no placement at all.
    """

    bound: Bound
    termination: Termination
    infeasible: bool = False


def solve_compact(
    incumbent: Incumbent, bound: Bound, limits: Limits, workers: int, seed: int, most_literals: int
) -> CompactAnswer | None:
    """Look for better placements with the compact model; None where it would be too large.

    Parameters
    ----------
    workers: CP-SAT's threads; 0 for one per core, and no fewer than eight, which search in
        different ways.
    """
    from ortools.sat.python import cp_model

    instance, known = incumbent.instance, incumbent.watts
    levels, servers = cost_levels(instance), len(instance.server_w)
    counts: Counts | None = None
    if instance.identical_servers:
        same = len(bound.counts) == len(levels.quanta)
        counts = bound.counts if same else level_counts(instance, levels)
    if counts is not None and incumbent.placement is not None:
        needed = closed_form_w(instance, levels, counts)  # a better bound may be for other counts
        servers = server_limit(instance, needed, known, max([1, *counts[:1]]))
    if literals(instance, servers, levels) > most_literals:
        return None
    model = Compact(instance, levels, servers, counts)
    if incumbent.placement is not None:
        model.only_better(known)
    answer, found = model.run(limits, bound.watts, workers or max(8, cpsat.cores()), seed)
    incumbent.offer(found)
    none = answer.status == cp_model.INFEASIBLE
    infeasible = none and incumbent.placement is None
    watts = 0.0 if answer.bound is None else answer.bound * QUANTUM_W * (1 - 1e-12)
    if none and not infeasible:  # nothing better, up to what rounding takes away
        watts = known - (model.gpus + model.servers + 2) * QUANTUM_W
    # with a limit on the objective, a bound beyond it is one for what is better alone
    bound = bound.raised(min(watts, known), f"compact model, {cpsat.solver_name()}")
    return CompactAnswer(bound, cpsat.terminated(answer.status, limits), infeasible)
