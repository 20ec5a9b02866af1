"""Pictures of a solution, one file per family: Gantt charts, timelines, maps of nodes."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.models.errors import InputError, NoQuote, one_of
from optgap.models.figures import delivered
from optgap.registry import family
from optgap.views import consolidation, coscheduling, elastic, placement, queueing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

VIEWS: Mapping[str, Callable[..., Figure]] = {
    "placement": placement.draw,
    "consolidation": consolidation.draw,
    "coscheduling": coscheduling.draw,
    "queueing": queueing.draw,
    "elastic": elastic.draw,
}
"""Functions that draw a solution, ``f(problem, solution, by="")``; `by` names its method."""


def plot_result(result: Any, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a result's solution for a notebook, and write it to `path` if given.

    Raises
    ------
    InputError: as `plot_solution`, and for an ending or a place that cannot be written to.
    """
    return delivered(plot_solution(result), path)


def result_frame(result: Any, table: str | None = None) -> pd.DataFrame:
    """Return a table about a result's solution; without a name the first of its family.

    Raises
    ------
    InputError: for a result without a solution or problem, or a table that the family has not.
    """
    import pandas as pd

    spec = family(result.family)
    if result.problem is None:
        raise InputError("result", "problem", NoQuote("nothing"), "a result that knows its problem")
    solution = as_solution(result, result.problem)
    name = table or next(iter(spec.tables_out))
    if name not in spec.tables_out:
        raise InputError("result", "table", name, one_of(spec.tables_out))
    text = io.StringIO(spec.export(name, result.problem, solution))
    # "0-1" is two GPUs, and "0" is one: all of them text
    return pd.read_csv(text, dtype={"gpu_index": str}, keep_default_na=False, na_values={})


def plot_solution(result: Any, problem: ProblemLike | None = None) -> Figure:
    """Draw a solution as its family does: a Gantt chart, a timeline, a map of nodes.

    Parameters
    ----------
    result
        A result with a solution; or, with its `problem`, a solution, or the path of a file with
        either. `Result.plot` does the same for a result that knows its problem.
    problem
        The problem, or the path of a file with it. Default: the result's own.

    Returns
    -------
    matplotlib.figure.Figure
        The picture.

    Raises
    ------
    InputError
        For a result without a solution or problem.

    Examples
    --------
    >>> import optgap
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> len(optgap.plot_solution(optgap.run(problem, "marble")).axes)
    1
    """
    subject = getattr(result, "problem", None) if problem is None else as_problem(problem)
    if subject is None:
        raise InputError("plot_solution", "", NoQuote("no problem"), "problem=…")
    solution = as_solution(result, subject)
    by = str(getattr(result, "method", ""))
    return VIEWS[subject.family](subject, solution, by)
