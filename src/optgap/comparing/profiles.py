"""From one profile to the fits that a family can use: what the columns allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optgap.fitting.profile import Profile
from optgap.fitting.report import FitReport
from optgap.fitting.workflow import fit
from optgap.models.errors import InputError, NoQuote

APPLICATION = "application"
WAYS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "placement": (("device-power",),),
    "consolidation": (
        ("linear-power", "power-law-jct"),
        ("linear-power",),
        ("power-law-jct",),
        ("contention",),
    ),
    "coscheduling": (("dram-runtime",),),
    "elastic": (
        ("powerflow-energy",),
        ("powerflow-throughput", "powerflow-power"),
        ("powerflow-throughput", "batch-power"),
    ),
    "queueing": (("powerflow-throughput",),),
}
"""The models that a family's problems are made on, best first."""


def fits_for(family: str, profile: Profile, seed: int = 0) -> list[FitReport[Any]]:
    """The fits of the first way that the profile's columns allow, by application where it has any.

    Raises
    ------
    InputError: when none can be made: the reason of the one that most speaks for, in a line.
    """
    by = APPLICATION if APPLICATION in profile else None
    failures: list[InputError] = []
    for models in WAYS[family]:
        try:
            return [_fitted(profile, model, by, seed) for model in models]
        except InputError as error:
            failures.append(error)
    raise _told(family, failures)


def _fitted(profile: Profile, model: str, by: str | None, seed: int) -> FitReport[Any]:
    apart = by if model not in ("device-power", "contention") else None
    return fit(profile, model, by=apart, drop_missing=True, seed=seed)


def _told(family: str, failures: Sequence[InputError]) -> InputError:
    """The first failure, with what else would have done."""
    first = failures[0]
    ways = "; or ".join(" and ".join(models) for models in WAYS[family])
    expected = f"{first.expected} (for {family}: {ways})"
    return InputError(first.source, first.where, NoQuote(first.found), expected)
