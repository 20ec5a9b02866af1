"""Policies in an order that never changes (HPS/PBS/SBS, Sec. III-B).

- *FIFO*: by arrival; the first job blocks the others while it does not fit.
- *SJF*: the fewest GPUs n first. The paper's Table I swaps SJF and Shortest. This file follows the
  text, which agrees with itself and with the simulator of the job fields; ``sjf_key="time"``
  follows the table.
- *Shortest* (SRTF): the least run time t first. Jobs are never preempted, so the remaining time of
  a waiting job is its run time, as estimated.
- *Shortest-GPU*: the least t·n first.
"""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.engine import drive
from optgap.heuristics.queueing.parameters import SjfParams
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.queueing.arrays import FloatArray, floats
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.queueing.online import online_of, serve_in_order


def fifo(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run FIFO."""
    return _in_order(problem, None, limits, "fifo")


def sjf(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run SJF; `given` is as in `SjfParams`.

    Raises
    ------
    InputError: for an unknown `sjf_key`.
    """
    by_gpus = chosen(SjfParams, given, "sjf").sjf_key == "gpus"
    key = floats(problem.jobs.gpus) if by_gpus else problem.jobs.estimate_s
    return _in_order(problem, key, limits, "sjf")


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
    return drive(problem, online, lambda n: serve_in_order(online, n, key is None), limits, label)
