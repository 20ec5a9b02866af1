"""Scores are compared after rounding to 1e-9, so that ties on paper are ties here."""

from __future__ import annotations

import numpy as np

from optgap.models.compiled import inner

DIGITS = 1e9


@inner
def rounded(score: float) -> float:
    """To 1e-9."""
    near: float = np.floor(score * DIGITS + 0.5)
    return near / DIGITS
