"""What τ and λ do to EcoSched's savings: neither has a value in the paper."""

from __future__ import annotations

from typing import Any

from optgap.api import run
from optgap.reproduce.coscheduling.facts import OPTIMAL, WORDS, savings, shown
from optgap.reproduce.coscheduling.queues import PLATFORMS, queue
from optgap.reproduce.report import Item, Report, Row, Study

TAUS = (0.05, 0.1, 0.15, 0.25, 0.4, 100.0)
WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
SIGNALS = ("perfect", "dram", "noisy")
CHANGES: tuple[dict[str, Any], ...] = (
    *({"tau": tau} for tau in TAUS),
    *({"idle_weight": weight} for weight in WEIGHTS),
    *({"signal": s, "normalise": n} for s in SIGNALS for n in ("all", "kept")),
)
"""Each beside the authors' setting of everything else."""


def sweep(item: Item, study: Study) -> Report:
    """Savings against sequential_optimal_gpu over τ, λ, Phase I's signal and normalisation."""
    assert study.data is not None
    rows = []
    for platform in PLATFORMS:
        problem = queue(platform, study.data)
        base = run(problem, OPTIMAL).metrics
        start = {"tau": platform.tau, "idle_weight": platform.idle_weight}
        for change in CHANGES:
            study.proceed(f"EcoSched on {platform.name}")
            settings = {**start, "signal": "dram", "normalise": "kept", **change}
            found = savings(run(problem, "ecosched", **settings).metrics, base)  # type: ignore[arg-type]
            words = ", ".join(f"{key} = {value}" for key, value in change.items())
            rows.append(Row(f"{platform.name}: {words}", "", shown(found)))
    return Report(item, f"the authors' profiles; saved: {WORDS}", tuple(rows))
