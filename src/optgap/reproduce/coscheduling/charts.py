"""Schedules as the picture of a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution
from optgap.reproduce.panels import Panel
from optgap.reproduce.report import Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Chart(Panel):
    """A Gantt chart instead of curves."""

    problem: CoschedulingProblem | None = None
    solution: CoschedulingSolution | None = None

    def to_json(self) -> Mapping[str, Any]:
        """The schedule."""
        assert self.problem is not None
        assert self.solution is not None
        return {"title": self.title, **self.solution.to_json(self.problem)}


def chart(title: str, problem: CoschedulingProblem, solution: CoschedulingSolution) -> Chart:
    """One schedule under a title."""
    return Chart(title, "GPU", (), problem=problem, solution=solution)


@dataclass(frozen=True)
class ScheduleReport(Report):
    """A report whose panels are all charts, drawn to one scale of time."""

    def draw(self, figure: Figure | None = None) -> Figure:
        """Draw the schedules below one another."""
        from matplotlib.figure import Figure as NewFigure

        from optgap.views.coscheduling import gantt

        charts = [panel for panel in self.panels if isinstance(panel, Chart)]
        if figure is None:
            figure = NewFigure(figsize=(10, 2.5 * len(charts)), layout="constrained")
        axes = figure.subplots(len(charts), 1, squeeze=False)[:, 0]
        longest = max(run.end_s for c in charts if c.solution for run in c.solution.runs)
        for panel, ax in zip(charts, axes, strict=True):
            if panel.problem is not None and panel.solution is not None:
                gantt(panel.problem, panel.solution, ax, panel.title, longest)
        return figure
