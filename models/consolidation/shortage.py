"""Why tasks cannot all run at once, where a capacity alone tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.consolidation.tasks import BYTES, MICRO
from optgap.models.shortage import short

if TYPE_CHECKING:
    from optgap.models.consolidation.problem import ConsolidationProblem


def why_not(problem: ConsolidationProblem, tasks: Sequence[int]) -> str:
    """What these tasks together want more of than all GPUs have.

    "" where every capacity suffices: then it is how the tasks fit together. Over time nothing is
    short: tasks need not be there at once.
    """
    if problem.objective.goal == "energy":
        return ""
    return "; ".join(filter(None, _totals(problem, np.array(tasks, dtype=np.int64))))


def _totals(problem: ConsolidationProblem, chosen: np.ndarray) -> Iterator[str]:
    width, memory = problem.width[chosen], problem.memory[chosen]
    gpus, rules = problem.gpu_memory, problem.rules
    there = float(gpus.sum()) / BYTES
    yield short("memory of GPUs", float((width * memory).sum()) / BYTES, there, "GB")
    if rules.capacity != "none":
        asked = float((problem.rows[:, chosen] * width).sum(axis=1).max()) / MICRO
        room = len(gpus) * rules.limit_percent
        yield short(f"utilisation of GPUs ({rules.capacity})", asked, room, "%")
    # two of these never share a GPU
    for what, large in (
        ("with more than half the memory", 2 * memory > gpus.max()),
        ("with more than half the utilisation", _halves(problem, chosen)),
    ):
        alone = float(width[large].sum())
        yield short(f"GPUs for tasks {what}", alone, len(gpus), "GPUs")


def _halves(problem: ConsolidationProblem, chosen: np.ndarray) -> np.ndarray:
    """Which tasks take more than half of a GPU in one and the same row, the fullest one."""
    over: np.ndarray = 2 * problem.rows[:, chosen] > problem.limit_micro
    if not len(over):
        return np.zeros(len(chosen), dtype=np.bool_)
    fullest: np.ndarray = over[int(np.argmax((over * problem.width[chosen]).sum(axis=1)))]
    return fullest
