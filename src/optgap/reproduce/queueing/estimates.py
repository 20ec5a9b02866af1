"""Robustness: the same streams when schedulers are told something else than the true run times."""

from __future__ import annotations

from optgap.reproduce.queueing import SOURCE
from optgap.reproduce.queueing.runs import DYNAMIC, JOBS, NAMES, OTHERS, STATIC, Runs, Spread
from optgap.reproduce.report import Item, Report, Row, Study

MODELS = {
    "lognormal": "durations times a log-normal factor, σ = 0.5",
    "limits": "the next of 15 min, 1 h, 4 h, 12 h, 1 d",
}


def estimates(item: Item, study: Study) -> Report:
    """Mean waits under two models of error, beside those with exact estimates."""
    exact = Runs(study, "inf")
    rows = []
    for model, words in MODELS.items():
        told = Runs(study, "inf", model)
        for policy in (*STATIC, *DYNAMIC, *OTHERS):
            truth = exact.metric(policy, "mean_wait_s")
            found = told.metric(policy, "mean_wait_s")
            change = Spread.of(100 * (found - truth) / truth)
            rows.append(
                Row(
                    f"{NAMES[policy]}, {model}: mean wait (s)",
                    "",
                    f"{Spread.of(found).text(0)}, {change.mean:+.1f} ± {change.half:.1f} %",
                    note=f"{words}; {Spread.of(truth).text(0)} with exact estimates",
                )
            )
    source = f"{SOURCE}, {JOBS} jobs at load 0.9, endless patience; changes paired over seeds"
    return Report(item, source, tuple(rows), study.seeds)
