"""The decision at one event by other means: a MILP.

The exact optimum without a solver is `optgap.solvers.elastic.snapshot.solve`.
"""

from __future__ import annotations

import math

import numpy as np

from optgap.models.elastic.snapshot import Snapshot, Solved
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
