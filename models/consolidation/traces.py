"""Workloads of the size of the paper's, drawn from published distributions: synthetic.

PAI: Weng et al., NSDI 2022: run times have a median of 23 min and a 90th percentile of 4.5 h; the
paper (Fig. 3): most tasks hold much less than 16 GB of GPU memory, nearly all less than 32 GB.
Philly: Jeon et al., ATC 2019: mean utilisation of GPUs in use 52 %, mostly one GPU per task, the
others 2 to 8; run times with a median of 13 min and a heavy tail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optgap.models.consolidation.tasks import FloatArray, Task
from optgap.models.errors import InputError

KAPPA = 1.2
"""Tolerance of every task."""
SHORTEST_S = 20.0
"""The paper leaves shorter tasks out."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Distributions from which a trace is drawn.

    Parameters
    ----------
    median_s, p90_s, longest_s: run times, log-normal, cut at the longest.
    gpus: (v, share of tasks).
    memory_gb, memory_shares: log-uniform within the ranges.
    util_percent: mean and standard deviation of a task's mean utilisation.
    swing: standard deviation of utilisation around that mean, as a share of it.
    """

    median_s: float
    p90_s: float
    longest_s: float
    gpus: tuple[tuple[int, float], ...]
    memory_gb: tuple[tuple[float, float, float], ...]
    util_percent: tuple[float, float]
    swing: float


PAI = Workload(
    1380.0,
    16200.0,
    86400.0,
    ((1, 0.94), (2, 0.03), (4, 0.02), (8, 0.01)),
    ((0.5, 4.0, 0.45), (4.0, 12.0, 0.40), (12.0, 30.0, 0.15)),
    (35.0, 22.0),
    0.35,
)
PHILLY = Workload(
    780.0,
    14400.0,
    86400.0,
    ((1, 0.86), (2, 0.06), (4, 0.05), (8, 0.03)),
    ((0.5, 4.0, 0.30), (4.0, 10.0, 0.45), (10.0, 22.0, 0.25)),
    (52.0, 24.0),
    0.30,
)


def utilisation(rng: np.random.Generator, samples: int, mean: float, swing: float) -> FloatArray:
    """Return a series around `mean`: phases of a random length, and a first-order noise on top."""
    t = np.arange(samples)
    period = rng.uniform(4, 40)
    phase = rng.uniform(0, 1)
    duty = rng.uniform(0.3, 0.7)
    wave = np.where((t / period + phase) % 1 < duty, (1 - duty), -duty)
    noise = np.empty(samples)
    level = 0.0
    for k, shock in enumerate(rng.normal(0, 1, samples)):
        level = 0.6 * level + 0.8 * shock
        noise[k] = level
    series = mean * (1 + swing * (1.2 * wave + 0.6 * noise))
    return np.asarray(np.round(np.clip(series, 0, 100), 3), dtype=np.float64)


def _drawn(
    workload: Workload, size: int, rng: np.random.Generator, present: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return when tasks arrive, s, how long they run, s, and their GPUs."""
    sigma = np.log(workload.p90_s / workload.median_s) / 1.2816
    durations = workload.median_s * np.exp(sigma * rng.standard_normal(size))
    durations = np.clip(durations, SHORTEST_S, workload.longest_s)
    gaps = rng.exponential(durations.mean() / present, size)
    submits = np.cumsum(gaps) - gaps[0]
    counts, shares = zip(*workload.gpus, strict=True)
    widths = rng.choice(counts, size, p=np.array(shares) / sum(shares))
    return submits, durations, widths


def draw(
    workload: Workload,
    size: int,
    rng: np.random.Generator,
    *,
    present: float,
    period_s: float,
    most_gpus: int,
    pool: list[FloatArray] | None = None,
    jobs: FloatArray | None = None,
) -> list[Task]:
    """Return `size` tasks that arrive at random, `present` of them at a time on average.

    Parameters
    ----------
    most_gpus: no task takes more.
    pool: series to use instead of made ones; a task runs through one from a random sample on.
    jobs: recorded ones, as `recorded.jobs` returns them: `size` in a row from a random one on,
        of those that run 20 s and take `most_gpus` at most. Run times are cut at the longest, and
        one factor of all gaps brings about `present`.

    Raises
    ------
    InputError: for fewer recorded jobs than `size`.
    """
    if jobs is not None:
        jobs = jobs[(jobs[:, 1] >= SHORTEST_S) & (jobs[:, 2] >= 1) & (jobs[:, 2] <= most_gpus)]
        if len(jobs) < size:
            raise InputError("size", "", size, f"at most the {len(jobs)} jobs recorded")
        start = int(rng.integers(len(jobs) - size + 1))
        submits, durations, widths = jobs[start : start + size].T
        durations = np.minimum(durations, workload.longest_s)
        submits = submits - submits[0]
        submits *= durations.sum() / present / max(submits[-1], 1.0)
    else:
        submits, durations, widths = _drawn(workload, size, rng, present)
    ranges = np.array(workload.memory_gb)
    which = rng.choice(len(ranges), size, p=ranges[:, 2] / ranges[:, 2].sum())
    logs = np.log(ranges[which, :2])
    memory = np.exp(logs[:, 0] + rng.uniform(0, 1, size) * (logs[:, 1] - logs[:, 0]))
    means = np.clip(rng.normal(*workload.util_percent, size), 3, 98)
    tasks = []
    for k in range(size):
        samples = int(np.ceil(durations[k] / period_s))
        if pool:
            source = pool[int(rng.integers(len(pool)))]
            series = np.resize(np.roll(source, -int(rng.integers(source.size))), samples)
        else:
            series = utilisation(rng, samples, float(means[k]), workload.swing)
        tasks.append(
            Task(
                f"t{k + 1}",
                round(float(memory[k]), 2),
                int(min(widths[k], most_gpus)),
                KAPPA,
                round(float(submits[k]), 3),
                round(float(durations[k]), 3),
                series,
            )
        )
    return tasks
