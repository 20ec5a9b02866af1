"""Consolidation policies: each task is placed when it arrives, and stays (but for opt_repack)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optgap.heuristics.consolidation.parameters import (
    CatsParams,
    FirstParams,
    HotCloudParams,
    LeastAddedEnergyParams,
    OptRepackParams,
    PackingParams,
)
from optgap.models.spec import Entry, entries


def _policies() -> dict[str, Callable[..., Any]]:
    """Import and return the policies, and the runner of a user's own."""
    from optgap.heuristics.consolidation import (
        bestfit,
        cats,
        custom,
        default,
        dotprod,
        fgd,
        first,
        hotcloud,
        least_added_energy,
        opt_nomig,
        opt_repack,
    )

    return {
        "cats": cats.cats,
        "hotcloud": hotcloud.hotcloud,
        "first": first.first,
        "bestfit": bestfit.bestfit,
        "dotprod": dotprod.dotprod,
        "fgd": fgd.fgd,
        "default": default.default,
        "opt_nomig": opt_nomig.opt_nomig,
        "least_added_energy": least_added_energy.least_added_energy,
        "opt_repack": opt_repack.opt_repack,
        "custom": custom.run,
    }


POLICIES = entries(
    _policies,
    Entry(
        "cats",
        "CATS, Algorithms 1-4: least correlated active GPU, then the lowest frequency that keeps κ",
        options=CatsParams,
    ),
    Entry(
        "hotcloud",
        "first active GPU whose mean utilisation and the task's stay within u_max",
        options=HotCloudParams,
    ),
    Entry(
        "first",
        "first active GPU whose utilisation now and the task's first sample stay below q",
        options=FirstParams,
    ),
    Entry(
        "bestfit",
        "the server, then the GPU, with the least utilisation and memory left",
        options=PackingParams,
    ),
    Entry(
        "dotprod",
        "the server with the smallest dot product of free and requested resources",
        options=PackingParams,
    ),
    Entry(
        "fgd",
        "FGD: the GPU where fragmentation grows least; a task's share is its mean utilisation",
        options=PackingParams,
    ),
    Entry("default", "one task per GPU, the first empty one"),
    Entry(
        "opt_nomig",
        "the GPU where the arriving task adds the least power; the other tasks stay",
    ),
    Entry(
        "least_added_energy",
        "ours: the GPU where the task adds least energy until all its tasks end; knows durations",
        options=LeastAddedEnergyParams,
        seeded=True,
        knows=("durations",),
    ),
    Entry(
        "opt_repack",
        "repacking with free migration whenever a task arrives or ends",
        options=OptRepackParams,
        seeded=True,
        knows=("durations",),
    ),
)

CUSTOM = Entry(
    "custom",
    "a policy of your own: place(task, state) returns GPUs",
    seeded=True,
    functions=_policies,
)

__all__ = ["CUSTOM", "POLICIES"]
