"""What it costs to keep a power limit with confidence: Eq. 19 as a second-order cone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.comparing.draws import draws
from optgap.documents import ProblemLike, as_problem
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields
from optgap.registry import family
from optgap.render import Answer, Row, Table

if TYPE_CHECKING:
    from optgap.models.elastic import ElasticSolution

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)
DRAWS = 40


@dataclass(frozen=True)
class Certainty(Answer):
    """One line per confidence.

    Parameters
    ----------
    confidences: with which the limit is kept, ascending from 0.5: powers as fitted.
    bound_s: proven lower bound on the sum of remaining times, s.
    kilowatt_s: what another kW would save, s.
    jobs, limit_w: of the decision.
    at_s: its moment, s after the first submission.
    """

    confidences: tuple[float, ...]
    bound_s: tuple[float, ...]
    kilowatt_s: tuple[float, ...]
    jobs: int
    limit_w: float
    at_s: float

    @property
    def prices(self) -> tuple[float, ...]:
        """By how much the bound exceeds that of powers as fitted, relative."""
        return tuple(bound / self.bound_s[0] - 1 for bound in self.bound_s)

    def head(self) -> list[str]:
        """Which decision it is."""
        limit = f"{self.jobs} jobs under {self.limit_w:,.0f} W"
        return [f"price of certainty, {limit} at {self.at_s:,.0f} s, powers being fitted"]

    def table(self) -> Table:
        """A line per confidence."""
        columns = (self.confidences, self.bound_s, self.prices, self.kilowatt_s)
        rows: list[Row] = [
            (f"{100 * c:g} %", f"{bound:,.0f} s", f"{100 * price:+.2f} %", f"{k:,.0f} s")
            for c, bound, price, k in zip(*columns, strict=True)
        ]
        return ("limit kept with", "times at least", "price", "another kW"), rows, (0, 1, 2, 3)

    def to_json(self) -> dict[str, Any]:
        """As a part of ``optgap.explain/1``."""
        columns = {"confidence": self.confidences, "bound_s": self.bound_s, "price": self.prices,
                   "kilowatt_s": self.kilowatt_s}  # fmt: skip
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {"at_s": self.at_s, "jobs": self.jobs, "limit_w": self.limit_w, "rows": rows}

    @classmethod
    def from_json(cls, fields: Fields) -> Certainty:
        """Read `to_json` back; raises InputError naming the field."""

        def column(name: str) -> tuple[float, ...]:
            return tuple(row.number(name, minimum=-np.inf) for row in fields.objects("rows"))

        return cls(
            column("confidence"), column("bound_s"), column("kilowatt_s"),
            fields.integer("jobs"), fields.number("limit_w"),
            fields.number("at_s", minimum=-np.inf),
        )  # fmt: skip


def price_of_certainty(
    problem: ProblemLike,
    at_s: float = -1.0,
    *,
    schedule: ElasticSolution | None = None,
    confidences: Sequence[float] = CONFIDENCES,
    count: int = DRAWS,
    seed: int = 0,
) -> Certainty:
    """How much longer jobs take when a limit is kept with confidence, powers being fitted.

    The decision of Eq. 18-19 over all jobs submitted by a moment: with nothing done yet, or with
    what a schedule has left of them. It bounds that decision, no whole schedule. The powers'
    covariance is that of `count` draws of the problem's fits; a confidence c asks for
    P·x + z(c)·‖D·x‖ ≤ limit (`solvers.elastic.relaxation`).

    Parameters
    ----------
    problem: of the elastic family, made with fits, or the path of a file with one.
    at_s: the moment, s after the first submission; −1 for the last submission.
    schedule: of the same problem.
    confidences: from 0.5, at which powers are as fitted and which is always there, to below 1.

    Raises
    ------
    InputError: for another family, a problem without fits or limit, or numbers out of range.
    """
    from scipy.stats import norm

    from optgap.models.elastic.referee import rates
    from optgap.models.elastic.snapshot import Choices, Snapshot
    from optgap.solvers.elastic.regret import active
    from optgap.solvers.elastic.relaxation import relaxed

    made: Any = as_problem(problem)
    require(made, confidences, count)
    moment = float(made.jobs.submit_s.max()) if at_s == -1 else made.epoch_s + at_s
    if schedule is None:
        jobs = np.flatnonzero(made.jobs.submit_s <= moment)
        left = made.jobs.iterations[jobs]
    else:
        jobs, left = active(made, schedule, rates(made, schedule), moment)
    if not len(jobs):
        raise InputError("certainty", "at_s", at_s, "-1, or s after the first submission")
    choices = Choices.of(made)
    decision = Snapshot.of(choices, made, made.jobs.of_class[jobs], left, made.power_allowed_w)
    errors = _errors(made, choices, count, seed)
    asked = tuple(sorted({0.5, *confidences}))
    found = [relaxed(decision, errors, float(norm.ppf(c))) for c in asked]
    return Certainty(
        asked, tuple(one.bound for one in found), tuple(1000 * one.watt_s for one in found),
        len(jobs), decision.limit_w, moment - made.epoch_s,
    )  # fmt: skip


def require(problem: Any, confidences: Sequence[float], count: int = DRAWS) -> None:
    """Raise InputError where `price_of_certainty` could not answer."""
    if problem.family != "elastic":
        raise InputError("certainty", "problem", problem.family, "one of the family elastic")
    if not problem.fits:
        found = NoQuote(f"{problem.name}, which rests on no fit")
        raise InputError("certainty", "problem", found, "one made from fits (models=[…], --models)")
    if not np.isfinite(problem.power_allowed_w):
        raise InputError("certainty", "problem", NoQuote("no limit of power"), "eta=… below 1")
    for value in confidences:
        if not 0.5 <= value < 1:
            raise InputError("certainty", "confidences", value, "from 0.5 to below 1")
    if count < 2:
        raise InputError("certainty", "count", count, "at least 2 draws")


def _errors(problem: Any, choices: Any, count: int, seed: int) -> np.ndarray:
    """(count, configurations) D: what draws of the fits differ by in W, over √(count − 1)."""
    refit, rng = family("elastic").models.refit, np.random.default_rng(seed)
    of_class = np.repeat(np.arange(len(choices.first) - 1), np.diff(choices.first))
    watts = []
    for draw in draws(problem.fits, count, rng):
        try:
            power = refit(problem, draw, seed).power_w
        except InputError:  # no machine could be like that
            continue
        watts.append(power[of_class, choices.count, choices.clock])
    if len(watts) < 2:
        expected = "fits that leave less open: their reports say what to measure"
        raise InputError("certainty", "", NoQuote("no possible draw"), expected)
    table = np.array(watts)
    return np.asarray((table - table.mean(axis=0)) / np.sqrt(len(table) - 1))
