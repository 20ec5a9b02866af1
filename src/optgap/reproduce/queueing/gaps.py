"""How far every policy is from a proven bound at the paper's scale, and exactly on a dozen jobs."""

from __future__ import annotations

import numpy as np

from optgap.api import bound, run, solve
from optgap.models.queueing.presets import mixed, small
from optgap.models.queueing.problem import Goal
from optgap.reproduce.queueing import SOURCE
from optgap.reproduce.queueing.runs import DYNAMIC, JOBS, NAMES, OTHERS, STATIC, Spread
from optgap.reproduce.report import Item, Report, Row, Study

GOALS: tuple[Goal, ...] = ("mean_wait", "mean_jct", "makespan")
EXACT_S = 60.0


def gaps(item: Item, study: Study) -> Report:
    """Gaps to the bound at 1,000 jobs, and to the optimum at 12 jobs on two nodes."""
    rows = []
    for policy in (*STATIC, *DYNAMIC, *OTHERS):
        large = " / ".join(_large(study, goal, policy).text(0) for goal in GOALS)
        dozen = " / ".join(f"{_dozen(study, goal, policy):.1f}" for goal in GOALS)
        rows.append(Row(NAMES[policy], "", f"{large} %", note=f"12 jobs: {dozen} %"))
    source = (
        f"{SOURCE}, endless patience; % above the bound on {', '.join(GOALS)} with {JOBS} jobs at "
        "load 0.9, and above the optimum of 12 jobs on 2 x 8 GPUs at load 2, in the median"
    )
    return Report(item, source, tuple(rows), study.seeds)


def _large(study: Study, goal: Goal, policy: str) -> Spread:
    found = []
    for seed in study.seeds:
        key = ("queueing bound", goal, seed)
        if key not in study.shared:
            study.proceed(f"bound on {goal}, seed {seed}")
            problem = mixed(seed=seed, size=JOBS, goal=goal)
            study.shared[key] = (problem, bound(problem).bound)
        problem, proven = study.shared[key]
        value = run(problem, policy).objective
        found.append(100 * ((value or 0.0) / proven - 1))
    return Spread.of(np.array(found))


def _dozen(study: Study, goal: Goal, policy: str) -> float:
    """The median over those streams in which the optimum is not 0."""
    found = []
    for seed in study.seeds:
        key = ("queueing optimum", goal, seed)
        if key not in study.shared:
            study.proceed(f"optimum of {goal}, seed {seed}")
            problem = small(seed=seed, goal=goal)
            result = solve(problem, "exact", time_limit=EXACT_S)
            best = result.objective if result.status == "optimal" else None
            study.shared[key] = (problem, best)
        problem, best = study.shared[key]
        if best:
            found.append(100 * ((run(problem, policy).objective or 0.0) / best - 1))
    return float(np.median(found)) if found else float("nan")
