"""Draws of the fits in a problem, and what they are drawn from, in words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.models.performance.saved import FittedParameters, read_fit

PARTS = ("parameters",)
"""Of a fit saved before there were others."""


@dataclass(frozen=True)
class Drawn:
    """What one fit's draws carry, and how many held-out points its intervals covered.

    Parameters
    ----------
    parts: parameters, residual, between applications.
    level: of the intervals.
    others, applications: the share of held-out applications' points, and how many were held out.
    rows, count: the same of held-out rows; None where nothing was held out.
    """

    model: str
    source: str
    parts: tuple[str, ...] = PARTS
    level: float = 0.9
    others: float | None = None
    applications: int = 0
    rows: float | None = None
    count: int = 0

    @classmethod
    def of(cls, fit: FittedParameters) -> Drawn:
        """What a fit's document says."""
        parts: dict[str, None] = {}
        for name in fit.groups:
            parts |= dict.fromkeys(fit.predictive(name) or PARTS)
        said = fit.document.get("coverage") or {}
        return cls(
            fit.model,
            os.path.basename(fit.source),
            tuple(parts),
            said.get("level", 0.9),
            said.get("applications"),
            said.get("held_out_applications", 0),
            said.get("rows"),
            said.get("held_out_rows", 0),
        )

    def __str__(self) -> str:
        about = f"{100 * self.level:g} % intervals covered"
        words = f"{self.model} ({self.source}): draws of {', '.join(self.parts)}"
        if not any(part.startswith("between") for part in self.parts):
            words += " alone"
        if self.others is not None:
            what = f"held-out applications' points ({self.applications})"
            words += f"; {about} {100 * self.others:.0f} % of {what}"
        if self.rows is not None:
            words += f"; {about} {100 * self.rows:.0f} % of {self.count} held-out rows"
        return words

    def to_json(self) -> dict[str, Any]:
        """Its fields by name."""
        return {**vars(self), "parts": list(self.parts)}


def draw(fits: Sequence[FittedParameters], seed: int, number: int) -> list[FittedParameters]:
    """Parameters drawn for each group of each fit: their error, residuals, between applications.

    Each draw has a generator of its own, so that more draws keep the first ones. Where
    applications are drawn, all fits draw the same.

    Raises
    ------
    InputError: for a fit without a covariance.
    """
    from optgap.fitting.saved import drawn

    rng = np.random.default_rng([seed, number])
    which = rng.random(1)
    found = [drawn(fit.document, fit.source, 1, rng, which)[0] for fit in fits]
    return [replace(read_fit(d), source=f.source) for d, f in zip(found, fits, strict=True)]
