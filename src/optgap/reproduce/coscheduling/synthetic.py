"""Gaps to a proven optimum on the synthetic pool: what anyone can run without data."""

from __future__ import annotations

import numpy as np

from optgap.api import run, solve
from optgap.models.coscheduling.presets import synthetic
from optgap.models.result import Status
from optgap.reproduce.coscheduling.charts import charts
from optgap.reproduce.coscheduling.queues import H100, policies
from optgap.reproduce.report import Item, Report, Row, Study

POLICIES = policies(H100.tau)


def gaps(item: Item, study: Study) -> Report:
    """Mean and range of every policy's gap over 25-job queues, one per seed."""
    found: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    proven, seconds = 0, []
    for seed in study.seeds:
        study.proceed(f"synthetic queue {seed}")
        problem = synthetic(seed=seed, size=25)
        best = solve(problem, limits=study.limits.within(60))
        proven += best.status is Status.OPTIMAL
        seconds.append(best.seconds)
        assert best.bound is not None
        for policy in POLICIES:
            value = run(problem, policy).objective or 0.0
            found[policy].append(100 * (value / best.bound - 1))
    queues = len(study.seeds)
    note = f"{np.mean(seconds):.2f} s each, {max(seconds):.2f} s at most"
    rows = [Row(f"optima proven, of {queues} queues", "", str(proven), note=note)]
    for policy, values in found.items():
        words = f"{np.mean(values):.2f} % ({min(values):.2f} to {max(values):.2f})"
        rows.append(Row(f"gap of {policy}: mean, range", "", words))
    first = synthetic(seed=study.seeds[0], size=25)
    made = {name: run(first, name) for name in ("ecosched", "lookahead")}
    made["least energy"] = solve(first)
    panels = charts((name, first, result.solution) for name, result in made.items())
    return Report(item, item.stand_in, tuple(rows), study.seeds, panels)
