"""Pictures of a solution, one file per family: Gantt charts, timelines, maps of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optgap.models.errors import InputError, NoQuote
from optgap.registry import family, imported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from optgap.models.result import Result


def plot_solution(result: Result, problem: Any | None = None) -> Figure:
    """Draw the solution of a result as its family does.

    Parameters
    ----------
    problem: what it is a solution of; a result that was not read from a file knows it.

    Raises
    ------
    InputError: for a result without a solution or problem, and a family that draws none.
    """
    subject = result.problem if problem is None else problem
    if result.solution is None or subject is None:
        missing = "solution" if result.solution is None else "problem"
        raise InputError("plot_solution", result.method, NoQuote(f"no {missing}"), "both")
    spec = family(result.family)
    if not spec.view:
        raise InputError("plot_solution", result.family, NoQuote("no picture"), "a family with one")
    figure: Figure = imported(spec.view)(subject, result.solution)
    return figure
