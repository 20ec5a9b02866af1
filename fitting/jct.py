"""Run time against the clock: the power law of CATS, Eq. 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats
from optgap.fitting.parameter import Parameter
from optgap.fitting.profile import Profile


class PowerLawJct(Estimator):
    """e(f) = e_min·(f_max/f)^β in s (CATS, Eq. 5), f_max the highest clock seen.

    β lies in [0, 1] for work that the clock drives (0: bound by memory, 1: by the core); up to
    2 is allowed so that clocks that were not held show instead of being forced to 1.
    """

    name: ClassVar[str] = "power-law-jct"
    summary: ClassVar[str] = "run time as a power of the clock (CATS, Eq. 5)"
    response: ClassVar[str] = "time_s"
    needs: ClassVar[tuple[str, ...]] = ("frequency_mhz",)
    varies: ClassVar[tuple[str, ...]] = ("frequency_mhz",)

    def settle(self, table: Profile) -> Design:
        return {"reference_mhz": float(table.numbers("frequency_mhz").max())}

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

    def _starts(self, first: Floats, params: tuple[Parameter, ...]) -> Floats:
        return first[None, :]  # linear in (ln e_min, β): one valley

    def design(self, table: Profile, facts: Design) -> Design:
        return {"x": np.log(facts["reference_mhz"] / table.numbers("frequency_mhz"))}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        e_min, beta = max(float(theta[0]), 1e-300), theta[1]
        x = design["x"]
        return np.log(e_min) + beta * x, np.stack([np.full_like(x, 1 / e_min), x], axis=1)

    def remarks(self, table: Profile) -> list[str]:
        beta = self.params_["beta"]
        if beta > 1.1:
            advice = "check the clocks with an audit, a core cannot lose more than its clock"
            return [f"beta = {beta:.2f} is above 1: {advice}"]
        return []
