"""Models of one input: power against the clock or the batch, run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats, Loss, Parameter
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError


def weighted_fit(columns: Floats, power: Floats, positive: bool = False) -> Floats:
    """Return the coefficients of least relative squares."""
    size = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    scaled = columns / size / power[:, None]
    if positive:
        from scipy.optimize import nnls

        return np.asarray(nnls(scaled, np.ones(len(power)))[0] / size)
    return np.asarray(np.linalg.lstsq(scaled, np.ones(len(power)), rcond=None)[0] / size)


@dataclass(kw_only=True, eq=False)
class Linear(Estimator):
    """Base of powers that are linear in their last parameters."""

    response = "power_w"
    needs = ("frequency_mhz",)
    starts: int = 1

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        columns = design["columns"]
        size = columns.shape[1]
        power = np.maximum(columns @ theta[-size:], design.get("floor_w", 1e-300))
        jacobian = columns / power[:, None]
        held = np.zeros((len(power), len(theta) - size))
        return np.log(power), np.append(held, jacobian, axis=1) if held.size else jacobian


@dataclass(kw_only=True, eq=False)
class LinearPower(Linear):
    """P(f) = P_gs + α·f in W (CATS, Eq. 1), P_gs and α at least 0.

    Parameters
    ----------
    P_gs: measured static power, W, which is then not fitted; or ``idle_w`` for the median of
        that column.
    """

    name = "linear-power"
    P_gs: float | str | None = None

    def settle(self, table: Profile) -> Design:
        """Return the static power if it is given."""
        if self.P_gs is None:
            return {}
        given = self.P_gs
        if given == "idle_w":
            given = float(np.nanmedian(table.numbers("idle_w")))
        lowest = float(table.numbers("power_w").min())
        if isinstance(given, str) or not 0 <= given < lowest:
            expected = f"W from 0 to below {lowest:g}, the least power measured, or idle_w"
            raise InputError(table.source, "P_gs", given, expected)
        return {"static_w": float(given)}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        lower = "lower clocks, where the static share of power shows"
        least, most = facts.get("static_w", 0.0), facts.get("static_w", np.inf)
        return (
            Parameter("P_gs", "W", least, most, "static power of a busy GPU", lower),
            Parameter("alpha", "W/MHz", 0.0, np.inf, "power per MHz", "a wider range of clocks"),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        f, p = table.numbers("frequency_mhz"), table.numbers("power_w")
        slope, static = np.polyfit(f, p, 1)
        if slope <= 0 or static < 0:
            return np.array([0.5 * p.mean(), 0.5 * p.mean() / f.mean()])
        return np.array([static, slope])

    def design(self, table: Profile, facts: Design) -> Design:
        f = table.numbers("frequency_mhz")
        return {"columns": np.stack([np.ones_like(f), f], axis=1)}


def _highest(table: Profile) -> Design:
    return {"reference_mhz": float(table.numbers("frequency_mhz").max())}


class PowerLawPower(Estimator):
    """P(f) = P_s + c·(f/f_ref)^k in W, with 0.2 ≤ k ≤ 6 and f_ref the highest clock."""

    name = "power-law-power"
    response = "power_w"
    needs = ("frequency_mhz",)

    def settle(self, table: Profile) -> Design:
        return _highest(table)

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        low = "lower clocks, where the static share of power shows"
        return (
            Parameter("static_w", "W", 0.0, np.inf, "power that the clock does not move", low),
            Parameter("gain_w", "W", 0.0, np.inf, "power added at f_ref", low),
            Parameter("exponent", "", 0.2, 6.0, "k", "at least three well separated clocks"),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        p = table.numbers("power_w")
        low, high = float(p.min()), float(p.max())
        return np.array([0.7 * low, max(high - 0.7 * low, 0.1 * high), 1.5])

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        static, gain, exponent = theta
        log_ratio = np.log(design["frequency_mhz"] / design["reference_mhz"])
        law = np.exp(exponent * log_ratio)
        power = np.maximum(static + gain * law, 1e-300)
        columns = np.stack([np.ones_like(law), law, gain * law * log_ratio], axis=1)
        return np.log(power), columns / power[:, None]


@dataclass(kw_only=True, eq=False)
class PowerLawJct(Estimator):
    """e(f) = e_min·(f_max/f)^β in s (CATS, Eq. 5), f_max the highest clock in the table.

    β lies in [0, 1] if the clock drives the work (0: bound by memory, 1: by the core). Values up to
    2 are allowed, because they reveal clocks that the GPU did not hold.
    """

    name = "power-law-jct"
    response = "time_s"
    needs = ("frequency_mhz",)
    starts: int = 1

    def settle(self, table: Profile) -> Design:
        return _highest(table)

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        more = "a wider range of clocks"
        return (
            Parameter("e_min", "s", 0.0, np.inf, "run time at the highest clock"),
            Parameter("beta", "", 0.0, 2.0, "sensitivity to the clock", more),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        x = np.log(facts["reference_mhz"] / table.numbers("frequency_mhz"))
        slope, level = np.polyfit(x, np.log(table.numbers("time_s")), 1)
        return np.array([np.exp(level), np.clip(slope, 0.01, 1.99)])

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        e_min, beta = max(float(theta[0]), 1e-300), theta[1]
        x = np.log(design["reference_mhz"] / design["frequency_mhz"])
        return np.log(e_min) + beta * x, np.stack([np.full_like(x, 1 / e_min), x], axis=1)

    def remarks(self, table: Profile) -> list[str]:
        beta = self.params_["beta"]
        advice = "check the clocks with an audit, a core cannot lose more than its clock"
        return [f"beta = {beta:.2f} is above 1: {advice}"] if beta > 1.1 else []


BatchForm = Literal["saturating", "paper"]


@dataclass(kw_only=True, eq=False)
class BatchPower(Estimator):
    """P(bs) = α·ln(bs + θ) + β in W (PowerFlow, Eq. 12).

    Parameters
    ----------
    form: ``paper`` is the logarithm alone. ``saturating`` (default) keeps power constant below
        a batch ``low`` (the GPU waits for its host) and above a batch ``high`` (the GPU is full
        or at its power limit), both among the measured batches; θ = 0.
    """

    name = "batch-power"
    response = "power_w"
    needs = ("local_batch",)
    uses = ("frequency_mhz",)
    form: BatchForm = "saturating"
    loss: Loss = "linear"
    loss_scale: float = 0.05
    starts: int = 1

    def settle(self, table: Profile) -> Design:
        """Return the batches between which power varies (all batches in the printed form)."""
        batch, power = table.numbers("local_batch"), table.numbers("power_w")
        knots = np.unique(batch)
        if self.form == "paper" or len(knots) < 3:
            return {"low": float(knots[0]), "high": np.inf}
        best = (np.inf, float(knots[0]), float(knots[-1]))
        for k, low in enumerate(knots[:-1]):
            for high in knots[k + 1 :]:
                columns = _columns(batch, float(low), float(high), 0.0)[:, [0, 2]]
                error = columns @ weighted_fit(columns, power) / power - 1
                cost = float(np.sum(error**2))
                if cost < best[0] * (1 - 1e-9) - 1e-15:
                    best = (cost, float(low), float(high))
        return {"low": best[1], "high": best[2]}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        top = np.inf if self.form == "paper" else 0.0
        more = "more batches per GPU"
        return (
            Parameter("alpha", "W", -np.inf, np.inf, "power per e-fold of the batch", more),
            Parameter("theta", "samples", 0.0, top, "shift of the batch", "smaller batches"),
            Parameter("beta", "W", -np.inf, np.inf, "power at one sample", more),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        columns = _columns(table.numbers("local_batch"), facts["low"], facts["high"], 0.0)
        alpha, beta = weighted_fit(columns[:, [0, 2]], table.numbers("power_w"))
        return np.array([alpha, 0.0 if self.form != "paper" else facts["low"] * 0.1, beta])

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        columns = _columns(design["local_batch"], design["low"], design["high"], float(theta[1]))
        power = columns[:, 0] * theta[0] + theta[2]
        floor = np.maximum(power, 1e-6)
        jacobian = np.stack([columns[:, 0], theta[0] * columns[:, 1], columns[:, 2]], axis=1)
        return np.log(floor), jacobian / floor[:, None]

    def remarks(self, table: Profile) -> list[str]:
        if self.form == "paper":
            return []
        low, high = self.facts_["low"], self.facts_["high"]
        return [f"power is taken as constant below {low:g} and above {high:g} samples per GPU"]


def _columns(batch: Floats, low: float, high: float, theta: float) -> Floats:
    """Return ln(bs + θ), its derivative in θ, and 1, with the batch cut to [low, high]."""
    shifted = np.clip(batch, low, high) + theta
    return np.stack([np.log(shifted), 1 / shifted, np.ones_like(batch)], axis=1)
