"""Pictures of a solution, one file per family: Gantt charts, timelines, maps of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.models.errors import InputError, NoQuote
from optgap.models.spec import imported
from optgap.registry import family

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_solution(result: Any, problem: ProblemLike | None = None) -> Figure:
    """Draw a solution as its family does.

    Parameters
    ----------
    result: a result with a solution; or, given its `problem`, a solution, or the path of a file
        with either.
    problem: what it is a solution of, or the path of a file with it; a result that was not read
        from a file knows it.

    Raises
    ------
    InputError: for a result without a solution or problem, and a family that draws none.
    """
    subject = getattr(result, "problem", None) if problem is None else as_problem(problem)
    if subject is None:
        raise InputError("plot_solution", "", NoQuote("no problem"), "problem=…")
    spec = family(subject.family)
    if not spec.view:
        raise InputError("plot_solution", spec.name, NoQuote("no picture"), "a family with one")
    by = str(getattr(result, "method", ""))
    figure: Figure = imported(spec.view)(subject, as_solution(result, subject), by)
    return figure
