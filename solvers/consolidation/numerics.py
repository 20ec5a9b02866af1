"""Array types, and the tolerances that proofs are stated with; none of them tunes anything."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Placement = list[tuple[int, ...]]
"""The GPUs of each task."""
Column = tuple[int, ...]
"""Tasks that share a GPU, ascending: a column of the set-covering formulation."""
Counts = tuple[int, ...]
"""GPUs that cost level 0, 1, … or more; where servers are counted as well they come last."""

QUANTUM_W = 1e-6
"""What costs are counted in, W: 5,000 GPUs rounded down lose 5 mW."""
CLOSE = 5e-7
"""Relative: what rounding costs to `QUANTUM_W` may leave between equal powers."""
BOUND_SAFETY = 1e-9
"""Relative: what the sums of a bound may be off by; taken off every bound."""
INTEGRALITY = 1e-6
"""How far from an integer the solution of a linear program counts as one."""
SLACK_W = 1e-4
"""What the value of a linear program may be above the cost of its own counts, W."""
