"""What decides where Fig. 7 and 10 come out otherwise: one cause after another taken away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from optgap.models.elastic import ElasticProblem, Overhead
from optgap.reproduce.elastic import SYNTHETIC
from optgap.reproduce.elastic.day import best_ratio
from optgap.reproduce.elastic.runs import frontier, synthetic_day
from optgap.reproduce.elastic.sensitivity import INTERVAL, INTERVALS_S, compared, gain, small
from optgap.reproduce.report import Item, Report, Row, Study

FREE = Overhead(0, 0, 0)
NO_PRERUN = {"prerun_s": 0.0, "profile_s": 0.0}


def causes(item: Item, study: Study) -> Report:
    """Ratios of mean JCTs as in Fig. 7 and 10, with and without what might be the reason."""
    return Report(item, SYNTHETIC, (*_day(study), *_load(study)), study.seeds[:1])


def _day(study: Study) -> list[Row]:
    problem = synthetic_day(study.seeds[0])
    free = replace(problem, overhead=FREE, name=f"{problem.name}, restarts free")
    tried: tuple[tuple[str, str, str, ElasticProblem, dict[str, Any]], ...] = (
        ("gandiva", "Gandiva", "3.39 x", problem, {}),
        ("gandiva", "Gandiva, restarts free for both", "3.39 x", free, {}),
        ("afs", "AFS", "1.57 x", problem, {}),
        ("afs", "AFS without lengths", "1.57 x", problem, {"lengths": False}),
    )
    rows = []
    for name, title, paper, where, params in tried:
        ours = frontier(study, where, "powerflow")
        most, _ = best_ratio(frontier(study, where, name, **params), ours)
        claim = f"Fig. 7, {title}: mean JCT over PowerFlow's at equal energy, at most"
        rows.append(Row(claim, paper, f"{most:.2f} x"))
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
        ("no pre-run and no profiling", same, NO_PRERUN),
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
