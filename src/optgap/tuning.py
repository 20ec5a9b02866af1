"""Choose a policy's parameters against the bound, and see whether they hold elsewhere.

The parameters are chosen on training instances and reported on instances that had no part in
the choice. Every instance is bounded once; a setting's score is its mean gap to these bounds.

>>> from optgap import tuning
>>> found = tuning.tune("placement", "pwr+fgd", {"alpha": "0..1"})  # doctest: +SKIP
>>> print(found)  # doctest: +SKIP
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from optgap.api import choose_method, choose_policy, execute
from optgap.comparison import PART
from optgap.contract import Problem
from optgap.extras import require
from optgap.making import generate, preset_entry
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.limits import Limits, silent
from optgap.models.result import Result, Termination, relative_gap
from optgap.models.shown import Brief
from optgap.parameters import call_text, split_call, typed
from optgap.registry import Runnable, family
from optgap.registry import policy as find_policy
from optgap.render import Row, html_table, percent, text_table

SCHEMA = "optgap.tune/1"
SEARCHES = ("scipy", "optuna", "grid")
GRID_STEPS = 11
"""Values of a number in a grid search."""

Setting = dict[str, Any]
Score = Callable[[Setting], float]


# -- what is searched ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """Where a parameter may lie: a stretch of numbers, or a few values.

    Parameters
    ----------
    name: the parameter.
    low, high: both included; meaningless with `values`.
    whole: integers only.
    log: searched on a logarithmic scale.
    values: instead, the values there are.
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False
    values: tuple[Any, ...] = ()

    def at(self, share: float) -> Any:
        """The value at a share of the way, from 0 to 1."""
        share = min(1.0, max(0.0, share))
        if self.values:
            return self.values[min(len(self.values) - 1, int(share * len(self.values)))]
        if self.whole:
            return int(min(self.high, math.floor(self.low + share * (self.high - self.low + 1))))
        if self.log:
            return float(f"{self.low * (self.high / self.low) ** share:.6g}")
        # six digits: a parameter that nobody can type again is of no use
        return float(f"{self.low + share * (self.high - self.low):.6g}")

    @property
    def steps(self) -> list[Any]:
        """Its values in a grid search."""
        if self.values:
            return list(self.values)
        if self.whole and self.high - self.low < GRID_STEPS:
            return list(range(int(self.low), int(self.high) + 1))
        steps = [self.at(k / (GRID_STEPS - 1)) for k in range(GRID_STEPS)]
        return list(dict.fromkeys(steps))

    def __str__(self) -> str:
        if self.values:
            return "|".join(map(str, self.values))
        return f"{self.low:g}..{self.high:g}" + (" log" if self.log else "")


def read_range(name: str, text: str, default: Any, source: str = "--param") -> Range:
    """``0..1``, ``0.01..10 log``, ``1..8`` (integers where the default is one) or ``a|b|c``.

    Raises
    ------
    InputError: for anything else, an empty stretch, or values of another type than the default.
    """
    expected = "LOW..HIGH, 'LOW..HIGH log' or A|B|C"
    if ".." not in text:
        values = [
            typed({name: part.strip()}, {name: default}, name, source)[name]
            for part in text.split("|")
        ]
        if len(set(map(str, values))) < 2:
            raise InputError(source, name, text, expected + ", with two values at least")
        return Range(name, values=tuple(values))
    span, _, scale = text.strip().partition(" ")
    low_text, _, high_text = span.partition("..")
    try:
        low, high = float(low_text), float(high_text)
    except ValueError:
        raise InputError(source, name, text, expected) from None
    log = scale.strip() == "log"
    if (scale.strip() and not log) or not -math.inf < low < high < math.inf or (log and low <= 0):
        raise InputError(source, name, text, expected + ", with LOW < HIGH (0 < LOW with log)")
    if default is not None and (isinstance(default, bool) or not isinstance(default, (int, float))):
        raise InputError(source, name, text, f"A|B|C: {name} is no number")
    whole = isinstance(default, int)
    if whole and not (low.is_integer() and high.is_integer()):
        raise InputError(source, name, text, "integers: the default is one")
    return Range(name, low, high, whole, log)


