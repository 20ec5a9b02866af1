"""How far policies are from optimal: over η against the trace bound, and decision by decision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optgap.api import bound, run
from optgap.heuristics.elastic.judged import Judged, judged
from optgap.models.elastic import presets
from optgap.models.elastic.referee import TOLERANCE
from optgap.reproduce.charts import Curve, chart
from optgap.reproduce.elastic.runs import NAMES
from optgap.reproduce.report import Item, Report, Row, Study
from optgap.solvers.elastic.snapshot import solve

ETAS = (0.4, 0.6, 0.8, 1.0)
DEFAULT_ETA = 0.6
PERCENTILES = (10, 50, 90, 99, 100)
SLOWDOWN_TO = 1e-3
"""To which optima of Σ slowdown are proven: jobs of a class are all alike there, which takes
ten times the states. Those of Σ JCT are proven as far as the referee compares."""
CHECKED = 20
"""One optimum in so many is worked out anew from the problem's tables."""


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
    return Report(item, "the default day", tuple(rows), (seed,), (panel,))


def decisions(item: Item, study: Study) -> Report:
    """How far Algorithm 1 is from the exact optimum of Eq. 18-19, at every event of the day."""
    seed = study.seeds[0]
    rows, curves = [], []
    for eta, slowdown in [*((eta, False) for eta in ETAS), (DEFAULT_ETA, True)]:
        problem = presets.day(seed=seed, eta=eta)
        title = f"Σ {'slowdown' if slowdown else 'JCT (Eq. 18)'}, η = {eta:g}"
        study.proceed(f"every decision of a day beside its optimum, {title}")
        to = SLOWDOWN_TO if slowdown else TOLERANCE
        found = judged(problem, study.limits, solve, to, slowdown=slowdown, checked=CHECKED)
        study.proceed("the next")  # nothing is shown of a day that was cut short
        rows += _distribution(title, found, to)
        order = 100 * np.sort([one.gap for one in found])
        curves.append(
            Curve(title, order.tolist(), np.linspace(0, 100, len(order)).tolist(), "step")
        )
    panel = chart(
        f"decisions of a day at {len(ETAS)} η", "gap to the optimum of the decision (%)",
        "decisions (%)", curves, linear_to=10.0,
    )  # fmt: skip
    return Report(item, "the default day", tuple(rows), (seed,), (panel,))


def _distribution(title: str, found: Sequence[Judged], proven_to: float) -> list[Row]:
    """Gaps in %, decisions that are optimal, and what the optima were checked by."""
    gaps = np.array([one.gap for one in found])
    spread = [gaps.mean(), *np.percentile(gaps, PERCENTILES)]
    shown = ", ".join(f"{100 * v:.1f}" for v in spread)
    unproven = sum(not one.proven for one in found)
    below = sum(one.value < one.bound * (1 - 1e-9) for one in found)
    off = [one.off for one in found if one.off is not None]
    names = ", ".join("most" if p == 100 else f"{p} %" for p in PERCENTILES)
    return [
        Row(f"{title}: gap in %, mean and percentiles ({names})", "", shown, "",
            f"{len(found):,} decisions of up to {max(one.jobs for one in found)} jobs"),
        Row(f"{title}: decisions that are optimal", "",
            f"{100 * float(np.mean(gaps <= proven_to)):.1f} %"),
        Row(f"{title}: optima not proven, decisions below a bound", "", f"{unproven}, {below}", "",
            f"to {proven_to:g}; {len(off)} worked out anew, {max(off, default=0.0):.0e} apart"),
    ]  # fmt: skip
