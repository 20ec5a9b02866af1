"""Base of every fitted model: settings, bounds, starts and errors.

An estimator names its parameters with physical bounds, guesses starts from the data and gives
the logarithm of its prediction with an analytic Jacobian. This file fits it and judges the
fit. Residuals are ln(predicted) − ln(measured).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from optgap.fitting.optimise import (
    Floats,
    Loss,
    Parameter,
    Spread,
    bounds,
    solved,
)
from optgap.fitting.profile import QUANTITIES, Profile
from optgap.models.errors import InputError, NoQuote, one_of

Design = Mapping[str, Any]
"""Values that a model computes once from a table: columns and reference values."""
MANY = 10_000
"""Rows from which on a solution for nearly the same ones is the only start."""
MOST_LEVELS = 200
"""Largest number of distinct values of an input that is not continuous."""
NOT_NEGATIVE = ("dram_sum", "dram_active", "fp_active", "util_percent")
"""Inputs that may be 0; the others must be positive."""


@dataclass(kw_only=True, eq=False)
class Estimator(ABC):
    """Base of the fitted models; the fields are the settings.

    Parameters
    ----------
    loss: ``soft_l1`` (quadratic near zero, linear in the tails) or ``linear`` (least squares).
    loss_scale: relative error at which ``soft_l1`` turns linear.
    starts: number of starts.
    seed: seed of the random starts.

    After `fit`: ``params_`` by name, ``theta_``, ``stderr_`` and ``covariance_`` in the order of
    ``parameters_``, ``start_`` (the start that won), ``residuals_`` (relative, log),
    ``validity_`` (range of every input), ``levels_`` (its values, where they are few),
    ``warnings_``, ``r2_``, ``mape_``.
    """

    name: ClassVar[str]
    response: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    swept: ClassVar[bool] = True
    """Whether each needed column must take more than one value."""
    uses: ClassVar[tuple[str, ...]] = ()
    """Columns that the model reads if the table has them."""
    loss: Loss = "soft_l1"
    loss_scale: float = 0.02
    starts: int = 4
    seed: int = 0
    near_: Self | None = field(default=None, init=False, repr=False)
    """Fit to nearly the same rows, which serves as a start."""

    def __post_init__(self) -> None:
        hints = _hints(type(self))
        for name, value in self.get_params().items():
            expected = _expected(value, hints[name])
            if expected:
                raise InputError(self.name, name, value, expected)
        if not self.loss_scale > 0:
            raise InputError(self.name, "loss_scale", self.loss_scale, "a relative error above 0")

    @classmethod
    def reads(cls) -> tuple[str, ...]:
        """Return every column that the model reads; missing values elsewhere do not matter."""
        return (*cls.needs, cls.response, *cls.uses)

    # --- what a model says about itself -------------------------------------------------

    def settle(self, table: Profile) -> Design:
        """Return facts of the training data that predictions need, too (references, knots)."""
        return {}

    @abstractmethod
    def parameters(self, table: Profile, facts: Design) -> Sequence[Parameter]:
        """Return the parameters, given which of them the data can determine."""

    @abstractmethod
    def guess(self, table: Profile, facts: Design) -> Floats:
        """Return a start from the data, in the order of `parameters`."""

    def design(self, table: Profile, facts: Design) -> Design:
        """Return the input of `curve`, computed once per table: facts and needed columns."""
        return {**facts, **{name: table.numbers(name) for name in self.needs}}

    @abstractmethod
    def curve(self, theta: Floats, design: Design) -> tuple[Floats, Floats]:
        """Return ln(prediction), (rows,), and its Jacobian, (rows, parameters)."""

    def target(self, table: Profile) -> Floats:
        """Return ln(response), to which `curve` is fitted."""
        return np.log(table.numbers(self.response))

    def output(self, log: Floats, design: Design) -> Floats:
        """Return the response from the logarithm of `curve`."""
        return np.exp(log)

    def own_draws(self, table: Profile, count: int) -> Floats | None:
        """Return (count, parameters) draws; None if covariance and residuals serve for draws."""
        return None

    def share(self, table: Profile, by: str | None) -> Self:
        """Return a copy with what all groups of a table share, such as a voltage curve."""
        return self

    def remarks(self, table: Profile) -> list[str]:
        """Return the model's own warnings about the data."""
        return []

    # --- its settings, fitting and predicting --------------------------------------------

    def get_params(self) -> dict[str, Any]:
        """Return the settings, as given to the constructor."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def clone(self, **settings: Any) -> Self:
        """Return an unfitted copy with `settings` changed."""
        return replace(self, **settings)

    @property
    def params_(self) -> dict[str, float]:
        """Fitted values by name."""
        return {p.name: float(v) for p, v in zip(self.parameters_, self.theta_, strict=True)}

    def fit(self, table: object, *, near: Self | None = None) -> Self:
        """Fit the model to a table (Profile, mapping or DataFrame).

        Parameters
        ----------
        near: fit to nearly the same rows, whose parameters replace the random starts.

        Raises
        ------
        InputError: for missing columns, missing or impossible values, another unit, an input
            that never varies, a response that is constant, or fewer rows than parameters.
        """
        self.near_ = near
        profile = self.prepare(table)
        facts = self.settle(profile)
        params = tuple(self.parameters(profile, facts))
        self._enough(profile, params)
        first = self.guess(profile, facts)
        starts = self._starts(first, params)
        if near is not None and len(near.theta_) == len(first):
            begin = [starts[0], near.theta_] if len(profile) < MANY else [near.theta_]
            starts = np.clip(begin, *bounds(params))
        return self._solve(profile, facts, params, starts)

    def predict(self, table: object) -> Floats:
        """Return the response at each row, in its canonical unit.

        Raises
        ------
        InputError: for missing columns or values.
        """
        profile = self.table(table)
        self._columns(profile, self.needs)
        design = self.design(profile, self.facts_)
        log, _ = self.curve(self.theta_, design)
        return self.output(log, design)

    def beyond(self, table: Profile) -> list[str]:
        """Return sentences on inputs outside the range of the fitted rows."""
        found = []
        for name, (low, high) in self.validity_.items():
            values = table.numbers(name) if name in table else np.zeros(0)
            values = values[(values < low * (1 - 1e-9)) | (values > high * (1 + 1e-9))]
            if len(values):
                found.append(f"{name} {values[0]:g} is outside {low:g} to {high:g}, as measured")
        return found

    # --- the work ------------------------------------------------------------------------

    def _solve(
        self, profile: Profile, facts: Design, params: tuple[Parameter, ...], starts: Floats
    ) -> Self:
        target, design = self.target(profile), self.design(profile, facts)

        def evaluate(theta: Floats) -> tuple[Floats, Floats]:
            log, jacobian = self.curve(theta, design)
            return log - target, jacobian

        fit, held, spread = solved(evaluate, params, starts, self.loss, scale=self.loss_scale)
        self.start_ = np.clip(fit.start, *bounds(params))
        self.residuals_ = fit.residuals
        return self._found(profile, facts, params, fit.theta, at_bound=held, scatter=spread)

    def _found(
        self,
        profile: Profile,
        facts: Design,
        params: tuple[Parameter, ...],
        theta: Floats,
        *,
        at_bound: NDArray[np.bool_],
        scatter: Spread,
    ) -> Self:
        """Store and judge the solution; `start_` and `residuals_` are stored already."""
        self.facts_, self.parameters_, self.scatter_ = facts, params, scatter
        self.theta_, self.at_bound_, self.n_ = theta, at_bound, len(self.residuals_)
        self.covariance_, self.stderr_ = scatter.covariance, scatter.stderr
        inputs = self._inputs(profile)
        self.validity_ = {name: (float(v[0]), float(v[-1])) for name, v in inputs.items()}
        self.levels_ = {n: v.tolist() for n, v in inputs.items() if len(v) <= MOST_LEVELS}
        measured, predicted = profile.numbers(self.response), self.predict(profile)
        self.r2_ = r2(measured, predicted)
        self.mape_ = mape(measured, predicted)
        self.warnings_ = [*profile.notes, *self._warnings(profile)]
        return self

    def _told(self) -> int:
        """Return the number of parameters that the rows themselves determine."""
        return int(np.sum(~self.at_bound_))

    def _starts(self, first: Floats, params: tuple[Parameter, ...]) -> Floats:
        """Return the guess, and random starts around it within the bounds."""
        rng = np.random.default_rng(self.seed)
        lower, upper = bounds(params)
        factors = np.exp(rng.standard_normal((max(self.starts, 1), len(first))))
        factors[0] = 1.0
        return np.clip(first * factors, lower, upper)

    def table(self, table: object) -> Profile:
        """Return the table as a Profile."""
        return Profile.of(table, self.name, reads=self.reads())

    def prepare(self, table: object) -> Profile:
        """Return the checked table with everything that fitting needs."""
        profile = self.table(table)
        self._columns(profile, (*self.needs, self.response))
        values = profile.numbers(self.response)
        if not len(values):
            expected = ": ".join([f"rows for {self.name}", *profile.notes[:1]])
            raise InputError(profile.source, "", NoQuote("no rows"), expected)
        profile.require(values > 0, self.response, "a value above 0")
        return profile

    def _columns(self, profile: Profile, names: Sequence[str]) -> None:
        for name in names:
            values = profile.numbers(name) if name in QUANTITIES else profile[name]
            if values.dtype.kind != "f":
                continue
            good = np.isfinite(values)
            found = f"nothing ({np.sum(~good)} of {len(values)} rows)"
            profile.require(good, name, "a finite number in every row", found)
            if name in NOT_NEGATIVE:
                profile.require(values >= 0, name, "0 or more")
            elif name in QUANTITIES:
                profile.require(values > 0, name, "a value above 0")

    def _enough(self, profile: Profile, params: Sequence[Parameter]) -> None:
        free = [p for p in params if not p.fixed]
        for name in self.needs if self.swept else ():
            values = profile.numbers(name)
            if not len(values) or np.ptp(values) == 0:
                found = NoQuote(f"only {values[0]:g}" if len(values) else "no rows")
                expected = f"at least two values for {self.name}"
                raise InputError(profile.source, f"column {name}", found, expected + _advice(free))
        if len(profile) < len(free):
            names = ", ".join(p.name for p in free)
            expected = f"at least {len(free)} for the parameters of {self.name} ({names})"
            found = NoQuote(f"{len(profile)} rows")
            raise InputError(profile.source, "", found, expected + _advice(free))
        values = profile.numbers(self.response)
        if len(values) > 1 and np.ptp(values) <= 1e-12 * abs(values[0]):
            found = NoQuote(f"{values[0]:g} in every row")
            expected = "a response that changes with the inputs"
            raise InputError(profile.source, f"column {self.response}", found, expected)

    def _inputs(self, profile: Profile) -> dict[str, Floats]:
        """Return the distinct values of each complete numeric input."""
        found = {
            name: np.unique(profile.numbers(name))
            for name in (*self.needs, *self.uses)
            if name in profile and name != self.response and profile[name].dtype.kind == "f"
        }
        return {name: values for name, values in found.items() if np.isfinite(values).all()}

    def _warnings(self, profile: Profile) -> list[str]:
        found = self.remarks(profile)
        for p, value, bound in zip(self.parameters_, self.theta_, self.at_bound_, strict=True):
            if bound and not p.fixed:
                hint = f"; where it should not be, measure {p.measure}" if p.measure else ""
                found.append(f"{p.name} is at its bound {value:g}{hint}")
        for members in self.scatter_.loose:
            loose = [self.parameters_[k] for k in members]
            names = ", ".join(p.name for p in loose)
            words = f"only combinations of {names} are identifiable"
            if len(loose) == 1:
                words = f"{names} does not affect these data"
            found.append(words + _advice(loose))
        free = self._told()
        if self.n_ <= free:
            found.append(f"{self.n_} rows for {free} parameters: nothing is left to judge the fit")
        if self.r2_ < 0:
            found.append(f"R² {self.r2_:.2f} is below 0: the mean of the rows predicts them better")
        if self.mape_ > 0.15:
            found.append(f"mean error {self.mape_:.1%} in sample: the form does not fit the data")
        return found

    def with_theta(self, theta: NDArray[np.float64]) -> Self:
        """Return a fitted copy with other parameter values (within the bounds)."""
        copy = self.clone()
        copy.__dict__.update(self.__dict__)
        lower, upper = bounds(self.parameters_)
        copy.theta_ = np.clip(theta, lower, upper)
        return copy


def _advice(params: Sequence[Parameter]) -> str:
    """Return what to measure, from the first of these parameters that has such advice."""
    return next((f"; measure {p.measure}" for p in params if p.measure), "")


_hints = cache(get_type_hints)


def _expected(value: object, hint: Any) -> str:
    """Return what a setting must be, if the value is not of its type; else ""."""
    if get_origin(hint) is Literal:
        return "" if value in get_args(hint) else one_of(get_args(hint))
    kinds = get_args(hint) or (hint,)
    good = isinstance(value, (*kinds, int) if float in kinds else kinds)
    if isinstance(value, (int, float)):
        good = good and not isinstance(value, bool) and 0 <= value < math.inf
    words = {int: "a whole number, 0 or more", float: "a number, 0 or more", str: "text"}
    return "" if good else " or ".join(words.get(kind, "none") for kind in kinds)


def mape(measured: Floats, predicted: Floats) -> float:
    """Return the mean of |predicted − measured| / measured."""
    return float(np.mean(np.abs(predicted - measured) / np.abs(measured)))


def r2(measured: Floats, predicted: Floats) -> float:
    """Return 1 − residual / total sum of squares; NaN if nothing varies."""
    total = float(np.sum((measured - measured.mean()) ** 2))
    left = float(np.sum((predicted - measured) ** 2))
    return 1.0 - left / total if total else math.nan
