"""Gu et al., "Energy-Efficient GPU Clusters Scheduling for Deep Learning" (PowerFlow, arXiv
2304.06381): which figures and tables are run again.

The authors' profiles and trace are not public. Everything runs on the synthetic V100 pool and a
synthetic day from published statistics; nothing here needs data.
"""

from __future__ import annotations

from optgap.reproduce.report import Item

PAPER = "PowerFlow, arXiv 2304.06381"
STATED = "the numbers of Section 3.1"
POOL = "the synthetic V100 pool"
SYNTHETIC = "the synthetic V100 pool and day"


def _item(name: str, title: str, target: str, source: str = SYNTHETIC) -> Item:
    return Item(name, PAPER, title, f"{__name__}.{target}", stand_in=source, most_seeds=1)


ITEMS: tuple[Item, ...] = (
    _item("powerflow-motivation", "Fig. 1, two jobs on two GPUs", "motivation:two_jobs", STATED),
    _item("powerflow-fig2", "Fig. 2, throughput over clocks and GPUs", "shapes:fig2", POOL),
    _item("powerflow-fig3", "Fig. 3, power over the local batch", "shapes:fig3", POOL),
    _item("powerflow-fig4", "Fig. 4, energy over clocks and GPUs", "shapes:fig4", POOL),
    _item("powerflow-fig5", "Fig. 5, energy against throughput", "shapes:fig5", POOL),
    _item("powerflow-table2", "Table 2, errors of the fitted models", "fits:table2"),
    _item("powerflow-fig7", "Fig. 7, mean JCT against energy", "day:fig7"),
    _item("powerflow-fig8", "Fig. 8, GPUs and power over time", "day:fig8"),
    _item("powerflow-fig9", "Fig. 9, models learnt in the loop against known profiles", "day:fig9"),
    _item("powerflow-fig10", "Fig. 10, sensitivity", "sensitivity:fig10"),
    _item(
        "powerflow-causes",
        "What decides Fig. 7 and 10, one cause after another (not in the paper)",
        "causes:causes",
    ),
    _item("powerflow-gaps", "Gap of every policy at every η (not in the paper)", "gaps:by_eta"),
    _item(
        "powerflow-decisions",
        "Algorithm 1 against the optimum of its own decision (not in the paper)",
        "gaps:decisions",
    ),
)
