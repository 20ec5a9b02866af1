"""Many runs in a report: what is not to be pooled, and means that can be held side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optgap.comparing.comparison import ACCEPTED, PART
from optgap.comparing.fairness import in_common
from optgap.reporting.grid import Grid, grid

Runs = Mapping[Any, float]
Panels = dict[str, dict[str, dict[Any, float]]]
"""Values by panel, by the group within it, and by run."""
IDENTITY = ("instance", "instance_seed", "seed")
"""Columns that say which run a row is of, the same for all groups."""


def kept_apart(rows: Sequence[Mapping[str, Any]], varying: Sequence[str]) -> list[str]:
    """Columns whose values are not to be pooled: the family, and what makes sizes differ.

    The instance of a preset carries its parameters; problem files say nothing of their size.
    """
    made = all(str(row.get("instance_params") or "{}") != "{}" for row in rows)
    sizes = ["instance"] if "instance" in varying and made else ["size"]
    return [name for name in ("family", *sizes) if name in varying]


def panels(
    rows: Sequence[Mapping[str, Any]], apart: Sequence[str], by: Sequence[str], measure: str
) -> Panels:
    """The values of a measure by panel (`apart`), group (`by`) and run.

    Gaps against a bound for an accepted part are groups of their own, behind the others.
    """
    lines: list[tuple[str, str, tuple[Any, ...], float]] = []
    for row in rows:
        value = row.get(measure)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        panel = ": ".join(str(row.get(name, "")) for name in apart)
        name = ": ".join(str(row.get(key, "")) for key in by) or "all runs"
        name += f" ({PART})" if row.get("bound_scope") == ACCEPTED else ""
        lines.append((panel, name, tuple(row.get(key) for key in IDENTITY), float(value)))
    lines.sort(key=lambda line: line[1].endswith(f"({PART})"))
    # where that tells rows of one group apart, it says which run they are of
    told = len({line[:3] for line in lines}) == len(lines)
    found: Panels = {}
    for k, (panel, name, run, value) in enumerate(lines):
        found.setdefault(panel, {}).setdefault(name, {})[run if told else k] = value
    return found


def summary(found: Panels, title: str) -> tuple[Grid, list[str]]:
    """Mean, median and worst of every group, and lines about runs that not all groups have."""
    from numpy import median

    records, notes = [], []
    for panel, groups in found.items():
        used, note = _used({n: r for n, r in groups.items() if not n.endswith(f"({PART})")})
        if note:
            notes.append(f"{panel}: {note}" if panel else note)
        for name, runs in groups.items():
            values = used.get(name, list(runs.values()))
            records.append(
                {
                    **({"of": panel} if panel else {}),
                    "group": name,
                    "runs": len(runs),
                    "runs used": len(values),
                    "gap, mean": sum(values) / len(values) if values else None,
                    "gap, median": float(median(values)) if values else None,
                    "gap, worst": max(values, default=None),
                }
            )
    return grid(f"Summary: {title}", records), notes


def _used(groups: Mapping[str, Runs]) -> tuple[dict[str, list[float]], str]:
    """The values that means are over: of the runs that all groups have, where that is known."""
    if all(isinstance(run, tuple) for runs in groups.values() for run in runs):
        return in_common(groups)
    differ = len({len(runs) for runs in groups.values()}) > 1
    note = "means are over different numbers of runs, see the column runs" if differ else ""
    return {name: list(runs.values()) for name, runs in groups.items()}, note
