"""Reader and writer of files: problems, solutions, results and fits, by their ``schema``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from inspect import signature
from typing import Any

from optgap.best_known import opened
from optgap.contract import Problem
from optgap.models.errors import InputError, NoQuote, type_of
from optgap.models.jsonio import Fields, dump_json, load_json
from optgap.models.reading import Path
from optgap.models.result import SCHEMA as RESULT
from optgap.models.result import Result
from optgap.registry import FAMILIES, family

ProblemLike = Problem | str | os.PathLike[str]
"""A problem, or the path of a file with one."""


def as_problem(given: ProblemLike) -> Problem:
    """Return the problem itself, or the one in the file.

    Raises
    ------
    InputError: as `load_problem`, and for an object that is neither.
    """
    if isinstance(given, str) and given in FAMILIES:
        expected = f"a problem, such as optgap.generate({given!r}), or the path of a file with one"
        raise InputError("problem", "", NoQuote(f"the family {given}"), expected)
    if isinstance(given, (str, os.PathLike)):
        return load_problem(given)
    if not all(hasattr(given, name) for name in ("family", "objective", "check", "evaluate")):
        found = type_of(given)
        raise InputError("problem", "", found, "a problem, or the path of a file with one")
    if given.family in FAMILIES:
        FAMILIES[given.family].judge(given, given.name, strict=False)
    return given


def as_solution(given: Any, problem: Problem) -> Any:
    """Return a solution of `problem`, given itself, in a result, as JSON form or in a file.

    Raises
    ------
    InputError: as `load_solution`, and for an object that is none of these.
    """
    kind: Any = family(problem.family).models.solution
    if isinstance(given, kind):
        return given
    if isinstance(given, (str, os.PathLike)):
        return load_solution(given, problem)
    if isinstance(given, Result) and given.solution is not None:
        return as_solution(given.solution, problem)
    if isinstance(given, Mapping):
        return kind.from_json(Fields(given, "solution"), problem)
    a_result = isinstance(given, Result)
    found = NoQuote("a result with no solution") if a_result else type_of(given)
    expected = f"a solution of {problem.family}, a result with one, or the path of a file"
    raise InputError("solution", "", found, expected)


def load(path: Path, problem: ProblemLike | None = None) -> Any:
    """Read a problem, a result, a fit or a solution from a JSON file.

    Parameters
    ----------
    path
        The file. ``-`` is standard input.
    problem
        The problem of a solution or a result, or the path of a file with it. Default: none.

    Returns
    -------
    Problem, Result, GroupedFit or a solution
        The kind that the file's ``schema`` names; a fit has `predict`. ``lib:NAME`` is an
        instance of optgap-lib.

    Raises
    ------
    InputError
        Naming file, field, what was found and what was expected.

    Examples
    --------
    >>> import optgap, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> optgap.save(optgap.generate("coscheduling", size=4), path)
    >>> optgap.load(path).family
    'coscheduling'
    """
    of = None if problem is None else as_problem(problem)
    fields = Fields(load_json(opened(path)), str(path))
    schema = fields.text("schema")
    for spec in FAMILIES.values():
        if schema.startswith(f"optgap.{spec.name}.problem/"):
            return spec.models.problem.from_json(fields)
    if schema.startswith("optgap.result/"):
        return _result(fields, of)
    if schema.startswith("optgap.fit/"):
        from optgap.fitting.saved import from_document

        return from_document(fields.document, str(path))
    if of is not None:
        return family(of.family).models.solution.from_json(fields, of)
    if any(schema.startswith(f"optgap.{name}.solution/") for name in FAMILIES):
        raise InputError(str(path), "", NoQuote("a solution without its problem"), "problem=…")
    raise InputError(
        str(path), "field schema", schema, "a problem, solution, result or fit of optgap"
    )


def load_problem(path: Path) -> Problem:
    """Read a problem, and warn in one line of values that look like another unit.

    ``lib:NAME`` is an instance of optgap-lib.

    Raises
    ------
    InputError: naming file, field, what was found and what was expected.
    """
    fields = Fields(load_json(opened(path)), str(path))
    schema = fields.text("schema")
    for spec in FAMILIES.values():
        if schema.startswith(f"optgap.{spec.name}.problem/"):
            problem = spec.models.problem.from_json(fields)
            spec.judge(problem, str(path), strict=False)
            return problem
    expected = " or ".join(repr(f"optgap.{name}.problem/1") for name in FAMILIES)
    raise InputError(str(path), "field schema", schema, expected)


def load_solution(path: Path, problem: Problem) -> Any:
    """Read a solution of `problem`, on its own or inside a result.

    The path may also be ``log.csv`` or ``log.csv#part`` if the family's solutions can be read
    from tables.

    Raises
    ------
    InputError: naming file, field, what was found and what was expected; for a result
        without a solution, too.
    """
    table, _, part = str(path).partition("#")
    from_table = getattr(family(problem.family).models.solution, "from_table", None)
    if table.endswith(".csv") and from_table is not None:
        return from_table(table, problem, part)
    fields = Fields(load_json(path), str(path))
    if str(fields.document.get("schema")).startswith("optgap.result/"):
        fields.schema(RESULT)
        if not fields.known("solution"):
            raise fields.fail("solution", NoQuote("nothing"), "a solution")
        fields = fields.object("solution")
    return family(problem.family).models.solution.from_json(fields, problem)


def _result(fields: Fields, problem: Problem | None) -> Result:
    if problem is None:
        return Result.from_json(fields)
    solution_class = family(problem.family).models.solution
    return Result.from_json(fields, lambda inner: solution_class.from_json(inner, problem), problem)


def save(item: Any, path: Path, problem: ProblemLike | None = None) -> None:
    """Write a problem, a result, a comparison, a fit or a solution as JSON.

    Parameters
    ----------
    item
        The object to write.
    path
        The file, which is written in one step. ``-`` is standard output.
    problem
        The problem of a solution. A result knows its own. Default: none.

    Raises
    ------
    InputError
        For an object without a JSON form, a solution without its problem, or a place that cannot
        be written to.

    Examples
    --------
    >>> import optgap, tempfile, pathlib
    >>> problem = optgap.generate("coscheduling", size=4)
    >>> optgap.save(problem, pathlib.Path(tempfile.mkdtemp()) / "problem.json")
    """
    if not hasattr(item, "to_json"):
        found = type_of(item)
        raise InputError("save", "", found, "a problem, a solution, a result or a comparison")
    if all(p.default is not p.empty for p in signature(item.to_json).parameters.values()):
        dump_json(path, item.to_json())
    elif problem is None:
        raise InputError("save", "", NoQuote("a solution without its problem"), "problem=…")
    else:
        dump_json(path, item.to_json(as_problem(problem)))
