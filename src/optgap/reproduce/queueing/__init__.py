"""A. Mamirov, "Reducing Fragmentation and Starvation in GPU Clusters through Dynamic
Multi-Objective Scheduling": its workload, Table II and the numbers in the text, run again.
"""

from __future__ import annotations

from optgap.reproduce.report import Item

PAPER = "HPS/PBS/SBS"
STATED = "the paper's own numbers"
SOURCE = "synthetic streams after the paper's Section IV-A"


def _item(
    name: str, title: str, target: str, source: str = SOURCE, most_seeds: int | None = None
) -> Item:
    place = f"{__name__}.{target}"
    return Item(name, PAPER, title, place, stand_in=source, most_seeds=most_seeds)


ITEMS: tuple[Item, ...] = (
    _item("hps-workload", "Section IV-A, the workload", "workload:workload"),
    _item("hps-impossible", "Numbers that cannot be right", "impossible:impossible", STATED),
    _item("hps-table2", "Table II, HPS, PBS and SBS", "tables:table2"),
    _item("hps-static", "Section VI, the static schedulers", "tables:static"),
    _item(
        "hps-loads",
        "One setting for all of Table II (not in the paper)",
        "loads:loads",
        most_seeds=3,  # there are many settings
    ),
    _item("hps-orderings", "Which orderings hold", "orderings:orderings"),
    _item("hps-aging", "HPS's aging factor, as printed and repaired", "aging:aging"),
    _item("hps-estimates", "What wrong estimates cost (not in the paper)", "estimates:estimates"),
    _item("hps-gaps", "Gaps to proven bounds (not in the paper)", "gaps:gaps"),
)
