"""Reader of another solver's solution of an exported formulation."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from optgap.api import close, refereed
from optgap.documents import ProblemLike, as_problem
from optgap.exchange.export import choose_formulation, written
from optgap.models.clock import working_time
from optgap.models.errors import InputError, NoQuote
from optgap.models.limits import Limits
from optgap.models.reading import Path, read_text
from optgap.models.result import Outcome, Result, Status
from optgap.solvers.backends.linear import TOLERANCE

if TYPE_CHECKING:
    from optgap.solvers.formulation import Formulation


def read_solution(
    problem: ProblemLike, path: str | os.PathLike[str], method: str = "auto", **params: Any
) -> Result:
    """Read another solver's solution of an exported formulation, and have the referee check it.

    Whole decisions count; frequencies and starts that follow from them are worked out anew, as
    files have few digits. Nothing in the file proves anything: the status is ``feasible``, or
    ``no_solution`` if the solver says that there is none.

    Parameters
    ----------
    problem
        The problem, or the path of a file with it.
    path
        A solution file of HiGHS or Gurobi.
    method
        The formulation, as it was exported.
    **params
        The formulation's parameters, as it was exported.

    Returns
    -------
    Result
        The solution with the referee's objective.

    Raises
    ------
    InputError
        Naming line and variable, for a file that is no solution of this formulation: unknown names,
        missing or fractional values, rows that do not hold.

    Examples
    --------
    >>> import optgap
    >>> optgap.read_solution("problem.json", "model.sol")  # doctest: +SKIP
    """
    started = working_time()
    subject = as_problem(problem)
    runnable = choose_formulation(subject, method, params)
    file = read(path)
    told = f"read from a {file.solver} file" + (f" that says {file.says}" if file.says else "")
    if file.infeasible:
        outcome = Outcome(None, Status.NO_SOLUTION, message=f"{told}: there is no solution")
        return refereed(subject, runnable, outcome, working_time() - started, seed=0)
    found = written(subject, runnable, Limits())
    values = _values(found, file, os.fspath(path))
    try:
        solution = found.solution(values.tolist())
    except ValueError as error:
        raise InputError(os.fspath(path), "", NoQuote(error), "a solution") from None
    if violations := subject.check(solution):
        first = violations[0]
        broken = NoQuote(f"{first.constraint}: {first.found}")
        raise InputError(os.fspath(path), first.where, broken, f"at most {first.limit}")
    outcome = Outcome(solution, Status.FEASIBLE, message=told)
    result = refereed(subject, runnable, outcome, working_time() - started, seed=0)
    worth, stated = result.objective, file.objective
    if worth is not None and stated is not None and not close(abs(stated), abs(worth)):
        note = f"{result.message}; it says {stated:.10g}, the referee finds {worth:.10g}"
        result = replace(result, message=note)
    return result


def _values(found: Formulation, file: SolutionFile, source: str) -> Any:
    """Return the values in the order of the formulation's names, shape (n,), with integers rounded.

    Raises
    ------
    InputError: for values that are no solution of the formulation.
    """
    linear, names = found.linear, found.names
    values = np.full(linear.variables, np.nan)
    for item in file.values:
        k = names.get(item.name)
        if k is None:
            expected = f"a variable of this problem's formulation, such as {next(iter(names))}"
            raise InputError(source, item.where, item.name, expected)
        if not np.isnan(values[k]):
            raise InputError(source, item.where, NoQuote(f"{item.name} again"), "it once")
        values[k] = item.value
    _fill(found, values, source)
    listed = {item.name: item.where for item in file.values}
    for k, name in enumerate(names):
        low, high, value = float(linear.lower[k]), float(linear.upper[k]), float(values[k])
        where = f"{listed[name]}, {name}" if name in listed else name
        slack = TOLERANCE * max(1.0, abs(value))
        if linear.integer[k] and abs(value - round(value)) > TOLERANCE:
            raise InputError(source, where, value, "an integer")
        if not low - slack <= value <= high + slack:
            raise InputError(source, where, value, f"{low:g} to {high:g}")
    values = np.clip(linear.rounded(values), linear.lower, linear.upper)
    _rows_hold(found, values, source)
    return values


def _fill(found: Formulation, values: Any, source: str) -> None:
    """Set variables that are in no row and no objective to 0; refuse other missing values."""
    linear, names = found.linear, list(found.names)
    used = np.zeros(len(values), dtype=bool)
    used[linear.columns] = True
    used |= linear.cost != 0
    zero = np.clip(0.0, linear.lower, linear.upper)
    absent = np.isnan(values)
    missing = np.flatnonzero(absent & used)
    if missing.size:
        more = f" and {missing.size - 1} more" if missing.size > 1 else ""
        told = NoQuote(f"no value of {names[int(missing[0])]}{more}")
        raise InputError(source, "", told, f"all {len(values)} variables of the formulation")
    values[absent] = zero[absent]


def _rows_hold(found: Formulation, values: Any, source: str) -> None:
    """Raise InputError for the row that is broken most, relative to the size of its terms."""
    linear = found.linear
    terms = linear.values * values[linear.columns]
    activity = np.bincount(linear.row_of, terms, minlength=linear.rows)
    size = np.maximum(1.0, np.bincount(linear.row_of, np.abs(terms), minlength=linear.rows))
    broken = np.maximum(linear.row_lower - activity, activity - linear.row_upper) / size
    if not broken.size or broken.max() <= TOLERANCE:
        return
    k = int(np.argmax(broken))
    low, high = float(linear.row_lower[k]), float(linear.row_upper[k])
    limit = f"{high:g}" if low == high else f"at most {high:g}"
    expected = f"at least {low:g}" if activity[k] < low and low != high else limit
    where = f"row {found.row_names[k]}"
    raise InputError(source, where, float(activity[k]), expected)


Solver = Literal["HiGHS", "Gurobi"]
KNOWN = "a solution file of HiGHS or Gurobi"


@dataclass(frozen=True, slots=True)
class Value:
    """Value of one variable in a file, and its place there."""

    name: str
    value: float
    where: str


@dataclass(frozen=True, slots=True)
class SolutionFile:
    """Content of a solution file.

    Parameters
    ----------
    solver: the solver that writes such files.
    says: the solver's own words on its status; "" without any.
    infeasible: whether the solver says that there is no solution.
    objective: the solution's objective according to the file.
    values: values in the order of the file.
    """

    solver: Solver
    says: str
    infeasible: bool
    objective: float | None
    values: tuple[Value, ...]


def read(path: Path) -> SolutionFile:
    """Read a file of HiGHS or Gurobi; ``-`` stands for standard input.

    Raises
    ------
    InputError: for another file; the error names the line, what was found and what was expected.
    """
    source, text = str(path), read_text(path, stdin=True)
    lines = text.splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    if first == "Model status":
        return _highs(source, lines)
    if first.startswith("#") and "objective value" in "\n".join(lines[:5]).lower():
        return _gurobi(source, lines)
    raise InputError(source, "line 1", first or NoQuote("nothing"), KNOWN)


def _number(source: str, where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(source, where, text, "a finite number")
    return value


def _pairs(source: str, lines: Iterable[tuple[int, str]]) -> tuple[Value, ...]:
    """Read lines of a name and a value."""
    found = []
    for k, line in lines:
        cells = line.split()
        if not cells:
            continue
        where = f"line {k + 1}"
        if len(cells) < 2:
            raise InputError(source, where, line.strip(), "the name of a variable and its value")
        name = cells[0]
        found.append(Value(name, _number(source, f"{where}, {name}", cells[1]), where))
    return tuple(found)


def _highs(source: str, lines: list[str]) -> SolutionFile:
    """Read a file of HiGHS: ``Model status``, then sections with a number of columns."""
    says = next((line.strip() for line in lines[1:] if line.strip()), "")
    objective, values = None, None
    for k, line in enumerate(lines):
        if line.startswith("Objective ") and objective is None:
            objective = _number(source, f"line {k + 1}", line.split()[1])
        if re.fullmatch(r"# Columns \d+", line.strip()):
            count = int(line.split()[2])
            part = list(enumerate(lines))[k + 1 : k + 1 + count]
            there = [pair for pair in part if pair[1].strip() and not pair[1].startswith("#")]
            if len(there) < count:
                found = NoQuote(f"{len(there)} values")
                raise InputError(source, f"line {k + 1}", found, f"{count}, as it says there")
            values = _pairs(source, there)
            break
    infeasible = "infeasible" in says.lower()
    if values is None and not infeasible:
        raise InputError(source, "", NoQuote(f"no columns (model status: {says})"), "a solution")
    return SolutionFile("HiGHS", says, infeasible, objective, values or ())


def _gurobi(source: str, lines: list[str]) -> SolutionFile:
    """Read a file of Gurobi: comments, one with the objective, then every name and its value."""
    objective = None
    for k, line in enumerate(lines):
        if line.startswith("#") and "objective value" in line.lower():
            objective = _number(source, f"line {k + 1}", line.split()[-1])
    rest = [(k, line) for k, line in enumerate(lines) if not line.startswith("#")]
    return SolutionFile("Gurobi", "", False, objective, _pairs(source, rest))
