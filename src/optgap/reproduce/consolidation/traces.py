"""Figures 8 to 10: ratios between schedulers; cluster, memory and load are not stated."""

from __future__ import annotations

from optgap.api import bound, run
from optgap.models.consolidation.presets import pai, philly
from optgap.models.result import Result
from optgap.reproduce.consolidation import SYNTHETIC
from optgap.reproduce.report import Item, Report, Row, Study, Tolerance

RATIO = Tolerance(0.005, 0.05, "of a ratio")
WHY = "cluster size, DRAM, load and contention rule are not stated; the trace is synthetic"


def _runs(study: Study, trace: str, *policies: str) -> dict[str, Result]:
    key = ("cats", trace)
    found: dict[str, Result] = study.shared.setdefault(key, {})
    made = None
    for policy in policies:
        if policy in found:
            continue
        study.proceed(f"{trace}: {policy}")
        if made is None:
            made = (pai if trace == "PAI" else philly)(seed=study.seeds[0])
        found[policy] = bound(made) if policy == "bound" else run(made, policy)
    return found


def _ratio(claim: str, paper: float, ours: float) -> Row:
    verdict = RATIO.verdict(ours, paper)
    why = "" if verdict == "yes" else WHY
    return Row(claim, f"{paper:.3f}", f"{ours:.3f}", verdict, why, str(RATIO))


def _figure(item: Item, study: Study, trace: str, stated: dict[str, dict[str, float]]) -> Report:
    runs = _runs(study, trace, "cats", *stated, "bound")
    rows = []
    cats = runs["cats"].metrics
    for policy, numbers in stated.items():
        own = runs[policy].metrics
        for metric, paper in numbers.items():
            ours = float(own[metric]) / float(cats[metric])
            rows.append(_ratio(f"{metric} of {policy} over CATS", paper, ours))
    for policy, result in runs.items():
        if policy == "bound":
            continue
        least = runs["bound"].bound or 1.0
        energy = float(result.metrics["energy_j"])
        words = (
            f"{float(result.metrics['average_gpus']):.1f} GPUs, "
            f"{float(result.metrics['average_power_w']) / 1000:.2f} kW, "
            f"{int(result.metrics['sla_violations'])} beyond κ, "
            f"energy {100 * (energy / least - 1):.0f} % above the bound"
        )
        rows.append(Row(f"{policy}, absolute", "", words))
    return Report(item, SYNTHETIC, tuple(rows), study.seeds[:1])


def fig8(item: Item, study: Study) -> Report:
    """PAI: GPUs 37.32, 61.94 and 92.94; power 6.08 against 16.7 (printed MW, must be kW)."""
    stated = {
        "hotcloud": {"average_gpus": 61.94 / 37.32, "mean_stretch": 0.87},
        "first": {
            "average_gpus": 92.94 / 37.32,
            "mean_stretch": 0.77,
            "average_power_w": 16.7 / 6.08,
        },
    }
    return _figure(item, study, "PAI", stated)


def fig9(item: Item, study: Study) -> Report:
    """Philly: power 6.77, 8.30 and 8.99 (printed MW)."""
    stated = {
        "hotcloud": {"average_power_w": 8.30 / 6.77, "mean_stretch": 0.857},
        "first": {"average_power_w": 8.99 / 6.77, "mean_stretch": 0.974},
    }
    return _figure(item, study, "Philly", stated)


def fig10(item: Item, study: Study) -> Report:
    """PAI: power of CATS 5.28, BF 13.73, DP 14.79 and FGD 15.89 kW."""
    stated = {
        "bestfit": {"average_power_w": 13.73 / 5.28},
        "dotprod": {"average_power_w": 14.79 / 5.28},
        "fgd": {"average_power_w": 15.89 / 5.28},
    }
    return _figure(item, study, "PAI", stated)
