"""EcoSched: at each event, the jobs and GPU counts of least mean energy regret and idle share.

Phase I, `phase_one`, finds the relative run times of every application on each GPU count. Phase II,
`regrets` and `best_action`, keeps the counts within τ of the fastest, and starts the set of waiting
jobs that minimises (1/|a|)·Σ regret + λ·(free − Σ g)/M (Eq. 1-2). The regret is the energy over the
least energy of the application, less 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from optgap.heuristics.coscheduling.engine import Action, CoschedulingState, replay
from optgap.heuristics.coscheduling.parameters import EcoSchedParams
from optgap.models.coscheduling import Application, CoschedulingProblem
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen

Regrets = tuple[tuple[int, float], ...]
"""Pairs (GPU count, normalised energy − 1), one for each mode that is kept."""
EQUAL = 1e-12
"""Difference below which two scores count as equal."""


def ecosched(problem: CoschedulingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run EcoSched's Phase I and Phase II; `given` is as in `EcoSchedParams`.

    Raises
    ------
    InputError: for a parameter out of range, or a signal that the problem lacks.
    """
    options = chosen(EcoSchedParams, given, "ecosched")
    _require("tau", options.tau, options.tau >= 0, "a slow-down of at least 0")
    _require("window", options.window, options.window >= 0, "a number of jobs, or 0 for all")
    _require_signal(problem, options.signal)
    weight = weight_of(problem, options.idle_weight)
    signal = _signal_of(problem) if options.signal == "auto" else options.signal
    times = phase_one(problem, signal)
    blind = [a.name for a, t in zip(problem.applications, times, strict=True) if _alike(a, t)]
    only = options.normalise == "kept"
    kept = [
        regrets(app, options.tau, t, only)
        for app, t in zip(problem.applications, times, strict=True)
    ]

    def choose(state: CoschedulingState) -> Action:
        jobs = state.waiting[: options.window] if options.window else state.waiting
        offers = [(job, kept[problem.jobs[job]]) for job in jobs]
        return best_action(offers, state.free_gpus, state.free_domains, weight, problem.gpus)

    outcome = replay(problem, choose, limits)
    message = outcome.message
    if blind and signal == "dram":
        message = f"no DRAM activity of {', '.join(blind)} on some GPU count: all taken as alike"
    return dataclasses.replace(outcome, message=message)


def _signal_of(problem: CoschedulingProblem) -> str:
    """Resolve ``auto``: fitted run times, else DRAM activity, else the true run times."""
    modes = [mode for app in problem.applications for mode in app.modes]
    if any(mode.fitted_s is not None for mode in modes):
        return "auto"
    return "dram" if any(mode.dram_util_sum for mode in modes) else "perfect"


def _alike(app: Application, times: Sequence[float]) -> bool:
    return len(app.modes) > 1 and set(times) == {1.0}


def _require_signal(problem: CoschedulingProblem, signal: str) -> None:
    """Raise InputError for a signal of which the problem has nothing at all."""
    several = [app for app in problem.applications if len(app.modes) > 1]
    lacks = {
        "dram": not any(m.dram_util_sum for app in several for m in app.modes),
        "fitted": any(m.fitted_s is None for app in several for m in app.modes),
    }
    if several and lacks.get(signal):
        what = {"dram": "DRAM activity (dram_util_sum)", "fitted": "fitted run times"}[signal]
        more = "models=[fit of dram-runtime] where the problem is made"
        expected = "a problem with it, such as preset measured" if signal == "dram" else more
        raise InputError("ecosched", "signal", NoQuote(f"a problem without {what}"), expected)


def weight_of(problem: CoschedulingProblem, given: float | None) -> float:
    """Return λ as given, or idle power over mean busy power per GPU, over all modes.

    Raises
    ------
    InputError: for a number that is no weight.
    """
    if given is None:
        powers = [mode.power_per_gpu_w for app in problem.applications for mode in app.modes]
        return problem.idle_w * len(powers) / math.fsum(powers)
    numeric = isinstance(given, (int, float)) and 0 <= given < math.inf
    _require("idle_weight", given, numeric, "a weight of at least 0")
    return float(given)


def phase_one(problem: CoschedulingProblem, signal: str) -> list[list[float]]:
    """Return the run times of each application's modes up to a factor (Phase I)."""
    found = []
    for app in problem.applications:
        times = [mode.runtime_s for mode in app.modes]
        if signal == "dram":
            times = [1 / mode.dram_util_sum for mode in app.modes if mode.dram_util_sum]
        elif signal in ("auto", "fitted"):
            fitted = [mode.fitted_s for mode in app.modes if mode.fitted_s is not None]
            times = fitted if len(fitted) == len(times) else times
        found.append(times if len(times) == len(app.modes) else [1.0] * len(app.modes))
    return found


def regrets(
    app: Application, tau: float, times: Sequence[float], only_kept: bool = False
) -> Regrets:
    """Return the modes within τ of the fastest by `times`, with the added energy of each.

    The energy of a mode is normalised by the least over *all* modes, so that its value is 1 at
    the best GPU count whether or not τ keeps that one; with `only_kept`, over those.
    """
    fastest = min(times)
    energies = [m.power_w * t / fastest for m, t in zip(app.modes, times, strict=True)]
    within = [t / fastest <= 1 + tau + 1e-9 for t in times]
    least = min(e for e, fits in zip(energies, within, strict=True) if fits or not only_kept)
    return tuple(
        (mode.gpu_count, energy / least - 1)
        for mode, fits, energy in zip(app.modes, within, energies, strict=True)
        if fits
    )


def best_action(
    offers: list[tuple[int, Regrets]], free: int, places: int, weight: float, gpus: int
) -> list[tuple[int, int]]:
    """Minimise (1/|a|)·Σ regret + λ·(free − Σ g)/M over the actions that fit (Phase II, Eq. 1-2).

    Ties go to the action with more GPUs, then more jobs, then the lexicographically smallest
    list of (place in the queue, GPU count). The score depends on an action only through its
    size, its GPUs and its sum of regrets, so the least sum per size and GPUs is enough: a
    knapsack over the jobs from the last to the first.
    """
    least: dict[tuple[int, int], tuple[float, tuple[tuple[int, int], ...]]] = {(0, 0): (0.0, ())}
    for job, modes in reversed(offers):
        before = list(least.items())
        fresh: dict[tuple[int, int], tuple[float, tuple[tuple[int, int], ...]]] = {}
        for (size, used), (total, taken) in before:
            if size == places:
                continue
            for count, regret in modes:
                if used + count > free:
                    break
                key, value = (size + 1, used + count), total + regret
                # earlier jobs and smaller counts come first among equals
                if key not in fresh or value < fresh[key][0] - EQUAL:
                    fresh[key] = (value, ((job, count), *taken))
                elif value <= fresh[key][0] + EQUAL:
                    rival = ((job, count), *taken)
                    if rival < fresh[key][1]:
                        fresh[key] = (value, rival)
        for key, found in fresh.items():
            if key not in least or found[0] <= least[key][0] + EQUAL:
                least[key] = found
    del least[0, 0]
    best: tuple[float, int, int] | None = None
    action: tuple[tuple[int, int], ...] = ()
    for (size, used), (total, taken) in least.items():
        score = total / size + weight * (free - used) / gpus
        if best is not None and score > best[0] + EQUAL:
            continue
        if best is None or score < best[0] - EQUAL or (used, size) > best[1:]:
            best, action = (score, used, size), taken
    return list(action)


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError("ecosched", name, value, expected)
