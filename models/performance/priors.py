"""Priors of Eq. 2-5 and 12-15, for a policy that learns a training job's model as the job runs.

A run on one GPU at one batch cannot tell what part of an iteration shrinks with the batch, nor
what synchronisation costs, nor what a GPU draws while it waits. The medians and log-normal spreads
are those of published jobs.

Parameters are written as shares: the part of an iteration on one GPU at the whole batch and the
highest clock that the term would take alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Prior:
    """Log-normal: median, and spread of the logarithm."""

    median: float
    spread: float

    @property
    def mean_log(self) -> float:
        """ln of the median."""
        return float(np.log(self.median))


TIME: Mapping[str, Prior] = {
    "a_io_s": Prior(0.086, 1.34),
    "b_io_s": Prior(0.088, 0.70),
    "a_grad_s": Prior(0.037, 1.24),
    "b_grad_s": Prior(0.12, 1.0),
    "k_grad_s_mhz": Prior(0.70, 1.0),
    "theta_local_s": Prior(0.031, 1.27),
    "B_local_s": Prior(0.014, 0.75),
    "A_local_s_mhz": Prior(0.01, 1.3),
    "K_local_s_mhz": Prior(0.002, 1.3),
    "theta_node_s": Prior(0.18, 1.20),
    "B_node_s": Prior(0.013, 0.57),
    "A_node_s_mhz": Prior(0.01, 1.3),
    "K_node_s_mhz": Prior(0.002, 1.3),
    "gamma1": Prior(1.96, 1.27),
    "gamma2": Prior(0.57, 1.59),
}
"""Shares of T_iter, Eq. 2-4, and γ − 1 of Eq. 5.

From the 26 classes of the pools ``a100`` and ``t4`` (fits of ElasticFlow's A100 and Pollux's T4
profiles): median and standard deviation of the logarithm, a term below 1 % counted as 1 %, γ − 1
below 0.1 as 0.1. How b_grad and k_grad share what grows with the batch, and the terms of T_sync
that go with the clock, are ours: no public profile has GPU counts and clocks at once.
"""

STATIC = Prior(0.41, 0.48)
"""P_static over the least power measured: P_gs over the power at 510 MHz of the 15 applications in
`measured.gv100_power`, a share below 0.1 counted as 0.1."""

BETA = Prior(30.0, 1.3)
"""β of Eq. 12 at θ = 1 and α = 1. In Zeus's sweeps of the batch (V100 and RTX 6000, highest limit)
dynamic power grows per unit of ln(bs) by 0.4 to 3 % in four networks, by 18 to 20 % in one, and
not at all in the others."""

SYNC = Prior(0.14, 1.13)
"""Dynamic power of a GPU that waits or exchanges gradients over that of one that computes: from
the power on 1 and 4 GPUs of the 7 networks of `measured.h100_scaling`, 70 W being idle."""

FLOOR = 0.25
"""No GPU in training draws less than this share of the least power measured: the smallest P_gs
share of the same 15 applications but one (``dgemm``, whose line passes through 0)."""
