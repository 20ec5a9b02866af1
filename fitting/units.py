"""Units: applied when the user names them, questioned when the magnitudes are not believable."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

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
            symbol for symbol in spelt(unit) if symbol in factors(next(iter(quantity.units)))
        ]
        if not fitting:
            raise InputError("--unit", name, unit, one_of(quantity.units))
        found[name] = fitting[0]
    return found


def apply_units(profile: Profile, units: Mapping[str, str]) -> Profile:
    """The profile with the named columns converted from the units that `answered` gave."""
    changed = {
        name: profile.numbers(name) * factors(next(iter(QUANTITIES[name].units)))[unit]
        for name, unit in units.items()
    }
    notes = [f"{name} converted from {unit}" for name, unit in units.items()]
    return profile.with_columns(**changed).noting(*notes) if changed else profile


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
        for error in _findings(profile, name, groups, name in stated):
            if strict and name not in stated:
                raise error
            warn(str(error).removesuffix(f"; {GO_ON}"))


def _findings(profile: Profile, name: str, groups: Groups, stated: bool) -> Iterator[InputError]:
    values, quantity = profile.numbers(name), QUANTITIES[name]
    header = parsed(profile.called.get(name, "")).unit
    converted = header in quantity.units and quantity.units[header] != 1
    low = quantity.low * STATED if stated or converted else quantity.low
    advice = not (stated or converted)
    everything = [("", np.arange(len(profile)))]
    for title, rows in [*everything, *(groups if name in EACH_GROUP else ())]:
        known = values[rows][np.isfinite(values[rows])]
        middle = float(np.median(known)) if len(known) else low
        if not low <= middle <= quantity.high:
            where = f"column {theirs(name, profile.called)}" + (f" ({title})" if title else "")
            yield _question(profile, where, f"a median of {middle:g}", name, middle, low, advice)
            return
    if name in EACH_GROUP:
        with np.errstate(invalid="ignore"):
            far = ((values > 0) & (values < low / FAR)) | (values > quantity.high * FAR)
        for row in np.flatnonzero(far)[:1]:
            value = float(values[row])
            yield _question(
                profile, profile.where(row, name), f"{value:g}", name, value, low, advice
            )
            return
    if name in (*EACH_GROUP, "time_s"):
        yield from _about_mixed(profile, name, groups)
    if name == "energy_j":
        yield from _about_energy(profile)


def _question(
    profile: Profile, where: str, found: str, name: str, value: float, low: float, advice: bool
) -> InputError:
    """What is asked about a value that is not believed, with the unit that would explain it."""
    quantity = QUANTITIES[name]
    expected = f"{quantity.unit} between {low:g} and {quantity.high:g}"
    fitting = [
        unit
        for unit, factor in quantity.units.items()
        if factor != 1 and quantity.low <= value * factor <= quantity.high
    ]
    if fitting and advice:
        expected += f"; if the column is in {fitting[0]}, say so: --unit {name}={fitting[0]}"
    return InputError(profile.source, where, NoQuote(found), f"{expected}; {GO_ON}")


def _about_mixed(profile: Profile, name: str, groups: Groups) -> Iterator[InputError]:
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
            yield InputError(profile.source, where, found, expected)


def _about_energy(profile: Profile) -> Iterator[InputError]:
    """Energy that is not power times time, and the unit in which it would be."""
    if not all(name in profile for name in ("energy_j", "power_w", "time_s")):
        return
    gpus = profile.numbers("gpus") if "gpus" in profile else 1.0
    product = profile.numbers("power_w") * profile.numbers("time_s") * gpus
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = profile.numbers("energy_j") / product
    known = ratio[np.isfinite(ratio) & (ratio > 0)]
    middle = float(np.median(known)) if len(known) else 1.0
    if not 0.02 < middle < 50:
        fitting = [u for u, size in factors("J").items() if 0.5 < middle * size < 2]
        hint = f"; if energy is in {fitting[0]}: --unit energy_j={fitting[0]}" if fitting else ""
        yield InputError(
            profile.source,
            "columns energy_j, power_w, time_s",
            NoQuote(f"energy {middle:g} times power x time"),
            f"J, W and s that belong together{hint}; {GO_ON}",
        )
