"""Output of one result, shared by ``solve``, ``run`` and ``check``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from optgap.cli.work import Output, exit_code, no_solution
from optgap.models.jsonio import dump_json
from optgap.models.result import Result, Status
from optgap.render import number, result_facts


def show(result: Result, problem: Any, out: Output) -> None:
    """Print the result as names and values."""
    who = "policy" if result.kind == "policy" else "method"
    rows = [("problem", str(problem)), (who, result.method), *result_facts(result)]
    if result.message:
        rows.append(("note", result.message))
    for key, value in result.metrics.items():
        rows.append((key, value if isinstance(value, str) else number(value)))
    out.pairs(rows)


def deliver(
    result: Result,
    problem: Any,
    out: Output,
    solution_file: str | None,
    *,
    plot: str | None = None,
    ask: str | None = None,
    tables: Iterable[str] = (),
) -> int:
    """Show, write and draw a result, and return the exit code.

    Parameters
    ----------
    result, problem
        The result, and its problem.
    out
        Tables for a person, and JSON for a script.
    solution_file
        File for the solution.
    plot
        File for a picture of the solution.
    ask
        The problem's file, for the command that a person may type next.
    tables
        Files that are written already.
    """
    show(result, problem, out)
    out.document(result)
    found = result.solution is not None
    if solution_file is not None and result.solution is not None:
        dump_json(solution_file, result.solution.to_json(problem))
    if plot is not None and found:
        result.plot(plot)
    elif plot is not None:
        print(f"optgap: {plot}: nothing drawn, there is no solution", file=sys.stderr)
    out.wrote(*((solution_file, plot, *tables) if found else ()), out.json)
    if result.status is Status.INFEASIBLE:
        return no_solution(result, ask)
    if ask is not None and result.kind == "policy" and found:
        out.following("explain", ask, "--policy", result.method, why="why its gap")
    elif ask is not None:
        out.following("compare", ask, why="every policy's gap")
    return exit_code([result.termination])
