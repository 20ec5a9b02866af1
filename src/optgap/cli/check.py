"""``optgap check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from optgap.cli import options as opt

if TYPE_CHECKING:
    from optgap.cli.work import Output

SOLVERS = ".sol"
SHOWN = 20
"""Number of violations that are printed."""


def command(
    *,
    problem_file: opt.ProblemFile,
    solution_file: Annotated[
        str,
        opt.argument(
            "SOLUTION", "a solution, a result with one in it, a CSV log, or another solver's .sol"
        ),
    ],
    formulation: opt.Formulation = "auto",
    strict: Annotated[
        bool, typer.Option("--strict", help="exit 2 when a constraint is broken")
    ] = False,
    json: opt.JsonFile = None,
) -> int:
    from optgap.api import check
    from optgap.auditing.tables import read_log, require
    from optgap.best_known import PREFIX
    from optgap.cli import BAD_INPUT, DONE
    from optgap.cli.work import Output
    from optgap.documents import load_problem
    from optgap.render import number

    opt.require_writable(json, read=(problem_file, solution_file))
    problem = load_problem(problem_file)
    if solution_file.endswith(SOLVERS):
        return _of_solver(problem, solution_file, formulation, Output(json))
    logged = read_log(solution_file, problem)
    require(logged, solution_file, every=True)
    verdict = check(problem, logged.solution)
    out = Output(json)
    rows = [("problem", str(problem)), ("violations", str(len(verdict.violations)))]
    rows += [("", str(violation)) for violation in verdict.violations[:SHOWN]]
    if len(verdict.violations) > SHOWN:
        rows.append(("", "… (--json FILE has all)"))
    if verdict.objective is not None:
        rows.append(("objective", f"{number(verdict.objective)} {verdict.unit}"))
        rows.append(("serves all", "yes" if verdict.serves_all else "no"))
    rows += [(key, number(value)) for key, value in verdict.metrics.items()]
    document = verdict.to_json()
    if problem_file.startswith(PREFIX):
        rows.append(("against best", _against_best(problem_file.removeprefix(PREFIX), document)))
    out.pairs(rows)
    out.document(document)
    out.wrote(json)
    out.following("compare", problem_file, why="every policy's gap")
    return BAD_INPUT if strict and not verdict.feasible else DONE


def _against_best(name: str, document: dict[str, Any]) -> str:
    """Say whether a solution is better than the best known, and add the answer to the document."""
    from optgap.api import ahead, close
    from optgap.best_known import record
    from optgap.render import number

    known = record(name)
    best, bound = known["best"]["value"], known["bound"]["value"]
    value = document["objective"] if document["serves_all"] else None
    better = value is not None and ahead(value, best, known["sense"])
    about = {"instance": name, "best_known": best, "bound": bound, "better": better}
    document["against_best"] = about
    proven = "proven" if close(best, bound) else "not proven"
    shown = f"{number(best)} {known['unit']}, {proven} optimal"
    if value is None:
        return f"not comparable with {shown}: it does not serve everything"
    if better:
        return f"better than {shown}; CONTRIBUTING.md says how it gets in"
    return f"{'equal to' if close(value, best) else 'not as good as'} {shown}"


def _of_solver(problem: Any, path: str, formulation: str, out: Output) -> int:
    """Check a solution that HiGHS or Gurobi wrote for an exported formulation."""
    from optgap.cli import INFEASIBLE, complain
    from optgap.cli.work import deliver
    from optgap.exchange.reading import read_solution

    result = read_solution(problem, path, formulation)
    code = deliver(result, problem, out, None)
    if result.solution is None:
        return complain(f"{path}: {result.message}", INFEASIBLE)
    return code
