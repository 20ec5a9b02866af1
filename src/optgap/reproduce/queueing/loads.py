"""Whether any load, arrival process and patience explain all columns of Table II at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from optgap.api import run
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.presets import mixed
from optgap.reproduce.queueing import SOURCE
from optgap.reproduce.queueing.runs import DYNAMIC, JOBS, NAMES, PATIENCE_S
from optgap.reproduce.queueing.tables import COLUMNS, PAPER
from optgap.reproduce.report import Item, Report, Row, Study, Tolerance

LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ARRIVALS = ("Poisson", "regular", "in tens")
COUPLINGS = ("none", "negative")
"""Of GPUs and durations; with the negative one long jobs take few GPUs."""
PATIENCES = ("inf", "const")
WHAT = {"used": "used %", "wait": "wait s", "variance": "variance min²", "starved": "starved"}
"""Columns that a load can set; 25.8 jobs per hour are beyond any (``hps-impossible``)."""
ALL = Tolerance(10, 25)
Setting = tuple[str, str, str, float]
SEEDS = 3
"""At most, of those asked for: there are many settings."""


def loads(item: Item, study: Study) -> Report:
    """HPS, PBS and SBS at each setting, and the setting that is nearest to all columns."""
    found = {
        setting: _means(study, setting)
        for setting in product(ARRIVALS, COUPLINGS, PATIENCES, LOADS)
    }
    off = {setting: _off(means) for setting, means in found.items()}
    paper = "; ".join(_shown([PAPER[p][key] for p in DYNAMIC], key) for key in WHAT)
    rows = [
        Row(
            _name(setting),
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
            f"{_name(best)}: {off[best][1]}",
            ALL.verdict(100 + off[best][0], 100),
            f"of {len(off)} settings",
            f"{ALL}, of the column that is furthest off",
        )
    )
    return Report(item, f"{SOURCE}, {JOBS} jobs", tuple(rows), study.seeds[:SEEDS])


def _means(study: Study, setting: Setting) -> dict[tuple[str, str], float]:
    study.proceed(_name(setting))
    values: dict[tuple[str, str], list[float]] = {(p, k): [] for p in DYNAMIC for k in WHAT}
    for seed in study.seeds[:SEEDS]:
        problem = stream(seed, *setting)
        for policy in DYNAMIC:
            metrics = run(problem, policy).metrics
            for key in WHAT:
                _, metric, factor, _ = COLUMNS[key]
                values[policy, key].append(factor * float(metrics[metric]))
    return {which: float(np.mean(found)) for which, found in values.items()}


def stream(
    seed: int, arrivals: str, coupling: str, patience: str, load: float, size: int = JOBS
) -> QueueingProblem:
    """A stream at a setting: Poisson, at equal intervals, or ten jobs at a time."""
    problem = mixed(
        seed=seed,
        size=size,
        load=load,
        corr=coupling,  # type: ignore[arg-type]  # one of its choices
        patience=patience,  # type: ignore[arg-type]  # one of its choices
        patience_s=PATIENCE_S,
    )
    submit = problem.jobs.arrival_s
    if arrivals == "regular":
        submit = np.linspace(submit[0], submit[-1], len(submit))
    elif arrivals == "in tens":
        submit = submit[np.arange(len(submit)) // 10 * 10]
    return replace(problem, jobs=replace(problem.jobs, arrival_s=submit))


def _off(means: dict[tuple[str, str], float]) -> tuple[float, str]:
    """The largest difference from the paper, percent of the paper's number, and whose it is."""
    apart = {
        (policy, key): 100 * abs(value - PAPER[policy][key]) / PAPER[policy][key]
        for (policy, key), value in means.items()
    }
    policy, key = max(apart, key=lambda which: apart[which])
    return apart[policy, key], f"{NAMES[policy]}, {WHAT[key]}, by {apart[policy, key]:.0f} %"


def _name(setting: Setting) -> str:
    arrivals, coupling, patience, load = setting
    leaves = "nobody leaves" if patience == "inf" else "who has waited 1 h leaves"
    coupled = "" if coupling == "none" else ", long jobs take few GPUs"
    return f"{arrivals}, load {load:g}, {leaves}{coupled}"


def _shown(values: list[float], key: str) -> str:
    digits = COLUMNS[key][3]
    return f"{WHAT[key]} " + ", ".join(f"{value:.{digits}f}" for value in values)
