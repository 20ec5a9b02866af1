"""Fitters that turn profiling data into documented models.

`ESTIMATORS` lists the models by name without importing them; `readers.read_profile` turns a
profiler's file into a tidy `Profile`, `groups.fit_groups` fits a model to each of its groups,
`report` says how far the fit can be trusted, and `saved` keeps it as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from optgap.fitting.estimator import Estimator

__all__ = ["ESTIMATORS", "ModelEntry", "make_estimator"]


class ModelEntry(NamedTuple):
    """Entry of a model: the place of its class, and a line for tables."""

    target: str
    summary: str

    def load(self) -> type[Estimator]:
        """Import the class."""
        module, _, name = self.target.partition(":")
        found: type[Estimator] = getattr(import_module(f"optgap.fitting.{module}"), name)
        return found


ESTIMATORS: Mapping[str, ModelEntry] = {
    "linear-power": ModelEntry("curves:LinearPower", "P = P_gs + α·f (CATS, Eq. 1)"),
    "power-law-power": ModelEntry("curves:PowerLawPower", "P = P_s + c·(f/f_ref)^k"),
    "power-law-jct": ModelEntry("curves:PowerLawJct", "e = e_min·(f_max/f)^β (CATS, Eq. 5)"),
    "powerflow-throughput": ModelEntry(
        "throughput:PowerFlowThroughput",
        "iteration time by GPUs, placement, batch, clock (PowerFlow, Eq. 1-5)",
    ),
    "powerflow-power": ModelEntry(
        "powerflow_power:PowerFlowPower",
        "power by clock, piecewise or from V(f) (PowerFlow, Eq. 13-15)",
    ),
    "powerflow-energy": ModelEntry(
        "powerflow_energy:PowerFlowEnergy", "energy of an iteration (PowerFlow, Eq. 6-15)"
    ),
    "batch-power": ModelEntry(
        "curves:BatchPower", "power as a logarithm of the batch (PowerFlow, Eq. 12)"
    ),
    "dram-runtime": ModelEntry("dram:DramRuntime", "run time from DRAM activity (EcoSched)"),
    "device-power": ModelEntry(
        "devices:DevicePower", "idle and full power by GPU model (PWR, Eq. 1-2)"
    ),
}
"""Models by name, in the order of tables; a class is imported on its first use."""


def make_estimator(name: str, **settings: Any) -> Estimator:
    """Return an unfitted estimator.

    Raises
    ------
    InputError: for an unknown model, or a setting that the model does not have.
    """
    from optgap.models.errors import InputError, one_of

    entry = ESTIMATORS.get(name)
    if entry is None:
        raise InputError("fit", "model", name, one_of(ESTIMATORS))
    kind = entry.load()
    known = kind().get_params()
    for key in settings:
        if key not in known:
            raise InputError(name, "settings", key, one_of(known))
    return kind(**settings)