# -- what came of it -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scores:
    """Gaps of one setting on a set of instances; None where there is no bound to hold against.

    `turned_down` counts instances of which the policy served only a part: their gap is to a
    bound for that part.
    """

    gaps: tuple[float | None, ...]
    turned_down: int = 0

    @property
    def mean(self) -> float:
        """Mean gap; infinite when there is none."""
        known = [gap for gap in self.gaps if gap is not None]
        return sum(known) / len(known) if len(known) == len(self.gaps) and known else math.inf


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting that was tried, and its mean gap on the training instances."""

    setting: Mapping[str, Any]
    gap: float


@dataclass(frozen=True, repr=False)
class Tuned(Brief):
    """The best setting on the training instances, and what it is worth elsewhere."""

    family: str
    policy: str
    fixed: Mapping[str, Any]
    preset: str
    search: str
    space: tuple[Range, ...]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    train_seeds: tuple[int, ...]
    test_seeds: tuple[int, ...]
    train: tuple[Scores, Scores]
    test: tuple[Scores, Scores]
    trials: tuple[Trial, ...] = field(repr=False)
    termination: Termination = Termination.COMPLETED

    @property
    def holds(self) -> bool:
        """Whether the new setting is better on instances that had no part in the choice."""
        return self.test[1].mean < self.test[0].mean

    @property
    def call(self) -> str:
        """The policy with its new setting, as a command takes it."""
        return self._call(self.after)

    def _call(self, setting: Mapping[str, Any]) -> str:
        return call_text(self.policy, {**self.fixed, **setting})

    def verdict(self) -> str:
        """One line: what to make of it."""
        if dict(self.before) == dict(self.after):
            return "nothing better than the defaults was found"
        if not self.holds:
            return f"{self.call} is no better on held-out instances: keep the defaults"
        return f"{self.call} is better on held-out instances, too"

    def table(self) -> tuple[Row, list[Row], tuple[int, ...]]:
        """Mean gap before and after, on both sets."""
        rows: list[Row] = []
        for name, seeds, (before, after) in (
            ("training", self.train_seeds, self.train),
            ("held out", self.test_seeds, self.test),
        ):
            better = sum(
                a is not None and b is not None and a < b
                for a, b in zip(after.gaps, before.gaps, strict=True)
            )
            rows.append(
                (name, str(len(seeds)), _shown(before), _shown(after), f"{better} of {len(seeds)}")
            )
        names = [self._call(setting) for setting in (self.before, self.after)]
        return ("gap to bound", "instances", *names, "better on"), rows, (1, 2, 3, 4)

    def __str__(self) -> str:
        return f"{text_table(*self.table())}\n\n{self.verdict()}"

    def _repr_html_(self) -> str:
        header, rows, right = self.table()
        return html_table(header, rows, [self.verdict()], right)

    def to_json(self) -> dict[str, Any]:
        """JSON form, ``optgap.tune/1``."""

        def of(seeds: tuple[int, ...], pair: tuple[Scores, Scores]) -> dict[str, Any]:
            return {
                "seeds": list(seeds),
                "before": {"mean_gap": pair[0].mean, "gaps": list(pair[0].gaps)},
                "after": {"mean_gap": pair[1].mean, "gaps": list(pair[1].gaps)},
            }

        return {
            "schema": SCHEMA,
            "family": self.family,
            "policy": self.policy,
            "fixed": dict(self.fixed),
            "preset": self.preset,
            "search": self.search,
            "space": {item.name: str(item) for item in self.space},
            "before": dict(self.before),
            "after": dict(self.after),
            "holds": self.holds,
            "train": of(self.train_seeds, self.train),
            "test": of(self.test_seeds, self.test),
            "trials": [{"setting": dict(t.setting), "mean_gap": t.gap} for t in self.trials],
            "termination": str(self.termination),
        }


def _shown(scores: Scores) -> str:
    part = f" ({PART} of {scores.turned_down})" if scores.turned_down else ""
    return (percent(scores.mean) if math.isfinite(scores.mean) else "none") + part


# -- the work --------------------------------------------------------------------------------


def tune(
    family_name: str,
    policy: str,
    space: Mapping[str, str],
    *,
    preset: str | None = None,
    train: int | Sequence[int] = 8,
    test: int | Sequence[int] = 8,
    trials: int = 40,
    search: str = "scipy",
    bound: str = "auto",
    seed: int = 0,
    time_limit: float | None = None,
    limits: Limits | None = None,
    **params: Any,
) -> Tuned:
    """Choose parameters of a policy by their mean gap to a proven bound.

    Parameters
    ----------
    policy: its name, with parameters that stay as they are in parentheses.
    space: a range for each parameter to be chosen, see `read_range`.
    preset, params: what instances are made of.
    train, test: seeds of the instances, or how many; no seed may be in both.
    trials: how many settings are tried, the defaults among them (a grid tries all of its own).
    search: ``scipy`` (a low-discrepancy half, then Nelder-Mead), ``optuna`` or ``grid``.
    bound: the bounding method; ``auto`` goes by the size of the problem.
    time_limit: wall-clock seconds for each single bound and run.

    Raises
    ------
    InputError: for an unknown name or parameter, a range that is none, an instance in both
        sets, an instance without a bound, or a missing package.
    """
    limits = limits or Limits()
    seeds = _sets(train, test)
    _require_sense(search, trials)
    runnable = find_policy(family(family_name), policy)
    ranges = _ranges(runnable, space)
    entry, _ = preset_entry(family_name, preset)
    bench = _Bench(runnable, seed, time_limit, limits)
    problems = [[generate(family_name, preset, seed=s, **params) for s in group] for group in seeds]
    first, second = ([bench.bounded(problem, bound) for problem in group] for group in problems)
    own = runnable.params["policy_params"] if runnable.own else runnable.params
    before = {item.name: own.get(item.name, runnable.known[item.name]) for item in ranges}
    done, stopped = _search(bench, first, ranges, before, trials, search, seed)
    bench.listens = False  # what is left is short, and cut off it would be wrong
    best = min(done, key=lambda trial: trial.gap)
    after = dict(best.setting) if best.gap < done[0].gap else before
    return Tuned(
        family_name,
        split_call(policy, "--policy")[0],
        {name: value for name, value in own.items() if name not in before},
        entry.name,
        search,
        tuple(ranges),
        before,
        after,
        *seeds,
        (bench.scores(first, before), bench.scores(first, after)),
        (bench.scores(second, before), bench.scores(second, after)),
        tuple(done),
        stopped,
    )


def _require_sense(search: str, trials: int) -> None:
    if search not in SEARCHES:
        raise InputError("--search", "", search, one_of(SEARCHES))
    if search == "optuna":
        require("optuna", "optuna")
    if trials < 1:
        raise InputError("--trials", "", trials, "at least 1")


def _sets(
    train: int | Sequence[int], test: int | Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Seeds of the two sets; numbers of instances follow one another from 0."""
    first = tuple(range(train)) if isinstance(train, int) else tuple(train)
    after = max(first, default=-1) + 1
    second = tuple(range(after, after + test)) if isinstance(test, int) else tuple(test)
    for name, seeds in (("--train", first), ("--test", second)):
        if not seeds:
            raise InputError(name, "", NoQuote("no instance"), "at least one")
    both = set(first) & set(second)
    if both:
        raise InputError("--test", "", min(both), "seeds that are not in the training set")
    return first, second


