"""``tune``: bounds the instances, searches on some, and scores the best on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optgap.extras import require
from optgap.making import generate, preset_entry
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.limits import Limits
from optgap.parameters import split_call
from optgap.registry import Runnable, family
from optgap.registry import policy as find_policy
from optgap.tuning.bench import Bench
from optgap.tuning.ranges import Range, read_range
from optgap.tuning.result import Tuned
from optgap.tuning.searches import SEARCHES, searched


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
    bench = Bench(runnable, seed, time_limit, limits)
    problems = [[generate(family_name, preset, seed=s, **params) for s in group] for group in seeds]
    first, second = ([bench.bounded(problem, bound) for problem in group] for group in problems)
    own = runnable.params["policy_params"] if runnable.own else runnable.params
    before = {item.name: own.get(item.name, runnable.known[item.name]) for item in ranges}
    done, stopped = searched(bench, first, ranges, before, trials, search, seed)
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
