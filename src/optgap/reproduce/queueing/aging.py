"""HPS's aging factor: what the printed rule does between 300 and 900 s."""

from __future__ import annotations

from optgap.reproduce.queueing import SOURCE
from optgap.reproduce.queueing.runs import Runs
from optgap.reproduce.report import Item, Report, Row, Study, statement

BASE = 1 / 1.5 / 1.25
"""Of a job of 30 min on one GPU."""


def printed(wait_s: float) -> float:
    """Aging as printed, with the paper's parameters."""
    return 2 * min(wait_s / 1800, 1) if wait_s > 300 else 1.0


def repaired(wait_s: float) -> float:
    """1 up to 300 s, rising steadily to 2 at 1800 s."""
    return 1 + min(max((wait_s - 300) / 1500, 0), 1)


def aging(item: Item, study: Study) -> Report:
    """The score of one job as it waits, and what the repair changes over seeds."""
    points = (300, 301, 600, 900, 1800)
    rows = [
        statement(
            f"score of a 1-GPU job of 30 min after {wait} s",
            "boosted after 300 s" if wait > 300 else "not aged yet",
            f"{BASE * printed(wait):.4f} (repaired {BASE * repaired(wait):.4f})",
            printed(wait) > 1 if wait > 300 else "",
            note="the boost starts at 2·300/1800 = 1/3 and is none before 900 s"
            if wait == 301
            else "",
        )
        for wait in points
    ]
    wide, narrow = 2 / (1 + 8) / (1 + 16 / 4), 1 / (1 + 1 / 60) / 1.25
    rows.append(
        statement(
            "large jobs eventually get through",
            "yes",
            f"a 16-GPU job of 8 h never scores above {wide:.4f}, a fresh 1-GPU job of 1 min "
            f"{narrow:.3f}",
            wide > narrow,
            note="aging ends at 2 while base × penalty span a factor of over 35; `reserve_after_s` "
            "protects the oldest job's start",
        )
    )
    runs = Runs(study, "inf")
    for name, title, digits in (
        ("mean_wait_s", "mean wait (s)", 0),
        ("wait_p99_s", "99 % of waits below (s)", 0),
        ("starved", "jobs waiting over 30 min", 0),
    ):
        values = [runs.spread(policy, name).text(digits) for policy in ("hps", "hps_fixed")]
        rows.append(Row(f"{title}, as printed and repaired", "", " and ".join(values)))
    return Report(item, SOURCE, tuple(rows), study.seeds)
