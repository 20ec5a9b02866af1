"""Subramaniyan and Wang, "CATS: Correlation-aware Task Scheduling for GPU Power Optimization in
AI Data Centers" (ICS 2026): which figures and tables are run again.
"""

from __future__ import annotations

from optgap.reproduce.report import Item

PAPER = "CATS, ICS 2026"
PHILLY = "profiles/philly/gpu_util_window.csv.gz"
SYNTHETIC = "synthetic tasks from the published distributions"


def _item(name: str, title: str, target: str, *needs: str, stand_in: str = SYNTHETIC) -> Item:
    return Item(name, PAPER, title, f"{__name__}.{target}", needs, stand_in)


ITEMS: tuple[Item, ...] = (
    _item("cats-table1", "Table 1, time to solve Eq. 6", "exact:table1"),
    _item("cats-table4", "Fig. 7a, the testbed's 14 tasks", "exact:testbed"),
    _item("cats-fig2", "Fig. 2, correlation of utilisations", "correlation:fig2", PHILLY),
    _item("cats-fig8", "Fig. 8, PAI, 5,000 tasks", "traces:fig8"),
    _item("cats-fig9", "Fig. 9, Philly, 2,000 tasks", "traces:fig9"),
    _item("cats-fig10", "Fig. 10, BF, DP and FGD", "traces:fig10"),
    _item("cats-causes", "Which rules of CATS cost GPUs (not in the paper)", "traces:causes"),
)
