"""Consolidation policies: each task is placed when it arrives, and stays (but for opt_repack)."""

from optgap.heuristics.consolidation.parameters import (
    CatsParams,
    DefaultParams,
    FirstParams,
    HotCloudParams,
    LeastAddedEnergyParams,
    OptNomigParams,
    OptRepackParams,
    PackingParams,
)
from optgap.models.spec import Entry, entries

HERE = "optgap.heuristics.consolidation"

POLICIES = entries(
    Entry(
        "cats",
        f"{HERE}.cats:cats",
        "CATS, Algorithms 1-4: least correlated awake GPU, then the clock down to 5 % of κ",
        options=CatsParams,
    ),
    Entry(
        "hotcloud",
        f"{HERE}.hotcloud:hotcloud",
        "first awake GPU whose mean utilisation and the task's stay within u_max",
        options=HotCloudParams,
    ),
    Entry(
        "first",
        f"{HERE}.first:first",
        "first awake GPU whose utilisation now and the task's first sample stay below q",
        options=FirstParams,
    ),
    Entry(
        "bestfit",
        f"{HERE}.bestfit:bestfit",
        "the server, then the GPU, with the least utilisation and memory left",
        options=PackingParams,
    ),
    Entry(
        "dotprod",
        f"{HERE}.dotprod:dotprod",
        "the server with the smallest dot product of what is free and what is asked",
        options=PackingParams,
    ),
    Entry(
        "fgd",
        f"{HERE}.fgd:fgd",
        "FGD: the GPU where fragmentation grows least; a task's share is its mean utilisation",
        options=PackingParams,
    ),
    Entry(
        "default",
        f"{HERE}.default:default",
        "one task per GPU, the first empty one",
        options=DefaultParams,
    ),
    Entry(
        "opt_nomig",
        f"{HERE}.opt_nomig:opt_nomig",
        "exact for the newcomer while residents stay: the least added power",
        options=OptNomigParams,
    ),
    Entry(
        "least_added_energy",
        f"{HERE}.least_added_energy:least_added_energy",
        "ours: the GPU where the task adds least energy until all have ended; knows durations",
        options=LeastAddedEnergyParams,
        seeded=True,
        knows=("durations",),
    ),
    Entry(
        "opt_repack",
        f"{HERE}.opt_repack:opt_repack",
        "solved anew with free migration whenever a task arrives or ends",
        options=OptRepackParams,
        seeded=True,
        knows=("durations",),
    ),
)

CUSTOM = Entry(
    "custom",
    f"{HERE}.custom:run",
    "a policy of your own: place(task, state) returns GPUs",
    seeded=True,
)

__all__ = ["CUSTOM", "POLICIES"]
