"""What decides where Fig. 7 and 10 come out otherwise: one cause after another taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.elastic import ElasticProblem, Overhead
from optgap.reproduce.elastic import SYNTHETIC
from optgap.reproduce.elastic.day import RATIOS, best_ratio, where_longer
from optgap.reproduce.elastic.runs import NAMES, frontier, synthetic_day
from optgap.reproduce.elastic.sensitivity import (
    INTERVAL,
    INTERVALS_S,
    compared,
    factors,
    gain,
    small,
)
from optgap.reproduce.report import Item, Report, Row, Study

FREE = Overhead(0, 0, 0)
NO_PRERUN = {"prerun_s": 0.0, "profile_s": 0.0}


TEN_TIMES = {"threshold_1": 32_500.0, "threshold_2": 72_000.0}
"""Of Tiresias's queues, GPU-s."""
MODES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("profiles=online", {}),
    ("profiles=online, measuring free", NO_PRERUN),
    ("profiles=perfect", {"profiles": "perfect"}),
    ("profiles=scaled", {"profiles": "scaled"}),
)
"""What PowerFlow believes of its jobs; the first is its default."""


def causes(item: Item, study: Study) -> Report:
    """Ratios of mean JCTs as in Fig. 7 and 10, with and without what might be the reason."""
    rows = (*_beliefs(study), *_day(study), *_factors(study), *_load(study))
    return Report(item, SYNTHETIC, rows, study.seeds)


def _beliefs(study: Study) -> list[Row]:
    """Fig. 7's ratios for each kind of profiles."""
    problem = synthetic_day(study.seeds[0])
    claim = ", ".join(NAMES[name] for name in RATIOS)
    paper = ", ".join(f"{value:.2f}" for value in RATIOS.values()) + " x"
    rows = []
    for title, params in MODES:
        ours = frontier(study, problem, "powerflow", **params)
        found = {name: best_ratio(frontier(study, problem, name), ours) for name in RATIOS}
        behind = [name for name, (_, least) in found.items() if least < 1]
        note = "; ".join(
            f"{NAMES[name]} is the shorter {where_longer(frontier(study, problem, name), ours)}"
            for name in behind
        )
        shown = ", ".join(f"{most:.2f}" for most, _ in found.values()) + " x"
        rows.append(
            Row(f"Fig. 7, {title}: {claim} over PowerFlow, at most", paper, shown, "", note)
        )
    return rows


def _day(study: Study) -> list[Row]:
    problem = synthetic_day(study.seeds[0])
    free = replace(problem, overhead=FREE, name=f"{problem.name}, restarts free")
    tried: tuple[tuple[str, str, ElasticProblem, dict[str, Any]], ...] = (
        ("gandiva", "", problem, {}),
        ("gandiva", ", restarts free for both", free, {}),
        ("tiresias", "", problem, {}),
        ("tiresias", ", restarts free for both", free, {}),
        ("tiresias", " by Gittins index", problem, {"discipline": "gittins"}),
        ("tiresias", " with queues ten times as long", problem, TEN_TIMES),
        ("afs", "", problem, {}),
        ("afs", " without lengths", problem, {"lengths": False}),
    )
    rows = []
    for name, title, where, params in tried:
        ours = frontier(study, where, "powerflow")
        most, _ = best_ratio(frontier(study, where, name, **params), ours)
        claim = f"Fig. 7, {NAMES[name]}{title}: mean JCT over PowerFlow's at equal energy, at most"
        rows.append(Row(claim, f"{RATIOS[name]:.2f} x", f"{most:.2f} x"))
    return rows


def _factors(study: Study) -> list[Row]:
    """Fig. 10 for each kind of profiles: shortest and longest baseline over PowerFlow."""
    rows = []
    for title, _, values, make, claim in factors(study.seeds[0]):
        for mode, params in MODES:
            shown = []
            for v in values:
                found = compared(study, make(v), f"{title} {v}", **params)
                shown.append(f"{v}: {gain(found, min):.2f} to {gain(found):.2f}")
            rows.append(Row(f"Fig. 10, {title}, {mode}", claim, ", ".join(shown)))
    return rows


def without_longest(problem: ElasticProblem) -> ElasticProblem:
    """The problem without the job of most GPU-seconds on the GPUs it requests."""
    jobs = problem.jobs
    top = problem.time_s[:, :, -1]
    at = np.searchsorted(problem.counts, jobs.requested)
    work = jobs.iterations * top[jobs.of_class, at] * jobs.requested
    kept = np.flatnonzero(np.arange(len(jobs)) != int(np.argmax(work)))
    return replace(problem, jobs=jobs.only(kept), name=f"{problem.name}, without its longest job")


def _load(study: Study) -> list[Row]:
    """The trend over the load, which the paper has the other way round."""

    def same(problem: ElasticProblem) -> ElasticProblem:
        return problem

    tried: tuple[tuple[str, Callable[[ElasticProblem], ElasticProblem], dict[str, Any]], ...] = (
        ("as it is", same, {}),
        ("no pre-run and windows of no length", same, NO_PRERUN),
        ("without the longest job", without_longest, {}),
        ("neither", without_longest, NO_PRERUN),
    )
    rows = []
    for title, change, params in tried:
        gains = []
        for interval in INTERVALS_S:
            problem = change(small(study.seeds[0], interval_s=interval))
            # by the name that Fig. 10 has for it: runs are shared with that
            gains.append(gain(compared(study, problem, f"{INTERVAL} {interval}", **params)))
        shown = ", ".join(f"{value:.2f}" for value in gains)
        words = ", ".join(map(str, INTERVALS_S))
        claim = f"Fig. 10, {title}: longest mean JCT over PowerFlow's, a job every {words} s"
        rows.append(Row(claim, "falls", shown))
    return rows
