"""Schedules as the pictures of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution
from optgap.reproduce.panels import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Chart(Panel):
    """A Gantt chart until `until_s`."""

    SIZE: ClassVar = (10.0, 2.5)

    problem: CoschedulingProblem
    solution: CoschedulingSolution
    until_s: float

    def to_json(self) -> Mapping[str, Any]:
        """The schedule."""
        return {"title": self.title, **self.solution.to_json(self.problem)}

    def draw(self, ax: Axes) -> None:
        """A line per GPU."""
        from optgap.views.coscheduling import gantt

        gantt(self.problem, self.solution, ax, self.title, self.until_s)


def charts(
    named: Iterable[tuple[str, CoschedulingProblem, CoschedulingSolution | None]],
) -> tuple[Chart, ...]:
    """Schedules by their titles, as far as there are any, all to one scale of time."""
    found = [(title, problem, made) for title, problem, made in named if made is not None]
    longest = max((run.end_s for *_, made in found for run in made.runs), default=0.0)
    return tuple(Chart(title, "GPU", problem, made, longest) for title, problem, made in found)
