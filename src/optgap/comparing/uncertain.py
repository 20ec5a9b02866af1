"""A comparison under the uncertainty of fitted models: every gap with an interval."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from optgap.comparing import gaps
from optgap.comparing.comparison import Comparison, drawn
from optgap.comparing.draws import Drawn, draws
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem
from optgap.making import fitted
from optgap.models.errors import InputError, NoQuote, shorten
from optgap.models.limits import Limits, Progress, silent
from optgap.models.performance.saved import FittedParameters, read_fits
from optgap.models.shown import MOST
from optgap.registry import family
from optgap.render import Answer, Row, Table, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEVEL = 0.9
MOST_SAMPLES = 10_000
BUDGET_S = 45.0
"""Seconds for all of a comparison with draws to which no time limit is given."""
FIRST = 0.25
"""The share of them that each single run may take."""
QUICK_S = 1.0
"""What takes longer at the fitted values is not run on every draw."""
MOST_LEFT_OUT = 20
"""Impossible draws per draw that is wanted."""


@dataclass(frozen=True)
class Interval:
    """The gaps of one row over the samples; NaN where it never had one."""

    method: str
    count: int
    low: float
    median: float
    high: float


@dataclass(frozen=True, repr=False)
class UncertainComparison(Answer):
    """The gap table at the fitted values, and how far gaps move within the fit's uncertainty.

    Parameters
    ----------
    comparison: at the fitted values.
    samples: one comparison per draw; each gap is against the bound of the same draw.
    models: the fits that were drawn from, and their files.
    level: share of the samples within an interval.
    left_out: draws that were replaced, as no machine could be like that (a power below 0, say).
    drawn: what each fit was drawn from, and how many held-out points its intervals covered.
    remarks: what draws were spared, and why.
    """

    comparison: Comparison
    samples: tuple[Comparison, ...]
    models: tuple[str, ...]
    level: float = LEVEL
    left_out: int = 0
    remarks: tuple[str, ...] = ()
    drawn: tuple[Drawn, ...] = ()

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All of them, that at the fitted values first."""
        return (self.comparison, *self.samples)

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """One per row that has a gap at the fitted values or in a sample."""
        return tuple(self._intervals())

    def _intervals(self) -> Iterator[Interval]:
        tail = 0.5 * (1 - self.level)
        for row in self.comparison.rows:
            name = row.result.method
            found = [
                other.gap_to_bound
                for sample in self.samples
                for other in sample.rows
                if other.result.method == name and other.gap_to_bound is not None
            ]
            if found:
                low, median, high = np.quantile(found, [tail, 0.5, 1 - tail]).tolist()
                yield Interval(name, len(found), low, median, high)
            elif row.gap_to_bound is not None:
                yield Interval(name, 0, math.nan, math.nan, math.nan)

    def to_json(self) -> dict[str, Any]:
        """The comparison's JSON form, and under ``uncertainty`` the intervals."""
        rows = []
        for one in self.intervals:
            ends = {"low": one.low, "median": one.median, "high": one.high}
            known = {k: v if one.count else None for k, v in ends.items()}
            rows.append({"method": one.method, "samples": one.count, **known})
        about = {"models": list(self.models), "samples": len(self.samples), "level": self.level,
                 "drawn": [one.to_json() for one in self.drawn]}  # fmt: skip
        return {**self.comparison.to_json(), "uncertainty": {**about, "gap_to_bound": rows}}

    def to_frame(self) -> pd.DataFrame:
        """One line per sample and row, the fitted values as sample −1."""
        import pandas as pd

        frames = []
        for k, comparison in enumerate(self.comparisons):
            frame = comparison.to_frame()
            frame.insert(0, "sample", [k - 1] * len(frame))
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def head(self) -> list[str]:
        """The comparison's, and what was drawn."""
        count = f"{len(self.samples)} samples of {', '.join(self.models)}"
        left = f"; {self.left_out} impossible draws left out" if self.left_out else ""
        words = f"gaps over {count}: {100 * self.level:g} % interval{left}"
        return [*self.comparison.head(), words, *map(str, self.drawn)]

    def table(self) -> Table:
        """A line per method and policy that has a gap, with its interval."""
        header = ("", "gap to bound", "low", "median", "high", "samples")
        found = {one.method: one for one in self.intervals}
        rows: list[Row] = [
            (
                row.label,
                row.gap_text,
                *(percent(x) if one.count else "" for x in (one.low, one.median, one.high)),
                str(one.count),
            )
            for row in self.comparison.blocks
            if (one := found.get(row.result.method)) is not None
        ]
        return header, rows, (1, 2, 3, 4, 5)

    def notes(self) -> list[str]:
        """What draws were spared, and what rows have to say at the fitted values."""
        return [*self.remarks, *self.comparison.notes()]

    def __repr__(self) -> str:
        words = f"{self.comparison.problem_name}: {len(self.samples)} samples"
        return shorten(NoQuote(f"<UncertainComparison {words}>"), MOST)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The gaps with their intervals; errors as `Comparison.plot`."""
        return drawn(self, path)


@overload
def compare(
    problem: ProblemLike,
    policies: gaps.Policies = "all",
    methods: gaps.Methods = "auto",
    *,
    uncertainty: None = None,
    time_limit: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Progress = silent,
    parts: bool = False,
) -> Comparison: ...


@overload
def compare(
    problem: ProblemLike,
    policies: gaps.Policies = "all",
    methods: gaps.Methods = "auto",
    *,
    uncertainty: int,
    level: float = LEVEL,
    time_limit: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Progress = silent,
    parts: bool = False,
) -> UncertainComparison: ...


def compare(
    problem: ProblemLike,
    policies: gaps.Policies = "all",
    methods: gaps.Methods = "auto",
    *,
    uncertainty: int | None = None,
    level: float = LEVEL,
    **asked: Any,
) -> Comparison | UncertainComparison:
    """Run methods and policies on one problem and measure every gap.

    Everything else is as `gaps.compare` has it.

    Parameters
    ----------
    uncertainty: so many draws of the parameters of the fits in the problem, each compared
        anew: every gap with an interval. None leaves it at the fitted values.
    level: share of the draws within an interval.

    Raises
    ------
    InputError: as `gaps.compare`; for draws, as `compare_uncertain`.
    """
    if uncertainty is None:
        return gaps.compare(problem, policies, methods, **asked)
    return compare_uncertain(
        problem, (), policies, methods, samples=uncertainty, level=level, **asked
    )


def compare_uncertain(
    problem: ProblemLike,
    models: Any = (),
    policies: gaps.Policies = "all",
    methods: gaps.Methods = "auto",
    *,
    samples: int = 20,
    level: float = LEVEL,
    time_limit: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    progress: Progress = silent,
    parts: bool = False,
) -> UncertainComparison:
    """Compare with fitted models put into the problem, and again for samples of their parameters.

    Parameters
    ----------
    problem: it, or the path of a file with one.
    models: fits, or files of them (``optgap.fit/1``); those in the problem unless given.
        Each is drawn from what it says of its error, see `draws`.
    samples: how many draws.
    level: share of the draws within an interval.
    time_limit: seconds for each single run, on as many draws as asked for. Without it everything
        together takes `BUDGET_S`: what is slow is spared the draws, and there are as many of these
        as there is time for; `UncertainComparison.remarks` says so.
    policies, methods, seed, limits, progress, parts: as `gaps.compare` has them.

    Raises
    ------
    InputError: for a problem without fits when none are given, a fit that is not one for the
        family or carries no covariance, or numbers out of range; and as `gaps.compare` does.
    """
    problem = as_problem(problem)
    _require_numbers(samples, level)
    given = read_fits(models)
    fits = given or list(getattr(problem, "fits", ()))
    if not fits:
        found = NoQuote(f"{problem.name}, which rests on no fit")
        expected = "a problem made with models=[…], or models to put into it"
        raise InputError("uncertainty", "", found, expected)
    # the fits in a problem are there already: put in again, they would be rounded again
    central_problem = fitted(problem, given, seed) if given else problem
    drawn_problems, left_out = _drawn_problems(central_problem, fits, samples, seed)
    limits = limits or Limits(progress=progress)
    end = time.monotonic() + (BUDGET_S if time_limit is None else math.inf)

    def run(one: Problem, plan: _Plan, limit: float | None) -> Comparison:
        return gaps.compare(
            one, plan.policies, plan.methods, time_limit=limit, seed=seed, limits=limits,
            parts=parts,
        )  # fmt: skip

    names = gaps.method_names(problem.family, methods)
    asked = _Plan(tuple(gaps.policy_names(problem.family, policies)), tuple(names))
    limit = BUDGET_S * FIRST if time_limit is None else time_limit
    central = run(central_problem, asked, limit)
    done: list[Comparison] = []
    plan = asked if time_limit is not None else _quick(asked, central, central_problem)
    began = time.monotonic()
    for one in drawn_problems:
        if limits.interrupted.is_set() or (central.infeasible and not parts):
            break
        if len(done) >= 2 and not _time_for_another(began, end, len(done)):
            break
        done.append(run(one, plan, limit))
    sources = dict.fromkeys(f"{fit.model} ({os.path.basename(fit.source)})" for fit in fits)
    notes = plan.notes
    if len(done) < samples and not (limits.interrupted.is_set() or central.infeasible):
        more = "time_limit=… (--time-limit) takes all, however long"
        notes = (*notes, f"{len(done)} of {samples} draws in {BUDGET_S:g} s: {more}")
    told = tuple(map(Drawn.of, fits))
    return UncertainComparison(central, tuple(done), tuple(sources), level, left_out, notes, told)


@dataclass(frozen=True)
class _Plan:
    """What a draw is compared with, and why it is less than what was asked for."""

    policies: tuple[str | Callable[..., Any], ...]
    methods: tuple[str, ...]
    notes: tuple[str, ...] = ()


def _time_for_another(began: float, end: float, done: int) -> bool:
    """Whether a draw more will probably be over by `end`, as `done` of them took since `began`."""
    now = time.monotonic()
    return now + (now - began) / done <= end


def _quick(asked: _Plan, central: Comparison, problem: Problem) -> _Plan:
    """Without what took long at the fitted values; where all methods did, a bound stands in."""
    quick = [row.result.seconds <= QUICK_S for row in central.rows]
    slow = [row.result.method for row, fast in zip(central.rows, quick, strict=True) if not fast]
    methods = tuple(compress(asked.methods, quick))
    policies = tuple(compress(asked.policies, quick[len(asked.methods) :]))
    notes = []
    if slow:
        notes.append(f"draws leave out what takes more than {QUICK_S:g} s: {', '.join(slow)}")
    if asked.methods and not methods:
        methods = (family(problem.family).auto_bound(problem),)
        less = "which may prove less: intervals may lie above the gap at the fitted values"
        notes.append(f"and are held against {methods[0]}, {less}")
    return _Plan(policies, methods, ("; ".join(notes),) if notes else ())


def _drawn_problems(
    problem: Problem, fits: Sequence[FittedParameters], count: int, seed: int
) -> tuple[list[Problem], int]:
    """So many problems with drawn parameters, and how many draws no machine could be.

    Raises
    ------
    InputError: when hardly any draw makes a problem: the fits leave too much open.
    """
    refit, rng = family(problem.family).models.refit, np.random.default_rng(seed)
    found: list[Problem] = []
    left_out, reason = 0, ""
    while len(found) < count and left_out <= MOST_LEFT_OUT * count:
        for draw in draws(fits, count, rng):
            try:
                found.append(refit(problem, draw, seed))
            except InputError as error:
                left_out, reason = left_out + 1, str(error)
    if len(found) < count:
        expected = "fits that leave less open: their reports say what to measure"
        raise InputError("uncertainty", "", NoQuote(f"draws such as {reason}"), expected)
    return found[:count], left_out


def _require_numbers(samples: int, level: float) -> None:
    whole = isinstance(samples, int) and not isinstance(samples, bool)
    if not whole or not 2 <= samples <= MOST_SAMPLES:
        raise InputError("--samples", "", samples, f"2 to {MOST_SAMPLES} draws")
    if not 0 < level < 1:
        raise InputError("--level", "", level, "a share between 0 and 1")
