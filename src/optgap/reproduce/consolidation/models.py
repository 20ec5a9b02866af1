"""Fig. 1, Fig. 3 and Table 2: a GPU over its clock, tasks' memory, the time of a correlation."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from time import process_time

import numpy as np

from optgap.models.consolidation.presets import pai
from optgap.models.consolidation.tasks import FloatArray
from optgap.models.tables import Column, read_table
from optgap.reproduce.charts import Curve, chart
from optgap.reproduce.consolidation import CLOCKS
from optgap.reproduce.report import Item, Report, Row, Study, Tolerance

SLOWEST_MHZ = 500.0
"""The publisher's runs at 405 MHz took twice as long as that clock allows: they are left out."""
STATIC_W, SLOPE_W_MHZ, POWER_R2 = 23.3, 0.09, 0.95
BETA, TIME_R2 = 0.91, 0.97
FIT = Tolerance(10, 25)
TASKS = 600
MEMORY_GB = (16.0, 32.0)
CORRELATION_MS = {1_000: 0.295, 10_000: 0.325, 100_000: 1.325, 500_000: 6.469, 1_000_000: 12.999}
REPEATS = 5


def fig1(item: Item, study: Study) -> Report:
    """Eq. 3 and 5 fitted to measurements: P = P_s + α·f, e = e_min·(f_max/f)^β."""
    assert study.data is not None
    study.proceed("clocks of a V100")
    clock, watts, times = _means(study.data)
    slope, static = np.polyfit(clock, watts, 1)
    power_r2 = float(np.corrcoef(clock, watts)[0, 1] ** 2)
    x, y = np.log(clock[-1] / clock), np.log(times)
    beta = float(x @ y / (x @ x))
    time_r2 = 1 - float(((y - beta * x) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    why = "unexplained; 20 kernels from 500 to 1,380 MHz, the paper's ResNet50 and VGG16 from 135"
    rows = [
        FIT.row(name, paper, ours, unit, 3, why=why)
        for name, paper, ours, unit in (
            ("α, slope of power (Eq. 3)", SLOPE_W_MHZ, float(slope), "W/MHz"),
            ("P_gs, power at a clock of 0 (Eq. 3)", STATIC_W, float(static), "W"),
            ("R² of power (Fig. 1a)", POWER_R2, power_r2, ""),
            ("β of run time (Eq. 5)", BETA, beta, ""),
            ("R² of the logarithm of run time (Fig. 1b)", TIME_R2, time_r2, ""),
        )
    ]
    mhz = clock.tolist()
    panels = (
        chart("(a) power", "clock (MHz)", "W", [
            Curve("measured", mhz, watts.tolist(), "points"),
            Curve("fitted", mhz, (static + slope * clock).tolist(), "line"),
            Curve("the paper's 23.3 + 0.09 f", mhz, (STATIC_W + SLOPE_W_MHZ * clock).tolist(),
                  "line"),
        ]),
        chart("(b) run time", "clock (MHz)", "run time / least", [
            Curve("measured", mhz, times.tolist(), "points"),
            Curve("fitted", mhz, np.exp(beta * x).tolist(), "line"),
            Curve("the paper's (f_max / f)^0.91", mhz, np.exp(BETA * x).tolist(), "line"),
        ]),
    )  # fmt: skip
    source = "20 kernels measured on a V100; not the paper's trainings"
    return Report(item, source, tuple(rows), (), panels)


def _means(data: Path) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Clocks in MHz, mean power in W, and geometric mean of run times over the fastest clock's."""
    named = ("core_frequency", "time", "average_power")
    table = read_table(
        data / CLOCKS, [Column("benchmark"), *(Column(name, "number") for name in named)]
    )
    kernels: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for name, *values in zip(*(table[c] for c in ("benchmark", *named)), strict=True):
        if values[0] >= SLOWEST_MHZ:
            kernels[name].append(tuple(values))
    each = np.array([sorted(rows) for rows in kernels.values()])  # (kernels, clocks, 3)
    slower = np.log(each[:, :, 1] / each[:, -1:, 1])
    return each[0, :, 0], each[:, :, 2].mean(axis=0), np.exp(slower.mean(axis=0))


def fig3(item: Item, study: Study) -> Report:
    """Memory of 600 tasks; ours are drawn from what the paper says of the figure."""
    memory = np.sort([task.memory_gb for task in pai(seed=study.seeds[0], size=TASKS).tasks])
    rows = []
    for limit, paper in zip(MEMORY_GB, ("most, significantly", "most"), strict=True):
        share = 100 * float((memory < limit).mean())
        note = "synthetic after the text: nothing to agree with"
        rows.append(Row(f"tasks below {limit:g} GB", paper, f"{share:.0f} %", "", note))
    share = np.linspace(0, 100, len(memory)).tolist()
    panel = chart(f"{TASKS} synthetic tasks", "GPU memory (GB)", "tasks (%)",
                  [Curve("", memory.tolist(), share, "step")])  # fmt: skip
    return Report(item, item.stand_in, tuple(rows), study.seeds, (panel,))


def table2(item: Item, study: Study) -> Report:
    """CPU time of Pearson's coefficient of two series, the least of several."""
    rng = np.random.default_rng(study.seeds[0])
    rows: list[Row] = []
    for samples, paper in CORRELATION_MS.items():
        study.proceed(f"{samples:,} samples")
        one, other = rng.random((2, samples))
        taken = []
        for _ in range(REPEATS):
            start = process_time()
            np.corrcoef(one, other)
            taken.append(process_time() - start)
        note = "another machine: no verdict" if not rows else ""
        words = f"{1000 * min(taken):.3f} ms"
        rows.append(Row(f"{samples:,} samples", f"{paper:g} ms", words, note=note))
    return Report(item, "this machine's CPU time, the least of five", tuple(rows), study.seeds)