def _ranges(runnable: Runnable, space: Mapping[str, str]) -> list[Range]:
    if not space:
        known = ", ".join(f"{name}={value}" for name, value in runnable.known.items())
        found = NoQuote("no parameter")
        raise InputError("--param", "", found, f"NAME=RANGE for one of {known or 'none'}")
    for name in space:
        if name not in runnable.known:
            has = one_of(runnable.known) if runnable.known else f"no parameters: {runnable.label}"
            raise InputError("--param", "", name, has)
    return [read_range(name, text, runnable.known[name]) for name, text in space.items()]


@dataclass(frozen=True, slots=True)
class _Instance:
    problem: Problem
    bound: float


class _Bench:
    """Bounds instances, and scores settings on them, each only once."""

    def __init__(
        self, runnable: Runnable, seed: int, time_limit: float | None, limits: Limits
    ) -> None:
        self.runnable = runnable
        self.seed = seed
        self.time_limit = time_limit
        self.limits = limits
        self.listens = True
        self._known: dict[tuple[int, str], Scores] = {}

    def _own(self) -> Limits:
        if not self.listens:
            return Limits(self.time_limit)
        return self.limits.each(self.time_limit, silent)

    def bounded(self, problem: Problem, method: str) -> _Instance:
        """The instance with a proven bound."""
        self.limits.progress(f"bounding {problem.name}", None, None)
        chosen = choose_method(problem, method, bounding=True)
        proof = execute(problem, chosen, self._own(), self.seed, bound_only=True)
        if self.limits.stop is not None:  # nothing has been tried that could be told
            raise KeyboardInterrupt
        if not proof.bound:
            found = NoQuote(
                f"no bound by {chosen.label}" if proof.bound is None else "a bound of 0"
            )
            raise InputError("--bound", problem.name, found, "an instance with a bound but 0")
        return _Instance(problem, proof.bound)

    def scores(self, instances: Sequence[_Instance], setting: Setting) -> Scores:
        """Gaps of a setting on a set of instances."""
        key = (id(instances), str(sorted(setting.items())))
        if key not in self._known:
            pairs = [self._gap(instance, setting) for instance in instances]
            self._known[key] = Scores(
                tuple(gap for gap, _ in pairs), sum(part for _, part in pairs)
            )
        return self._known[key]

    def _gap(self, instance: _Instance, setting: Setting) -> tuple[float | None, bool]:
        """The gap on one instance, and whether it is for a part of it only."""
        problem = instance.problem
        chosen = self._with(problem, setting)
        result = execute(problem, chosen, self._own(), self.seed)
        if result.solution is None:
            return None, False
        if result.sense == "max" or problem.serves_all(result.solution):
            return relative_gap(result.objective, instance.bound), False
        return relative_gap(result.objective, self._part_bound(problem, result)), True

    def _with(self, problem: Problem, setting: Setting) -> Runnable:
        own = self.runnable
        if own.own:
            inner = {**own.params["policy_params"], **setting}
            return replace(own, params={**own.params, "policy_params": inner})
        return choose_policy(problem, own.entry.name, {**own.params, **setting})

    def _part_bound(self, problem: Problem, result: Result) -> float | None:
        try:
            part = problem.restrict(result.solution)
        except InputError:  # nothing served at all: no problem is left
            return None
        chosen = choose_method(part, bounding=True)
        return execute(part, chosen, self._own(), self.seed, bound_only=True).bound


