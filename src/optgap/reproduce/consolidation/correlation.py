"""Fig. 2: correlations of utilisation, and how few samples it takes to see them so."""

from __future__ import annotations

import numpy as np

from optgap.models.consolidation import recorded
from optgap.reproduce.report import Item, Report, Row, Study, Tolerance

TASKS = 600
NEAR = Tolerance(0.5, 5, "points")


def fig2(item: Item, study: Study) -> Report:
    """Shares of pairs below 0, from 0 to 0.3, and up to 0.3 (which the text calls |r| ≤ 0.3)."""
    rng = np.random.default_rng(study.seeds[0])
    rows = []
    data = None if item.missing(study.data) else study.data
    if data is not None:
        study.proceed("Philly windows")
        found = recorded.series("philly", data, summed=True)
        found = [one for one in found if np.ptp(one) > 0]  # a constant correlates with nothing
        start = max(0, (len(found) - TASKS) // 2)
        rows += _stated("Philly, 14 minutes of 600 jobs", np.array(found[start : start + TASKS]))
    for samples in (3, 6, 10, 14, 50, 200):
        shares = _shares(rng.normal(size=(TASKS, samples)))
        words = "{:.0f} / {:.0f} / {:.0f} %, |r| ≤ 0.3: {:.0f} %".format(*shares)
        note = "independent noise: nothing is correlated, and fewer samples spread r"
        rows.append(Row(f"{samples} independent samples", "46 / 34 / 20 %", words, "", note))
    source = "recorded windows" if data is not None else "independent samples alone"
    return Report(item, source, tuple(rows), study.seeds)


def _shares(series: np.ndarray) -> tuple[float, float, float, float]:
    """Percent of pairs with r < 0, 0 to 0.3, above 0.3, and |r| ≤ 0.3; constants count as 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = np.nan_to_num(np.corrcoef(series))
    r = matrix[np.triu_indices(len(matrix), 1)]
    parts = (r < 0, (r >= 0) & (r <= 0.3), r > 0.3, np.abs(r) <= 0.3)
    below, weak, strong, small = (100 * float(part.mean()) for part in parts)
    return below, weak, strong, small


def _stated(what: str, series: np.ndarray) -> list[Row]:
    below, weak, strong, small = _shares(series)
    stated = (
        ("negative", 46, below, "windows around the start, not whole runs"),
        ("0 to 0.3", 34, weak, ""),
        ("above 0.3", 20, strong, ""),
        ("|r| ≤ 0.3", 80, small, "the paper's 80 % is 46 + 34: r ≤ 0.3, not |r| ≤ 0.3"),
    )
    return [
        NEAR.row(f"{what}: {claim}", paper, ours, "%", 0, note=note)
        for claim, paper, ours, note in stated
    ]
