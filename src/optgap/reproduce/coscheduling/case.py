"""Fig. 7 and 8: six applications on H100, EcoSched against Marble."""

from __future__ import annotations

from optgap.api import run, solve
from optgap.reproduce.coscheduling.charts import ScheduleReport, chart
from optgap.reproduce.coscheduling.facts import POINTS, SLOWER, counts_by_app, savings
from optgap.reproduce.coscheduling.queues import H100, SIX, queue
from optgap.reproduce.report import HOLDS, Item, Report, Row, Study, holds

WHY = "ours is the profile's, taken alone; ecosched-fig9 has the authors' log, beside others"
DOWNSIZED = {"pot3d": (4, 2), "resnet50": (4, 3), "gpt2": (3, 2)}


def fig7(item: Item, study: Study) -> Report:
    """Counts, makespan and energy; the three schedules as pictures."""
    assert study.data is not None
    study.proceed("six applications")
    problem = queue(H100, study.data, SIX)
    eco, marble = run(problem, H100.ecosched), run(problem, "marble")
    best = solve(problem, limits=study.limits.within(60))
    assert eco.solution is not None
    assert marble.solution is not None
    assert best.solution is not None
    found = savings(eco.metrics, marble.metrics)  # type: ignore[arg-type]
    optimum = savings(best.metrics, marble.metrics)  # type: ignore[arg-type]
    chosen = counts_by_app(problem, eco.solution.runs)
    fastest = counts_by_app(problem, marble.solution.runs)
    rows = []
    for name, (before, after) in DOWNSIZED.items():
        was, now = min(fastest[name]), min(chosen[name])
        app = next(app for app in problem.applications if app.name == name)
        mode = app.mode(now)
        slower = 100 * (mode.runtime_s / app.fastest.runtime_s - 1) if mode else 0.0
        same = holds((was, now) == (before, after))
        rows += [
            Row(
                f"{name}: GPUs under Marble and EcoSched",
                f"{before} → {after}",
                f"{was} → {now}",
                same,
                rule="yes where both counts are the paper's",
            ),
            Row(
                f"{name}: slower on fewer GPUs",
                f"{SLOWER[name]} %",
                f"{slower:.1f} %",
                POINTS.verdict(slower, SLOWER[name]),
                WHY,
                str(POINTS),
            ),
        ]
    starts = {problem.application(r.job).name: r.start_s for r in eco.solution.runs}
    tail = max(starts, key=lambda name: starts[name])
    pot3d = next(r for r in eco.solution.runs if problem.application(r.job).name == "pot3d")
    beside = sorted(name for name, start in starts.items() if start < pot3d.end_s)
    beside.remove("pot3d")
    four = ["gpt2", "simpleP2P", "vgg16", "vgg19"]
    rows += [
        Row(
            "run beside pot3d", ", ".join(four), ", ".join(beside), holds(beside == four), "", HOLDS
        ),
        Row("runs in the tail", "resnet50", tail, holds(tail == "resnet50"), "", HOLDS),
        _number("energy saved against Marble", 17, found[0], optimum[0], ""),
        _number(
            "makespan saved against Marble",
            30,
            found[1],
            optimum[1],
            "; under Marble in the authors' log gpt2 takes 69 s, in its profile 17 s",
        ),
    ]
    charts = (
        chart("Marble", problem, marble.solution),
        chart("EcoSched", problem, eco.solution),
        chart("least energy", problem, best.solution),
    )
    return ScheduleReport(item, "the authors' profiles", tuple(rows), (), charts)


def _number(claim: str, paper: float, ours: float, optimum: float, why: str) -> Row:
    note = f"the schedule of least energy: {optimum:.1f} %{why}"
    agrees = POINTS.verdict(ours, paper)
    return Row(claim, f"{paper:g} %", f"{ours:.1f} %", agrees, note, str(POINTS))
