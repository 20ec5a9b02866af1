"""Comparison under the uncertainty of fitted models: every gap has an interval.

Fitted values and draws are compared by the same methods and the same bound: a plan in units of work
is made before the first draw, and no draw has fewer methods than another.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from optgap.api import TOLERANCE
from optgap.comparing import gaps
from optgap.comparing.comparison import OF_PART, PART_NOTE, Comparison, drawn, in_groups, rank
from optgap.comparing.gaps import Methods, Policies
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem
from optgap.models.errors import InputError, NoQuote, shorten
from optgap.models.limits import Limits
from optgap.models.performance.saved import FittedParameters, read_fit
from optgap.models.shown import MOST
from optgap.progress import in_notebook
from optgap.registry import family
from optgap.render import GAP_TO_BOUND, Answer, Table, in_column, percent, percents

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEVEL = 0.9
MOST_SAMPLES = 10_000
BUDGET = 60.0
"""Work that all draws together may take, units at effort 1."""
MOST_LEFT_OUT = 20
"""Impossible draws per draw that is wanted."""
OUTSIDE = "!"
"""Mark of a gap that lies outside its own interval."""


def least_samples(level: float) -> int:
    """Return how many draws an interval of this level takes: (1 + level) / (1 − level)."""
    return math.ceil((1 + level) / (1 - level) - 1e-9)


BLOCK = 19
"""Number of draws that one generator makes: as many as an interval of 90 % takes."""
PARTS = ("parameters",)
"""Parts of the draws of a fit that does not list them."""


@dataclass(frozen=True)
class Drawn:
    """Parts of a fit's draws: parameters, residual, between applications."""

    model: str
    source: str
    parts: tuple[str, ...] = PARTS

    @classmethod
    def of(cls, fit: FittedParameters) -> Drawn:
        """Read the description from a fit's document."""
        parts: dict[str, None] = {}
        for name in fit.groups:
            parts |= dict.fromkeys(fit.predictive(name) or PARTS)
        return cls(fit.model, os.path.basename(fit.source), tuple(parts))

    def __str__(self) -> str:
        words = f"{self.model} ({self.source}): draws of {', '.join(self.parts)}"
        if not any(part.startswith("between") for part in self.parts):
            words += " alone"
        return words

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {**vars(self), "parts": list(self.parts)}


def draws(fits: Sequence[FittedParameters], seed: int) -> Iterator[list[FittedParameters]]:
    """Yield fits with drawn parameters without end: their errors, residuals and more.

    Each block of `BLOCK` draws has a generator of its own, so that more draws keep the first ones.
    Where applications are drawn, the k-th draws of all fits are of the same application.

    Raises
    ------
    InputError: for a fit without a covariance.
    """
    from optgap.fitting.saved import drawn

    for block in count():
        rng = np.random.default_rng([seed, block])
        which = rng.random(BLOCK)
        columns = [drawn(fit.document, fit.source, BLOCK, rng, which=which) for fit in fits]
        for documents in zip(*columns, strict=True):
            read = zip(map(read_fit, documents), fits, strict=True)
            yield [replace(one, source=fit.source) for one, fit in read]


@dataclass(frozen=True)
class Interval:
    """Values of one row over the samples and at the fitted values; NaN without a value."""

    method: str
    count: int
    low: float
    median: float
    high: float
    value: float = math.nan

    @property
    def outside(self) -> bool:
        """Whether the fitted value lies outside the interval."""
        slack = TOLERANCE * max(1.0, abs(self.value))  # what a proof may leave open
        return self.value < self.low - slack or self.value > self.high + slack

    @classmethod
    def of(cls, method: str, found: Sequence[float], level: float, value: float | None) -> Interval:
        """Return the interval that holds one more draw with probability `level`, else the range."""
        at = math.nan if value is None else value
        if not found:
            return cls(method, 0, math.nan, math.nan, math.nan, at)
        tail = 0.5 * (1 - level) if len(found) >= least_samples(level) else 0.0
        shares = [tail, 0.5, 1 - tail]
        low, median, high = np.quantile(found, shares, method="weibull").tolist()
        return cls(method, len(found), low, median, high, at)


