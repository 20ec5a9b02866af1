"""Run time from DRAM activity: EcoSched, Phase I."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np

from optgap.fitting.estimator import Design, Estimator, Parameter
from optgap.fitting.optimise import Floats, Loss, descend
from optgap.fitting.profile import Profile
from optgap.models.errors import InputError, NoQuote

DramChoice = Literal["auto", "rate", "power", "traffic"]

FORMS = ("rate", "power", "traffic")

FALLBACKS = ("fp_active", "frequency_mhz")
"""Counters used, summed over the GPUs, where a job shows no DRAM traffic."""


class DramRuntime(Estimator):
    """Run time of one application over its GPU counts, from its summed DRAM-active share x.

    Parameters
    ----------
    form: ``rate`` (1/T = a + b·x), ``power`` (T = c·x^−k, 0 ≤ k ≤ 1.5), ``traffic`` (T = c/x:
        the traffic of a job is the same on any number of GPUs), or ``auto`` (default): the one
        that predicts each training row best from the others, by the median over all groups of
        a grouped fit, since three or four rows of one application cannot tell the forms apart.

    Where any row shows no traffic at all, the first of `FALLBACKS` that the table has stands in
    for x, summed over the GPUs; if that is missing too, fitting is refused.
    """

    name: ClassVar[str] = "dram-runtime"
    summary: ClassVar[str] = "run time from the summed DRAM-active share (EcoSched, Phase I)"
    response: ClassVar[str] = "time_s"
    needs: ClassVar[tuple[str, ...]] = ("dram_sum",)

    def __init__(
        self,
        *,
        form: DramChoice = "auto",
        loss: Loss = "linear",
        loss_scale: float = 0.05,
        starts: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(loss=loss, loss_scale=loss_scale, starts=starts, seed=seed)
        if form not in ("auto", *FORMS):
            raise InputError("--set", "form", form, "one of auto, " + ", ".join(FORMS))
        self.form = form

    def share(self, table: Profile, by: str | None) -> Self:
        """A copy with the form that serves all groups best."""
        if self.form != "auto":
            return self.clone()
        self._columns(table, (*self.needs, self.response))
        curves = []
        for _, rows in table.groups(by):
            part = table.take(rows)
            if len(part) > 2 and np.all(part.numbers("dram_sum") > 0):
                curves.append((part.numbers("dram_sum"), part.numbers("time_s")))
        return self.clone(form=_best_form(curves)) if curves else self.clone(form="traffic")

    def settle(self, table: Profile) -> Design:
        """Which counter is used and which form."""
        counter = "dram_sum"
        if np.any(table.numbers("dram_sum") <= 0):
            counter = _fallback(table)
        form = self.form
        if form == "auto":
            curve = (_signal(table, counter), table.numbers("time_s"))
            form = _best_form([curve]) if len(table) > 2 else "traffic"
        return {"counter": counter, "form": form}

    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        more = "the run time and the signal on one more GPU count"
        if facts["form"] == "rate":
            return (
                Parameter("a", "1/s", 0.0, np.inf, "rate without traffic", more),
                Parameter("b", "1/s", 0.0, np.inf, "rate per unit of signal", more),
            )
        exponent = (0.0, 1.5) if facts["form"] == "power" else (1.0, 1.0)
        return (
            Parameter("c", "s", 0.0, np.inf, "run time at a signal of 1", more),
            Parameter("k", "", *exponent, "how run time falls with the signal", more),
        )

    def guess(self, table: Profile, facts: Design) -> Floats:
        return _guess(facts["form"], _signal(table, facts["counter"]), table.numbers("time_s"))

    def design(self, table: Profile, facts: Design) -> Design:
        return {"form": facts["form"], "signal": _signal(table, facts["counter"])}

    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        return _curve(design["form"], theta, design["signal"])

    def remarks(self, table: Profile) -> list[str]:
        found = []
        counter = self.facts_["counter"]
        if counter != "dram_sum":
            found.append(f"no DRAM traffic in some rows: {counter}, summed over GPUs, stands in")
        signal = _signal(table, counter)
        if np.ptp(signal) < 0.05 * float(np.mean(signal)):
            found.append("the signal hardly moves: it cannot tell the GPU counts apart")
        return found


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
        bad = np.flatnonzero(~(values > 0))
        if len(bad):
            where = table.where(int(bad[0]), "dram_sum")
            expected = "traffic above 0, as in the rows that were fitted"
            raise InputError(table.source, where, float(values[bad[0]]), expected)
        return values
    return np.asarray(table.numbers(counter) * table.numbers("gpus"))


def _guess(form: str, signal: Floats, time: Floats) -> Floats:
    if form == "rate":
        slope = float(np.mean(1 / (time * signal)))
        return np.array([0.3 * slope * float(signal.mean()), 0.7 * slope])
    return np.array([float(np.exp(np.mean(np.log(time * signal)))), 0.9 if form == "power" else 1])


def _curve(form: str, theta: Floats, signal: Floats) -> tuple[Floats, Floats]:
    if form == "rate":
        rate = np.maximum(theta[0] + theta[1] * signal, 1e-300)
        return -np.log(rate), -np.stack([1 / rate, signal / rate], axis=1)
    scale = max(float(theta[0]), 1e-300)
    log = np.log(np.maximum(signal, 1e-300))
    return np.log(scale) - theta[1] * log, np.stack([np.full_like(log, 1 / scale), -log], axis=1)


_BOUNDS = {"rate": ((0.0, np.inf), (0.0, np.inf)), "power": ((0.0, np.inf), (0.0, 1.5))}


def _best_form(curves: list[tuple[Floats, Floats]]) -> DramChoice:
    """The form with the least median leave-one-out error; ties go to the simplest."""
    scores: dict[DramChoice, float] = {}
    forms: tuple[DramChoice, ...] = ("traffic", "rate", "power")
    for form in forms:
        scores[form] = float(np.median(np.concatenate([_left_out(form, *c) for c in curves])))
    return min(scores, key=lambda form: scores[form])


def _left_out(form: str, signal: Floats, time: Floats) -> Floats:
    """|ln error| of each row predicted from the others."""
    bounds = _BOUNDS.get(form, ((0.0, np.inf), (1.0, 1.0)))
    lower, upper = np.array(bounds, dtype=float).T
    errors = np.empty(len(time))
    for k in range(len(time)):
        rest = np.arange(len(time)) != k
        known, target = signal[rest], np.log(time[rest])

        def evaluate(
            theta: Floats, known: Floats = known, target: Floats = target
        ) -> tuple[Floats, Floats]:
            log, jacobian = _curve(form, theta, known)
            return log - target, jacobian

        start = _guess(form, known, time[rest])
        fit = descend(evaluate, start, lower, upper, loss="linear", steps=50)
        log, _ = _curve(form, fit.theta, signal[k : k + 1])
        errors[k] = abs(float(log[0]) - float(np.log(time[k])))
    return errors
