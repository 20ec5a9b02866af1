"""How co-located jobs slow one another, against their summed utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.estimator import Design, Estimator, number
from optgap.fitting.optimise import Floats
from optgap.fitting.parameter import Parameter
from optgap.fitting.profile import Profile


class Contention(Estimator):
    """Speed = 1 / max(1, (U/U₀)^q), U the utilisation summed over the residents in percent.

    Parameters
    ----------
    knee_percent: U₀, where slowing starts; None (default) fits it between 50 and 200.
    """

    name: ClassVar[str] = "contention"
    summary: ClassVar[str] = "speed of co-located jobs against their summed utilisation"
    response: ClassVar[str] = "speed"
    needs: ClassVar[tuple[str, ...]] = ("util_sum_percent",)
    varies: ClassVar[tuple[str, ...]] = ("util_sum_percent",)

    def __init__(self, *, knee_percent: float | None = None, **shared: Any) -> None:
        super().__init__(**(dict[str, Any](loss_scale=0.05, starts=6) | shared))
        self.knee_percent = number(
            self.name, "knee_percent", knee_percent, "a utilisation in percent"
        )

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        low, high = (
            (50.0, 200.0) if self.knee_percent is None else (self.knee_percent, self.knee_percent)
        )
        more = "pairs of jobs whose utilisations add up to more than 100 %"
        return (
            Parameter("q", "", 0.0, 3.0, "exponent of the slowdown", more),
            Parameter("knee", "%", low, high, "U₀, where slowing starts", more),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        return np.array([0.6, 100.0])

    def _starts(self, first: Floats, params: tuple[Parameter, ...]) -> Floats:
        lower, upper = np.array([[p.lower, p.upper] for p in params], dtype=float).T
        knees = np.linspace(max(lower[1], 60.0), min(upper[1], 140.0), max(self.starts - 1, 1))
        rows = np.array([first, *(np.array([0.6, knee]) for knee in knees)])
        return np.asarray(np.clip(rows, lower, upper))

    def design(self, table: Profile, facts: Design) -> Design:
        return {"log_u": np.log(np.maximum(table.numbers("util_sum_percent"), 1e-9))}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        q, knee = theta
        over = design["log_u"] - np.log(knee)
        above = over > 0
        excess = np.where(above, over, 0.0)
        return -q * excess, np.stack([-excess, np.where(above, q / knee, 0.0)], axis=1)

    def told_apart(self, table: Profile) -> NDArray[np.bool_]:
        above = table.numbers("util_sum_percent") > self.params_["knee"]
        return np.asarray(above)

    def remarks(self, table: Profile) -> list[str]:
        many = int(np.sum(table.numbers("util_sum_percent") > 100))
        if many < 10:
            return [f"only {many} rows above 100 % summed utilisation; measure busier pairs"]
        above = int(self.told_apart(table).sum())
        if above == len(table):
            return []
        return [f"draws are at speed 1 below the knee; intervals are judged on {above:,} rows"]
