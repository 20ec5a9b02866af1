"""The decision at one event by other means: a MILP, and a convex relaxation solved anew cheaply.

The exact optimum without a solver is `optgap.solvers.elastic.snapshot.solve`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.models.elastic.arrays import Floats
from optgap.models.elastic.snapshot import Choices, Snapshot, Solved
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.backends import solve as run
from optgap.solvers.backends.pulp_model import from_pulp
from optgap.solvers.elastic.formulation import Configuration, eq_18_19
from optgap.solvers.formulation import Program


def milp(
    snapshot: Snapshot, *, limits: Limits | None = None, backend: str = "highs", gap: float = 1e-9
) -> Solved:
    """The multiple-choice knapsack of Eq. 18-19 as a MILP.

    min Σ_j Σ_c JCT_jc·x_jc + H·Σ_j (1 − Σ_c x_jc), with Σ_c x_jc ≤ 1 (= 1 where H is infinite),
    Σ n_c·x_jc ≤ G and Σ P_jc·x_jc ≤ limit.
    """
    choices = snapshot.choices
    JCT: dict[Configuration, float] = {}
    P: dict[Configuration, float] = {}
    jobs = zip(snapshot.of_class.tolist(), snapshot.remaining.tolist(), strict=True)
    for j, (c, left) in enumerate(jobs):
        for z in range(int(choices.first[c]), int(choices.first[c + 1])):
            key = (j, int(choices.gpus[z]), z)
            JCT[key], P[key] = left * float(choices.time_s[z]), float(choices.watts[z])
    m = Program("PowerFlow")
    x, total = eq_18_19(m, JCT, P, snapshot.gpus, snapshot.limit_w, snapshot.wait_s)
    m.objective("jct_18", total)
    model = from_pulp(m.problem, m.variables)
    found = run(model, backend=backend, limits=limits or Limits(), gap=gap)
    if found.values is None:
        bound = math.inf if found.status is Status.INFEASIBLE else found.bound or 0.0
        return Solved(None, math.inf, bound, found.status is Status.INFEASIBLE)
    chosen = np.full(len(snapshot.remaining), -1)
    for (j, _, z), value in zip(x, found.values, strict=False):  # `constant` comes last
        if value > 0.5:
            chosen[j] = z
    value = snapshot.objective(chosen)
    bound = value if found.bound is None else min(found.bound, value)
    return Solved(chosen, value, bound, found.status is Status.OPTIMAL)


class Relaxation:
    """The convex relaxation for up to `most` jobs, formulated once in CVXPY and re-solved.

    Every job is a row of the same shape, so that from event to event only parameters change:
    costs, GPUs and watts of each configuration, whether a job is there, and the capacities.

    Parameters
    ----------
    choices: configurations by class.
    most: jobs at a time.
    """

    def __init__(self, choices: Choices, most: int) -> None:
        from importlib import import_module

        cp: Any = import_module("cvxpy")  # whose functions carry no types

        self.choices, self.most = choices, most
        self.width = int(np.diff(choices.first).max()) + 1  # the last one is to wait
        shape = (most, self.width)
        self.share = cp.Variable(shape, nonneg=True)
        self.cost = cp.Parameter(shape, nonneg=True)
        self.gpus = cp.Parameter(shape, nonneg=True)
        self.watts = cp.Parameter(shape, nonneg=True)
        here = cp.sum(self.share, axis=1) == np.ones(most)
        self.problem: Any = cp.Problem(
            cp.Minimize(cp.sum(cp.multiply(self.cost, self.share))),
            [
                here,
                cp.sum(cp.multiply(self.gpus, self.share)) <= 1,
                cp.sum(cp.multiply(self.watts, self.share)) <= 1,
            ],
        )

    def bound(self, snapshot: Snapshot) -> float:
        """A lower bound on Σ remaining times, s.

        The solver's optimum is not taken at its word: its prices of GPUs and power give a
        Lagrangian bound that holds whatever they are.
        """
        size = len(snapshot.remaining)
        if size > self.most:
            raise ValueError(f"{size} jobs, room for {self.most}")
        scale = float(snapshot.remaining.max()) * float(self.choices.time_s.max())
        cost, gpus, watts = (np.zeros((self.most, self.width)) for _ in range(3))
        for j, c in enumerate(snapshot.of_class.tolist()):
            part = slice(int(self.choices.first[c]), int(self.choices.first[c + 1]))
            many = part.stop - part.start
            cost[j] = _wait(snapshot, scale) / scale
            cost[j, :many] = snapshot.remaining[j] * self.choices.time_s[part] / scale
            gpus[j, :many] = self.choices.gpus[part] / snapshot.gpus
            if math.isfinite(snapshot.limit_w):
                watts[j, :many] = self.choices.watts[part] / snapshot.limit_w
        self.cost.value, self.gpus.value, self.watts.value = cost, gpus, watts
        self.problem.solve(solver="CLARABEL")
        prices = [
            max(0.0, float(np.asarray(c.dual_value))) if c.dual_value is not None else 0.0
            for c in self.problem.constraints[1:]
        ]
        return _lagrangian(cost[:size], gpus[:size], watts[:size], prices) * scale


def _wait(snapshot: Snapshot, scale: float) -> float:
    """What waiting costs; where it is not allowed, more than anything else."""
    if math.isfinite(snapshot.wait_s):
        return snapshot.wait_s
    return 1e3 * scale


def _lagrangian(cost: Floats, gpus: Floats, watts: Floats, prices: Any) -> float:
    """Σ_j min_c (cost + λ·n + μ·w) − λ − μ, capacities being 1."""
    best = (cost + prices[0] * gpus + prices[1] * watts).min(axis=1)
    return math.fsum(best.tolist()) - float(prices[0] + prices[1])
