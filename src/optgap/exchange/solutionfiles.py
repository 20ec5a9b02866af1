"""Solution files of other solvers: HiGHS and Gurobi."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from optgap.models.errors import InputError, NoQuote
from optgap.models.reading import Path, read_text

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
