"""Section V-C: what a decision and profiling cost."""

from __future__ import annotations

import time

from optgap.heuristics.coscheduling.ecosched import best_action, phase_one, regrets, weight_of
from optgap.models.coscheduling import CoschedulingProblem
from optgap.reproduce.coscheduling.queues import H100, ORDER, queue
from optgap.reproduce.report import Item, Report, Row, Study, Tolerance, statement

PROFILING_S = 15.0
"""Per GPU count: gpt2's 64 kJ are its four powers times about 15 s."""
IDLE_GPUS = 3
"""Beside vgg16 on one GPU of the node, whose power runs on while it is profiled."""
ROUNDS = 50
ENERGY = Tolerance(5, 15)
POWER = Tolerance(1, unit="W")
"""The paper gives whole watts."""
BELOW = "yes below what is stated"


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
        statement(
            "time of a decision",
            "below 0.5 ms",
            f"{ms:.3f} ms",
            ms < 0.5,
            note="17 applications wait, 4 GPUs free; the first decision of the window",
            rule=BELOW,
        ),
        ENERGY.row("profiling gpt2", 64, spent["gpt2"], "kJ", note=note),
        ENERGY.row("profiling vgg16", 34, spent["vgg16"], "kJ", note=note),
        statement(
            "profiling any application",
            "below 70 kJ",
            f"at most {spent[dearest]:.0f} kJ ({dearest})",
            spent[dearest] < 70,
            note=note,
            rule=BELOW,
        ),
        POWER.row("power of gpt2 on 3 GPUs", 1287, watts["gpt2", 3], "W", 0),
        POWER.row("power of gpt2 on 2 GPUs", 946, watts["gpt2", 2], "W", 0),
        _minutes("gpt2", 3.13, spent["gpt2"], less, "over the difference of the two powers"),
        _minutes(
            "vgg16",
            2.70,
            spent["vgg16"],
            IDLE_GPUS * H100.idle_w,
            f"over the power of {IDLE_GPUS} idle GPUs, as the paper reckons",
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


def _minutes(name: str, paper: float, spent_kj: float, saved_w: float, over: str) -> Row:
    ours = 1000 * spent_kj / saved_w / 60
    claim, note = f"profiling of {name} pays back after", f"our {spent_kj:.1f} kJ {over}"
    return ENERGY.row(claim, paper, ours, "min", 2, paper_digits=2, note=note)
