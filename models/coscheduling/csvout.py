"""A schedule as CSV text."""

from __future__ import annotations

from optgap.models.coscheduling.problem import CoschedulingProblem
from optgap.models.coscheduling.solution import CoschedulingSolution
from optgap.models.csvout import csv_text


def schedule(problem: CoschedulingProblem, solution: CoschedulingSolution) -> str:
    """``job,app,gpu_count,start_s,end_s,gpu_index`` per run, indices joined with ``-``."""
    rows = (
        (run.job, problem.application(run.job).name, run.gpu_count, run.start_s, run.end_s,
         "-".join(map(str, run.gpu_index)))
        for run in solution.runs
    )  # fmt: skip
    return csv_text(("job", "app", "gpu_count", "start_s", "end_s", "gpu_index"), rows)
