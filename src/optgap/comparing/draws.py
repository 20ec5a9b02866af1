"""Draws of the fits in a problem, and a description of each fit's draws."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from optgap.models.performance.saved import FittedParameters, read_fit

BLOCK = 19
"""Number of draws that one generator makes: as many as an interval of 90 % takes."""
PARTS = ("parameters",)
"""Parts of the draws of a fit that does not list them."""


@dataclass(frozen=True)
class Drawn:
    """Parts of a fit's draws: parameters, residual, between applications."""

    model: str
    source: str
    parts: tuple[str, ...] = PARTS

    @classmethod
    def of(cls, fit: FittedParameters) -> Drawn:
        """Read the description from a fit's document."""
        parts: dict[str, None] = {}
        for name in fit.groups:
            parts |= dict.fromkeys(fit.predictive(name) or PARTS)
        return cls(fit.model, os.path.basename(fit.source), tuple(parts))

    def __str__(self) -> str:
        words = f"{self.model} ({self.source}): draws of {', '.join(self.parts)}"
        if not any(part.startswith("between") for part in self.parts):
            words += " alone"
        return words

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {**vars(self), "parts": list(self.parts)}


def draws(fits: Sequence[FittedParameters], seed: int) -> Iterator[list[FittedParameters]]:
    """Yield fits with drawn parameters without end: their errors, residuals and more.

    Each block of `BLOCK` draws has a generator of its own, so that more draws keep the first ones.
    Where applications are drawn, the k-th draws of all fits are of the same application.

    Raises
    ------
    InputError: for a fit without a covariance.
    """
    from optgap.fitting.saved import drawn

    for block in count():
        rng = np.random.default_rng([seed, block])
        which = rng.random(BLOCK)
        columns = [drawn(fit.document, fit.source, BLOCK, rng, which) for fit in fits]
        for documents in zip(*columns, strict=True):
            read = zip(map(read_fit, documents), fits, strict=True)
            yield [replace(one, source=fit.source) for one, fit in read]
