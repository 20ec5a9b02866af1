"""Fig. 2 to 5: throughput, power and energy per iteration over clocks, GPUs and batches.

The figures have points measured on V100 and the lines of the fitted models, and no numbers. Ours
are the synthetic pool with 4 % noise, and what the estimators make of that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optgap.fitting import make_estimator
from optgap.fitting.profile import Profile
from optgap.models.elastic.pools import BATCHES, BOARDS, trained
from optgap.reproduce.charts import Chart, Curve, chart
from optgap.reproduce.elastic.fits import NOISE, PAPER_NAMES, measurements
from optgap.reproduce.report import Item, Report, Row, Study

NEAR_MHZ = {"low": 600.0, "high": 1200.0}
"""Of Fig. 2 and 4; ours are the nearest clocks of the pool."""
LOCAL_BATCH = 32
PARETO_BATCH = 64
SOURCE = f"synthetic measurements of the V100 pool with {100 * NOISE:.0f} % noise"
NONE = "the figure has no numbers, and ours is synthetic: no verdict"


def fig2(item: Item, study: Study) -> Report:
    """Throughput over the clock on one GPU, and over GPUs at about 1,200 MHz."""
    return _fitted(item, study, "powerflow-throughput", "time_s", ("high",))


def fig4(item: Item, study: Study) -> Report:
    """Energy per iteration over the clock, and over GPUs at about 600 and 1,200 MHz."""
    return _fitted(item, study, "powerflow-energy", "energy_j", ("low", "high"))


def _fitted(item: Item, study: Study, estimator: str, column: str, clocks: Sequence[str]) -> Report:
    speed = column == "time_s"
    label = "samples/s" if speed else "J per iteration"
    views = ["clock", *clocks]
    curves: dict[str, list[Curve]] = {view: [] for view in views}
    rows: list[Row] = []
    for name in PAPER_NAMES:
        study.proceed(f"fitting {PAPER_NAMES[name]}")
        profile = measurements(name, np.random.default_rng(study.seeds[0]))
        model = make_estimator(estimator)
        model.fit(profile)
        predicted = np.asarray(model.predict(profile), float)
        truth = profile.numbers(column)
        off = 100 * np.abs(predicted / truth - 1)
        words = f"{off.mean():.1f} %, {off.max():.1f} %"
        note = NONE if not rows else ""
        claim = f"{PAPER_NAMES[name]}: the line is off by, in the mean and at most"
        rows.append(Row(claim, "", words, note=note))
        batch = profile.numbers("gpus") * profile.numbers("local_batch")
        for view in views:
            keep, x = _shown(profile, view)
            order = np.argsort(x[keep])
            at = np.flatnonzero(keep)[order]
            for values, suffix, kind in ((truth, "", "points"), (predicted, ", fitted", "line")):
                y = batch[at] / values[at] if speed else values[at]
                own = Curve(f"{PAPER_NAMES[name]}{suffix}", x[at].tolist(), y.tolist(), kind)  # type: ignore[arg-type]
                curves[view].append(own)
    panels = [_panel(view, label, curves[view]) for view in views]
    return Report(item, SOURCE, tuple(rows), study.seeds, tuple(panels))


def _shown(profile: Profile, view: str) -> tuple[np.ndarray, np.ndarray]:
    """Which rows a view shows, all of one local batch, and what is on its horizontal axis."""
    gpus, clock = profile.numbers("gpus"), profile.numbers("frequency_mhz")
    same = profile.numbers("local_batch") == LOCAL_BATCH
    if view == "clock":
        return same & (gpus == 1), clock
    near = np.unique(clock)[np.argmin(np.abs(np.unique(clock) - NEAR_MHZ[view]))]
    return same & (clock == near), gpus


def _panel(view: str, label: str, curves: Sequence[Curve]) -> Chart:
    title = f"local batch {LOCAL_BATCH}, "
    if view == "clock":
        return chart(f"{title}one GPU", "clock (MHz)", label, curves, log="y", paired=True)
    where = f"{title}about {NEAR_MHZ[view]:,.0f} MHz"
    return chart(where, "GPUs", label, curves, log="both", paired=True)


def fig3(item: Item, study: Study) -> Report:
    """Power on one GPU over the local batch, at the highest clock."""
    top = float(BOARDS["v100"].clocks[-1])
    rows: list[Row] = []
    curves = []
    for name, model in trained("v100").items():
        batches = np.array(BATCHES["v100"][name], float)
        one = np.ones_like(batches)
        scopes = (batches, top * one, one, one)
        t = model.time.iteration_time(one, *scopes)
        _, grad, sync = model.time.parts(one, *scopes)
        watts = model.energy.iteration_energy(one, batches, top * one, grad, sync, t) / t
        words = f"{watts[0]:.0f} W to {watts[-1]:.0f} W"
        words += f", of {batches[-1] / batches[0]:g} times the batch"
        claim = f"{PAPER_NAMES[name]}: power from the least batch to the largest"
        rows.append(Row(claim, "", words, note=NONE if not rows else ""))
        curves.append(Curve(PAPER_NAMES[name], batches.tolist(), watts.tolist()))
    panel = chart(f"one GPU at {top:,.0f} MHz", "local batch", "power (W)", curves)
    return Report(item, "the synthetic V100 pool", tuple(rows), (), (panel,))


def fig5(item: Item, study: Study) -> Report:
    """Throughput against energy of GPT2 at a global batch of 64, all configurations."""
    board, model = BOARDS["v100"], trained("v100")["gpt2"]
    points = []
    for clock in board.clocks[::4].tolist():
        for n in (1, 2, 4, 8, 16, 32, 64):
            one = np.ones(1)
            scopes = (one * PARETO_BATCH / n, one * clock, one * np.ceil(n / 8), one * min(n, 8))
            t = model.time.iteration_time(one * n, *scopes)
            _, grad, sync = model.time.parts(one * n, *scopes)
            energy = model.energy.iteration_energy(
                one * n, one * PARETO_BATCH / n, one * clock, grad, sync, t
            )
            points.append((clock, n, PARETO_BATCH / float(t[0]), float(energy[0])))
    best = [p for p in points if not any(q[2] >= p[2] and q[3] <= p[3] and q != p for q in points)]
    best.sort(key=lambda p: p[2])
    curves = [Curve("Pareto-optimal", [p[2] for p in best], [p[3] for p in best])]
    for clock in sorted({p[0] for p in points}):
        own = [p for p in points if p[0] == clock]
        x, y = [p[2] for p in own], [p[3] for p in own]
        curves.append(Curve(f"{clock:,.0f} MHz", x, y, "points"))
    rows = (
        Row("configurations, and Pareto-optimal ones", "", f"{len(points)}, {len(best)}", "", NONE),
        Row("lowest clock among them", "", f"{min(p[0] for p in best):,.0f} MHz"),
    )
    title = f"GPT2, global batch {PARETO_BATCH}"
    panel = chart(title, "samples/s", "J per iteration", curves)
    return Report(item, "the synthetic V100 pool", rows, (), (panel,))
