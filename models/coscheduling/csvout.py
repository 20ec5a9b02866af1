"""A schedule as CSV text."""

from __future__ import annotations

import csv
import io

from optgap.models.coscheduling.problem import CoschedulingProblem
from optgap.models.coscheduling.solution import CoschedulingSolution


def schedule(problem: CoschedulingProblem, solution: CoschedulingSolution) -> str:
    """``job,app,gpu_count,start_s,end_s,gpu_index`` per run, indices joined with ``-``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["job", "app", "gpu_count", "start_s", "end_s", "gpu_index"])
    for run in solution.runs:
        name = problem.application(run.job).name
        indices = "-".join(map(str, run.gpu_index))
        writer.writerow([run.job, name, run.gpu_count, run.start_s, run.end_s, indices])
    return text.getvalue()
