"""How far policies are from optimal: over η against the trace bound, and decision by decision."""

from __future__ import annotations

import numpy as np

from optgap.api import bound, run
from optgap.heuristics.elastic.regret import snapshot_gaps
from optgap.models.elastic import presets
from optgap.reproduce.elastic.charts import Curve, CurvesReport, chart
from optgap.reproduce.elastic.runs import NAMES
from optgap.reproduce.report import Item, Report, Row, Study

ETAS = (0.4, 0.6, 0.8, 1.0)
PERCENTILES = (10, 25, 50, 75, 90, 99, 100)
PROVEN_TO = 1e-3
EVERY = 10
"""One event in so many: all of them take ten times the minutes."""


def by_eta(item: Item, study: Study) -> Report:
    """Every policy under the limit, over the trace bound, on the default day."""
    seed = study.seeds[0]
    gaps: dict[str, list[float]] = {name: [] for name in (*NAMES, "elastic-srtf")}
    rows = []
    for eta in ETAS:
        problem = presets.day(seed=seed, eta=eta)
        study.proceed(f"bound at η = {eta:g}")
        proven = bound(problem, "bound-prices", limits=study.limits)
        least = float(proven.bound or 0.0)
        shown = []
        for name, found in gaps.items():
            study.proceed(f"{name}, η = {eta:g}")
            value = float(run(problem, name, seed=0).objective or 0.0)
            found.append(100 * (value / least - 1))
            shown.append(f"{NAMES.get(name, name)} {found[-1]:.0f} %")
        rows.append(Row(f"η = {eta:g}: gap to the bound {least:,.0f} s", "", ", ".join(shown)))
    curves = [Curve(NAMES.get(n, n), list(ETAS), y) for n, y in gaps.items()]
    panel = chart("1,901 synthetic jobs on 256 GPUs", "η", "gap to the proven bound (%)", curves)
    source = "the default day"
    return CurvesReport(item, source, tuple(rows), (seed,), (panel,))


def decisions(item: Item, study: Study) -> Report:
    """How far Algorithm 1 is from the exact optimum of Eq. 18-19, over the events of the day."""
    seed = study.seeds[0]
    problem = presets.day(seed=seed)
    study.proceed("Algorithm 1 beside two optima at every event of a day")
    found = snapshot_gaps(problem, study.limits, PROVEN_TO, EVERY)
    rows, curves = [], []
    unproven = sum(not gap.proven for gap in found)
    for title, values in (
        ("Σ JCT (Eq. 18)", np.array([gap.jct for gap in found])),
        ("Σ slowdown", np.array([gap.slowdown for gap in found])),
    ):
        shown = ", ".join(f"{100 * v:.1f}" for v in np.percentile(values, PERCENTILES))
        rows.append(
            Row(f"{title}: gap in %, percentiles {', '.join(map(str, PERCENTILES))}", "", shown, "",
                f"{len(values):,} events, optima proven to {100 * PROVEN_TO:g} %"
                + (f", but {unproven}" if unproven else ""))
        )  # fmt: skip
        within = 100 * float(np.mean(values <= PROVEN_TO))
        rows.append(Row(f"{title}: decisions that are optimal", "", f"{within:.0f} %"))
        order = 100 * np.sort(values)
        curves.append(Curve(title, order.tolist(), np.linspace(0, 100, len(order)).tolist(), True))
    panel = chart(
        f"{len(found):,} decisions of a day", "gap to the optimum of the decision (%)",
        "decisions (%)", curves,
    )  # fmt: skip
    return CurvesReport(item, "the default day", tuple(rows), (seed,), (panel,))
