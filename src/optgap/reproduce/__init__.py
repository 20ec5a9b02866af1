"""The papers' figures and tables, run again: what they say, what we get, and why.

>>> from optgap import reproduce
>>> print(reproduce.run("pwr-fig3", seeds=2))  # doctest: +SKIP
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from optgap.datasets import present_folder
from optgap.models.errors import InputError, one_of
from optgap.models.limits import Limits
from optgap.reproduce.consolidation import ITEMS as CONSOLIDATION
from optgap.reproduce.coscheduling import ITEMS as COSCHEDULING
from optgap.reproduce.elastic import ITEMS as ELASTIC
from optgap.reproduce.placement import ITEMS as PLACEMENT
from optgap.reproduce.queueing import ITEMS as QUEUEING
from optgap.reproduce.report import Item, Report, Row, Stopped, Study

if TYPE_CHECKING:
    from optgap.reproduce.cache import Cache
    from optgap.reproduce.grid import Curve, aggregate, loads, on_grid, savings

ITEMS: dict[str, Item] = {
    item.name: item for item in (*PLACEMENT, *CONSOLIDATION, *COSCHEDULING, *ELASTIC, *QUEUEING)
}
"""Every item by name; nothing is imported or run before it is asked for."""

SEEDS = 10
FIRST_SEED = 42

__all__ = [
    "FIRST_SEED",
    "ITEMS",
    "SEEDS",
    "Cache",
    "Curve",
    "Item",
    "Report",
    "Row",
    "Stopped",
    "Study",
    "aggregate",
    "find",
    "loads",
    "on_grid",
    "run",
    "savings",
    "study",
]


def find(name: str) -> Item:
    """The item of this name.

    Raises
    ------
    InputError: listing those there are.
    """
    if name not in ITEMS:
        raise InputError("reproduce", "", name, one_of(ITEMS, "all, list, or one of {}"))
    return ITEMS[name]


def study(
    seeds: int = SEEDS,
    first_seed: int = FIRST_SEED,
    data: str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
) -> Study:
    """What items are run with; they share their runs when they share a study.

    Parameters
    ----------
    seeds: how many runs of each policy; seeds are consecutive from `first_seed`.
    data: the folder with the public traces; by default the one that ``OPTGAP_DATA`` names, or
        that `optgap info --fetch` has filled.

    Raises
    ------
    InputError: for fewer than one seed, or a folder that is not there.
    """
    if seeds < 1:
        raise InputError("--seeds", "", seeds, "at least 1")
    place = present_folder(data)
    chosen = tuple(range(first_seed, first_seed + seeds))
    return Study(chosen, place, limits or Limits())


def run(
    name: str,
    *,
    seeds: int = SEEDS,
    first_seed: int = FIRST_SEED,
    data: str | os.PathLike[str] | None = None,
    cache: Cache | None = None,
) -> Report:
    """Run one item; parameters as for `study`.

    Parameters
    ----------
    cache: ``Cache()`` takes a report that was kept for the same inputs and versions, and keeps
        this one; the command line does so, this function only when it is asked to.

    Raises
    ------
    InputError: for an unknown name, or when it needs data that is not there.
    """
    item, given = find(name), study(seeds, first_seed, data)
    return item.run(given) if cache is None else cache.run(item, given)


_LATER = dict.fromkeys(("Curve", "aggregate", "loads", "on_grid", "savings"), "grid")
_LATER["Cache"] = "cache"


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"optgap.reproduce.{_LATER[name]}"), name)
