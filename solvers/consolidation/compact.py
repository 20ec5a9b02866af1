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
from optgap.solvers.consolidation.bounds import (
    closed_form_w,
    cost_levels,
    level_counts,
    server_limit,
)
from optgap.solvers.consolidation.instance import Instance
from optgap.solvers.consolidation.numerics import QUANTUM_W, Placement
from optgap.solvers.consolidation.outcome import Bound, Incumbent


class Compact:
    """The CP-SAT model.

    Parameters
    ----------
    servers: number of servers in the model, from the first on.
    """

    def __init__(self, instance: Instance, servers: int) -> None:
        from ortools.sat.python import cp_model

        self.instance, self.servers = instance, servers
        self.model = cp_model.CpModel()
        kinds = instance.gpu_kind[: int(instance.server_start[servers])].tolist()
        self.gpus = len(kinds)
        own = [cost_levels(instance, instance.tasks, watts) for watts in instance.watts]
        self.levels = [own[k] for k in kinds]
        self.limits = [instance.capacity[k] for k in kinds]
        self.h = [[self.model.new_bool_var("") for _ in one.quanta] for one in self.levels]
        for row in self.h:
            for lower, higher in itertools.pairwise(row):
                self.model.add_implication(higher, lower)
        self.x: dict[tuple[int, int], Any] = {}
        self._tasks()
        self._rooms()
        if instance.identical_servers:
            self._order()
            for q, count in enumerate(level_counts(instance, own[0])):
                self.model.add(sum(row[q] for row in self.h) >= count)
        self._objective()

    def _server(self, i: int) -> range:
        return range(*self.instance.server_start[i : i + 2].tolist())

    def _tasks(self) -> None:
        """Add (7), x ⇒ h, and the server of each task with several GPUs."""
        instance, model = self.instance, self.model
        for ell, v in enumerate(instance.width.tolist()):
            for g in range(self.gpus):
                if (instance.demand[:, ell] <= self.limits[g]).all():
                    self.x[ell, g] = x = model.new_bool_var("")
                    model.add_implication(x, self.h[g][int(self.levels[g].of[ell])])
            if v > 1 and instance.gang:
                inside = [model.new_bool_var("") for _ in range(self.servers)]
                model.add_exactly_one(inside)
                for i, chosen in enumerate(inside):
                    model.add(self._taken(ell, self._server(i)) == v * chosen)
            else:
                model.add(self._taken(ell, range(self.gpus)) == v)

    def _taken(self, ell: int, gpus: range) -> Any:
        """Return how many of some GPUs a task is on."""
        return sum(self.x[ell, g] for g in gpus if (ell, g) in self.x)

    def _rooms(self) -> None:
        """Add (8) and the capacity rows, for the tasks of each level and above."""
        demand = self.instance.demand.tolist()
        for g in range(self.gpus):
            for q, h in enumerate(self.h[g]):
                here = [ell for ell in self.levels[g].above(q).tolist() if (ell, g) in self.x]
                for row, limit in zip(demand, self.limits[g].tolist(), strict=True):
                    used = sum(row[ell] * self.x[ell, g] for ell in here)
                    self.model.add(used <= limit * h)

    def _order(self) -> None:
        """Add rows that order equal GPUs and servers; with these (9)-(11) are one literal."""
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
                steps = np.diff([0, *self.levels[g].quanta]).tolist()
                terms += [step * h for step, h in zip(steps, self.h[g], strict=True)]
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
        clocks, top = instance.clock_mhz[k], instance.clock_mhz[k].max()
        highest = float((instance.static_w[k] + instance.slope[k] * top).max())
        cost = self.model.new_int_var(0, math.ceil(highest / QUANTUM_W) + 1, "")
        here = [ell for ell in range(instance.tasks) if (ell, g) in self.x]
        for ell, other in itertools.product(here, here):
            if ell == other or clocks[other] > clocks[ell]:
                watts = instance.static_w[k, ell] + instance.slope[k, ell] * clocks[other]
                both = [self.x[ell, g], self.x[other, g]]
                self.model.add(cost >= math.floor(watts / QUANTUM_W)).only_enforce_if(both)
        return cost

    def only_better(self, watts: float) -> None:
        """Look for placements of less than `watts` alone; there being none is a proof.

        What rounding costs down may have taken away is left out.
        """
        least = math.floor(watts / QUANTUM_W) - self.gpus - self.servers - 1
        self.model.add(sum(self.terms) <= least)

    def decode(self, solver: Any) -> Placement:
        """Return the placement behind the values."""
        placement: list[list[int]] = [[] for _ in range(self.instance.tasks)]
        for (ell, g), x in self.x.items():
            if solver.boolean_value(x):
                placement[ell].append(g)
        return [tuple(gpus) for gpus in placement]

    def run(self, limits: Limits, target: float, seed: int) -> tuple[Any, Placement | None]:
        """CP-SAT's answer and its best placement; stops at `target` W."""
        found: list[Placement] = []

        def enough(solution: Any) -> bool:
            found.append(self.decode(solution))
            return self.instance.total(found[-1]) <= target * (1 + 1e-9)

        answer = cpsat.run(
            self.model, limits, seed=seed, phase="compact model",
            scale=lambda quanta: quanta * QUANTUM_W, enough=enough
        )  # fmt: skip
        best = min(found, key=self.instance.total) if found else None
        return answer, best


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
    incumbent: Incumbent, bound: Bound, limits: Limits, seed: int, most_literals: int
) -> CompactAnswer | None:
    """Look for better placements with the compact model; None where it would be too large.

    Parameters
    ----------
    most_literals: size from which on it is too large.
    """
    from ortools.sat.python import cp_model

    instance, known = incumbent.instance, incumbent.watts
    levels, servers = cost_levels(instance, instance.tasks), len(instance.server_w)
    if instance.identical_servers and incumbent.placement is not None:
        counts = level_counts(instance, levels)
        servers = server_limit(instance, closed_form_w(instance, levels, counts), known, counts[0])
    gpus = int(instance.server_start[servers])
    literals = gpus * (instance.tasks + 4 * len(levels.quanta) * len(instance.max_capacity))
    literals += 0 if instance.cost_is_maximum else gpus * instance.tasks**2
    if literals > most_literals:
        return None
    model = Compact(instance, servers)
    if incumbent.placement is not None:
        model.only_better(known)
    answer, found = model.run(limits, bound.watts, seed)
    incumbent.offer(found)
    none = answer.status == cp_model.INFEASIBLE
    infeasible = none and incumbent.placement is None
    watts = 0.0 if answer.bound is None else answer.bound * QUANTUM_W * (1 - 1e-12)
    if none and not infeasible:  # nothing better, up to what rounding takes away
        watts = known - (model.gpus + model.servers + 2) * QUANTUM_W
    # with a limit on the objective, a bound beyond it is one for what is better alone
    bound = bound.raised(min(watts, known), f"compact model, {cpsat.solver_name()}")
    return CompactAnswer(bound, cpsat.terminated(answer.status, limits), infeasible)
