"""What results come to, in a sentence each, computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optgap.comparing.comparison import ALL, Comparison, ComparisonRow, ComparisonSet
from optgap.explaining import Explanation, Part
from optgap.models.result import SERVES_PART, Result, Status
from optgap.render import number, percent

CLOSE = 1e-6
"""Gaps up to this are rounding: what is so near the bound is optimal."""
WEAK = 0.02
"""From here on the best known solution is far from the bound, and the bound may be to blame."""


def of_comparison(item: Comparison) -> str:
    """How far the best and the worst policy are from optimal, and how much of it is proven.

    Only policies that serve all that is asked are ranked.
    """
    rows = _ranked(item)
    if not rows or item.gap is None:
        return _without_gap(item)
    best, worst = rows[0], rows[-1]
    words = _weak(item, best) if item.gap > WEAK else _strong(item, best)
    if worst is not best:
        words += f"; the worst, {worst.result.method}, {_worst(item, worst)}"
    turned = [row.result.method for row in item.rows if SERVES_PART in row.result.message]
    if turned:
        are = "is" if len(turned) == 1 else "are"
        words += f"; {_and(turned)}, having turned something down, {are} not ranked"
    return words + "."


def _ranked(item: Comparison) -> list[ComparisonRow]:
    """Policies that serve all that is asked, the best first."""
    rows = [
        row
        for row in item.rows
        if row.result.kind == "policy" and row.bound_scope == ALL and row.gap_to_bound is not None
    ]
    return sorted(rows, key=lambda row: row.gap_to_bound or 0.0)


def _strong(item: Comparison, best: ComparisonRow) -> str:
    gap = best.gap_to_bound or 0.0
    name = f"the best policy, {best.result.method}, is"
    if gap <= CLOSE:
        return f"{name} optimal"
    if (item.gap or 0.0) <= CLOSE:
        return f"{name} {share(gap)} from optimal"
    return f"{name} within {share(gap)} of optimal"


def _weak(item: Comparison, best: ComparisonRow) -> str:
    """With a weak bound: what is known is a range."""
    words = f"the best policy, {best.result.method}, is at most {share(best.gap_to_bound)} from "
    words += "optimal; how much of it is the bound's weakness is unknown, for "
    if (best.gap_to_best or 0.0) <= CLOSE:
        return words + "nobody knows a better solution"
    return words + f"the best solution known, by {item.known_by}, is {share(item.gap)} from it"


def _worst(item: Comparison, worst: ComparisonRow) -> str:
    if (item.gap or 0.0) > WEAK and worst.gap_to_best is not None:
        return f"is {share(worst.gap_to_best)} from the best solution known"
    return f"is {share(worst.gap_to_bound)} away"


def _without_gap(item: Comparison) -> str:
    if item.infeasible:
        return "there is no solution that serves all, and that is proven."
    known = f"the best solution known is {item.known_by}'s" if item.known_by else "nobody found one"
    if item.best_bound is None:
        return f"no bound was proven, so that no gap is known; {known}."
    return f"no policy served all that is asked; {known}."


def of_set(item: ComparisonSet) -> str:
    """Which policy is best over the values of a parameter, and how far it is from optimal."""
    over = f"over {item.parameter} from {item.values[0]} to {item.values[-1]}"
    leaders = [_ranked(comparison)[:1] for comparison in item.comparisons]
    missing = [str(v) for v, rows in zip(item.values, leaders, strict=True) if not rows]
    if missing:
        return f"{over} no policy has a gap at {item.parameter}={', '.join(missing)}."
    best = [rows[0] for rows in leaders]
    names = list(dict.fromkeys(row.result.method for row in best))
    who = f"{names[0]} is the best policy" if len(names) == 1 else f"the best are {_and(names)}"
    gaps = spread([row.gap_to_bound or 0.0 for row in best])
    unproven = max(comparison.gap or 0.0 for comparison in item.comparisons)
    if unproven <= CLOSE:
        return f"{over} {who}, {gaps} from optimal."
    if unproven <= WEAK:
        return f"{over} {who}, within {gaps} of optimal."
    return (
        f"{over} {who}, at most {gaps} from optimal; how much of it is the bound's weakness is "
        f"unknown: the best solutions known are up to {share(unproven)} from it."
    )


def of_explanation(item: Explanation) -> str:
    """What a policy's gap consists of."""
    parts = [
        f"{points(amount / abs(item.bound))} {_title(part)}"
        for part in item.parts
        if item.bound and (amount := part.amount(item.sense)) is not None
    ]
    if item.gap is None or not parts:
        return f"{item.policy}'s gap is unknown: no bound was proven."
    return f"{item.policy}'s gap of {percent(item.gap)} is, in points, {_and(parts)}."


def _title(part: Part) -> str:
    """What a sentence calls a part of a gap."""
    return part.title if part.name == "unproven" else f"the {part.title}"


def of_result(item: Result) -> str:
    """What a method or policy found, and how far it may be from optimal."""
    who = item.method
    if item.status is Status.OPTIMAL:
        return f"{who} found the optimum, {_amount(item.objective, item.unit)}, and proved it."
    if item.status is Status.INFEASIBLE:
        return f"{who} proved that there is no solution."
    if item.status is Status.BOUND_ONLY:
        return f"{who} proved that no solution is better than {_amount(item.bound, item.unit)}."
    if item.objective is None:
        return f"{who} found nothing ({item.status})."
    words = f"{who} found {_amount(item.objective, item.unit)}"
    if item.gap is None:
        return words + "."
    return words + f", at most {share(item.gap)} from optimal."


def _amount(value: float | None, unit: str) -> str:
    return f"{number(value)} {unit}"


def of_runs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each family among the runs of a sweep: which policy has the lowest median gap.

    Policies are ranked that have a gap, for all that was asked, in as many runs as any.
    """
    from numpy import median

    families: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        gap, method = row.get("gap_to_bound"), row.get("method")
        served = row.get("kind", "policy") == "policy" and row.get("bound_scope") in (None, ALL)
        if served and method and isinstance(gap, float):
            groups = families.setdefault(str(row.get("family", "")), {})
            groups.setdefault(str(method), []).append(gap)
    told = []
    for family, groups in families.items():
        most = max(map(len, groups.values()))
        full = {name: gaps for name, gaps in groups.items() if len(gaps) == most}
        best = min(full, key=lambda name: float(median(full[name])))
        lead = (
            f"of {len(full)} policies {best} has the lowest" if len(full) > 1 else f"{best} has a"
        )
        told.append(
            f"{family}: {lead} median gap to the bound, {share(float(median(full[best])))} over "
            f"{most:,} run{'s' * (most > 1)}, and {share(max(full[best]))} at worst."
        )
    return told


def share(gap: float | None) -> str:
    """A gap with the digits that matter: ``2.2 %``, ``18 %``, ``436 %``."""
    if gap is None:
        return "an unknown share"
    percent = 100 * gap
    if 0 < percent < 0.01:
        return "less than 0.01 %"
    digits = 2 if percent < 1 else 1 if percent < 10 else 0
    return f"{percent:,.{digits}f} %"


def spread(gaps: Sequence[float]) -> str:
    """The least and the greatest of several gaps: ``2.2 to 4.7 %``."""
    low, high = share(min(gaps)), share(max(gaps))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def points(value: float) -> str:
    """A part of a gap, in percentage points."""
    return f"{100 * value:.2f}".replace("-0.00", "0.00")


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
