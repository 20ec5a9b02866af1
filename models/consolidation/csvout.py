"""A placement as CSV text."""

from __future__ import annotations

from optgap.models.consolidation.problem import ConsolidationProblem
from optgap.models.consolidation.solution import ConsolidationSolution
from optgap.models.csvout import csv_text


def placements(problem: ConsolidationProblem, solution: ConsolidationSolution) -> str:
    """``task,start_s,server,gpu_index`` per assignment; servers and indices joined with ``-``."""
    rows = []
    for a in solution.assignments:
        places = [problem.places[g] for g in a.gpus]
        servers = "-".join(str(i) for i in dict.fromkeys(i for i, _ in places))
        if len({i for i, _ in places}) > 1:
            servers = "-".join(str(i) for i, _ in places)
        indices = "-".join(str(j) for _, j in places)
        rows.append((problem.tasks[a.task].name, a.start_s, servers, indices))
    return csv_text(("task", "start_s", "server", "gpu_index"), rows)
