"""Log of jobs that really ran, as a problem and the schedule that happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from optgap.models.queueing.arrays import FloatArray, IntArray, floats, integers
from optgap.models.queueing.jobs import Jobs
from optgap.models.queueing.problem import MOST_GPUS_PER_NODE, QueueingProblem
from optgap.models.queueing.solution import QueueingSolution
from optgap.models.times import freed_s

AT_ONCE = "the most held at once (--set gpus=N)"


def _split(gpus: int) -> tuple[int, int]:
    """Return the fewest nodes that a problem may have for so many GPUs, and the GPUs of each."""
    fewest = -(-gpus // MOST_GPUS_PER_NODE)
    nodes = next(n for n in range(fewest, gpus + 1) if gpus % n == 0)
    return nodes, gpus // nodes


class Pool(NamedTuple):
    """Number of GPUs that the jobs of a log shared, its source in words, and the rule for it.

    The rule is the source that allows no more GPUs, "" if the log itself showed the number.
    """

    gpus: int
    said: str
    rule: str = ""


@dataclass(frozen=True)
class QueueLog:
    """Log as it was read, for one pool of GPUs.

    Parameters
    ----------
    problem: the jobs; only the number of GPUs matters, not their nodes.
    logged: the schedule that happened.
    pool: number of GPUs and its source.
    reasons: number of jobs left out, by reason.
    pools: jobs and GPU-hours by pool.
    warnings: remarks about odd values.
    lacks: sentence on the jobs for which the pool is too small; "" if everything fits.
    """

    problem: QueueingProblem
    logged: QueueingSolution
    pool: Pool
    reasons: Mapping[str, int]
    pools: Mapping[str, tuple[int, float]]
    warnings: tuple[str, ...]
    lacks: str

    @classmethod
    def of(
        cls,
        jobs: Jobs,
        start_s: FloatArray,
        told: int | None,
        shown: Pool,
        name: str,
        source: str,
        at: Callable[[float], str],
        reasons: Mapping[str, int],
        pools: Mapping[str, tuple[int, float]],
        warnings: Iterable[str],
    ) -> QueueLog:
        """Return the log of jobs that started at `start_s`.

        Parameters
        ----------
        jobs: jobs in the order of their arrivals, as `start_s`.
        told, shown: size of the pool as given, and as the log shows it.
        at: function that writes a time as text.
        """
        pool = shown if told is None else Pool(told, "as told", f"--set gpus={told}")
        most, when = peak(start_s, start_s + jobs.duration_s, jobs.gpus)
        enough = max(most, pool.gpus)
        nodes, each = _split(enough)
        problem = QueueingProblem.of(
            jobs, nodes=nodes, gpus_per_node=each, placement="count", name=name, origin=source,
            source=source,
        )  # fmt: skip
        # a pool that was told too small has jobs that it cannot hold: the referee says so
        nodes, each = _split(pool.gpus)
        problem = replace(problem, nodes=nodes, gpus_per_node=each)
        lacks = ""
        if enough > problem.gpus:
            lacks = (
                f"The log held {most:,} GPUs at {at(when)}, but {pool.rule} allows "
                f"{problem.gpus:,}: no bound and no saving; use --set gpus={most} or more."
            )
        logged = QueueingSolution.on_nodes(problem, start_s, [()] * len(jobs))
        left = {why: count for why, count in reasons.items() if count}
        return cls(problem, logged, pool, left, pools, tuple(warnings), lacks)

    @property
    def records(self) -> int:
        """Number of jobs in the file."""
        return len(self.problem) + sum(self.reasons.values())

    @property
    def load(self) -> float:
        """GPU time held, over the GPU time of the pool from the first start to the last end."""
        span = float(np.max(self.logged.end_s) - np.min(self.logged.start_s))
        return float(self.problem.jobs.gpu_seconds.sum()) / (self.problem.gpus * span)

    @property
    def idle_waiting(self) -> float:
        """Share of all waiting during which the free GPUs were enough for all waiting jobs.

        Under any order of the jobs, no job need wait for these GPUs.
        """
        jobs, start, end = self.problem.jobs, self.logged.start_s, self.logged.end_s
        one, none = np.ones(len(jobs), dtype=np.int64), np.zeros(len(jobs), dtype=np.int64)
        time = np.concatenate([jobs.arrival_s, start, end])
        order = np.argsort(time, kind="stable")
        waiting = np.cumsum(np.concatenate([one, -one, none])[order])[:-1]
        # those that wait and those that run together
        wanted = np.cumsum(np.concatenate([jobs.gpus, none, -jobs.gpus])[order])[:-1]
        waited = waiting * np.diff(time[order])
        total = float(waited.sum())
        return float(waited[wanted <= self.problem.gpus].sum()) / total if total > 0 else 0.0


def peak(start_s: FloatArray, end_s: FloatArray, gpus: IntArray) -> tuple[int, float]:
    """Return the most GPUs held at once, and the first time of this."""
    most, at = peaks(start_s, end_s, gpus, np.zeros_like(gpus))
    return int(most[0]), float(at[0])


def peaks(
    start_s: FloatArray, end_s: FloatArray, gpus: IntArray, node: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return the most GPUs held at once on each node, by number, and the first time of this."""
    time = np.concatenate([freed_s(start_s, end_s), start_s])
    change, where = np.concatenate([-gpus, gpus]), np.concatenate([node, node])
    order = np.lexsort((change, time, where))
    held = np.cumsum(change[order])  # every node's changes add up to nothing
    first = np.flatnonzero(np.diff(where[order], prepend=-1))
    places = [a + int(np.argmax(held[a:b])) for a, b in pairwise([*first.tolist(), len(held)])]
    return integers(held[places]), floats(time[order][places])
