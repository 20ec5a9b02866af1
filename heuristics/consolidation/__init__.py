"""Consolidation policies: each task is placed when it arrives, and stays (but for opt_repack)."""

from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.consolidation"
DFS = {"dfs": False, "delta_mhz": 15.0}
COMMON = {"u_max": 100.0, "strict_queue": False, **DFS}

POLICIES = entries(
    Entry(
        "cats",
        f"{HERE}.cats:cats",
        "CATS, Algorithms 1-4: least correlated awake GPU, then the clock down to 5 % of κ",
        params={
            "u_max": 100.0,
            "rho_max": 0.0,
            "lambda1": 0.5,
            "lambda2": 0.5,
            "inclusive": True,
            "literal_empty": False,
            "literal_units": False,
            "literal_thresholds": False,
            "align": "now",
            "mem_headroom_gb": 0.0,
            "strict_queue": False,
            "dfs": True,
            "delta_mhz": 15.0,
            "instant": True,
            "contention_aware": False,
            "pred_noise": 0.0,
        },
        deterministic=False,
    ),
    Entry(
        "hotcloud",
        f"{HERE}.baselines:hotcloud",
        "first awake GPU whose mean utilisation and the task's stay within u_max",
        params={"fit": "first", "inclusive": True, **COMMON, "pred_noise": 0.0},
        deterministic=False,
    ),
    Entry(
        "first",
        f"{HERE}.baselines:first",
        "first awake GPU whose utilisation now and the task's first sample stay below q",
        params={"q": 100.0, "strict_queue": False, **DFS},
    ),
    Entry(
        "bestfit",
        f"{HERE}.packing:bestfit",
        "the server, then the GPU, with the least utilisation and memory left",
        params=COMMON,
    ),
    Entry(
        "dotprod",
        f"{HERE}.packing:dotprod",
        "the server with the smallest dot product of what is free and what is asked",
        params={"dp_sign": 1, **COMMON},
    ),
    Entry(
        "fgd",
        f"{HERE}.fgd:fgd",
        "FGD: the GPU where fragmentation grows least; a task's share is its mean utilisation",
        params={**COMMON},
    ),
    Entry(
        "default",
        f"{HERE}.baselines:default",
        "one task per GPU, the first empty one",
        params={"strict_queue": False, **DFS},
    ),
    Entry(
        "opt_nomig",
        f"{HERE}.optimal:opt_nomig",
        "exact for the newcomer while residents stay: the least added power",
        params={"capacity": "", "strict_queue": False},
    ),
    Entry(
        "opt_repack",
        "optgap.solvers.consolidation.repack:opt_repack",
        "solved anew with free migration whenever a task arrives or ends",
        params={"capacity": "", "event_s": 0.0, "strict_queue": False},
        deterministic=False,
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(task, state) returns GPUs",
    deterministic=False,
)

__all__ = ["CUSTOM", "POLICIES"]
