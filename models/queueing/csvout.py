"""A schedule as CSV text."""

from __future__ import annotations

import numpy as np

from optgap.models.csvout import csv_text
from optgap.models.queueing.problem import QueueingProblem
from optgap.models.queueing.solution import QueueingSolution


def schedule(problem: QueueingProblem, solution: QueueingSolution) -> str:
    """``job,start_s,end_s,nodes`` per job that starts, by start; nodes as ``node:gpus``, ``-``."""
    rows = []
    started = solution.started
    for k in started[np.argsort(solution.start_s[started], kind="stable")].tolist():
        nodes = "-".join(f"{node}:{gpus}" for node, gpus in solution.nodes_of(k))
        times = (float(solution.start_s[k]), float(solution.end_s[k]))
        rows.append((problem.jobs.names[k], *times, nodes))
    return csv_text(("job", "start_s", "end_s", "nodes"), rows)
