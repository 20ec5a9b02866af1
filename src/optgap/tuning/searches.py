"""How settings are looked for: a grid, scipy's Nelder-Mead after an even spread, or optuna."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from optgap.models.result import Termination
from optgap.render import percent
from optgap.tuning.bench import Bench, Instance
from optgap.tuning.ranges import Range, Setting
from optgap.tuning.result import Trial

SEARCHES = ("scipy", "optuna", "grid")
Score = Callable[[Setting], float]


class Enough(Exception):
    """All trials are used up, or the limits say stop."""


class Search(Protocol):
    """Asks for scores of as many settings as it likes, until `Enough` ends it."""

    def __call__(self, ask: Score, ranges: Sequence[Range], trials: int, seed: int) -> None: ...


def searched(
    bench: Bench,
    instances: Sequence[Instance],
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
                raise Enough
            gap = bench.scores(instances, setting).mean
            if bench.limits.interrupted.is_set():  # its runs were cut off
                raise Enough if done else KeyboardInterrupt
            done[key] = Trial(dict(setting), gap)
            best = min(trial.gap for trial in done.values())
            text = f"setting {len(done)}, best mean gap {percent(best)}"
            bench.limits.progress(text, None, None)
        return done[key].gap

    ask(default)
    try:
        FIND[search](ask, ranges, trials, seed)
    except Enough:
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


FIND: Mapping[str, Search] = {"grid": _grid, "scipy": _scipy, "optuna": _optuna}
