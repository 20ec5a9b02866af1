"""What is searched: a stretch of numbers, or a few values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from optgap.models.errors import InputError
from optgap.parameters import typed

GRID_STEPS = 11
"""Values of a number in a grid search."""
Setting = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Range:
    """Where a parameter may lie: a stretch of numbers, or a few values.

    Parameters
    ----------
    name: the parameter.
    low, high: both included; meaningless with `values`.
    whole: integers only.
    log: searched on a logarithmic scale.
    values: instead, the values there are.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False
    values: tuple[Any, ...] = ()

    def at(self, share: float) -> Any:
        """The value at a share of the way, from 0 to 1."""
        share = min(1.0, max(0.0, share))
        if self.values:
            return self.values[min(len(self.values) - 1, int(share * len(self.values)))]
        if self.whole:
            return int(min(self.high, math.floor(self.low + share * (self.high - self.low + 1))))
        if self.log:
            return float(f"{self.low * (self.high / self.low) ** share:.6g}")
        # six digits: a parameter that nobody can type again is of no use
        return float(f"{self.low + share * (self.high - self.low):.6g}")

    @property
    def steps(self) -> list[Any]:
        """Its values in a grid search."""
        if self.values:
            return list(self.values)
        if self.whole and self.high - self.low < GRID_STEPS:
            return list(range(int(self.low), int(self.high) + 1))
        steps = [self.at(k / (GRID_STEPS - 1)) for k in range(GRID_STEPS)]
        return list(dict.fromkeys(steps))

    def __str__(self) -> str:
        if self.values:
            return "|".join(map(str, self.values))
        return f"{self.low:g}..{self.high:g}" + (" log" if self.log else "")


def read_range(name: str, text: str, default: Any, source: str = "--param") -> Range:
    """``0..1``, ``0.01..10 log``, ``1..8`` (integers where the default is one) or ``a|b|c``.

    Raises
    ------
    InputError: for anything else, an empty stretch, or values of another type than the default.
    """
    expected = "LOW..HIGH, 'LOW..HIGH log' or A|B|C"
    if ".." not in text:
        values = [
            typed({name: part.strip()}, {name: default}, name, source)[name]
            for part in text.split("|")
        ]
        if len(set(map(str, values))) < 2:
            raise InputError(source, name, text, expected + ", with two values at least")
        return Range(name, values=tuple(values))
    span, _, scale = text.strip().partition(" ")
    low_text, _, high_text = span.partition("..")
    try:
        low, high = float(low_text), float(high_text)
    except ValueError:
        raise InputError(source, name, text, expected) from None
    log = scale.strip() == "log"
    if (scale.strip() and not log) or not -math.inf < low < high < math.inf or (log and low <= 0):
        raise InputError(source, name, text, expected + ", with LOW < HIGH (0 < LOW with log)")
    if default is not None and (isinstance(default, bool) or not isinstance(default, (int, float))):
        raise InputError(source, name, text, f"A|B|C: {name} is no number")
    whole = isinstance(default, int)
    if whole and not (low.is_integer() and high.is_integer()):
        raise InputError(source, name, text, "integers: the default is one")
    return Range(name, low, high, whole, log)
