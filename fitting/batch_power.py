"""Power against the batch per GPU: PowerFlow, Eq. 12, as printed and with its two ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from optgap.fitting.estimator import Design, Estimator
from optgap.fitting.optimise import Floats
from optgap.fitting.parameter import Parameter
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, one_of

BatchForm = Literal["saturating", "paper"]


class BatchPower(Estimator):
    """P(bs) = α·ln(bs + θ) + β in W (PowerFlow, Eq. 12).

    Parameters
    ----------
    form: ``paper`` is the logarithm alone. ``saturating`` (default) keeps power constant below
        a batch ``low`` (the GPU waits for its host) and above a batch ``high`` (it is full, or
        at its power limit), both among the batches measured; θ = 0.
    """

    name: ClassVar[str] = "batch-power"
    summary: ClassVar[str] = "power as a logarithm of the batch per GPU (PowerFlow, Eq. 12)"
    response: ClassVar[str] = "power_w"
    needs: ClassVar[tuple[str, ...]] = ("local_batch",)
    varies: ClassVar[tuple[str, ...]] = ("local_batch",)
    uses: ClassVar[tuple[str, ...]] = ("frequency_mhz",)

    def __init__(self, *, form: BatchForm = "saturating", **shared: Any) -> None:
        super().__init__(**(dict[str, Any](loss="linear", loss_scale=0.05, starts=1) | shared))
        if form not in (known := ("saturating", "paper")):
            raise InputError(self.name, "form", form, one_of(known))
        self.form = form

    def settle(self, table: Profile) -> Design:
        """The batches between which power moves (all of them in the printed form)."""
        batch, power = table.numbers("local_batch"), table.numbers("power_w")
        bad = np.flatnonzero(batch <= 0)
        if len(bad):
            where = table.where(int(bad[0]), "local_batch")
            raise InputError(table.source, where, float(batch[bad[0]]), "a batch above 0")
        knots = np.unique(batch)
        if self.form == "paper" or len(knots) < 3:
            return {"low": float(knots[0]), "high": np.inf}
        best = (np.inf, float(knots[0]), float(knots[-1]))
        for k, low in enumerate(knots[:-1]):
            for high in knots[k + 1 :]:
                columns = _columns(batch, float(low), float(high), 0.0)[:, [0, 2]]
                weighted = columns / power[:, None]
                weights, *_ = np.linalg.lstsq(weighted, np.ones(len(power)), rcond=None)
                cost = float(np.sum((weighted @ weights - 1) ** 2))
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
        power = table.numbers("power_w")
        weighted = columns[:, [0, 2]] / power[:, None]
        alpha, beta = np.linalg.lstsq(weighted, np.ones(len(power)), rcond=None)[0]
        return np.array([alpha, 0.0 if self.form != "paper" else facts["low"] * 0.1, beta])

    def design(self, table: Profile, facts: Design) -> Design:
        return {**facts, "batch": table.numbers("local_batch")}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        columns = _columns(design["batch"], design["low"], design["high"], float(theta[1]))
        power = columns[:, 0] * theta[0] + theta[2]
        floor = np.maximum(power, 1e-6)
        jacobian = np.stack([columns[:, 0], theta[0] * columns[:, 1], columns[:, 2]], axis=1)
        return np.log(floor), jacobian / floor[:, None]

    def remarks(self, table: Profile) -> list[str]:
        low, high = self.facts_["low"], self.facts_["high"]
        if self.form == "paper":
            return []
        return [f"power is taken as constant below {low:g} and above {high:g} samples per GPU"]


def _columns(batch: Floats, low: float, high: float, theta: float) -> Floats:
    """ln(bs + θ), its derivative in θ, and 1; the batch held within [low, high]."""
    shifted = np.clip(batch, low, high) + theta
    return np.stack([np.log(shifted), 1 / shifted, np.ones_like(batch)], axis=1)
