"""Policies in an order that never changes (HPS/PBS/SBS, Sec. III-B).

- *FIFO*: by arrival; the first job blocks the others while it does not fit.
- *SJF*: the fewest GPUs n first. The paper's Table I swaps SJF and Shortest. This file follows the
  text, which agrees with itself and with the simulator of the job fields.
- *Shortest* (SRTF): the least run time t first. Jobs are never preempted, so the remaining time of
  a waiting job is its run time, as estimated.
- *Shortest-GPU*: the least t·n first.
"""

from __future__ import annotations

from optgap.heuristics.queueing.engine import drive
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, floats
from optgap.models.result import Outcome
from optgap.solvers.queueing.online import online_of, serve_in_order


def fifo(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run FIFO."""
    return _in_order(problem, None, limits, "fifo")


def sjf(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run SJF."""
    return _in_order(problem, floats(problem.jobs.gpus), limits, "sjf")


def shortest(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run Shortest."""
    return _in_order(problem, problem.jobs.estimate_s, limits, "shortest")


def shortest_gpu(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run Shortest-GPU."""
    jobs = problem.jobs
    return _in_order(problem, jobs.estimate_s * jobs.gpus, limits, "shortest-gpu")


def _in_order(
    problem: QueueingProblem, key: FloatArray | None, limits: Limits, label: str
) -> Outcome:
    """Serve waiting jobs in order of `key`; without a key, by arrival, the first blocks others."""
    online = online_of(problem, key)
    return drive(
        problem, online, lambda n: serve_in_order(online, n, key is None), limits, label=label
    )
