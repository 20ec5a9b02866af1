"""Subramaniyan and Wang, "CATS: Correlation-aware Task Scheduling for GPU Power Optimization in
AI Data Centers" (ICS 2026): which figures and tables are run again.
"""

from __future__ import annotations

from optgap.reproduce.report import Item

PAPER = "CATS, ICS 2026"
PHILLY = "profiles/philly/gpu_util_window.csv.gz"
CLOCKS = "profiles/nv-dvfs/v100_real.csv"
SYNTHETIC = "synthetic tasks from the published distributions"


def _item(
    name: str,
    title: str,
    target: str,
    *needs: str,
    stand_in: str = SYNTHETIC,
    reads: str = "the public trace",
) -> Item:
    return Item(name, PAPER, title, f"{__name__}.{target}", needs, stand_in, reads, most_seeds=1)


ITEMS: tuple[Item, ...] = (
    _item("cats-table1", "Table 1, time to solve Eq. 6", "exact:table1"),
    _item("cats-table2", "Table 2, time of a correlation", "models:table2", stand_in="made series"),
    _item(
        "cats-fig1",
        "Fig. 1, power and run time over the clock",
        "models:fig1",
        CLOCKS,
        stand_in="",
        reads="kernels measured on a V100",
    ),
    _item("cats-fig3", "Fig. 3, memory of tasks", "models:fig3"),
    _item("cats-table4", "Fig. 7a, the testbed's 14 tasks", "exact:testbed"),
    _item("cats-fig7b", "Fig. 7b, the testbed's JCT", "exact:fig7b"),
    _item("cats-fig2", "Fig. 2, correlation of utilisations", "correlation:fig2", PHILLY),
    _item("cats-fig8", "Fig. 8, PAI, 5,000 tasks", "traces:fig8"),
    _item("cats-fig9", "Fig. 9, Philly, 2,000 tasks", "traces:fig9"),
    _item("cats-fig10", "Fig. 10, BF, DP and FGD", "traces:fig10"),
    _item("cats-causes", "Which rules of CATS cost GPUs (not in the paper)", "traces:causes"),
)
