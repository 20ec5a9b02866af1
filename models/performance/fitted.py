"""Formulas of saved fits: iteration times, and the power of a GPU, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optgap.models.errors import InputError, NoQuote
from optgap.models.performance.energy import COLUMN_NAMES, EnergyModel, power_columns
from optgap.models.performance.formulas import batch_power, linear_power, power_law_power
from optgap.models.performance.saved import FittedParameters
from optgap.models.performance.throughput import SYNC_NAMES, ThroughputModel

Floats = NDArray[np.float64]
TIME, ENERGY = "powerflow-throughput", "powerflow-energy"
BY_CLOCK = ("powerflow-power", "linear-power", "power-law-power")
BY_BATCH = "batch-power"
CLOCK = "frequency_mhz"
TELLS = ("local", "local_beyond", "node", "node_beyond", "batch")
"""Facts of an iteration time on what its rows tell; a fit without these facts tells everything."""


@dataclass(frozen=True)
class Iterations:
    """Iteration time of one model, and the range of its measurements.

    Parameters
    ----------
    name: the group of the fit.
    model: Eq. 1-5 with its parameters.
    gpus, local_batch: the least and the most of each that was measured.
    batches: the batches per GPU that were measured, where they are few.
    clocked: whether the clock is part of the formula.
    tells: whether the rows tell what synchronising costs on a node (``local``) and between nodes
        (``node``), each also of more than two GPUs (``local_beyond``, ``node_beyond``), and how
        time changes with the batch per GPU (``batch``).
    top_mhz: the highest clock that was measured; None where none was told.
    """

    name: str
    model: ThroughputModel
    gpus: tuple[float, float]
    local_batch: tuple[float, float]
    batches: tuple[float, ...]
    clocked: bool
    tells: Mapping[str, bool]
    top_mhz: float | None = None

    def allows(self, gpus: int, batch: float, gpus_per_node: int) -> bool:
        """Tell whether a global batch on so many GPUs lies where it was measured."""
        low, high = self.local_batch
        within = self.gpus[0] <= gpus <= self.gpus[1] and low <= batch / gpus <= high
        return within and self.told(gpus, batch, gpus_per_node)

    def told(self, gpus: int, batch: float, gpus_per_node: int) -> bool:
        """Tell whether the rows tell T_iter of a global batch on so many GPUs."""
        same = self.tells["batch"] or abs(batch / gpus / self.local_batch[0] - 1) < 1e-9
        scope = ("node" if gpus > gpus_per_node else "local") + "_beyond" * (gpus > 2)
        return same and (gpus == 1 or self.tells[scope])

    def untold(self, gpus: object, batch: float, gpus_per_node: int, where: str = "") -> InputError:
        """Return the error for GPUs or a batch of which the rows tell nothing."""
        found = NoQuote(f"a batch of {batch:g} on {gpus} GPUs, {gpus_per_node} per node")
        expected = "what its rows tell; measure several GPUs, nodes and batches"
        return InputError(f"fit of {self.name}", where, found, expected)

    def seconds(
        self,
        gpus: Any,
        batch: float,
        clock_mhz: Any | None,
        gpus_per_node: int,
        where: str = "",
    ) -> Floats:
        """T_iter in s of a global batch, packed on as few nodes as possible.

        Raises
        ------
        InputError: for GPUs or a batch of which the rows tell nothing, needed by `where`.
        """
        n = np.asarray(gpus, dtype=float)
        for one in np.unique(n[n > 0]).tolist():
            if not self.told(one, batch, gpus_per_node):
                raise self.untold(f"{one:g}", batch, gpus_per_node, where)
        on_node = np.minimum(n, gpus_per_node)
        clock = clock_mhz if self.clocked else None
        return self.model.iteration_time(n, batch / n, clock, np.ceil(n / gpus_per_node), on_node)


def iterations(fit: FittedParameters) -> dict[str, Iterations]:
    """Return the iteration times in a fit of powerflow-throughput or powerflow-energy, by group."""
    return {group or "model": _iterations(fit, group) for group in fit.groups}


def _iterations(fit: FittedParameters, group: str) -> Iterations:
    params: Mapping[str, float] = fit.groups[group]
    facts, settings = fit.facts(group), fit.settings
    if fit.model == ENERGY:
        time = facts.get("time")
        if not isinstance(time, Mapping):
            found = NoQuote(f"no iteration time of {group or 'all'}")
            raise InputError(fit.source, "field state.facts", found, f"a fit of {ENERGY}")
        params = {name: float(item["value"]) for name, item in time["params"].items()}
        facts, settings = time["state"]["facts"], time["settings"]
    sync = settings.get("sync") or "paper"
    if sync not in SYNC_NAMES:
        raise InputError(fit.source, "field settings.sync", sync, ", ".join(SYNC_NAMES))
    return Iterations(
        group or "model",
        ThroughputModel(params, sync),  # type: ignore[arg-type]  # checked
        fit.span(group, "gpus") or (1.0, 1.0),
        fit.span(group, "local_batch") or (1.0, 1.0),
        fit.levels(group, "local_batch"),
        bool(facts.get("clock", "k_grad_s_mhz" in params)),
        {name: bool(facts.get(name, True)) for name in TELLS},
        (fit.span(group, CLOCK) or (None, None))[1],
    )


def energies(fit: FittedParameters) -> dict[str, EnergyModel]:
    """Return the powers in a fit of powerflow-energy, by group."""
    return {
        group or "model": EnergyModel(dict(params), fit.facts(group).get("form", "continuous"))
        for group, params in fit.groups.items()
    }


def power_of(fit: FittedParameters, group: str) -> Callable[[Floats, Floats], Floats]:
    """Power of one busy GPU in W by clock in MHz and batch per GPU, arrays of one shape."""
    p, facts = fit.groups[group], fit.facts(group)
    if fit.model == BY_BATCH:
        low, high = float(facts.get("low", 0.0)), facts.get("high", np.inf)
        high = np.inf if high in ("inf", None) else float(high)
        return lambda f, b: batch_power(b, p["alpha"], p["theta"], p["beta"], low, high)
    if fit.model == "linear-power":
        return lambda f, b: linear_power(f, p["P_gs"], p["alpha"])
    if fit.model == "power-law-power":
        top = float(facts["reference_mhz"])
        return lambda f, b: power_law_power(f, p["static_w"], p["gain_w"], p["exponent"], top)
    form = facts.get("form", "continuous")
    weights = np.array([p[name] for name in COLUMN_NAMES[form]])
    least = float(facts.get("floor_w", 0.0))

    def watts(f: Floats, b: Floats) -> Floats:
        found = power_columns(form, f.reshape(-1), p["f0_mhz"], p["kappa"]) @ weights
        return np.asarray(np.maximum(found, least) if least else found).reshape(f.shape)

    return watts


def group_for(fit: FittedParameters, name: str) -> str:
    """Return the group that is about `name`: its own, or the only one.

    Raises
    ------
    InputError: where there is neither.
    """
    if name in fit.groups:
        return name
    if len(fit.groups) == 1:
        return next(iter(fit.groups))
    found = NoQuote("a model of " + ", ".join(fit.groups))
    raise InputError(fit.source, "field groups", found, f"one of {name}, too")


def shared_clocks(
    fits: Sequence[FittedParameters], names: Sequence[str], most: int
) -> Floats | None:
    """Return the frequencies at which all these fits hold: measured ones, or `most` in between.

    Raises
    ------
    InputError: when they share none.
    """
    found = common_clocks(
        (fit, group)
        for fit in fits
        for group in fit.groups
        if fit.span(group, CLOCK) and (len(fit.groups) == 1 or group in names)
    )
    if found is None:
        return None
    low, high, common = found
    if common:
        step = max(1, -(-(len(common) - 1) // (most - 1))) if most > 1 else len(common)
        return np.array(sorted({*common[::-1][::step], low}))
    return np.unique(np.linspace(np.ceil(low), np.floor(high), most).round())


def common_clocks(
    groups: Iterable[tuple[FittedParameters, str]],
) -> tuple[float, float, tuple[float, ...]] | None:
    """Return the frequencies at which all these groups hold, MHz: least, most, and measured ones.

    None where no group tells its clocks; none measured where they do not reach to both ends.

    Raises
    ------
    InputError: when the groups share none.
    """
    about = list(groups)
    spans = [span for fit, group in about if (span := fit.span(group, CLOCK))]
    if not spans:
        return None
    low, high = max(a for a, _ in spans), min(b for _, b in spans)
    if low > high:
        found = NoQuote(f"one from {low:g} MHz on, and one up to {high:g} MHz")
        source = about[0][0].source
        raise InputError(source, "field validity", found, "fits that share some clocks")
    levels = [set(fit.levels(group, CLOCK)) for fit, group in about]
    common = sorted(f for f in set.intersection(*levels) if low <= f <= high)
    whole = common and common[0] == low and common[-1] == high
    return low, high, tuple(common) if whole else ()
