"""Fig. 7 and 8: six applications on H100, EcoSched against Marble."""

from __future__ import annotations

from optgap.api import run, solve
from optgap.reproduce.coscheduling.charts import charts
from optgap.reproduce.coscheduling.facts import POINTS, SLOWER, counts_by_app, savings
from optgap.reproduce.coscheduling.queues import H100, SIX, queue
from optgap.reproduce.report import Item, Report, Row, Study, statement

WHY = "ours is the profile's, taken alone; ecosched-fig9 has the authors' log, beside others"
COUNTS = "yes where both counts are the paper's"
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
        counts, ours = f"{before} → {after}", f"{was} → {now}"
        rows += [
            statement(
                f"{name}: GPUs under Marble and EcoSched", counts, ours, ours == counts, rule=COUNTS
            ),
            POINTS.row(f"{name}: slower on fewer GPUs", SLOWER[name], slower, "%", note=WHY),
        ]
    starts = {problem.application(r.job).name: r.start_s for r in eco.solution.runs}
    tail = max(starts, key=lambda name: starts[name])
    pot3d = next(r for r in eco.solution.runs if problem.application(r.job).name == "pot3d")
    beside = sorted(name for name, start in starts.items() if start < pot3d.end_s)
    beside.remove("pot3d")
    four = ["gpt2", "simpleP2P", "vgg16", "vgg19"]
    rows += [
        statement("run beside pot3d", ", ".join(four), ", ".join(beside), beside == four),
        statement("runs in the tail", "resnet50", tail, tail == "resnet50"),
        _saved("energy", 17, found[0], optimum[0], ""),
        _saved(
            "makespan",
            30,
            found[1],
            optimum[1],
            "; under Marble in the authors' log gpt2 takes 69 s, in its profile 17 s",
        ),
    ]
    results = {"Marble": marble, "EcoSched": eco, "least energy": best}
    panels = charts((name, problem, result.solution) for name, result in results.items())
    return Report(item, "the authors' profiles", tuple(rows), (), panels)


def _saved(what: str, paper: float, ours: float, optimum: float, why: str) -> Row:
    note = f"the schedule of least energy: {optimum:.1f} %{why}"
    return POINTS.row(f"{what} saved against Marble", paper, ours, "%", note=note)