class _Enough(Exception):
    """All trials are used up, or the limits say stop."""


class Search(Protocol):
    """Asks for scores of as many settings as it likes, until `_Enough` ends it."""

    def __call__(self, ask: Score, ranges: Sequence[Range], trials: int, seed: int) -> None: ...


def _search(
    bench: _Bench,
    instances: Sequence[_Instance],
    ranges: Sequence[Range],
    default: Setting,
    trials: int,
    search: str,
    seed: int,
) -> tuple[list[Trial], Termination]:
    """Every setting that was tried, the defaults first."""
    done: dict[str, Trial] = {}
    stopped = Termination.COMPLETED
    most = trials if search != "grid" else math.inf

    def ask(setting: Setting) -> float:
        key = str(setting)
        if key not in done:
            if done and (len(done) >= most or bench.limits.stop is not None):
                raise _Enough
            gap = bench.scores(instances, setting).mean
            if bench.limits.interrupted.is_set():  # its runs were cut off
                raise _Enough if done else KeyboardInterrupt
            done[key] = Trial(dict(setting), gap)
            best = min(trial.gap for trial in done.values())
            text = f"setting {len(done)}, best mean gap {percent(best)}"
            bench.limits.progress(text, None, None)
        return done[key].gap

    ask(default)
    try:
        _FIND[search](ask, ranges, trials, seed)
    except _Enough:
        stopped = bench.limits.stop or Termination.COMPLETED
    return list(done.values()), stopped


def _grid(ask: Score, ranges: Sequence[Range], trials: int, seed: int) -> None:
    for values in itertools.product(*(item.steps for item in ranges)):
        ask({item.name: value for item, value in zip(ranges, values, strict=True)})


def _scipy(ask: Score, ranges: Sequence[Range], trials: int, seed: int) -> None:
    """Half of the trials spread evenly, the rest downhill from the best of them.

    Nelder-Mead, as the mean gap of a policy is a staircase: it has no gradient.
    """
    from scipy.optimize import minimize
    from scipy.stats import qmc

    def at(point: Any) -> Setting:
        return {item.name: item.at(float(x)) for item, x in zip(ranges, point, strict=True)}

    def low(point: Any) -> float:
        return ask(at(point))

    spread = qmc.Halton(len(ranges), rng=np.random.default_rng(seed)).random(max(2, trials // 2))
    scored = sorted((ask(at(point)), k) for k, point in enumerate(spread))
    for _, k in scored:  # a staircase may have nothing to descend around its best point
        settings: Any = {
            "method": "Nelder-Mead",
            "bounds": [(0.0, 1.0)] * len(ranges),
            "options": {"initial_simplex": _simplex(spread[k]), "maxfev": trials},
        }
        minimize(low, spread[k], **settings)


def _simplex(start: Any) -> Any:
    """Corners a tenth of the range away from `start`, towards the middle."""
    step = np.where(start < 0.5, 0.1, -0.1)
    return np.vstack([start, start + np.diag(step)])


def _optuna(ask: Score, ranges: Sequence[Range], trials: int, seed: int) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def one(trial: Any) -> float:
        return ask({item.name: _suggested(trial, item) for item in ranges})

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(one, n_trials=2 * trials)  # it may ask for the same setting again


def _suggested(trial: Any, item: Range) -> Any:
    if item.values:
        return trial.suggest_categorical(item.name, item.values)
    if item.whole:
        return trial.suggest_int(item.name, int(item.low), int(item.high), log=item.log)
    return float(f"{trial.suggest_float(item.name, item.low, item.high, log=item.log):.6g}")


_FIND: Mapping[str, Search] = {"grid": _grid, "scipy": _scipy, "optuna": _optuna}
