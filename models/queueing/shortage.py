"""Why jobs cannot all start in time, where the GPUs at one moment tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.shortage import short

if TYPE_CHECKING:
    from optgap.models.queueing.problem import QueueingProblem


def why_not(problem: QueueingProblem, jobs: Sequence[int]) -> str:
    """A moment at which these jobs must all be running, and the GPUs that it lacks.

    A job runs for certain from its latest start (arrival + patience) until it would have ended
    had it started on arrival. "" where no such moment is short of GPUs.
    """
    chosen = np.array(jobs, dtype=np.int64)
    stream = problem.jobs
    latest = (stream.arrival_s + stream.patience_s)[chosen]
    earliest_end = (stream.arrival_s + stream.duration_s)[chosen]
    worst, when = 0, 0.0
    for moment in latest[np.isfinite(latest)].tolist():
        running = (latest <= moment) & (earliest_end > moment)
        asked = int(stream.gpus[chosen][running].sum())
        if asked > worst:
            worst, when = asked, moment
    return short(f"GPUs at {when:,g} s, by when patience ends", worst, problem.gpus, "GPUs")
