"""How results are shown and written: shared by solve, bound and run."""

from __future__ import annotations

import sys
from typing import Any

from optgap.cli.work import Output, exit_code, no_solution
from optgap.models.jsonio import dump_json
from optgap.models.result import Result, Status
from optgap.render import number, result_facts


def show(result: Result, problem: Any, out: Output) -> None:
    """The result as names and values."""
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
    plot: str | None = None,
    ask: str | None = None,
) -> int:
    """Show, write and draw a result; returns the exit code.

    `plot` is where the solution is drawn; `ask` is the problem's file, for those who want to
    know why there is no solution.
    """
    show(result, problem, out)
    out.document(result)
    if solution_file is not None and result.solution is not None:
        dump_json(solution_file, result.solution.to_json(problem))
    if plot is not None:
        _draw(result, problem, plot)
    if result.status is Status.INFEASIBLE:
        return no_solution(result, ask)
    return exit_code([result.termination])


def _draw(result: Result, problem: Any, file: str) -> None:
    from optgap.models.figures import save_figure
    from optgap.views import plot_solution

    if result.solution is None:
        print(f"optgap: {file}: nothing drawn, there is no solution", file=sys.stderr)
        return
    save_figure(file, plot_solution(result, problem))
