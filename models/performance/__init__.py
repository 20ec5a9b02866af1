"""Costs of a job: power, run time, throughput and energy as the papers write them.

Plain functions and frozen parameter sets, without any fitting: a solver, a policy and an
estimator evaluate the same formula. Times in s, power in W, energy in J, clocks in MHz.
"""

from __future__ import annotations

from optgap.models.performance.energy import EnergyModel, iteration_energy
from optgap.models.performance.formulas import (
    batch_power,
    linear_power,
    power_law_power,
    power_law_time,
    runtime_from_dram,
    sla_frequency,
)
from optgap.models.performance.saved import FittedParameters, read_fit
from optgap.models.performance.throughput import ThroughputModel

__all__ = [
    "EnergyModel",
    "FittedParameters",
    "ThroughputModel",
    "batch_power",
    "iteration_energy",
    "linear_power",
    "power_law_power",
    "power_law_time",
    "read_fit",
    "runtime_from_dram",
    "sla_frequency",
]
