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
    for policy in (*STATIC, *DYNAMIC, *OTHERS):
        truth = exact.metric(policy, "mean_wait_s")
        notes = []
        for model in MODELS:
            found = Runs(study, "inf", model).metric(policy, "mean_wait_s")
            change = Spread.of(100 * (found - truth) / truth)
            changed = f"{change.mean:+.1f} ± {change.half:.1f} %"
            notes.append(f"{model} {Spread.of(found).text(0)}, {changed}")
        rows.append(Row(NAMES[policy], "", Spread.of(truth).text(0), note="; ".join(notes)))
    models = "; ".join(f"{model}: {words}" for model, words in MODELS.items())
    source = (
        f"{SOURCE}, {JOBS} jobs at load 0.9, endless patience; mean wait in s with exact "
        f"estimates, and with others, changes paired over seeds ({models})"
    )
    return Report(item, source, tuple(rows), study.seeds)
