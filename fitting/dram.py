"""Run time from DRAM activity: EcoSched, Phase I."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats, Spread
from optgap.fitting.parameter import Parameter
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

DramChoice = Literal["blend", "rate", "power", "traffic"]

FORMS = ("blend", "rate", "power", "traffic")

EXPONENT = (0.0, 1.5)
"""Bounds of k: run time does not rise with traffic, nor fall much faster than it grows."""

FALLBACKS = ("fp_active", "frequency_mhz")
"""Counters used, summed over the GPUs, where a job shows no DRAM traffic."""


class DramRuntime(Estimator):
    """Run time of one application over its GPU counts, from its summed DRAM-active share x.

    Parameters
    ----------
    form: ``rate`` (1/T = a + b·x), ``power`` (T = c·x^−k, 0 ≤ k ≤ 1.5), ``traffic`` (T = c/x:
        the traffic of a job is the same on any number of GPUs), or ``blend`` (default): the
        geometric mean of the first two, each fitted by itself. Three or four GPU counts cannot
        tell the two apart, and each errs where the other does not.

    Where any row shows no traffic at all, the first of `FALLBACKS` that the table has stands in
    for x, summed over the GPUs; if that is missing too, fitting is refused.
    """

    name = "dram-runtime"
    response = "time_s"
    needs = ("dram_sum",)
    uses = ("gpus", "power_w", *FALLBACKS)
    swept = False

    def __init__(self, *, form: DramChoice = "blend", **shared: Any) -> None:
        super().__init__(**(dict[str, Any](loss="linear", loss_scale=0.05, starts=1) | shared))
        self.form = self.one_of("form", form, FORMS)

    def settle(self, table: Profile) -> Design:
        """Which counter is used."""
        counter = "dram_sum"
        if np.any(table.numbers("dram_sum") <= 0):
            counter = _fallback(table)
        return {"counter": counter, "form": self.form, **_measured(table, counter)}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        more = "the run time and the signal on one more GPU count"
        rate = (
            Parameter("a", "1/s", 0.0, np.inf, "rate without traffic", more),
            Parameter("b", "1/s", 0.0, np.inf, "rate per unit of signal", more),
        )
        if facts["form"] == "rate":
            return rate
        exponent = (1.0, 1.0) if facts["form"] == "traffic" else EXPONENT
        law = (
            Parameter("c", "s", 0.0, np.inf, "run time at a signal of 1", more),
            Parameter("k", "", *exponent, "how run time falls with the signal", more),
        )
        return (*rate, *law) if facts["form"] == "blend" else law

    def guess(self, table: Profile, facts: Design) -> Floats:
        signal, time = _signal(table, facts["counter"]), table.numbers("time_s")
        if facts["form"] == "blend":
            return np.concatenate([_guess("rate", signal, time), _power_law(signal, time)])
        return _guess(facts["form"], signal, time)

    def design(self, table: Profile, facts: Design) -> Design:
        return {**facts, "signal": _signal(table, facts["counter"])}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        """ln T of the form; of a blend the mean of its two."""
        if design["form"] != "blend":
            return _curve(design["form"], theta, design["signal"])
        rate, by_rate = _curve("rate", theta[:2], design["signal"])
        law, by_law = _curve("power", theta[2:], design["signal"])
        return (rate + law) / 2, np.append(by_rate, by_law, axis=1) / 2

    def _solve(
        self, profile: Profile, facts: Design, params: tuple[Parameter, ...], starts: Floats
    ) -> Self:
        """The forms of a blend each by itself; both errors are those of the same rows."""
        if facts["form"] != "blend":
            return super()._solve(profile, facts, params, starts)
        rate = self.clone()
        rate._solve(profile, {**facts, "form": "rate"}, params[:2], starts[:, :2])
        law = _power_law(_signal(profile, facts["counter"]), profile.numbers("time_s"))
        theta = np.append(rate.theta_, law)
        at_bound = np.append(rate.at_bound_, [False, law[1] in EXPONENT])
        log, jacobian = self.curve(theta, self.design(profile, facts))
        self.start_, self.residuals_ = theta, log - self.target(profile)
        slope = np.where(at_bound, 0.0, 2 * jacobian)
        how = np.concatenate([np.linalg.pinv(slope[:, :2]), np.linalg.pinv(slope[:, 2:])])
        noise = self.residuals_ @ self.residuals_ / max(len(profile) - 2, 1)
        covariance = noise * (how @ how.T)
        stderr = np.sqrt(np.diag(covariance))
        scatter = Spread(covariance, stderr, rate.loose_, theta, covariance)
        return self._found(profile, facts, params, theta, at_bound, scatter)

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
    """The rows by GPU count, so that a problem can count what was measured beside what is fitted.

    Empty where a GPU count stands in several rows, or none is given.
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


def _guess(form: str, signal: Floats, time: Floats) -> Floats:
    if form in ("rate", "blend"):
        slope = float(np.mean(1 / (time * signal)))
        return np.array([0.3 * slope * float(signal.mean()), 0.7 * slope])
    return np.array([float(np.exp(np.mean(np.log(time * signal)))), 0.9 if form == "power" else 1])


def _curve(form: str, theta: Floats, signal: Floats) -> tuple[Floats, Floats]:
    if form in ("rate", "blend"):
        rate = np.maximum(theta[0] + theta[1] * signal, 1e-300)
        return -np.log(rate), -np.stack([1 / rate, signal / rate], axis=1)
    scale = max(float(theta[0]), 1e-300)
    log = np.log(np.maximum(signal, 1e-300))
    return np.log(scale) - theta[1] * log, np.stack([np.full_like(log, 1 / scale), -log], axis=1)


def _power_law(signal: Floats, time: Floats) -> tuple[float, float]:
    """(c, k) of T = c·x^−k by least squares in logarithms."""
    log, target = np.log(signal), np.log(time)
    middle = float(log.mean())
    size = float(np.sum((log - middle) ** 2))
    slope = float(np.sum((log - middle) * target)) / size if size > 0 else 0.0
    k = float(np.clip(-slope, *EXPONENT))
    return float(np.exp(target.mean() + k * middle)), k
