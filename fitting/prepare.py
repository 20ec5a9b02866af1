"""Small operations on a profile before it is fitted: select rows, average, drop what is missing."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optgap.fitting.profile import Profile, label
from optgap.models.errors import InputError, NoQuote

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_CONDITION = re.compile(r"\s*([^<>=!]+?)\s*(>=|<=|!=|==|>|<|=)\s*(.+?)\s*")


def where(profile: Profile, condition: str) -> Profile:
    """The rows that satisfy ``column>=value`` (also <=, >, <, =, !=); text compares as text.

    Raises
    ------
    InputError: for a condition that cannot be read, or that no row satisfies.
    """
    match = _CONDITION.fullmatch(condition)
    if not match:
        raise InputError("--where", "", condition, "a condition like frequency_mhz>=502")
    name, sign, text = match.groups()
    values = profile[name]
    compared: object = text
    if values.dtype.kind == "f":
        try:
            compared = float(text)
        except ValueError:
            raise InputError("--where", name, text, "a number, as in that column") from None
    elif sign not in ("=", "==", "!="):
        raise InputError("--where", name, sign, "= or != for a column of text")
    rows = np.flatnonzero(_OPERATORS[sign](values, compared))
    if not len(rows):
        raise InputError("--where", "", condition, f"some of the {len(profile)} rows to satisfy it")
    left = len(profile) - len(rows)
    return profile.take(rows).noting(f"{left} rows left out by {condition}") if left else profile


def mean_over(profile: Profile, over: str, at: str) -> Profile:
    """One row per value of `at`: the mean over the groups `over`, where all groups have it.

    Values of `at` that some groups lack are left out: their mean would be over other groups.
    """
    groups = [title for title, _ in profile.groups(over)]
    numeric = [
        name for name, values in profile.columns.items() if values.dtype.kind == "f" and name != at
    ]
    rows: list[list[float]] = []
    left = 0
    for value in np.unique(profile.numbers(at)):
        here = np.flatnonzero(profile.numbers(at) == value)
        if len({label(item) for item in profile[over][here]}) < len(groups):
            left += 1
            continue
        rows.append([float(value), *(float(np.mean(profile[name][here])) for name in numeric)])
    if not rows:
        found = NoQuote(f"no {at} that all {len(groups)} groups have")
        raise InputError(profile.source, f"column {at}", found, "at least one")
    table = np.array(rows)
    columns = {name: table[:, k] for k, name in enumerate([at, *numeric])}
    note = f"mean over {len(groups)} groups of {over}"
    mean = Profile(columns, profile.source, profile.kind, notes=(*profile.notes, note))
    return mean.noting(f"{left} values of {at} that some groups lack left out") if left else mean


def drop_missing(profile: Profile, columns: Sequence[str]) -> Profile:
    """The rows in which all of the named columns that exist hold finite numbers."""
    good = np.ones(len(profile), dtype=bool)
    for name in columns:
        if name in profile and profile[name].dtype.kind == "f":
            known = np.isfinite(profile.numbers(name))
            good &= known | ~known.any()  # what no row has is not a row's fault
    rows = np.flatnonzero(good)
    if len(rows) == len(profile):
        return profile
    return profile.take(rows).noting(f"{len(profile) - len(rows)} rows with missing values dropped")
