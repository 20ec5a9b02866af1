"""Fig. 3: three applications one after another, and with pot3d on half the GPUs beside the rest."""

from __future__ import annotations

from dataclasses import replace

from optgap.api import run, solve
from optgap.reproduce.coscheduling.charts import charts
from optgap.reproduce.coscheduling.facts import OPTIMAL, savings
from optgap.reproduce.coscheduling.queues import H100, queue
from optgap.reproduce.report import Item, Report, Row, Study, statement

BESIDE = "pot3d on two GPUs beside simpleP2P and minisweep"
THREE = ("pot3d", "simpleP2P", "minisweep")
"""Those that the text names; the queue of the figure is not given."""


def fig3(item: Item, study: Study) -> Report:
    """The sequential baseline against pot3d on two GPUs with the others beside it."""
    assert study.data is not None
    study.proceed("three applications")
    problem = queue(H100, study.data, THREE)
    halves = tuple(
        replace(app, modes=tuple(m for m in app.modes if m.gpu_count <= 2)) if app.name in THREE
        else app
        for app in problem.applications
    )  # fmt: skip
    beside = replace(problem, applications=halves, name="pot3d on two GPUs")
    sequential, packed = run(problem, OPTIMAL), solve(beside, limits=study.limits.within(60))
    best = solve(problem, limits=study.limits.within(60))
    assert sequential.solution is not None
    assert packed.solution is not None
    assert best.solution is not None
    energy, makespan, _ = savings(packed.metrics, sequential.metrics)  # type: ignore[arg-type]
    minisweep = next(a for a in problem.applications if a.name == "minisweep")
    slower = max(
        m.runtime_s / minisweep.fastest.runtime_s for m in minisweep.modes if m.gpu_count <= 2
    )
    why = f"minisweep takes up to {slower:.1f} times as long on two GPUs or fewer"
    rows = [
        statement(f"{BESIDE}: less energy", "yes", f"{energy:.1f} % less", energy > 0, why=why),
        statement(
            f"{BESIDE}: shorter makespan", "yes", f"{makespan:.1f} % shorter", makespan > 0, why=why
        ),
    ]
    least = savings(best.metrics, sequential.metrics)  # type: ignore[arg-type]
    words = f"{least[0]:.1f} %, {least[1]:.1f} %"
    claim = "the schedule of least energy: energy, makespan saved"
    rows.append(Row(claim, "", words, note=best.status))
    panels = charts(
        (
            ("one after another", problem, sequential.solution),
            ("pot3d on two GPUs", beside, packed.solution),
            ("least energy", problem, best.solution),
        )
    )
    source = "the authors' profiles; the paper's queue is not given"
    return Report(item, source, tuple(rows), (), panels)
