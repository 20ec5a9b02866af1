"""Small operations on a profile before it is fitted: select rows, drop what is missing."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optgap.fitting.profile import Profile
from optgap.models.errors import InputError

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
