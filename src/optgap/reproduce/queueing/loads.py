"""Whether any load, arrival process and patience explain all columns of Table II at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np

from optgap.api import run
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.presets import mixed
from optgap.models.queueing.workload import Corr, Patience
from optgap.reproduce.charts import Chart, Curve, chart
from optgap.reproduce.queueing import SOURCE
from optgap.reproduce.queueing.runs import DYNAMIC, JOBS, NAMES, PATIENCE_S
from optgap.reproduce.queueing.tables import COLUMNS, PAPER
from optgap.reproduce.report import Item, Report, Row, Study, Tolerance

LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ARRIVALS = ("Poisson", "regular", "in tens")
COUPLINGS: tuple[Corr, ...] = ("none", "negative")
"""Of GPUs and durations; with the negative one long jobs take few GPUs."""
PATIENCES: tuple[Patience, ...] = ("inf", "const")
WHAT = {"used": "used %", "wait": "wait s", "variance": "variance min²", "starved": "starved"}
"""Columns that a load can set; 25.8 jobs per hour are beyond any (``hps-impossible``)."""
ALL = Tolerance(10, 25)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the paper does not say of its streams: one of `ARRIVALS`, `COUPLINGS` and so on."""

    arrivals: str
    coupling: Corr
    patience: Patience
    load: float

    def __str__(self) -> str:
        leaves = "nobody leaves" if self.patience == "inf" else "who has waited 1 h leaves"
        coupled = "" if self.coupling == "none" else ", long jobs take few GPUs"
        return f"{self.arrivals}, load {self.load:g}, {leaves}{coupled}"

    def stream(self, seed: int, size: int = JOBS) -> QueueingProblem:
        """A stream at this setting: Poisson, at equal intervals, or ten jobs at a time."""
        problem = mixed(
            seed=seed,
            size=size,
            load=self.load,
            corr=self.coupling,
            patience=self.patience,
            patience_s=PATIENCE_S,
        )
        submit = problem.jobs.arrival_s
        if self.arrivals == "regular":
            submit = np.linspace(submit[0], submit[-1], len(submit))
        elif self.arrivals == "in tens":
            submit = submit[np.arange(len(submit)) // 10 * 10]
        return replace(problem, jobs=replace(problem.jobs, arrival_s=submit))


def loads(item: Item, study: Study) -> Report:
    """HPS, PBS and SBS at each setting, and the setting that is nearest to all columns."""
    settings = [Setting(*each) for each in product(ARRIVALS, COUPLINGS, PATIENCES, LOADS)]
    found = {setting: _means(study, setting) for setting in settings}
    off = {setting: _off(means) for setting, means in found.items()}
    paper = "; ".join(_shown([PAPER[p][key] for p in DYNAMIC], key) for key in WHAT)
    rows = [
        Row(
            str(setting),
            paper if k == 0 else "",
            "; ".join(_shown([means[p, key] for p in DYNAMIC], key) for key in WHAT),
            note=f"furthest off: {off[setting][1]}",
        )
        for k, (setting, means) in enumerate(found.items())
    ]
    best = min(off, key=lambda setting: off[setting][0])
    rows.append(
        Row(
            "the setting that explains all of these columns best",
            "one setting",
            f"{best}: {off[best][1]}",
            ALL.judge(off[best][0]),
            f"of {len(off)} settings",
            f"{ALL}, of the column that is furthest off",
        )
    )
    source = f"{SOURCE}, {JOBS} jobs"
    panels = tuple(_over_load(found, key) for key in WHAT)
    return Report(item, source, tuple(rows), study.seeds, panels, columns=2)


def _over_load(found: dict[Setting, dict[tuple[str, str], float]], key: str) -> Chart:
    """A column over the load, Poisson arrivals and nobody leaving, beside the paper's numbers."""
    plain = [Setting("Poisson", "none", "inf", load) for load in LOADS]
    ends = (LOADS[0], LOADS[-1])
    curves = []
    for policy in DYNAMIC:
        own = [found[setting][policy, key] for setting in plain]
        curves.append(Curve(NAMES[policy], LOADS, own))
        curves.append(
            Curve(f"{NAMES[policy]}, the paper's", ends, [PAPER[policy][key]] * 2, "line")
        )
    log: Literal["", "y"] = "" if key == "used" else "y"
    title = "Poisson, nobody leaves; level: the paper's"
    return chart(title, "load", COLUMNS[key].title, curves, log=log, paired=True)


def _means(study: Study, setting: Setting) -> dict[tuple[str, str], float]:
    study.proceed(str(setting))
    values: dict[tuple[str, str], list[float]] = {(p, k): [] for p in DYNAMIC for k in WHAT}
    for seed in study.seeds:
        problem = setting.stream(seed)
        for policy in DYNAMIC:
            metrics = run(problem, policy).metrics
            for key in WHAT:
                column = COLUMNS[key]
                values[policy, key].append(column.factor * float(metrics[column.metric]))
    return {which: float(np.mean(found)) for which, found in values.items()}


def _off(means: dict[tuple[str, str], float]) -> tuple[float, str]:
    """The largest difference from the paper, percent of the paper's number, and whose it is."""
    apart = {
        (policy, key): 100 * abs(value - PAPER[policy][key]) / PAPER[policy][key]
        for (policy, key), value in means.items()
    }
    policy, key = max(apart, key=lambda which: apart[which])
    return apart[policy, key], f"{NAMES[policy]}, {WHAT[key]}, by {apart[policy, key]:.0f} %"


def _shown(values: list[float], key: str) -> str:
    digits = COLUMNS[key].digits
    return f"{WHAT[key]} " + ", ".join(f"{value:.{digits}f}" for value in values)
