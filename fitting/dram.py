"""Model of run time from DRAM activity (EcoSched, Phase I)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from optgap.fitting.curves import weighted_fit
from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats, Loss, Parameter, Spread
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

EXPONENT = (0.0, 1.5)
"""Bounds of k: run time never rises with traffic, and falls little faster than traffic grows."""

FALLBACKS = ("fp_active", "frequency_mhz")
"""Counters, summed over the GPUs, that replace DRAM traffic if a job shows none."""


@dataclass(kw_only=True, eq=False)
class DramRuntime(Estimator):
    """Run time of one application over its GPU counts, from its summed DRAM-active share x.

    T is the geometric mean of 1/(a + b·x) and c·x^−k, each fitted by itself with a, b, c ≥ 0 and
    0 ≤ k ≤ 1.5. Three or four GPU counts cannot decide between the two forms, and the errors of the
    forms differ.

    If any row shows no traffic at all, the first of `FALLBACKS` in the table replaces x, summed
    over the GPUs. Without any of these the fit is refused.
    """

    name = "dram-runtime"
    response = "time_s"
    needs = ("dram_sum",)
    uses = ("gpus", "power_w", *FALLBACKS)
    swept = False
    loss: Loss = "linear"
    loss_scale: float = 0.05
    starts: int = 1

    def settle(self, table: Profile) -> Design:
        """Return the counter that the fit uses."""
        counter = "dram_sum"
        if np.any(table.numbers("dram_sum") <= 0):
            counter = _fallback(table)
        return {"counter": counter, **_measured(table, counter)}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        more = "the run time and the signal on one more GPU count"
        return (
            Parameter("a", "1/s", 0.0, np.inf, "rate without traffic", more),
            Parameter("b", "1/s", 0.0, np.inf, "rate per unit of signal", more),
            Parameter("c", "s", 0.0, np.inf, "run time at a signal of 1", more),
            Parameter("k", "", *EXPONENT, "how run time falls with the signal", more),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        """Return both forms' parameters by linear least squares (relative errors, logarithms)."""
        signal, time = _signal(table, facts["counter"]), table.numbers("time_s")
        log, target = np.log(signal), np.log(time)
        columns = np.stack([np.ones_like(signal), signal], axis=1)
        rate = weighted_fit(columns, 1 / time, positive=True)
        rate *= np.exp(-np.mean(np.log(columns @ rate) + target))  # relative errors lean down
        off = log - log.mean()
        k = float(np.clip(-(off @ target) / max(float(off @ off), 1e-300), *EXPONENT))
        return np.array([*rate, np.exp(target.mean() + k * log.mean()), k])

    def design(self, table: Profile, facts: Design) -> Design:
        return {"signal": _signal(table, facts["counter"])}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        """Return ln T, the mean of both forms, with its Jacobian."""
        a, b, c, k = theta
        signal, scale = design["signal"], max(float(c), 1e-300)
        rate, log = np.maximum(a + b * signal, 1e-300), np.log(np.maximum(signal, 1e-300))
        slopes = [-1 / rate, -signal / rate, np.full_like(log, 1 / scale), -log]
        return (np.log(scale) - k * log - np.log(rate)) / 2, np.stack(slopes, axis=1) / 2

    def _solve(
        self, profile: Profile, facts: Design, params: tuple[Parameter, ...], starts: Floats
    ) -> Self:
        """Take the guess as the solution; the errors of both forms come from the same rows."""
        theta = self.guess(profile, facts)
        at_bound = np.append(theta[:3] <= 0, theta[3] in EXPONENT)
        log, jacobian = self.curve(theta, self.design(profile, facts))
        self.start_, self.residuals_ = theta, log - self.target(profile)
        slope = np.where(at_bound, 0.0, 2 * jacobian)
        how = np.concatenate([np.linalg.pinv(slope[:, :2]), np.linalg.pinv(slope[:, 2:])])
        noise = self.residuals_ @ self.residuals_ / max(len(profile) - 2, 1)
        covariance = noise * (how @ how.T)
        scatter = Spread.of(theta, covariance)
        return self._found(profile, facts, params, theta, at_bound=at_bound, scatter=scatter)

    def _enough(self, profile: Profile, params: Sequence[Parameter]) -> None:
        super()._enough(profile, params[:2])  # each form has two, fitted by itself

    def _told(self) -> int:
        return int(max(np.sum(~self.at_bound_[:2]), np.sum(~self.at_bound_[2:])))

    def remarks(self, table: Profile) -> list[str]:
        found = []
        counter = self.facts_["counter"]
        if counter != "dram_sum":
            found.append(f"no DRAM traffic in some rows: {counter}, summed over GPUs, stands in")
        signal = _signal(table, counter)
        if np.ptp(signal) < 0.05 * float(np.mean(signal)):
            found.append("the signal hardly moves: it cannot tell the GPU counts apart")
        return found


def _measured(table: Profile, counter: str) -> Design:
    """Return the rows by GPU count, so that a problem can prefer measured run times.

    The result is empty if a GPU count occurs in several rows, or no count is given.
    """
    if "gpus" not in table or len(np.unique(table["gpus"])) < len(table):
        return {}
    order = np.argsort(table.numbers("gpus"))
    columns = {
        "gpus": table.numbers("gpus"),
        "signal": _signal(table, counter),
        "time_s": table.numbers("time_s"),
    }
    if "power_w" in table and np.isfinite(table.numbers("power_w")).all():
        columns["power_w"] = table.numbers("power_w")
    return {f"measured_{name}": values[order].tolist() for name, values in columns.items()}


def _fallback(table: Profile) -> str:
    for name in FALLBACKS:
        if name in table and "gpus" in table:
            values = table.numbers(name)
            if np.all(np.isfinite(values)) and np.all(values > 0):
                return name
    found = NoQuote("rows without any DRAM traffic")
    expected = "a column fp_active or frequency_mhz above 0, and gpus, to stand in"
    raise InputError(table.source, "column dram_sum", found, expected)


def _signal(table: Profile, counter: str) -> Floats:
    if counter == "dram_sum":
        values = table.numbers("dram_sum")
        table.require(values > 0, "dram_sum", "traffic above 0, as in the rows that were fitted")
        return values
    return np.asarray(table.numbers(counter) * table.numbers("gpus"))
