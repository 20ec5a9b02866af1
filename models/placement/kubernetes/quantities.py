"""Kubernetes quantities: ``500m``, ``1536Mi``, ``1e3``, ``123456789m``, ``100k``."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE])([+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?))"
)
_SUFFIX = {
    "": Fraction(1),
    **{name: Fraction(10) ** (3 * k) for k, name in enumerate(("n", "u", "m"), -3)},
    **{name: Fraction(1000) ** k for k, name in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{name: Fraction(1024) ** k for k, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)},
}


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Fraction:
    """The number that a quantity stands for, exactly (the API's regular expression and suffixes).

    Raises
    ------
    ValueError: for what is no quantity.
    """
    found = _FORM.fullmatch(str(text))
    if found is None or len(found[1]) > 40 or (found[3] and abs(int(found[3])) > 40):
        raise ValueError(f"{text!r} is no quantity")
    number = Fraction(found[1])
    return number * Fraction(10) ** int(found[3]) if found[2] else number * _SUFFIX[found[4]]
