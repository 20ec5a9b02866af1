"""Rows of the master program, which hold in each time bucket whichever tasks share a GPU.

In bucket k GPUs are awake for N_k seconds and could make Φ_k seconds of progress. For shares g with
Σ_{l∈S} g_l ≤ 1 for all sets S that fit one GPU, Σ v_l·g_l·(presence of l) ≤ N_k and
Σ v_l·g_l·(progress of l) ≤ Φ_k; the second also holds for utilisation where none is created by
sharing (q ≥ 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optgap.models.compiled import floats
from optgap.models.consolidation import ConsolidationProblem, Task
from optgap.solvers.consolidation.numerics import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.envelope import Envelope, envelope


@dataclass(frozen=True, eq=False)
class Relaxation:
    """A problem in buckets of time. K buckets, the last without an end; R shares.

    Parameters
    ----------
    cover: (L, K) s of each bucket that a task can be present in; infinite in the last.
    first: (L,) the first bucket of each task.
    effort: (L,) s of progress to make. work: (L,) ∫u/100 over it, s. low, high: (L,) least and
        highest u/100 of any moment, both that of the mean where utilisation does not vary.
    shares: (R, L) g_l times v_l and the task's factor of the power curve; rows of one task alone
        come last. regular: how many come before these.
    weight: (L,) v_l and the factor alone: what utilisation is multiplied by.
    counted: (K,) s of GPUs that are awake for certain. asking: whether utilisation bounds progress.
    waits: whether a task may be absent before it ends.
    curve: the power curve. span: s, what times are measured in by the program.
    """

    cover: FloatArray
    first: IntArray
    effort: FloatArray
    work: FloatArray
    low: FloatArray
    high: FloatArray
    shares: FloatArray
    regular: int
    weight: FloatArray
    counted: FloatArray
    asking: bool
    waits: bool
    curve: Envelope
    span: float

    @property
    def tasks(self) -> int:
        return len(self.effort)

    @property
    def buckets(self) -> int:
        return int(self.cover.shape[1])

    @property
    def base(self) -> FloatArray:
        """(K,) what rows of progress count it above: the least pace; 0 where presence is open."""
        base = np.full(self.buckets, 0.0 if self.waits else float(self.curve.pace.min()))
        base[-1] = 0.0
        return base


def relaxation(problem: ConsolidationProblem, buckets: int, *, alone: bool = True) -> Relaxation:
    """Return the relaxation of a problem with so many buckets.

    Parameters
    ----------
    alone: with shares of one task alone, which take L² numbers.
    """
    tasks = problem.tasks
    submit = floats([t.submit_s for t in tasks])
    effort = floats([t.duration_s for t in tasks])
    edges = _edges(submit, effort, buckets)
    begin, end = edges, np.append(edges[1:], np.inf)
    cover = np.maximum(0.0, end[None, :] - np.maximum(begin[None, :], submit[:, None]))
    first = np.searchsorted(edges, submit, side="right") - 1
    low, high, work = utilisations(problem)
    curve = envelope(problem)
    weight = problem.width * curve.factor
    demand, limits = sizes(problem)
    fitted = demand / limits[:, None]
    single = np.eye(len(tasks)) if alone else fitted[:0]
    counted = np.zeros(len(edges))
    if not problem.rules.waiting:
        times, needed = _certain_gpus(problem)
        counted[:-1] = _integrated(times, needed, edges) * float(curve.factor.min())
    return Relaxation(
        cover, first.astype(np.int64), effort, work, low, high,
        np.concatenate([fitted, single]) * weight, len(fitted), weight, counted,
        problem.rules.contention >= 1, problem.rules.waiting, curve,
        float(max(effort.mean(), 1e-6)),
    )  # fmt: skip


def _edges(submit: FloatArray, effort: FloatArray, buckets: int) -> FloatArray:
    """Return the starts of buckets: arrivals and ends, or some of them; then some longer ones."""
    start, last = float(submit.min()), float((submit + effort).max())
    times = np.unique(np.concatenate([submit, submit + effort, submit + 1.25 * effort]))
    times = np.unique(np.concatenate([times[times < last], np.linspace(start, last, 9)]))
    if len(times) > buckets:
        at = np.linspace(0, len(times) - 1, buckets).round().astype(np.int64)
        times = times[np.unique(at)]
    later = last + (last - start) * np.array([0.05, 0.1, 0.2, 0.4])
    return np.unique(np.concatenate([[start], times, [last], later]))


def utilisations(problem: ConsolidationProblem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (L,) least and highest u/100, and ∫u/100 over a task's progress, s."""
    low, high, work = [], [], []
    for task in problem.tasks:
        u = task.util_percent / 100
        each = sample_times(task, problem.period_s)
        total = float((u * each).sum())
        some = u[each > 0]
        even = bool((some == some[0]).all())
        low.append(total / task.duration_s if even else float(some.min()))
        high.append(total / task.duration_s if even else float(some.max()))
        work.append(total)
    return np.array(low), np.array(high), np.array(work)


def sample_times(task: Task, period_s: float) -> FloatArray:
    """Return the progress that each sample of a task covers, s; the last holds to the end."""
    ends = np.minimum(np.arange(1, task.util_percent.size + 1) * period_s, task.duration_s)
    ends[-1] = task.duration_s
    return np.asarray(np.diff(ends, prepend=0.0))


def _certain_gpus(problem: ConsolidationProblem) -> tuple[FloatArray, FloatArray]:
    """Return when the tasks surely present change, and the GPUs that they need from then on."""
    submit = np.array([t.submit_s for t in problem.tasks])
    done = submit + np.array([t.duration_s for t in problem.tasks])
    times, event = np.unique(np.concatenate([submit, done]), return_inverse=True)
    demand, limits = sizes(problem)
    widths = np.unique(problem.width)
    rows = np.concatenate([demand * problem.width, problem.width == widths[:, None]])
    changes: IntArray = np.zeros((len(rows), len(times)), dtype=np.int64)
    np.add.at(changes.T, event, np.concatenate([rows, -rows], axis=1).T)
    there = changes.cumsum(axis=1)
    filled = -(-there[: len(limits)] // limits[:, None])
    widest = np.where(there[len(limits) :] > 0, widths[:, None], 0)
    return times, np.concatenate([filled, widest]).max(axis=0).astype(np.float64)


def _integrated(times: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return ∫ of a step function (values[i] from times[i] on) between neighbouring edges."""
    points = np.append(times, max(times[-1], edges[-1]) + 1.0)
    grown = np.concatenate([[0.0], np.cumsum(values * np.diff(points))])
    return np.asarray(np.diff(np.interp(edges, points, grown)))


def sizes(problem: ConsolidationProblem) -> tuple[IntArray, IntArray]:
    """Return memory and the capacity row if any, (R, L), and the amount of a GPU, (R,)."""
    limits = [int(problem.gpu_memory.max()), *[problem.limit_micro] * len(problem.rows)]
    return np.concatenate([problem.memory[None, :], problem.rows]), np.array(limits)
