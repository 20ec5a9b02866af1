"""Files in and out: problems, solutions, results and comparisons by their ``schema``."""

from __future__ import annotations

import os
from typing import Any

from optgap.contract import Problem
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, dump_json, load_json
from optgap.models.result import SCHEMA as RESULT
from optgap.models.result import Result
from optgap.registry import FAMILIES, family

Path = str | os.PathLike[str]


def load(path: Path, problem: Problem | None = None) -> Any:
    """Read a problem, a result, or (given its `problem`) a solution from a JSON file.

    Raises
    ------
    InputError: naming file, field, what was found and what was expected.
    """
    fields = Fields(load_json(path), str(path))
    schema = fields.text("schema")
    for spec in FAMILIES.values():
        if schema.startswith(f"optgap.{spec.name}.problem/"):
            return spec.problem_class.from_json(fields)
    if schema.startswith("optgap.result/"):
        return _result(fields, problem)
    if problem is not None:
        return family(problem.family).solution_class.from_json(fields, problem)
    if any(schema.startswith(f"optgap.{name}.solution/") for name in FAMILIES):
        raise InputError(str(path), "", NoQuote("a solution without its problem"), "problem=…")
    raise InputError(str(path), "field schema", schema, "a problem, solution or result of optgap")


def load_problem(path: Path) -> Problem:
    """Read a problem.

    Raises
    ------
    InputError: naming file, field, what was found and what was expected.
    """
    fields = Fields(load_json(path), str(path))
    schema = fields.text("schema")
    for spec in FAMILIES.values():
        if schema.startswith(f"optgap.{spec.name}.problem/"):
            return spec.problem_class.from_json(fields)
    expected = " or ".join(repr(f"optgap.{name}.problem/1") for name in FAMILIES)
    raise InputError(str(path), "field schema", schema, expected)


def load_solution(path: Path, problem: Problem) -> Any:
    """Read a solution of `problem`, on its own or inside a result.

    Where the family's solutions can be read from tables, ``log.csv`` or ``log.csv#part`` will
    do, too.

    Raises
    ------
    InputError: naming file, field, what was found and what was expected; for a result
        without a solution, too.
    """
    table, _, part = str(path).partition("#")
    from_table = getattr(family(problem.family).solution_class, "from_table", None)
    if table.endswith(".csv") and from_table is not None:
        return from_table(table, problem, part)
    fields = Fields(load_json(path), str(path))
    if str(fields.document.get("schema")).startswith("optgap.result/"):
        fields.schema(RESULT)
        if fields.document.get("solution") is None:
            raise fields.fail("solution", NoQuote("nothing"), "a solution")
        fields = fields.object("solution")
    return family(problem.family).solution_class.from_json(fields, problem)


def _result(fields: Fields, problem: Problem | None) -> Result:
    if problem is None:
        return Result.from_json(fields)
    solution_class = family(problem.family).solution_class
    return Result.from_json(fields, lambda inner: solution_class.from_json(inner, problem), problem)


def save(item: Any, path: Path, problem: Problem | None = None) -> None:
    """Write a problem, a result, a comparison, or (given its `problem`) a solution as JSON.

    A result carries its solution along and needs no `problem`; giving one does no harm. The
    file is written in one step; ``-`` is standard output.

    Raises
    ------
    InputError: when the place cannot be written to.
    """
    alone = problem is None or isinstance(item, Result)
    dump_json(path, item.to_json() if alone else item.to_json(problem))
