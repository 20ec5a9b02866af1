"""Power of one GPU against its clock in PowerFlow's forms (Eq. 13-15 with one batch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from optgap.fitting import power_forms
from optgap.fitting.convex import Linear
from optgap.fitting.estimator import Design, number
from optgap.fitting.optimise import Floats
from optgap.fitting.parameter import Parameter
from optgap.fitting.power_forms import FormChoice
from optgap.fitting.profile import Profile
from optgap.models.performance.energy import COLUMN_NAMES, power_columns
from optgap.models.performance.priors import FLOOR


class PowerFlowPower(Linear):
    """P(f) of a busy GPU at one batch: printed piecewise, continuous, or from V(f).

    Parameters
    ----------
    form: ``printed`` (Eq. 13-14: linear below f0, cubic above, free to jump), ``continuous``
        (joined at f0), ``physical`` (static + linear + f·V², V flat up to f0 and rising by κ
        above; coefficients at least 0), or ``auto`` (default): the one that predicts held-out
        clocks best over the board's applications.
    f0_mhz, kappa: the breakpoint and the voltage's slope in 1/GHz; None (default) searches
        them. In a grouped fit all groups share them: they belong to the board.

    No prediction is below a quarter of the least power measured.
    """

    name = "powerflow-power"

    def __init__(
        self,
        *,
        form: FormChoice = "auto",
        f0_mhz: float | None = None,
        kappa: float | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.form = self.one_of("form", form, ("auto", *power_forms.FORMS))
        self.f0_mhz = number(self.name, "f0_mhz", f0_mhz, "a clock in MHz")
        self.kappa = number(self.name, "kappa", kappa, "a slope in 1/GHz")

    def share(self, table: Profile, by: str | None) -> Self:
        """A copy whose form, f0 and κ are those of all groups together."""
        self._columns(table, (*self.needs, self.response))
        curves = [
            (table.numbers("frequency_mhz")[rows], table.numbers("power_w")[rows])
            for _, rows in table.groups(by)
        ]
        shape = power_forms.search(curves, self.form, self.f0_mhz, self.kappa)
        return self.clone(form=shape.form, f0_mhz=shape.f0_mhz, kappa=shape.kappa)

    def settle(self, table: Profile) -> Design:
        power = table.numbers("power_w")
        curves = [(table.numbers("frequency_mhz"), power)]
        shape = power_forms.search(curves, self.form, self.f0_mhz, self.kappa)
        floor = {"floor_w": FLOOR * float(power.min())}
        return {"form": shape.form, "f0_mhz": shape.f0_mhz, "kappa": shape.kappa, **floor}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        form, f0, kappa = facts["form"], facts["f0_mhz"], facts["kappa"]
        more = "more clocks on either side of f0"
        lower = power_forms.lower_bounds(form)
        return (
            Parameter("f0_mhz", "MHz", f0, f0, "where the voltage starts to rise"),
            Parameter("kappa", "1/GHz", kappa, kappa, "slope of the voltage above f0"),
            *(
                Parameter(name, "W", float(low), np.inf, f"coefficient of P(f), {form} form", more)
                for name, low in zip(COLUMN_NAMES[form], lower, strict=True)
            ),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        columns = self.design(table, facts)["columns"]
        weights = power_forms.coefficients(facts["form"], columns, table.numbers("power_w"))
        lower = power_forms.lower_bounds(facts["form"])
        start = np.where(np.isfinite(lower), np.maximum(weights, 1e-3), weights)
        return np.concatenate([[facts["f0_mhz"], facts["kappa"]], start])

    def design(self, table: Profile, facts: Design) -> Design:
        clock = table.numbers("frequency_mhz")
        columns = power_columns(facts["form"], clock, facts["f0_mhz"], facts["kappa"])
        return {"columns": columns, "floor_w": facts["floor_w"]}

    def remarks(self, table: Profile) -> list[str]:
        clock = table.numbers("frequency_mhz")
        above = int(np.sum(clock > self.facts_["f0_mhz"]))
        found = ["f0 and kappa are held while errors are estimated"]
        if above < 2 or above > len(clock) - 2:
            found.append(f"{above} of {len(clock)} clocks lie above f0: it is not well placed")
        return found
