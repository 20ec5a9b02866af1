"""Section IV-A: the marginals that the generator must have, and what the paper leaves open."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, norm

from optgap.models.queueing.presets import mixed
from optgap.models.queueing.workload import DURATIONS_S, GPUS, KINDS
from optgap.reproduce.queueing import SOURCE
from optgap.reproduce.queueing.runs import JOBS
from optgap.reproduce.report import Item, Report, Row, Study, statement

LEVEL = 0.01
"""Of the tests."""
STATED = sum(n * share for n, share in GPUS)
"""Mean GPUs per job by the paper's shares."""


def workload(item: Item, study: Study) -> Report:
    """Shares of types, GPU counts and durations over all seeds, with a χ² test of each."""
    study.proceed("the workload")
    streams = [mixed(seed=seed, size=JOBS).jobs for seed in study.seeds]
    kinds = [kind for jobs in streams for kind in jobs.kinds]
    gpus = np.concatenate([jobs.gpus for jobs in streams])
    hours = np.concatenate([jobs.duration_s for jobs in streams])
    rows = [
        _row("types: inference, training, research", [kinds.count(k) for k, _ in KINDS], KINDS),
        _row("GPUs: 1, 2, 4, 8, 16", [int((gpus == n).sum()) for n, _ in GPUS], GPUS),
        _row(
            "durations: < 30 min, to 2 h, to 8 h, longer",
            [int(((hours >= a) & (hours < b)).sum()) for (a, b), _ in DURATIONS_S],
            DURATIONS_S,
        ),
        statement(
            "mean GPUs per job",
            f"{STATED:.2f} (from its shares)",
            f"{gpus.mean():.2f}",
            bool(abs(gpus.mean() - STATED) <= norm.isf(LEVEL / 2) * gpus.std() / len(gpus) ** 0.5),
            rule=f"yes where it lies in the {100 * (1 - LEVEL):g} % interval of our mean",
        ),
        Row(
            "mean work per job",
            "",
            f"{(gpus * hours).mean() / 3600:.2f} GPU-h",
            note="uniform within the ranges, up to 24 h: the paper does not say how they are "
            "spread, nor how jobs arrive; here Poisson at 0.9 of the cluster's GPUs",
        ),
    ]
    return Report(item, SOURCE, tuple(rows), study.seeds)


def _row(claim: str, counts: list[int], shares: tuple[tuple[object, float], ...]) -> Row:
    total = sum(counts)
    expected = [share * total for _, share in shares]
    square = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    chance = float(chi2.sf(square, len(counts) - 1))
    return statement(
        claim,
        " / ".join(f"{100 * share:g}" for _, share in shares) + " %",
        " / ".join(f"{100 * c / total:.1f}" for c in counts) + " %",
        chance > LEVEL,
        note=f"χ² = {square:.1f}, p = {chance:.2f}",
        rule=f"yes where a χ² test over all seeds does not reject it at {LEVEL:g}",
    )
