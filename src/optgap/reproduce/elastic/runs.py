"""Runs on a synthetic day: every scheduler over its own knob, energy against mean JCT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optgap.api import run
from optgap.models.elastic import ElasticProblem, ElasticSolution, presets
from optgap.models.result import Result
from optgap.reproduce.report import Study

ETAS = (0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
CLOCKS = (1020.0, 1110.0, 1200.0, 1290.0, 1380.0)
"""MHz; below 1020 the paper finds both energy and JCT worse."""
NAMES = {
    "powerflow": "PowerFlow",
    "afs": "AFS",
    "tiresias": "Tiresias",
    "gandiva": "Gandiva",
    "tiresias+zeus": "Tiresias+Zeus",
    "gandiva+zeus": "Gandiva+Zeus",
    "fifo": "FIFO",
}


@dataclass(frozen=True)
class Point:
    """One run: energy in J, mean JCT in s."""

    policy: str
    knob: float
    energy_j: float
    jct_s: float
    metrics: Mapping[str, Any]


def synthetic_day(seed: int, **changes: Any) -> ElasticProblem:
    """The day without a limit on power: every scheduler's own knob sets its energy."""
    given = {"pool": "v100", "cap": "none", "eta": 1.0, **changes}
    return presets.day(seed=seed, **given)


def at_most(problem: ElasticProblem, gpus: int) -> ElasticProblem:
    """The same, no job on more GPUs than that."""
    kept = [sum(n <= gpus for n in c.counts) for c in problem.classes]
    classes = tuple(
        replace(c, counts=c.counts[:k], time_s=c.time_s[:k], power_w=c.power_w[:k])
        for c, k in zip(problem.classes, kept, strict=True)
    )
    return replace(problem, classes=classes, name=f"{problem.name}, {gpus} GPUs a job")


def point(problem: ElasticProblem, policy: str, knob: float, **params: Any) -> Point:
    """One run as a point."""
    result = finished(problem, policy, **params)
    energy = float(result.metrics["energy_j"])
    return Point(policy, knob, energy, float(result.objective or 0.0), result.metrics)


def solution_of(result: Result) -> ElasticSolution:
    """A result's solution; there is one."""
    assert isinstance(result.solution, ElasticSolution)
    return result.solution


def finished(problem: ElasticProblem, policy: str, **params: Any) -> Result:
    """A run that did everything asked for.

    Raises
    ------
    RuntimeError: when it did not.
    """
    result = run(problem, policy, seed=0, **params)
    if result.solution is None or not problem.serves_all(result.solution):
        raise RuntimeError(f"{policy} left jobs undone")
    return result


def frontier(
    study: Study,
    problem: ElasticProblem,
    policy: str,
    knobs: Sequence[float] | None = None,
    **params: Any,
) -> list[Point]:
    """Points of a policy over its knob: η, a common clock, or none with Zeus."""
    key = ("elastic", problem.name, problem.gpus, policy, knobs, tuple(sorted(params.items())))
    if key not in study.shared:
        study.shared[key] = list(_points(study, problem, policy, knobs, params))
    points: list[Point] = study.shared[key]
    return points


def _points(
    study: Study,
    problem: ElasticProblem,
    policy: str,
    knobs: Sequence[float] | None,
    params: dict[str, Any],
) -> list[Point]:
    found = []
    if policy == "powerflow":
        for eta in knobs or ETAS:
            study.proceed(f"PowerFlow, η = {eta:g}")
            found.append(point(problem, policy, eta, eta=eta, **params))
    elif policy.endswith("+zeus"):
        study.proceed(NAMES[policy])
        found.append(point(problem, policy, 0.5, capped=False, **params))
    else:
        for clock in knobs or CLOCKS:
            study.proceed(f"{NAMES[policy]}, {clock:g} MHz")
            found.append(point(problem, policy, clock, frequency=clock, capped=False, **params))
    return found


def at_energy(points: Sequence[Point], energy_j: float) -> float | None:
    """Least mean JCT with at most that energy, between runs by interpolation; None below all."""
    ordered = sorted(points, key=lambda p: (p.energy_j, p.jct_s))
    xs: list[float] = []
    ys: list[float] = []
    for p in ordered:  # only those that more energy makes faster
        if not ys or p.jct_s < ys[-1]:
            xs.append(p.energy_j)
            ys.append(p.jct_s)
    if not xs or energy_j < xs[0]:
        return None
    return float(np.interp(energy_j, xs, ys))
