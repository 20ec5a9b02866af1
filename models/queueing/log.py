"""A log of jobs that really ran: the problem they were, and the schedule that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from optgap.models.queueing.arrays import FloatArray, floats, integers
from optgap.models.queueing.jobs import Jobs
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


def as_run(jobs: Jobs, start_s: FloatArray) -> QueueingSolution:
    """The schedule with these starts, every run as long as the job's, on nodes unknown."""
    nothing = integers(np.zeros(0, dtype=np.int64))
    held_at = integers(np.zeros(len(jobs) + 1, dtype=np.int64))
    start = floats(start_s)
    return QueueingSolution(start, floats(start + jobs.duration_s), held_at, nothing, nothing)
