"""``optgap import``."""

from __future__ import annotations

from typing import Annotated

from optgap.cli import options as opt


def command(
    problem_file: opt.ProblemFile,
    solution_file: Annotated[
        str,
        opt.argument(
            "MODEL.sol",
            "what HiGHS, CBC, Gurobi, SCIP or CPLEX (XML) wrote about an exported model",
        ),
    ],
    formulation: opt.Formulation = "auto",
    settings: opt.Settings = None,
    output: opt.SolutionFile = None,
    plot: opt.SolutionPlot = None,
    json: opt.JsonFile = None,
    quiet: opt.Quiet = False,
    verbose: opt.Verbose = False,
) -> int:
    from optgap.cli import INFEASIBLE, complain
    from optgap.cli.results import deliver
    from optgap.cli.subjects import opened
    from optgap.cli.work import Output
    from optgap.exchange.reading import read_solution

    problem, params = opened(problem_file, settings, json, output, plot=plot, read=[solution_file])
    result = read_solution(problem, solution_file, formulation, **params)
    code = deliver(result, problem, Output(json, quiet or output == "-"), output, verbose, plot)
    if result.solution is None:
        return complain(f"{solution_file}: {result.message}", INFEASIBLE)
    return code
