"""Start of every job, and its GPUs on each node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.errors import NoQuote
from optgap.models.queueing.arrays import FloatArray, IntArray, floats, integers
from optgap.models.shown import Brief

if TYPE_CHECKING:
    from optgap.models.csvout import Table
    from optgap.models.jsonio import Fields
    from optgap.models.queueing.problem import QueueingProblem

SCHEMA = "optgap.queueing.solution/1"


@dataclass(frozen=True, eq=False, repr=False)
class QueueingSolution(Brief):
    """Queueing solution: a schedule; a job that never starts has no start time.

    Parameters
    ----------
    start_s, end_s: start and end of each job, s; NaN for a job that never starts.
    held_at: job k's nodes are those from ``held_at[k]`` to ``held_at[k + 1]``.
    held_node, held_gpus: the nodes that jobs hold, and the number of GPUs on each.
    """

    start_s: FloatArray = field(repr=False)
    end_s: FloatArray = field(repr=False)
    held_at: IntArray = field(repr=False)
    held_node: IntArray = field(repr=False)
    held_gpus: IntArray = field(repr=False)

    @classmethod
    def of(
        cls,
        problem: QueueingProblem,
        start_s: FloatArray,
        held_at: IntArray,
        held_node: IntArray,
        held_gpus: IntArray,
    ) -> QueueingSolution:
        """Make a solution of start times; every job runs for its true duration."""
        start = floats(start_s)
        end = floats(start + problem.jobs.duration_s)
        return cls(start, end, integers(held_at), integers(held_node), integers(held_gpus))

    @classmethod
    def on_nodes(
        cls,
        problem: QueueingProblem,
        start_s: FloatArray,
        held: Sequence[Sequence[tuple[int, int]]],
        end_s: FloatArray | None = None,
    ) -> QueueingSolution:
        """Make a solution of start times and each job's (node, GPUs) pairs.

        Jobs run for their true durations unless `end_s` says otherwise.
        """
        flat = [pair for pairs in held for pair in pairs]
        at = integers(np.concatenate([[0], np.cumsum([len(pairs) for pairs in held])]))
        node, gpus = integers([node for node, _ in flat]), integers([count for _, count in flat])
        if end_s is None:
            return cls.of(problem, start_s, at, node, gpus)
        return cls(floats(start_s), floats(end_s), at, node, gpus)

    def moved(self, by_s: float) -> QueueingSolution:
        """Return the same schedule with all times shifted by `by_s`."""
        return replace(self, start_s=floats(self.start_s + by_s), end_s=floats(self.end_s + by_s))

    @property
    def started(self) -> IntArray:
        """Jobs that start, ascending."""
        found: IntArray = np.flatnonzero(np.isfinite(self.start_s))
        return found

    def nodes_of(self, job: int) -> list[tuple[int, int]]:
        """Return the (node, GPUs) pairs of a job."""
        part = slice(int(self.held_at[job]), int(self.held_at[job + 1]))
        return list(zip(self.held_node[part].tolist(), self.held_gpus[part].tolist(), strict=True))

    def by_start(self) -> list[int]:
        """Return the jobs that start, in order of their starts."""
        started = self.started
        order: list[int] = started[np.argsort(self.start_s[started], kind="stable")].tolist()
        return order

    def schedule(self, problem: QueueingProblem) -> Table:
        """Return a row per job that starts, by start; nodes as ``node:gpus``."""
        names = problem.jobs.names
        return ("job", "start_s", "end_s", "nodes"), [
            (names[k], float(self.start_s[k]), float(self.end_s[k]),
             [f"{node}:{gpus}" for node, gpus in self.nodes_of(k)])
            for k in self.by_start()
        ]  # fmt: skip

    def to_json(self, problem: QueueingProblem) -> dict[str, Any]:
        """Return the JSON form, by start; jobs that never start are left out."""
        return {
            "schema": SCHEMA,
            "schedule": [
                {
                    "job": problem.jobs.names[k],
                    "start_s": float(self.start_s[k]),
                    "end_s": float(self.end_s[k]),
                    "nodes": [list(pair) for pair in self.nodes_of(k)],
                }
                for k in self.by_start()
            ],
        }

    @classmethod
    def from_json(cls, fields: Fields, problem: QueueingProblem) -> QueueingSolution:
        """Read a schedule of `problem`; jobs left out never start.

        If no entry has `nodes`, GPUs are assigned by best fit in order of start.

        Raises
        ------
        InputError: for an unknown job, a job given twice, `nodes` that are no pairs, or `nodes`
            in some entries only.
        """
        fields.schema(SCHEMA)
        count = len(problem.jobs)
        start, end = np.full(count, math.nan), np.full(count, math.nan)
        held: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        entries = fields.objects("schedule")
        placed = ["nodes" in entry.document for entry in entries]
        for entry in entries:
            name = entry.text("job")
            if name not in problem.jobs.index:
                raise entry.fail("job", name, "a job of the problem")
            k = problem.jobs.index[name]
            if not math.isnan(start[k]):
                raise entry.fail("job", NoQuote(f"job {name} twice"), "it once")
            start[k], end[k] = entry.number("start_s"), entry.number("end_s")
            if any(placed):
                held[k] = _pairs(entry)
        if entries and not any(placed):
            from optgap.models.queueing.packing import best_fit

            held = best_fit(problem, start, end)
        return cls.on_nodes(problem, start, held, end)


def _pairs(entry: Fields) -> list[tuple[int, int]]:
    pairs = []
    for item in entry.array("nodes"):
        whole = isinstance(item, list) and len(item) == 2
        if not whole or any(type(x) is not int or not 0 <= x < 2**31 for x in item):
            raise entry.fail("nodes", item, "[node, GPUs] pairs")
        pairs.append((item[0], item[1]))
    return pairs
