"""The simulators' own runs at seed 42, as far as the data folder holds them."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from optgap.models.placement import PlacementProblem
from optgap.models.placement.presets import from_csv


@cache
def openb_s42(data_dir: Path) -> PlacementProblem:
    """Default trace up to 130 % load, with the arrivals and ranks of seed 42."""
    openb = data_dir / "openb"
    return from_csv(
        openb / "openb_node_list_gpu_node.csv",
        openb / "openb_pod_list_default.csv",
        openb / "reference" / "order_default_s42.csv",
        openb / "reference" / "node_rank_s42.csv",
        seed=42,
    )


@cache
def first_500(data_dir: Path, policy: str) -> list[dict[str, str]]:
    """The first 500 arrivals under ``fgd`` or ``pwr``, one row each."""
    path = data_dir / "openb" / "reference" / f"{policy}_default_s42_first500.csv"
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
