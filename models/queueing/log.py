"""A log of jobs that really ran: the problem they were, and the schedule that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optgap.models.queueing.arrays import FloatArray
from optgap.models.queueing.problem import QueueingProblem
from optgap.models.queueing.solution import QueueingSolution


@dataclass(frozen=True)
class QueueLog:
    """A log as it was read, for one pool of GPUs.

    Parameters
    ----------
    problem: the jobs; only how many GPUs there are matters, not on which nodes.
    logged: when they really ran.
    submit_s, eligible_s: (J,) when each job was submitted, and could have started, s.
    users, partitions: of each job.
    records: jobs in the file; `reasons` how many are left out, by why.
    pools: jobs and GPU-hours by pool.
    warnings: what was odd.
    """

    problem: QueueingProblem
    logged: QueueingSolution
    submit_s: FloatArray
    eligible_s: FloatArray
    users: tuple[str, ...]
    partitions: tuple[str, ...]
    records: int
    reasons: Mapping[str, int]
    pools: Mapping[str, tuple[int, float]]
    warnings: tuple[str, ...]


def as_run(problem: QueueingProblem, start_s: FloatArray) -> QueueingSolution:
    """The schedule with these starts, every run as long as the job's, on nodes unknown."""
    return QueueingSolution.on_nodes(problem, start_s, [()] * len(problem))
