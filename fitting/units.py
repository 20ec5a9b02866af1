"""Units: applied when the user names them, questioned when the magnitudes are not believable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import QUANTITIES, Profile, theirs
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.quantities import GO_ON, Quantity, warn

MIXED_DECADES = 2.3
"""A gap this wide (in powers of ten) within one group splits a column into two units."""


def apply_units(profile: Profile, units: Mapping[str, str]) -> Profile:
    """The profile with the named columns converted to canonical units.

    Raises
    ------
    InputError: for a column that is not there or a unit that is not known for it.
    """
    changed = {}
    for name, unit in units.items():
        quantity = QUANTITIES.get(name)
        if quantity is None or not quantity.units:
            known = [key for key, item in QUANTITIES.items() if item.units]
            raise InputError("--unit", "", name, one_of(known))
        if unit not in quantity.units:
            raise InputError("--unit", name, unit, one_of(quantity.units))
        changed[name] = profile.numbers(name) * quantity.units[unit]
    notes = [f"{name} converted from {unit}" for name, unit in units.items()]
    return profile.with_columns(**changed).noting(*notes) if changed else profile


def check_magnitudes(profile: Profile, by: str | None = None, *, strict: bool = True) -> None:
    """Ask about columns whose magnitudes suggest another unit, or two units in one column.

    Without `strict` one line of warning per finding stands in for the question.

    Raises
    ------
    InputError: with `strict`, naming the column, its median and the unit to state if it is meant.
    """
    for error in _findings(profile, by):
        if strict:
            raise error
        warn(str(error).removesuffix(f"; {GO_ON}"))


def _findings(profile: Profile, by: str | None) -> Iterator[InputError]:
    for name, quantity in QUANTITIES.items():
        if name in profile and profile[name].dtype.kind == "f":
            values = profile.numbers(name)
            known = values[np.isfinite(values)]
            if len(known):
                yield from _about_median(profile, name, quantity, known)
    group = by if by and by in profile else "application" if "application" in profile else None
    for name in ("time_s", "power_w", "frequency_mhz", "energy_j"):
        if name in profile:
            yield from _about_mixed(profile, name, group)
    yield from _about_energy(profile)


def _about_median(
    profile: Profile, name: str, quantity: Quantity, values: NDArray[np.float64]
) -> Iterator[InputError]:
    middle = float(np.median(values))
    if quantity.low <= middle <= quantity.high:
        return
    expected = f"{quantity.unit} between {quantity.low:g} and {quantity.high:g}"
    fitting = [
        unit
        for unit, factor in quantity.units.items()
        if factor != 1 and quantity.low <= middle * factor <= quantity.high
    ]
    if fitting:
        expected += f"; if the column is in {fitting[0]}, say so: --unit {name}={fitting[0]}"
    found = NoQuote(f"a median of {middle:g}")
    yield InputError(
        profile.source, f"column {theirs(name, profile.called)}", found, f"{expected}; {GO_ON}"
    )


def _about_mixed(profile: Profile, name: str, group: str | None) -> Iterator[InputError]:
    values = profile.numbers(name)
    for title, rows in profile.groups(group):
        known = rows[np.isfinite(values[rows]) & (values[rows] > 0)]
        if len(known) < 4:
            continue
        order = known[np.argsort(values[known], kind="stable")]
        decades = np.log10(values[order])
        gaps = np.diff(decades)
        cut = int(np.argmax(gaps))
        spread = max(decades[cut] - decades[0], decades[-1] - decades[cut + 1])
        if gaps[cut] >= MIXED_DECADES and spread < gaps[cut] - 0.5:
            low, high = values[order[cut]], values[order[cut + 1]]
            row = int(order[cut + 1] if cut + 1 > len(order) / 2 else order[cut])
            where = profile.where(row, name) + (f" ({title})" if title else "")
            found = NoQuote(f"{low:g} and {high:g} side by side")
            expected = f"one unit, {QUANTITIES[name].unit}; {GO_ON}"
            yield InputError(profile.source, where, found, expected)


def _about_energy(profile: Profile) -> Iterator[InputError]:
    if not all(name in profile for name in ("energy_j", "power_w", "time_s")):
        return
    gpus = profile.numbers("gpus") if "gpus" in profile else 1.0
    product = profile.numbers("power_w") * profile.numbers("time_s") * gpus
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = profile.numbers("energy_j") / product
    known = ratio[np.isfinite(ratio) & (ratio > 0)]
    if not len(known):
        return
    middle = float(np.median(known))
    if not 0.02 < middle < 50:
        yield InputError(
            profile.source,
            "columns energy_j, power_w, time_s",
            NoQuote(f"energy {middle:g} times power x time"),
            f"J, W and s that belong together; {GO_ON}",
        )
