"""The Gantt chart of a schedule."""

from __future__ import annotations

from optgap import generate, run
from optgap.views.coscheduling import draw, gantt


def test_a_schedule_is_drawn_gpu_by_gpu() -> None:
    problem = generate("coscheduling", seed=0)
    solution = run(problem, "ecosched").solution
    assert solution is not None
    (ax,) = draw(problem, solution).axes
    boxes = sum(run.gpu_count for run in solution.runs) + problem.gpus  # and the idle background
    assert len(ax.patches) == boxes
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"GPU {g}" for g in range(4)]
    assert ax.get_xlabel().startswith("time (s)")


def test_charts_can_share_a_scale() -> None:
    from matplotlib.figure import Figure

    problem = generate("coscheduling", seed=0, size=3)
    solution = run(problem, "marble").solution
    ax = gantt(problem, solution, Figure().subplots(), "Marble", until_s=10_000.0)
    assert ax.get_xlim()[1] >= 10_000
    assert ax.get_title(loc="left").startswith("Marble: ")
