"""Power against the clock: the linear form of CATS (Eq. 1) and the power law beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from optgap.fitting.convex import constrained
from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats
from optgap.fitting.parameter import Parameter
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError


class LinearPower(Estimator):
    """P(f) = P_gs + α·f in W (CATS, Eq. 1), P_gs and α at least 0.

    Parameters
    ----------
    P_gs: static power that was measured, W, which is then not fitted; or ``idle_w``, the median of
        that column.
    robust: by a convex program with Huber's loss, see `convex`.
    """

    name: ClassVar[str] = "linear-power"
    summary: ClassVar[str] = "power of a busy GPU, linear in its clock (CATS, Eq. 1)"
    response: ClassVar[str] = "power_w"
    needs: ClassVar[tuple[str, ...]] = ("frequency_mhz",)
    varies: ClassVar[tuple[str, ...]] = ("frequency_mhz",)

    def __init__(
        self, *, P_gs: float | str | None = None, robust: bool = False, **shared: Any
    ) -> None:
        super().__init__(**shared)
        if robust and P_gs is not None:
            raise InputError(self.name, "P_gs", P_gs, "robust=false beside it")
        self.P_gs = P_gs
        self.robust = robust

    def settle(self, table: Profile) -> Design:
        """The static power, where it is given."""
        if self.P_gs is None:
            return {}
        given = np.nan
        if self.P_gs == "idle_w":
            given = float(np.nanmedian(table.numbers("idle_w")))
        elif isinstance(self.P_gs, (int, float)):
            given = float(self.P_gs)
        lowest = float(table.numbers("power_w").min())
        if not 0 <= given < lowest:
            expected = f"W from 0 to below {lowest:g}, the least power measured, or idle_w"
            raise InputError(table.source, "P_gs", given if given == given else self.P_gs, expected)
        return {"static_w": given}

    def _solve(
        self, profile: Profile, facts: Design, params: tuple[Parameter, ...], starts: Floats
    ) -> Self:
        if self.robust:
            return constrained(self, profile, facts, params)
        return super()._solve(profile, facts, params, starts)

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

    def _starts(self, first: Floats, params: tuple[Parameter, ...]) -> Floats:
        return first[None, :]  # one valley: relative error is convex in both

    def design(self, table: Profile, facts: Design) -> Design:
        f = table.numbers("frequency_mhz")
        return {"columns": np.stack([np.ones_like(f), f], axis=1)}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        columns = design["columns"]
        power = np.maximum(columns @ theta, 1e-300)
        return np.log(power), columns / power[:, None]


class PowerLawPower(Estimator):
    """P(f) = P_s + c·(f/f_ref)^k in W, with 0.2 ≤ k ≤ 6 and f_ref the highest clock seen."""

    name: ClassVar[str] = "power-law-power"
    summary: ClassVar[str] = "power of a busy GPU: static part plus a power of its clock"
    response: ClassVar[str] = "power_w"
    needs: ClassVar[tuple[str, ...]] = ("frequency_mhz",)
    varies: ClassVar[tuple[str, ...]] = ("frequency_mhz",)

    def settle(self, table: Profile) -> Design:
        return {"reference_mhz": float(table.numbers("frequency_mhz").max())}

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

    def design(self, table: Profile, facts: Design) -> Design:
        return {"log_ratio": np.log(table.numbers("frequency_mhz") / facts["reference_mhz"])}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        static, gain, exponent = theta
        log_ratio = design["log_ratio"]
        law = np.exp(exponent * log_ratio)
        power = np.maximum(static + gain * law, 1e-300)
        columns = np.stack([np.ones_like(law), law, gain * law * log_ratio], axis=1)
        return np.log(power), columns / power[:, None]
