"""Lettich et al., "Power- and Fragmentation-aware Online Scheduling for GPU Datacenters"
(CCGrid 2025, arXiv 2412.17484): which figures and tables are run again.
"""

from __future__ import annotations

from optgap.reproduce.report import Item

PAPER = "PWR+FGD, CCGrid 2025"
NODES = "openb/openb_node_list_gpu_node.csv"
ALL_NODES = "openb/openb_node_list_all_node.csv"
ORDER_42 = "openb/reference/order_default_s42.csv"
RANKS_42 = "openb/reference/node_rank_s42.csv"
COUNTS = "the counts in the package"


def pods(trace: str) -> str:
    """The file of a trace, below the data folder."""
    return f"openb/openb_pod_list_{trace}.csv"


def _item(name: str, title: str, target: str, *traces: str, stand_in: str = "") -> Item:
    needs = (NODES, *(pods(trace) for trace in traces))
    return Item(name, PAPER, title, f"{__name__}.{target}", needs, stand_in)


ITEMS: tuple[Item, ...] = (
    _item("pwr-table1", "Table I, the Default trace", "facts:table1", "default", stand_in=COUNTS),
    _item("pwr-table2", "Table II, the cluster", "facts:table2", stand_in=COUNTS),
    _item(
        "pwr-traces",
        "Section V-A, the traces made from Default",
        "facts:traces",
        *("default", "multigpu20", "multigpu50", "gpushare40", "gpushare100"),
        *("gpuspec10", "gpuspec33"),
    ),
    _item("pwr-fig1", "Fig. 1, EOPC under FGD", "default:fig1", "default", stand_in=COUNTS),
    _item(
        "pwr-fig2",
        "Fig. 2, PWR and its combinations with FGD",
        "default:fig2",
        "default",
        stand_in=COUNTS,
    ),
    _item(
        "pwr-fig3",
        "Fig. 3, power savings, Default trace",
        "default:fig3",
        "default",
        stand_in=COUNTS,
    ),
    _item("pwr-fig4", "Fig. 4, power savings, GPU-sharing", "savings:fig4", "gpushare100"),
    _item(
        "pwr-fig5", "Fig. 5, power savings, multi-GPU", "savings:fig5", "multigpu20", "multigpu50"
    ),
    _item(
        "pwr-fig6",
        "Fig. 6, power savings, constrained GPU",
        "savings:fig6",
        "gpuspec10",
        "gpuspec33",
    ),
    _item("pwr-fig7", "Fig. 7, GRAR, Default trace", "grar:fig7", "default", stand_in=COUNTS),
    _item("pwr-fig8", "Fig. 8, GRAR, GPU-sharing", "grar:fig8", "gpushare40", "gpushare100"),
    _item("pwr-fig9", "Fig. 9, GRAR, multi-GPU", "grar:fig9", "multigpu20", "multigpu50"),
    _item("pwr-fig10", "Fig. 10, GRAR, constrained GPU", "grar:fig10", "gpuspec10", "gpuspec33"),
    _item(
        "pwr-causes",
        "What might decide Fig. 5 at 50 % and DotProd in Fig. 7 (not in the paper)",
        "causes:causes",
        *("default", "multigpu50"),
    ),
)
