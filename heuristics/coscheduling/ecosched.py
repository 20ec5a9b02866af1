"""EcoSched: per event, the jobs and GPU counts of least mean energy regret and idle share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from optgap.models.coscheduling import Application, CoschedulingProblem
from optgap.models.coscheduling.events import Action, State, replay
from optgap.models.coscheduling.predicted import dram_fit, predicted_s
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.limits import Limits
from optgap.models.result import Outcome

Signal = Literal["auto", "perfect", "dram", "fitted", "noisy"]
Normalise = Literal["all", "kept"]
Regrets = tuple[tuple[int, float], ...]
"""(GPU count, normalised energy − 1) of each mode that is kept."""
EQUAL = 1e-12
"""Scores this close count as equal."""


def ecosched(
    problem: CoschedulingProblem,
    *,
    limits: Limits,
    seed: int,
    tau: float = 0.14,
    idle_weight: float | None = None,
    window: int = 0,
    signal: Signal = "auto",
    sigma: float = 0.05,
    repeat: bool = False,
    model: str = "",
    profiling_s: float = 15.0,
    count_profiling: bool = False,
    normalise: Normalise = "all",
) -> Outcome:
    """EcoSched's Phase I and Phase II.

    Parameters
    ----------
    tau: τ, slow-down against the fastest mode that is tolerated; the authors use 0.14 on H100
        and 0.20 on V100.
    idle_weight: λ, weight of the share of GPUs left idle; as the authors do unless given: idle
        power over mean busy power per GPU, over all modes.
    window: how many waiting jobs are looked at, in queue order; 0 for all.
    signal: Phase I's relative run times. ``auto``: fitted ones where the problem has them, else
        the true ones; ``perfect``: the true ones; ``dram``: from the sampled DRAM activity,
        ∝ 1/(its sum over the GPUs), or alike on every count where some mode was not sampled
        or has no traffic, which the message says; ``fitted``: those of the problem, or of `model`;
        ``noisy``: the true ones times a log-normal error.
    sigma: standard deviation of that error's logarithm.
    repeat: choose again at the same instant until nothing more fits.
    model: file of a saved ``dram-runtime`` fit by application, for ``fitted``; without it, the
        problem's own fit.
    profiling_s: how long each GPU count of each application is profiled, s; on other nodes, so
        that it takes no time here.
    count_profiling: whether to add that energy to the node's, as a metric.
    normalise: over which modes the least energy of an application is taken, ``all`` or only
        those that τ keeps (``kept``): the paper leaves it open.

    Raises
    ------
    InputError: for a parameter out of range, or a signal that the problem lacks.
    """
    _require("tau", tau, tau >= 0, "a slow-down of at least 0")
    _require("window", window, window >= 0, "a number of jobs, or 0 for all")
    _require("sigma", sigma, 0 <= sigma <= 10, "a standard deviation from 0 to 10")
    _require("signal", signal, signal in get_args(Signal), one_of(get_args(Signal)))
    allowed = get_args(Normalise)
    _require("normalise", normalise, normalise in allowed, one_of(allowed))
    _require("profiling_s", profiling_s, 0 <= profiling_s < 1e9, "a time in s of at least 0")
    _require("model", model, not model or signal == "fitted", "none unless signal=fitted")
    _require_signal(problem, signal, model)
    weight = weight_of(problem, idle_weight)
    rng = np.random.default_rng(seed)
    queued = sorted(set(problem.jobs))
    times = phase_one(problem, signal, sigma, rng, model)
    blind = [a.name for a, t in zip(problem.applications, times, strict=True) if _alike(a, t)]
    only = normalise == "kept"
    kept = [regrets(app, tau, t, only) for app, t in zip(problem.applications, times, strict=True)]

    def choose(state: State) -> Action:
        jobs = state.waiting[:window] if window else state.waiting
        offers = [(job, kept[problem.jobs[job]]) for job in jobs]
        return best_action(offers, state.free_gpus, state.free_domains, weight, problem.gpus)

    outcome = replay(problem, choose, limits, repeat)
    profiled = [problem.applications[a].modes for a in queued]
    profiling_j = math.fsum(m.power_w * profiling_s for modes in profiled for m in modes)
    info = {**outcome.info, "profiling_j": profiling_j}
    if count_profiling and outcome.solution is not None:
        energy_j = problem.evaluate(outcome.solution).metrics["energy_j"]
        info["energy_with_profiling_j"] = energy_j + profiling_j
    message = outcome.message
    if blind and signal == "dram":
        message = f"no DRAM activity of {', '.join(blind)} on some GPU count: all taken as alike"
    return dataclasses.replace(outcome, info=info, message=message)


def _alike(app: Application, times: Sequence[float]) -> bool:
    return len(app.modes) > 1 and set(times) == {1.0}


def _require_signal(problem: CoschedulingProblem, signal: Signal, model: str) -> None:
    """Raise InputError for a signal of which the problem has nothing at all."""
    several = [app for app in problem.applications if len(app.modes) > 1]
    lacks = {
        "dram": not any(m.dram_util_sum for app in several for m in app.modes),
        "fitted": not model and any(m.fitted_s is None for app in several for m in app.modes),
    }
    if several and lacks.get(signal):
        what = {"dram": "DRAM activity (dram_util_sum)", "fitted": "fitted run times"}[signal]
        more = "model=FILE, or models=[fit of dram-runtime] where the problem is made"
        expected = "a problem with it, such as preset measured" if signal == "dram" else more
        raise InputError("ecosched", "signal", NoQuote(f"a problem without {what}"), expected)


def weight_of(problem: CoschedulingProblem, given: float | None) -> float:
    """λ: as given, or idle power over mean busy power per GPU, over all modes.

    Raises
    ------
    InputError: for one that is no weight.
    """
    if given is None:
        powers = [mode.power_per_gpu_w for app in problem.applications for mode in app.modes]
        return problem.idle_w * len(powers) / math.fsum(powers)
    numeric = isinstance(given, (int, float)) and 0 <= given < math.inf
    _require("idle_weight", given, numeric, "a weight of at least 0")
    return float(given)


def phase_one(
    problem: CoschedulingProblem,
    signal: Signal,
    sigma: float,
    rng: np.random.Generator,
    model: str = "",
) -> list[list[float]]:
    """Phase I: per application, run times of its modes up to a factor."""
    fit = dram_fit(model) if model else None
    found = []
    for app in problem.applications:
        times: list[float] | None = [mode.runtime_s for mode in app.modes]
        if signal == "noisy" and times is not None:
            errors = np.exp(rng.normal(0, sigma, len(times))).tolist()
            times = [t * error for t, error in zip(times, errors, strict=True)]
        elif signal == "dram":
            activity = [mode.dram_util_sum for mode in app.modes]
            times = [1 / x for x in activity if x]
        elif fit is not None:
            times = predicted_s(app, fit, model)
        elif signal in ("auto", "fitted"):
            fitted = [mode.fitted_s for mode in app.modes]
            known = [t for t in fitted if t is not None]
            times = known if len(known) == len(fitted) else times
        alike = times is None or len(times) < len(app.modes)
        found.append([1.0] * len(app.modes) if alike or times is None else times)
    return found


def regrets(
    app: Application, tau: float, times: Sequence[float], only_kept: bool = False
) -> Regrets:
    """The modes within τ of the fastest by `times`, and how much more energy each takes.

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
    """Phase II: minimise (1/|a|)·Σ regret + λ·(free − Σ g)/M over the actions that fit (Eq. 1-2).

    Ties go to the action with more GPUs, then more jobs, then the lexicographically smallest
    list of (place in the queue, GPU count). The score depends on an action only through its
    size, its GPUs and its sum of regrets, so the least sum per size and GPUs is enough: a
    knapsack over the jobs from the last to the first.
    """
    least: dict[tuple[int, int], tuple[float, tuple[tuple[int, int], ...]]] = {(0, 0): (0.0, ())}
    for job, modes in reversed(offers):
        before = list(least.items())
        fresh: dict[tuple[int, int], tuple[float, tuple[tuple[int, int], ...]]] = {}
        for (size, used), (total, chosen) in before:
            if size == places:
                continue
            for count, regret in modes:
                if used + count > free:
                    break
                key, value = (size + 1, used + count), total + regret
                # earlier jobs and smaller counts come first among equals
                if key not in fresh or value < fresh[key][0] - EQUAL:
                    fresh[key] = (value, ((job, count), *chosen))
                elif value <= fresh[key][0] + EQUAL:
                    rival = ((job, count), *chosen)
                    if rival < fresh[key][1]:
                        fresh[key] = (value, rival)
        for key, found in fresh.items():
            if key not in least or found[0] <= least[key][0] + EQUAL:
                least[key] = found
    del least[0, 0]
    best: tuple[float, int, int] | None = None
    action: tuple[tuple[int, int], ...] = ()
    for (size, used), (total, chosen) in least.items():
        score = total / size + weight * (free - used) / gpus
        if best is not None and score > best[0] + EQUAL:
            continue
        if best is None or score < best[0] - EQUAL or (used, size) > best[1:]:
            best, action = (score, used, size), chosen
    return list(action)


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError("ecosched", name, value, expected)
