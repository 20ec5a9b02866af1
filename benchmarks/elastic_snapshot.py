"""One decision, proven optimal: ours against the same knapsack as a MILP in HiGHS.

    python benchmarks/elastic_snapshot.py

Jobs × 8 GPU counts × 30 clocks (synthetic V100 pool); both stop at a relative gap of 1e-6.
"""

from __future__ import annotations

import math
import time
from itertools import groupby
from operator import itemgetter

import numpy as np

from optgap.models.elastic import presets
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.backends import solve as run
from optgap.solvers.backends.pulp_model import from_pulp
from optgap.solvers.elastic.formulation import Configuration
from optgap.solvers.elastic.snapshot import Choices, Snapshot, Solved, solve
from optgap.solvers.formulation import Program

GAP = 1e-6


def snapshot(jobs: int, gpus: int) -> Snapshot:
    """Jobs at random stages of their work."""
    problem = presets.day(seed=0, size=jobs, gpus=gpus, pool="v100")
    done = np.random.default_rng(0).uniform(0.05, 1, jobs)
    left, of_class = problem.jobs.iterations * done, problem.jobs.of_class
    return Snapshot.of(problem, Choices.of(problem), of_class, left)


def milp(snapshot: Snapshot, *, limits: Limits | None = None, gap: float = 1e-9) -> Solved:
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
    m, H = Program("PowerFlow"), snapshot.wait_s
    waits = math.isfinite(H)
    x = {(j, n, z): m.binary(f"x_{j}_{n}_{z}") for j, n, z in JCT}
    total = m.sum(JCT[c] * x[c] for c in x)
    for j, own in groupby(x, key=itemgetter(0)):
        runs = m.sum(x[c] for c in own)
        m.row(f"one_configuration_{j}", runs <= 1 if waits else runs == 1)
        total += H * (1 - runs) if waits else 0
    m.row("gpus_18", m.sum(c[1] * x[c] for c in x) <= snapshot.gpus)
    if math.isfinite(snapshot.limit_w):
        m.row("power_19", m.sum(P[c] * x[c] for c in x) <= snapshot.limit_w)
    m.objective("jct_18", total)
    model = from_pulp(m.problem, m.variables)
    found = run(model, backend="highs", limits=limits or Limits(), gap=gap)
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


def apart(found: Solved) -> float:
    """The relative gap."""
    return found.objective / found.bound - 1


def main() -> None:
    """Print both times and their ratio."""
    solve(snapshot(20, 32), GAP)
    print(f"{'jobs':>5} {'GPUs':>5} {'ours s':>8} {'HiGHS s':>8} {'ratio':>7} {'our gap':>9}")
    for jobs, gpus in ((30, 64), (100, 128), (300, 256), (1000, 1024)):
        item = snapshot(jobs, gpus)
        t = time.perf_counter()
        ours = solve(item, GAP)
        seconds = time.perf_counter() - t
        if jobs <= 300:
            t = time.perf_counter()
            other = milp(item, limits=Limits(60), gap=GAP)
            rival = time.perf_counter() - t
            same = abs(other.objective / ours.objective - 1) < 1e-5
            shown = f"{rival:8.2f} {rival / seconds:7.1f}" + ("" if same else " not equal")
        else:
            shown = f"{'-':>8} {'-':>7}"
        proven = f"{apart(ours):9.1e}" if ours.proven else "unproven"
        print(f"{jobs:5d} {gpus:5d} {seconds:8.3f} {shown} {proven}")


if __name__ == "__main__":
    main()
