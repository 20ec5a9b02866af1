"""What of a queueing problem looks like another unit."""

from __future__ import annotations

from optgap.models.quantities import Doubt
from optgap.models.quantities import doubts as found
from optgap.models.queueing.problem import QueueingProblem


def doubts(problem: QueueingProblem) -> list[Doubt]:
    """Run times."""
    jobs = problem.jobs
    return found("duration_s", jobs.duration_s, lambda k: f"job {jobs.names[k]}, duration_s")
