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
    """Parts of a fit's draws, and the share of held-out points that its intervals covered.

    Parameters
    ----------
    parts: parameters, residual, between applications.
    level: probability that the intervals aim at.
    others, applications: covered share of held-out applications' points, and the number of these
        applications.
    rows, count: covered share of held-out rows, and their number; None without held-out rows.
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
        """Read the description from a fit's document."""
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
