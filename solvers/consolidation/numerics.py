"""Types, and the tolerances that proofs are stated with; none of them tunes anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Placement = list[tuple[int, ...]]
"""The GPUs of each task."""
Column = tuple[int, ...]
"""Tasks that share a GPU, ascending: a column of the set covering formulation."""
Counts = tuple[int, ...]
"""N_0, N_1, …: GPUs of cost level q or more; with Z, the awake servers, last where they count."""

QUANTUM_W = 1e-6
"""Costs are rounded down to multiples of this, W: 5,000 GPUs lose at most 5 mW."""
CLOSE = 5e-7
"""Relative difference at which two powers count as equal, as costs are rounded to `QUANTUM_W`."""
BOUND_SAFETY = 1e-9
"""Relative error of floating-point sums in a bound; subtracted from every bound."""
INTEGRALITY = 1e-6
"""Distance at which a value of a linear program counts as integer."""
SLACK_W = 1e-4
"""Largest excess of a linear program's value over the power of its own counts, W."""


@dataclass(frozen=True)
class CountBox:
    """Lower and upper limits on N_0, …, N_{Q−1} (GPUs of level q or more) and Z (awake servers)."""

    low: Counts
    high: Counts

    @classmethod
    def up_to(cls, counts: Counts) -> CountBox:
        """At most these counts of GPUs, in exactly `counts[-1]` servers."""
        return cls((*(0 for _ in counts[:-1]), counts[-1]), counts)

    @property
    def single(self) -> bool:
        """Whether it holds one vector of counts."""
        return self.low == self.high

    @property
    def nonempty(self) -> bool:
        """Whether it holds any vector of counts."""
        return all(low <= high for low, high in zip(self.low, self.high, strict=True))
