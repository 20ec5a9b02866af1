"""``optgap export``."""

from __future__ import annotations

from typing import Annotated

from optgap.cli import options as opt


def command(
    problem_file: opt.ProblemFile,
    output: Annotated[
        str, opt.option("--output -o", "FILE", "write here: .lp or .mps; - is an LP on stdout")
    ],
    formulation: opt.Formulation = "auto",
    json: opt.JsonFile = None,
    time_limit: opt.TimeLimit = None,
) -> int:
    import os
    import tempfile
    from dataclasses import replace
    from pathlib import Path

    from optgap.cli import DONE, PARTIAL, complain
    from optgap.cli.subjects import opened
    from optgap.cli.work import Output, interruptible
    from optgap.exchange.export import export, format_of
    from optgap.render import number
    from optgap.solvers.formulation import Stopped

    format_of(output)
    problem, params = opened(problem_file, None, json, output)
    with tempfile.TemporaryDirectory() as folder:
        # standard output is that of code from outside while anything may be interrupted
        path = os.path.join(folder, "model.lp") if output == "-" else output
        try:
            written = interruptible(
                lambda limits: export(problem, path, formulation, limits=limits, **params),
                time_limit,
            )
        except Stopped as stopped:
            return complain(f"{output}: {stopped}; nothing is written", PARTIAL)
        if output == "-":
            written = replace(written, file=output)
            print(Path(path).read_text(encoding="utf-8"), end="")
    out = Output(json, silent=output == "-")
    goal = problem.objective.described
    out.pairs(
        [
            ("problem", str(problem)),
            ("formulation", written.method),
            ("objective", f"{goal.sense}imise {goal.name} ({goal.unit})"),
            ("variables", f"{number(written.variables)}, {number(written.integers)} of them whole"),
            ("rows", f"{number(written.rows)}, with {number(written.nonzeros)} entries"),
        ]
    )
    out.document(written)
    out.wrote(output, json)
    out.following("solve", problem_file, why="its optimum, by optgap")
    return DONE
