"""Section V-C: what a decision and profiling cost."""

from __future__ import annotations

import time

from optgap.heuristics.coscheduling.ecosched import best_action, phase_one, regrets, weight_of
from optgap.models.coscheduling import CoschedulingProblem
from optgap.reproduce.coscheduling.queues import H100, ORDER, queue
from optgap.reproduce.report import Item, Report, Row, Study

PROFILING_S = 15.0
"""Per GPU count: gpt2's 64 kJ are its four powers times about 15 s."""
ROUNDS = 50


def overhead(item: Item, study: Study) -> Report:
    """Decision time, profiling energy, and what pays it back."""
    assert study.data is not None
    study.proceed("overheads")
    problem = queue(H100, study.data, tuple(dict.fromkeys(ORDER)))
    spent = {
        app.name: sum(m.power_w for m in app.modes) * PROFILING_S / 1000
        for app in problem.applications
    }
    dearest = max(spent, key=lambda name: spent[name])
    watts = {(a.name, m.gpu_count): m.power_w for a in problem.applications for m in a.modes}
    less = watts["gpt2", 3] - watts["gpt2", 2]
    ms = decision_ms(problem)
    note = f"{PROFILING_S:g} s per GPU count"
    rows = (
        Row(
            "time of a decision",
            "below 0.5 ms",
            f"{ms:.3f} ms",
            "yes" if ms < 0.5 else "no",
            "17 applications wait, 4 GPUs free; the first decision of the window",
        ),
        _kj("profiling gpt2", 64, spent["gpt2"], note),
        _kj("profiling vgg16", 34, spent["vgg16"], note),
        Row(
            "profiling any application",
            "below 70 kJ",
            f"at most {spent[dearest]:.0f} kJ ({dearest})",
            "yes" if spent[dearest] < 70 else "no",
            note,
        ),
        _watts("gpt2 on 3 GPUs", 1287, watts["gpt2", 3]),
        _watts("gpt2 on 2 GPUs", 946, watts["gpt2", 2]),
        Row(
            "profiling of gpt2 pays back after",
            "3.13 min",
            f"{64_000 / less / 60:.2f} min",
            "yes",
            "64 kJ over the difference of the two powers",
        ),
        Row(
            "profiling of vgg16 pays back after",
            "2.70 min",
            f"{34_000 / 210 / 60:.2f} min",
            "yes",
            "34 kJ over three idle GPUs",
        ),
    )
    return Report(item, "the authors' profiles", rows)


def decision_ms(problem: CoschedulingProblem) -> float:
    """The best of some rounds of Phase II with everything waiting, ms."""
    import numpy as np

    times = phase_one(problem, "perfect", 0.0, np.random.default_rng(0))
    kept = [regrets(a, H100.tau, t) for a, t in zip(problem.applications, times, strict=True)]
    offers = [(job, kept[a]) for job, a in enumerate(problem.jobs)]
    weight, best = weight_of(problem, None), float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        best_action(offers, problem.gpus, problem.numa, weight, problem.gpus)
        best = min(best, time.perf_counter() - start)
    return 1000 * best


def _kj(claim: str, paper: float, ours: float, note: str) -> Row:
    off = abs(ours / paper - 1)
    agrees = "yes" if off <= 0.05 else "nearly" if off <= 0.15 else "no"
    return Row(claim, f"{paper:g} kJ", f"{ours:.1f} kJ", agrees, note)  # type: ignore[arg-type]


def _watts(claim: str, paper: float, ours: float) -> Row:
    agrees = "yes" if abs(ours - paper) < 1 else "no"
    return Row(f"power of {claim}", f"{paper:g} W", f"{ours:.0f} W", agrees)  # type: ignore[arg-type]
