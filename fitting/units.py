"""Units: applied when the user names them, questioned when the magnitudes are not believable."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.profile import QUANTITIES, Profile, theirs
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.quantities import GO_ON, warn
from optgap.models.units import factors, parsed, spelt

MIXED_DECADES = 2.3
"""A gap this wide (in powers of ten) within one group splits a column into two units."""
EACH_GROUP = ("frequency_mhz", "power_w", "energy_j")
"""What is judged in every group, and row by row `FAR` times beyond the range."""
FAR = 10.0
STATED = 0.05
"""The lowest value that is believed, in shares of a range's lower end, where a unit was told."""

Groups = list[tuple[str, NDArray[np.int64]]]


def answered(units: Mapping[str, str]) -> dict[str, str]:
    """``{"power_w": "milliwatts"}`` as the symbols of the units, by canonical column.

    Raises
    ------
    InputError: for a column that is not known or a unit that is none of it.
    """
    found = {}
    for name, unit in units.items():
        quantity = QUANTITIES.get(name)
        if quantity is None or not quantity.units:
            known = [key for key, item in QUANTITIES.items() if item.units]
            raise InputError("--unit", "", name, one_of(known))
        fitting = [
            symbol for symbol in spelt(str(unit)) if symbol in factors(next(iter(quantity.units)))
        ]
        if not fitting:
            raise InputError("--unit", name, unit, one_of(quantity.units))
        found[name] = fitting[0]
    return found


def check_magnitudes(
    profile: Profile,
    by: str | None = None,
    *,
    strict: bool = True,
    reads: Collection[str] = QUANTITIES,
    stated: Collection[str] = (),
) -> None:
    """Ask about columns whose magnitudes suggest another unit, or two units in one column.

    Parameters
    ----------
    by: the columns that tell groups apart; the application without.
    strict: refuse; without it one line of warning per finding stands in for the question.
    reads: the columns that matter.
    stated: columns whose unit the user said: an answer, so that they get a warning at most.

    Raises
    ------
    InputError: with `strict`, naming the column, its median and the unit to state if it is meant.
    """
    known = by is not None and all(profile.has(name) for name in profile.split(by))
    usual = "application" if "application" in profile else None
    groups = list(profile.groups(by if known else usual))
    for name in QUANTITIES:
        if name not in reads or name not in profile or profile[name].dtype.kind != "f":
            continue
        error = _doubt(profile, name, groups, name in stated)
        if error is not None and strict and name not in stated:
            raise error
        if error is not None:
            warn(str(error).removesuffix(f"; {GO_ON}"))


def _doubt(profile: Profile, name: str, groups: Groups, stated: bool) -> InputError | None:
    """The first thing about a column that is not believed."""
    values, quantity = profile.numbers(name), QUANTITIES[name]
    header = quantity.units.get(parsed(profile.called.get(name, "")).unit, 1.0)
    told = stated or header != 1  # by the user or by the header, and not our own
    low = quantity.low * STATED if told else quantity.low

    def doubt(where: str, found: str, value: float) -> InputError:
        expected = f"{quantity.unit} between {low:g} and {quantity.high:g}"
        unit = "" if told else quantity.meant(value)
        hint = f"; if the column is in {unit}, say so: --unit {name}={unit}" if unit else ""
        return InputError(profile.source, where, NoQuote(found), f"{expected}{hint}; {GO_ON}")

    by_group = name in EACH_GROUP
    for title, rows in [("", np.arange(len(profile))), *(groups if by_group else ())]:
        known = values[rows][np.isfinite(values[rows])]
        middle = float(np.median(known)) if len(known) else low
        if not low <= middle <= quantity.high:
            where = f"column {theirs(name, profile.called)}" + (f" ({title})" if title else "")
            return doubt(where, f"a median of {middle:g}", middle)
    with np.errstate(invalid="ignore"):
        far = ((values > 0) & (values < low / FAR)) | (values > quantity.high * FAR)
    for row in np.flatnonzero(far)[:1] if by_group else ():
        return doubt(profile.where(row, name), f"{values[row]:g}", float(values[row]))
    mixed = _about_mixed(profile, name, groups) if by_group or name == "time_s" else None
    return mixed or (_about_energy(profile) if name == "energy_j" else None)


def _about_mixed(profile: Profile, name: str, groups: Groups) -> InputError | None:
    """Two clusters of values in one group, far apart."""
    values = profile.numbers(name)
    for title, rows in groups:
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
            return InputError(profile.source, where, found, expected)
    return None


def _about_energy(profile: Profile) -> InputError | None:
    """Energy that is not power times time, and the unit in which it would be."""
    if not all(name in profile for name in ("energy_j", "power_w", "time_s")):
        return None
    gpus = profile.numbers("gpus") if "gpus" in profile else 1.0
    product = profile.numbers("power_w") * profile.numbers("time_s") * gpus
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = profile.numbers("energy_j") / product
    known = ratio[np.isfinite(ratio) & (ratio > 0)]
    middle = float(np.median(known)) if len(known) else 1.0
    if 0.02 < middle < 50:
        return None
    unit = next((u for u, size in factors("J").items() if 0.5 < middle * size < 2), "")
    hint = f"; if energy is in {unit}: --unit energy_j={unit}" if unit else ""
    found = NoQuote(f"energy {middle:g} times power x time")
    expected = f"J, W and s that belong together{hint}; {GO_ON}"
    return InputError(profile.source, "columns energy_j, power_w, time_s", found, expected)
