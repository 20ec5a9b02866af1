"""Solution files of other solvers: HiGHS, CBC, Gurobi, SCIP, and CPLEX's XML."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from optgap.models.errors import InputError, NoQuote
from optgap.models.reading import Path, read_text

Solver = Literal["HiGHS", "CBC", "Gurobi", "SCIP", "CPLEX"]
KNOWN = "a solution file of HiGHS, CBC, Gurobi, SCIP or CPLEX (XML)"
CBC_HEAD = re.compile(
    r"((?:Optimal|Infeasible|Integer infeasible|Unbounded|Stopped|Status unknown)\b.*?)"
    r" - objective value (\S+)"
)
CPLEX_INFEASIBLE = re.compile("infeasible", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Value:
    """What a file says of one variable, and where."""

    name: str
    value: float
    where: str


@dataclass(frozen=True, slots=True)
class SolutionFile:
    """What is in a file.

    Parameters
    ----------
    solver: whose form it has.
    says: the solver's own words on how it ended; "" where there are none.
    infeasible: whether these say that there is no solution.
    objective: what it says the solution is worth.
    values: as they stand there.
    sparse: whether variables that are 0 are left out.
    """

    solver: Solver
    says: str
    infeasible: bool
    objective: float | None
    values: tuple[Value, ...]
    sparse: bool = False


def read(path: Path) -> SolutionFile:
    """Read a file in whichever of the forms it has; ``-`` stands for standard input.

    Raises
    ------
    InputError: naming line, what was found and what was expected.
    """
    source, text = str(path), read_text(path, stdin=True)
    lines = text.splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("<"):
        return _cplex(source, text)
    if first == "Model status":
        return _highs(source, lines)
    if CBC_HEAD.match(first):
        return _cbc(source, lines)
    if first.startswith(("solution status:", "objective value:")):
        return _scip(source, lines)
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


def _pairs(
    source: str, lines: Iterable[tuple[int, str]], first: int = 0, least: int = 2
) -> tuple[Value, ...]:
    """Lines of at least so many cells, of which two, from `first` on, are a name and a value."""
    found = []
    for k, line in lines:
        cells = line.split()
        if not cells:
            continue
        where = f"line {k + 1}"
        if len(cells) < least:
            raise InputError(source, where, line.strip(), "the name of a variable and its value")
        name = cells[first]
        found.append(Value(name, _number(source, f"{where}, {name}", cells[first + 1]), where))
    return tuple(found)


def _highs(source: str, lines: list[str]) -> SolutionFile:
    """``Model status``, then sections; the columns are counted."""
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


def _cbc(source: str, lines: list[str]) -> SolutionFile:
    """A line on how it ended, then index, name, value and reduced cost."""
    match = CBC_HEAD.match(lines[0].strip())
    says = match[1] if match else ""
    if "infeasible" in says.lower():
        return SolutionFile("CBC", says, True, None, (), sparse=True)
    if "no integer solution" in says or says.startswith(("Unbounded", "Status unknown")):
        raise InputError(source, "line 1", lines[0].strip(), "a file with a solution")
    objective = _number(source, "line 1", match[2]) if match else None
    rest = [(k, line.replace("**", "  ")) for k, line in enumerate(lines) if k]
    values = _pairs(source, rest, first=1, least=4)
    return SolutionFile("CBC", says, False, objective, values, sparse=True)


def _scip(source: str, lines: list[str]) -> SolutionFile:
    """``solution status:``, ``objective value:``, then names and values that are not 0."""
    says, objective, begin = "", None, 0
    for k, line in enumerate(lines):
        head, colon, rest = line.partition(":")
        if head == "solution status" and colon:
            says = rest.strip()
        elif head == "objective value" and colon:
            objective, begin = _number(source, f"line {k + 1}", rest.strip()), k + 1
            break
    infeasible = "infeasible" in says
    if objective is None and not infeasible:
        raise InputError(source, "", NoQuote("no objective value"), "a file with a solution")
    rest_of = [] if infeasible else list(enumerate(lines))[begin:]
    return SolutionFile("SCIP", says, infeasible, objective, _pairs(source, rest_of), sparse=True)


def _gurobi(source: str, lines: list[str]) -> SolutionFile:
    """Comments, one of them with the objective, then every name and its value."""
    objective = None
    for k, line in enumerate(lines):
        if line.startswith("#") and "objective value" in line.lower():
            objective = _number(source, f"line {k + 1}", line.split()[-1])
    rest = [(k, line) for k, line in enumerate(lines) if not line.startswith("#")]
    return SolutionFile("Gurobi", "", False, objective, _pairs(source, rest))


def _cplex(source: str, text: str) -> SolutionFile:
    """``<CPLEXSolution>``, the first one of several."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(source, "", NoQuote("a document type"), "XML without one")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        found = NoQuote(f"{error.msg.partition(':')[0]}")
        where = f"line {line}, column {column + 1}"
        raise InputError(source, where, found, "XML that is whole") from None
    if root.tag == "CPLEXSolutions" and len(root):
        root = root[0]
    if root.tag != "CPLEXSolution":
        raise InputError(source, "", f"<{root.tag}>", "<CPLEXSolution>")
    header = root.find("header")
    told = {} if header is None else header.attrib
    says, stated = told.get("solutionStatusString", ""), told.get("objectiveValue")
    if CPLEX_INFEASIBLE.search(says):
        return SolutionFile("CPLEX", says, True, None, ())
    values = []
    for k, item in enumerate(root.iterfind("variables/variable")):
        where = f"variable {k + 1}"
        name, value = item.get("name"), item.get("value")
        if name is None or value is None:
            raise InputError(source, where, dict(item.attrib), "a name and a value")
        values.append(Value(name, _number(source, f"{where}, {name}", value), where))
    objective = None if stated is None else _number(source, "header, objectiveValue", stated)
    return SolutionFile("CPLEX", says, False, objective, tuple(values))
