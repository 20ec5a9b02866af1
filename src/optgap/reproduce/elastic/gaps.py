"""How far policies are from optimal: over η against the trace bound, and decision by decision."""

from __future__ import annotations

import numpy as np

from optgap.api import bound, run
from optgap.heuristics.elastic.regret import regrets
from optgap.models.elastic import presets
from optgap.reproduce.elastic.charts import Curve, CurvesReport, chart
from optgap.reproduce.elastic.runs import NAMES, solution_of
from optgap.reproduce.report import Item, Report, Row, Study

ETAS = (0.4, 0.6, 0.8, 1.0)
MOST_EVENTS = 300


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
    """What Algorithm 1 adds to Σ JCT at single events, beside the exact optimum of Eq. 18-19."""
    seed = study.seeds[0]
    problem = presets.day(seed=seed)
    study.proceed("PowerFlow over the day")
    result = run(problem, "powerflow", seed=0, profiles="oracle")
    study.proceed(f"the optimum of {MOST_EVENTS} decisions")
    found = regrets(problem, solution_of(result), most=MOST_EVENTS)
    costs = np.array([r.cost for r in found])
    shares = [
        (f"{q} % of the decisions cost at most", f"{np.percentile(costs, q):,.1f} s")
        for q in (25, 50, 75, 90, 100)
    ]
    rows = [
        Row(
            claim,
            "",
            ours,
            "",
            "per active job; one that waits counts for 2 × the longest, which makes up most of it",
        )
        for claim, ours in shares
    ]
    rows.append(Row("decisions that are optimal", "", f"{100 * np.mean(costs < 1e-3):.0f} %"))
    order = np.sort(costs)
    curve = Curve("PowerFlow, strict", order.tolist(), np.linspace(0, 100, len(order)).tolist())
    panel = chart("Decisions of a day", "regret (mean s per active job)", "decisions (%)", [curve])
    return CurvesReport(item, "the default day", tuple(rows), (seed,), (panel,))