@dataclass(frozen=True, repr=False)
class UncertainComparison(Answer):
    """Gap table at the fitted values, with intervals of the gaps from the fits' uncertainty.

    Parameters
    ----------
    comparison: the comparison at the fitted values, as asked for.
    samples: one comparison per draw; each gap is against the bound of the same draw.
    models: names and files of the fits that were drawn from.
    level: probability with which one more draw lies within an interval.
    left_out: number of impossible draws (a power below 0, say), which were replaced.
    remarks: differences of the draws from what was asked for, with reasons.
    drawn: description of each fit's draws, with the share of held-out points in its intervals.
    alike: the comparison at the fitted values by the methods and policies of the draws; None if
        `comparison` has the same.

    Examples
    --------
    >>> table = {"frequency_mhz": [600, 900, 1200, 1400], "power_w": [80, 107, 134, 152]}
    >>> fit = optgap.fit(table, "linear-power", cv=0)
    >>> problem = optgap.generate("consolidation", size=3, models=[fit])
    >>> gaps = optgap.compare(problem, "first", uncertainty=19)
    >>> gaps.to_frame().loc["first", ["gap_to_bound", "low", "high"]].round(3).to_list()
    [0.063, 0.063, 0.063]
    """

    comparison: Comparison
    samples: tuple[Comparison, ...]
    models: tuple[str, ...]
    level: float = LEVEL
    left_out: int = 0
    remarks: tuple[str, ...] = ()
    drawn: tuple[Drawn, ...] = ()
    alike: Comparison | None = None

    @property
    def basis(self) -> Comparison:
        """Comparison at the fitted values to which the intervals belong."""
        return self.alike or self.comparison

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All comparisons, the one at the fitted values first."""
        return (self.comparison, *self.samples)

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Intervals of gaps: one per row that has a gap at the fitted values or in a sample."""
        return tuple(self._intervals(lambda row: row.gap_to_bound))

    @property
    def objectives(self) -> tuple[Interval, ...]:
        """Intervals of objectives."""
        return tuple(self._intervals(lambda row: row.result.objective))

    def _intervals(self, value: Callable[[Any], float | None]) -> Iterator[Interval]:
        for row in self.basis.rows:
            name, own = row.result.method, value(row)
            others = (o for sample in self.samples for o in sample.rows if o.result.method == name)
            found = [x for other in others if (x := value(other)) is not None]
            if found or own is not None:
                yield Interval.of(name, found, self.level, own)

    @property
    def title(self) -> str:
        """Kind of the intervals: of the level asked for, or the range of too few draws."""
        wanted, made = least_samples(self.level), len(self.samples)
        if made >= wanted:
            return f"{100 * self.level:g} % interval"
        if not made:
            return "no interval"
        holds = f" (holds {100 * (made - 1) / (made + 1):.0f} %)"
        return f"range of {made} draws{holds}; {100 * self.level:g} % takes {wanted} draws"

    def to_json(self) -> dict[str, Any]:
        """Return the comparison's JSON form, with the intervals under ``uncertainty``."""

        def listed(intervals: Sequence[Interval]) -> list[dict[str, Any]]:
            rows = []
            for one in intervals:
                ends = {"low": one.low, "median": one.median, "high": one.high, "value": one.value}
                known = {key: x if math.isfinite(x) else None for key, x in ends.items()}
                rows.append({"method": one.method, "samples": one.count, **known})
            return rows

        about = {"models": list(self.models), "samples": len(self.samples), "level": self.level,
                 "interval": self.title, "bound_by": self.basis.bound_by,
                 "remarks": list(self.remarks),
                 "drawn": [one.to_json() for one in self.drawn]}  # fmt: skip
        intervals = {"gap_to_bound": listed(self.intervals), "objective": listed(self.objectives)}
        return {**self.comparison.to_json(), "uncertainty": {**about, **intervals}}

    def to_frame(self, full: bool = False) -> pd.DataFrame:
        """Return the frame at the fitted values with the ends of every interval.

        Parameters
        ----------
        full
            Whether to add `median` (of `gap_to_bound`), `samples` (how many have one) and what
            `Comparison.to_frame` adds. Default False.

        Returns
        -------
        pandas.DataFrame
            As of `Comparison.to_frame`. `comparisons` has the frame of each draw.
        """
        frame = self.basis.to_frame(full)
        found = {one.method: one for one in self.intervals}
        ends = ("low", "high", *(("median",) if full else ()))
        for end in ends:
            frame[end] = [
                getattr(found[name], end) if name in found else math.nan for name in frame.index
            ]
        if full:
            counts = [found[name].count if name in found else 0 for name in frame.index]
            frame["samples"] = counts
        return frame

    def head(self) -> list[str]:
        """Return the comparison's head, and lines on the draws and their limitations."""
        left = f"; {self.left_out} impossible draws left out" if self.left_out else ""
        words = f"gaps over {len(self.samples)} samples of {', '.join(self.models)}: {self.title}"
        return [*self.comparison.head(), words + left, *map(str, self.drawn), *self.remarks]

    def table(self) -> Table:
        """Return a line for each method and policy that has a gap, with its interval."""
        found = {one.method: one for one in self.intervals}
        values = {one.method: one for one in self.objectives}
        rows = [row for row in self.basis.blocks if row.result.method in found]
        names = [row.result.method for row in rows]
        own = [found[name] for name in names]
        gaps = zip(own, rows, percents(row.gap_to_bound for row in rows), strict=True)
        columns = {
            GAP_TO_BOUND: [OUTSIDE * x.outside + gap + OF_PART * r.partial for x, r, gap in gaps],
            **{f"{end} (%)": percents(getattr(x, end) if x.count else None for x in own)
               for end in ("low", "median", "high")},
            f"objective ({self.comparison.unit})": _spreads([values[name] for name in names]),
            "samples": [str(one.count) for one in own],
        }  # fmt: skip
        if {one.count for one in own} == {len(self.samples)}:
            del columns["samples"]
        lines = list(zip([row.label for row in rows], *columns.values(), strict=True))
        numbers = [k for k, name in enumerate(columns, 1) if "(%)" in name or name == "samples"]
        return ("", *columns), in_groups(lines, [rank(row)[0] for row in rows]), tuple(numbers)

    def notes(self) -> list[str]:
        """Return a line on gaps outside their intervals, and the notes of the comparison."""
        names = [one.method for one in self.intervals if one.count and one.outside]
        words = f"{OUTSIDE} the gap at the fitted values lies OUTSIDE its interval: "
        said = [words + ", ".join(names) + " (it decides otherwise on nearly all draws)"]
        marks = self.basis.notes()
        told = [f"{OF_PART} {line}" if line == PART_NOTE else line for line in marks]
        return [*(said if names else []), *told]

    def __repr__(self) -> str:
        words = f"{self.comparison.problem_name}: {len(self.samples)} samples"
        return shorten(NoQuote(f"<UncertainComparison {words}>"), MOST)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Return a figure of the gaps and intervals; path and errors as for `Comparison.plot`."""
        return drawn(self, path)


def _spreads(values: Sequence[Interval]) -> list[str]:
    """Write the intervals of a column with one number of digits."""
    lows = in_column(one.low if one.count else None for one in values)
    highs = in_column(one.high if one.count else None for one in values)
    pairs = zip(lows, highs, strict=True)
    return [f"{low} to {high}" if low else "not drawn" for low, high in pairs]


@overload
def compare(
    problem: ProblemLike,
    policies: Policies = "all",
    methods: Methods = "auto",
    *,
    uncertainty: None = None,
    level: float = LEVEL,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    parts: bool = False,
) -> Comparison: ...


@overload
def compare(
    problem: ProblemLike,
    policies: Policies = "all",
    methods: Methods = "auto",
    *,
    uncertainty: int,
    level: float = LEVEL,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    parts: bool = False,
) -> UncertainComparison: ...


def compare(
    problem: ProblemLike,
    policies: Policies = "all",
    methods: Methods = "auto",
    *,
    uncertainty: int | None = None,
    level: float = LEVEL,
    time_limit: float | None = None,
    effort: float = 1.0,
    seed: int = 0,
    limits: Limits | None = None,
    parts: bool = False,
) -> Comparison | UncertainComparison:
    """Run methods and policies on one problem, and measure every gap.

    A policy that serves all that the problem asks is measured against the best bound that the
    methods prove. A policy that rejects some of it may cost less than that bound, so it is measured
    against a bound for the part that it accepted.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    policies
        ``all``, names separated by commas, or a sequence of names and of your own functions.
    methods
        ``auto`` (by the problem's size), ``all``, or names as for `policies`.
    uncertainty
        Number of draws of the fits in the problem. Each draw is compared anew, and every gap gets
        an interval. Default: only the fitted values.
    level
        Probability with which one more draw lies within an interval. It takes
        (1 + level) / (1 − level) draws, 19 for 0.9; fewer draws give their range. Default 0.9.
    time_limit
        Wall-clock seconds after which each method, and each own policy, is cut. Default: none.
    effort
        Factor by which all budgets of work are multiplied. Default 1.
    seed
        Seed of the random number generator. Default 0.
    limits
        Limits that can be interrupted and report progress. Default: show progress in a notebook.
    parts
        Whether to bound the part that each policy accepts where no solution serves everything.
        Default False.

    Returns
    -------
    Comparison or UncertainComparison
        A table that prints itself, with `to_frame`, `plot` and `to_json`; with intervals if
        `uncertainty` is given.

    Raises
    ------
    InputError
        For an unknown name or parameter, or draws of a problem that rests on no fit. A method for
        another objective is no error: its row says so.
    RefereeError
        If a bound is better than a solution that serves everything.

    Examples
    --------
    >>> import optgap
    >>> problem = optgap.generate("placement", "small", size=6, seed=1)
    >>> gaps = optgap.compare(problem, "pwr,fgd")
    >>> gaps.to_frame()["gap_to_bound"].round(3).to_dict()
    {'exact': 0.0, 'pwr': 0.051, 'fgd': 0.316}
    """
    limits = limits or Limits(progress=in_notebook)
    asked: dict[str, Any] = {"time_limit": time_limit, "effort": effort, "seed": seed}
    asked |= {"limits": limits, "parts": parts}
    if uncertainty is None:
        return gaps.compare(problem, policies, methods, **asked)
    given = as_problem(problem)
    return _uncertain(given, policies, methods, uncertainty, level=level, asked=asked)


def _uncertain(
    problem: Problem,
    policies: Policies,
    methods: Methods,
    samples: int,
    *,
    level: float,
    asked: Mapping[str, Any],
) -> UncertainComparison:
    """Compare at the fitted values, and again for draws of the fits in the problem.

    All draws together take `BUDGET` units at effort 1: where exact methods would take more, one
    cheaper bound serves the fitted values and every draw.
    """
    require_numbers(samples, level)
    fits: Sequence[FittedParameters] = getattr(problem, "fits", ())
    if not fits:
        found = NoQuote(f"{problem.name}, which rests on no fit")
        raise InputError("--samples", "", found, "one made with a fit (models=[…], --model FIT)")
    why = [f"{os.path.basename(fit.source)}: {fit.unknown}" for fit in fits if fit.unknown]
    seed, effort, parts = asked["seed"], asked["effort"], asked["parts"]
    problems, left_out = ([], 0) if why else _drawn_problems(problem, fits, samples, seed)
    limits = asked["limits"]

    def run(one: Problem, plan: _Plan) -> Comparison:
        return gaps.compare(one, plan.policies, plan.methods, **asked)

    names = gaps.method_names(problem.family, methods)
    wanted = _Plan(tuple(gaps.policy_names(problem.family, policies)), tuple(names))
    central = run(problem, wanted)
    hopeless = central.infeasible is not None and not parts
    plan, alike, remarks = (
        (None, None, why)
        if why
        else _planned(wanted, central, samples, BUDGET * effort, run=partial(run, problem))
    )
    done: list[Comparison] = []
    for one in problems:
        if plan is None or hopeless or limits.interrupted.is_set():
            break
        done.append(run(one, plan))
    sources = dict.fromkeys(f"{fit.model} ({os.path.basename(fit.source)})" for fit in fits)
    told = () if why else tuple(map(Drawn.of, fits))
    return UncertainComparison(
        central, tuple(done), tuple(sources), level, left_out, tuple(remarks), told, alike
    )


@dataclass(frozen=True)
class _Plan:
    """Policies and methods that every draw is compared by."""

    policies: tuple[str | Callable[..., Any], ...]
    methods: tuple[str, ...]


def _planned(
    asked: _Plan,
    central: Comparison,
    draws: int,
    budget: float,
    *,
    run: Callable[[_Plan], Comparison],
) -> tuple[_Plan | None, Comparison | None, list[str]]:
    """Choose policies and methods for draws by the work at the fitted values; None if too dear.

    Also return the comparison at the fitted values by these methods, if others were asked for.
    """
    first = len(asked.methods)
    share = budget / draws
    policies = [row.units for row in central.rows[first:]]
    remarks = [
        f"not drawn: {row.result.method}, {row.units:.3g} units a draw"
        for row in central.rows[first:]
        if row.units > share
    ]
    kept = tuple(p for p, u in zip(asked.policies, policies, strict=True) if u <= share)
    plan, works = replace(asked, policies=kept), sum(u for u in policies if u <= share)
    dear = sum(row.units for row in central.rows[:first])
    if works + dear <= share:
        return plan, None, remarks
    spec = family(central.family)
    problem: Any = central.rows[0].result.problem
    other = [spec.auto_bound(problem), *(
        entry.name for entry in spec.methods.values() if entry.kind == "bound"
    )]  # fmt: skip
    least = works + dear
    for name in dict.fromkeys(other):
        alike = run(replace(plan, methods=(name,)))
        if alike.best_bound is None:
            continue
        units = sum(row.units for row in alike.rows)
        least = min(least, units)
        if units <= share:
            who = " and ".join(asked.methods) if "auto" not in asked.methods else "exact"
            who = central.rows[0].result.method if first == 1 else who
            known = [row for row in central.rows[first:] if row.gap_to_bound is not None]
            shown = ", ".join(f"{row.result.method} {percent(row.gap_to_bound)}" for row in known)
            remarks.append(
                f"{who} at the fit: {shown}; {who} takes {dear:.3g} units a draw, "
                f"{draws * dear:.3g} for {draws}: intervals and their gap are against {name}"
            )
            return replace(plan, methods=(name,)), alike, remarks
    more = math.ceil(draws * least / budget)
    remarks.append(
        f"no intervals: {draws} draws take {draws * least:.3g} units; --effort {more} draws them"
    )
    return None, None, remarks


def _drawn_problems(
    problem: Problem, fits: Sequence[FittedParameters], wanted: int, seed: int
) -> tuple[list[Problem], int]:
    """Return `wanted` problems with drawn parameters, and the number of impossible draws.

    Raises
    ------
    InputError: when hardly any draw makes a problem, because the fits leave too much open.
    """
    refit = family(problem.family).models.refit
    found: list[Problem] = []
    left_out, reason = 0, ""
    for drawn_fits in draws(fits, seed):
        if len(found) == wanted:
            return found, left_out
        if left_out > MOST_LEFT_OUT * wanted:
            break
        try:
            found.append(refit(problem, drawn_fits, seed))
        except InputError as error:
            left_out, reason = left_out + 1, str(error)
    expected = "fits that leave less open: their reports say what to measure"
    raise InputError("--samples", "", NoQuote(f"draws such as {reason}"), expected)


def require_numbers(samples: int | None, level: float) -> None:
    """Refuse a number of draws or a level that no interval can have.

    Raises
    ------
    InputError: for a number or a level that is out of range.
    """
    whole = isinstance(samples, int) and not isinstance(samples, bool)
    if samples is not None and not (whole and 2 <= samples <= MOST_SAMPLES):
        raise InputError("--samples", "", samples, f"2 to {MOST_SAMPLES} draws")
    if not 0 < level < 1:
        raise InputError("--level", "", level, "a share between 0 and 1")
