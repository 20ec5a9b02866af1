"""Formulations as files that other solvers read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.api import require_time_limit
from optgap.contract import Problem
from optgap.documents import ProblemLike, as_problem, as_solution
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import write_text
from optgap.models.limits import Limits
from optgap.models.reading import as_path
from optgap.models.times import Timed
from optgap.registry import Runnable, family
from optgap.registry import formulation as find_formulation
from optgap.render import html_table, number
from optgap.versions import versions

if TYPE_CHECKING:
    from optgap.solvers.formulation import Formulation

FORMATS = (".lp", ".mps")


@dataclass(frozen=True, slots=True)
class Exported:
    """Record of an exported file.

    Parameters
    ----------
    problem: the problem.
    method: the formulation, with its parameters.
    file, format: the path, and ``lp`` or ``mps``.
    variables, integers, rows, nonzeros: size of the formulation.
    """

    problem: Problem = field(repr=False)
    method: str
    file: str
    format: str
    variables: int
    integers: int
    rows: int
    nonzeros: int

    def _repr_html_(self) -> str:
        sizes = "variables", "integers", "rows", "nonzeros"
        cells = [number(getattr(self, name)) for name in sizes]
        head = [f"{self.file}: {self.method} of {self.problem.name}"]
        return html_table(sizes, [cells], head, range(len(sizes)))

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, ``optgap.export/1``."""
        goal = self.problem.objective.described
        return {
            "schema": "optgap.export/1",
            "family": self.problem.family,
            "problem": {"name": self.problem.name, "summary": self.problem.summary},
            "method": self.method,
            "file": self.file,
            "format": self.format,
            "objective": goal.name,
            "unit": goal.unit,
            "sense": goal.sense,
            "variables": self.variables,
            "integers": self.integers,
            "rows": self.rows,
            "nonzeros": self.nonzeros,
            "versions": versions(),
        }


def formulation(
    problem: ProblemLike,
    method: str = "auto",
    *,
    time_limit: float | None = None,
    limits: Limits | None = None,
    **params: Any,
) -> Formulation:
    """Build the paper's formulation of a problem as a PuLP model.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    method
        A formulation that ``optgap families FAMILY`` lists. Default ``auto``: the family's first.
    time_limit
        Wall-clock seconds after which the work is cut. Default: none.
    limits
        Limits that can be interrupted, in place of `time_limit`.
    **params
        The formulation's own parameters.

    Returns
    -------
    Formulation
        `model` is the `pulp.LpProblem`, `write` makes an LP or MPS file of it, and `solution` reads
        values in the order of `names`. Times count from the problem's first event.

    Raises
    ------
    InputError
        For an unknown formulation or parameter, or for what the problem has and the formulation has
        no term for.
    Stopped
        If the time limit ends the work.

    Examples
    --------
    >>> import optgap
    >>> type(optgap.formulation(optgap.generate("coscheduling", size=3)).model).__name__
    'LpProblem'
    """
    require_time_limit(time_limit)
    subject = as_problem(problem)
    runnable = choose_formulation(subject, method, params)
    return written(subject, runnable, limits or Limits(time_limit))


def export(
    problem: ProblemLike,
    path: str | os.PathLike[str],
    method: str = "auto",
    *,
    time_limit: float | None = None,
    limits: Limits | None = None,
    **params: Any,
) -> Exported:
    """Write the paper's formulation of a problem as an LP or MPS file, for any other solver.

    The objective is the problem's own with its constant parts, which a variable ``constant``, fixed
    at 1, carries.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    path
        A file that ends in ``.lp`` or ``.mps``. ``-`` is an LP on standard output.
    method
        A formulation that ``optgap families FAMILY`` lists. Default ``auto``: the family's first.
    time_limit
        Wall-clock seconds after which the work is cut. Default: none.
    limits
        Limits that can be interrupted, in place of `time_limit`.
    **params
        The formulation's own parameters.

    Returns
    -------
    Exported
        The number of rows, variables and entries.

    Raises
    ------
    InputError
        As for `formulation`, and for another ending or a place that cannot be written to.
    Stopped
        If the time limit ends the work; nothing is written then.

    Examples
    --------
    >>> import optgap, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.lp"
    >>> optgap.export(optgap.generate("coscheduling", size=3), path).format
    'lp'
    """
    require_time_limit(time_limit)
    kind = format_of(path)
    subject = as_problem(problem)
    runnable = choose_formulation(subject, method, params)
    found = written(subject, runnable, limits or Limits(time_limit))
    with tempfile.TemporaryDirectory(prefix="optgap-export-") as folder:
        file = Path(folder) / f"model.{kind}"
        found.write(file, mps=kind == "mps")
        write_text(path, file.read_text())
    linear = found.linear
    return Exported(
        subject, runnable.label, os.fspath(path), kind, linear.variables,
        int(linear.integer.sum()), linear.rows, len(linear.values),
    )  # fmt: skip


def format_of(path: str | os.PathLike[str]) -> str:
    """Return ``lp`` or ``mps``, by the ending.

    Raises
    ------
    InputError: for another ending.
    """
    name = as_path(path)
    if name == "-":
        return "lp"
    ending = os.path.splitext(name)[1].lower()
    if ending not in FORMATS:
        raise InputError(name, "", ending or NoQuote("no ending"), " or ".join(FORMATS))
    return ending[1:]


def choose_formulation(problem: Problem, text: str, params: Mapping[str, Any]) -> Runnable:
    """Return the formulation of this name, or the family's first.

    Raises
    ------
    InputError: for an unknown name or parameter, or an objective that it cannot express.
    """
    spec = family(problem.family)
    name = next(iter(spec.formulations)) if text == "auto" else text
    runnable = find_formulation(spec, name, params)
    runnable.require_goal(problem, "--method")
    return runnable


def written(problem: Problem, runnable: Runnable, limits: Limits) -> Formulation:
    """Return the formulation, with times counted from the problem's first event."""
    params = dict(runnable.params)
    if "placed" in runnable.known:  # the one parameter that is a file
        path = params.pop("placed", "")
        params["placed"] = as_solution(path, problem) if path else None
    make = runnable.entry.load()
    if not isinstance(problem, Timed) or not problem.epoch_s:
        found: Formulation = make(problem, limits=limits, **params)
        return found
    epoch_s = problem.epoch_s
    moved: Formulation = make(problem.moved(-epoch_s), limits=limits, **params)
    return replace(moved, decode=lambda values: moved.decode(values).moved(epoch_s))
