"""EcoSched, "an online energy-aware co-scheduler for multi-GPU nodes": which figures and tables
are run again, from the profiles that its authors measured.
"""

from __future__ import annotations

from optgap.reproduce.report import Item

PAPER = "EcoSched"
FOLDER = "profiles/ecosched"
LOG = f"{FOLDER}/measured_policy_events.csv"
TOTALS = f"{FOLDER}/measured_policy_totals.csv"


def profiles(platform: str) -> str:
    """The file of a platform's profiles, below the data folder."""
    return f"{FOLDER}/{platform.lower()}_profiles.csv"


def _item(name: str, title: str, target: str, *needs: str, stand_in: str = "") -> Item:
    reads = "the authors' profiles and logs" if TOTALS in needs else "the authors' profiles"
    return Item(name, PAPER, title, f"{__name__}.{target}", needs, stand_in, reads)


BOTH = (profiles("H100"), profiles("V100"))

ITEMS: tuple[Item, ...] = (
    _item("ecosched-fig1", "Fig. 1, run time over GPU counts", "scaling:fig1", *BOTH),
    _item("ecosched-fig2", "Fig. 2, one GPU less than the fastest count", "scaling:fig2", *BOTH),
    _item("ecosched-fig3", "Fig. 3, sequential against co-scheduling", "schemes:fig3", *BOTH[:1]),
    _item("ecosched-fig5", "Fig. 5, DRAM activity and run time", "scaling:fig5", *BOTH),
    _item("ecosched-table2", "Table II, GPU counts by application", "counts:table2", *BOTH),
    _item("ecosched-fig6", "Fig. 6, savings against both baselines", "savings:fig6", *BOTH, TOTALS),
    _item("ecosched-fig7", "Fig. 7 and 8, six applications", "case:fig7", profiles("H100")),
    _item("ecosched-fig9", "Fig. 9, slow-down by application", "scaling:fig9", *BOTH, LOG, TOTALS),
    _item(
        "ecosched-oracle",
        "The Oracle, and how far each policy is from optimal",
        "optimum:oracle",
        *BOTH,
        LOG,
        TOTALS,
    ),
    _item("ecosched-sweep", "What τ and λ do (not in the paper)", "sweep:sweep", *BOTH),
    _item("ecosched-overhead", "Section V-C, overheads", "overhead:overhead", profiles("H100")),
    _item(
        "ecosched-gaps",
        "Gaps to the optimum on synthetic queues (not in the paper)",
        "synthetic:gaps",
        stand_in="the synthetic pool",
    ),
)
