"""Placement of every task and, if tasks leave, its start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.errors import NoQuote
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.shown import Brief
from optgap.models.times import LATEST_S

if TYPE_CHECKING:
    from optgap.models.csvout import Table
    from optgap.models.jsonio import Fields
    from optgap.models.placement.problem import PlacementProblem

SCHEMA = "optgap.placement.solution/1"


@dataclass(frozen=True, eq=False, repr=False)
class PlacementSolution(Brief):
    """Placement solution: one entry per task, in order of arrival.

    Parameters
    ----------
    node: (T,) node index, -1 where the task was not placed.
    gpu_mask: (T,) the GPUs used, bit g for GPU g of the node; 0 for CPU-only or failed tasks.
    start_s: (T,) when each starts, s, NaN where it was not placed; None where nothing leaves.
    """

    node: IntArray
    gpu_mask: IntArray
    start_s: FloatArray | None = None

    @classmethod
    def of(cls, placements: Iterable[tuple[int, Sequence[int]] | None]) -> PlacementSolution:
        """Make a solution of one (node, GPU indices) or None per task."""
        nodes: list[int] = []
        masks: list[int] = []
        for placement in placements:
            node, gpus = placement if placement is not None else (-1, ())
            nodes.append(node)
            masks.append(sum(1 << g for g in set(gpus)))
        return cls.of_arrays(np.array(nodes, dtype=np.int64), np.array(masks, dtype=np.int64))

    @classmethod
    def of_arrays(
        cls, node: IntArray, gpu_mask: IntArray, start_s: FloatArray | None = None
    ) -> PlacementSolution:
        """Make a solution of the columns, which become read-only; rejected tasks have no start."""
        node = np.asarray(node, dtype=np.int64)
        gpu_mask = np.asarray(gpu_mask, dtype=np.int64)
        node.flags.writeable = False
        gpu_mask.flags.writeable = False
        if start_s is not None:
            start_s = np.where(node >= 0, np.asarray(start_s, dtype=np.float64), np.nan)
            start_s.flags.writeable = False
        return cls(node, gpu_mask, start_s)

    def __len__(self) -> int:
        return len(self.node)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PlacementSolution)
            and np.array_equal(self.node, other.node)
            and np.array_equal(self.gpu_mask, other.gpu_mask)
            and _same(self.start_s, other.start_s)
        )

    __hash__ = None  # type: ignore[assignment]

    def moved(self, by_s: float) -> PlacementSolution:
        """Return the same solution with all times shifted by `by_s`."""
        return self if self.start_s is None else replace(self, start_s=self.start_s + by_s)

    def gpus(self, k: int) -> tuple[int, ...]:
        """Return the GPU indices that task `k` uses, ascending."""
        mask = int(self.gpu_mask[k])
        return tuple(g for g in range(mask.bit_length()) if mask >> g & 1)

    def placements(self, problem: PlacementProblem) -> Table:
        """Return a row per arrival, with its times where tasks leave.

        Cells are empty for a task that was not placed, `gpu_index` also for one without GPUs.
        """
        names, header = problem.cluster.names, ("seq", "node", "gpu_index")
        rows: list[tuple[object, ...]] = [
            (k, names[node] if node >= 0 else "", self.gpus(k))
            for k, node in enumerate(self.node.tolist())
        ]
        if self.start_s is None:
            return header, rows
        times = zip(self.start_s.tolist(), (self.start_s + problem.lasting_s).tolist(), strict=True)
        shown = [pair if row[1] else ("", "") for row, pair in zip(rows, times, strict=True)]
        timed = [(*row, *pair) for row, pair in zip(rows, shown, strict=True)]
        return (*header, "start_s", "end_s"), timed

    def series(self, problem: PlacementProblem) -> Table:
        """Return cumulative demand, use, fragmentation (milli-GPU) and power (W) per arrival.

        Where tasks leave: use, fragmentation, power, and tasks that run, from each time.
        """
        from optgap.models.placement.series import replay
        from optgap.models.placement.timeline import timeline

        shares = ("used_gpu_milli", "frag_gpu_milli")
        over_time = ("time_s", *shares, "power_w", "running")
        arrivals = ("arrived_gpu_milli", shares[0], "used_cpu_milli", shares[1],
                    "power_cpu_w", "power_gpu_w")  # fmt: skip
        timed = problem.over_time is not None
        found: Any = timeline(problem, self) if timed else replay(problem, self)
        names = over_time if timed else arrivals
        rows = zip(*(getattr(found, name).tolist() for name in names), strict=True)
        if timed:
            return names, rows
        return ("seq", *names), ((k, *row) for k, row in enumerate(rows))

    def to_json(self, problem: PlacementProblem) -> dict[str, Any]:
        """Return the JSON form; nodes by name, null for a rejected task."""
        names = problem.cluster.names
        placements: list[dict[str, Any]] = [
            {
                "seq": k,
                "task": problem.tasks.names[k],
                "node": names[int(n)] if n >= 0 else None,
                "gpus": list(self.gpus(k)),
            }
            for k, n in enumerate(self.node)
        ]
        if self.start_s is not None:
            for entry, start in zip(placements, self.start_s.tolist(), strict=True):
                if entry["node"] is not None:
                    entry["start_s"] = start
        return {"schema": SCHEMA, "placements": placements}

    @classmethod
    def from_json(cls, fields: Fields, problem: PlacementProblem) -> PlacementSolution:
        """Read a solution of `problem`; tasks left out count as not placed.

        Over time, a task without `start_s` starts when it is submitted.

        Raises
        ------
        InputError: for an unknown node or arrival, an arrival given twice, or a `task` that
            is not the name of that arrival.
        """
        fields.schema(SCHEMA)
        placed: list[tuple[int, Sequence[int]] | None] = [None] * len(problem.tasks)
        start = np.array(problem.tasks.submit_s)
        seen: set[int] = set()
        for entry in fields.objects("placements"):
            k = entry.integer("seq")
            if k >= len(placed):
                raise entry.fail("seq", k, f"an arrival below {len(placed)}")
            if k in seen:
                raise entry.fail("seq", NoQuote(f"arrival {k} twice"), "it once")
            seen.add(k)
            name = entry.text("task", problem.tasks.names[k])
            if name != problem.tasks.names[k]:
                raise entry.fail("task", name, f"{problem.tasks.names[k]!r} for arrival {k}")
            gpus = entry.integers("gpus") if "gpus" in entry.document else []
            if any(g >= 63 for g in gpus):
                raise entry.fail("gpus", max(gpus), "GPU indices of the node")
            if len(set(gpus)) != len(gpus):
                raise entry.fail("gpus", gpus, "every GPU index once")
            if not entry.known("node"):
                continue
            node = entry.text("node")
            if node not in problem.cluster.index:
                raise entry.fail("node", node, "a node of the problem")
            placed[k] = (problem.cluster.index[node], gpus)
            if entry.known("start_s"):
                start[k] = entry.number("start_s", minimum=-LATEST_S, maximum=LATEST_S)
        made = cls.of(placed)
        if problem.over_time is None:
            return made
        return cls.of_arrays(made.node, made.gpu_mask, start)


def _same(ours: FloatArray | None, theirs: FloatArray | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return np.array_equal(ours, theirs, equal_nan=True)
