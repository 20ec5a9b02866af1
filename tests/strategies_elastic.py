"""Elastic problems: small ones drawn at random, and those worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from optgap.models.elastic import ElasticProblem, JobClass, Jobs, Overhead

FREE = Overhead(0.0, 0.0, 0.0)
CLOCKS = (1000.0, 1200.0, 1400.0)

# T_iter in s and power in W by GPUs (1, 2, 4) and clock
JOB_A = (
    ((1.00, 0.87, 0.80), (0.60, 0.52, 0.48), (0.40, 0.35, 0.325)),
    ((100, 135, 172), (190, 240, 300), (360, 455, 570)),
)
JOB_B = (
    ((2.00, 1.72, 1.58), (1.10, 0.95, 0.88), (0.65, 0.57, 0.53)),
    ((120, 166, 210), (230, 290, 362), (440, 555, 690)),
)


def table(
    name: str, times: Sequence[Sequence[float]], watts: Sequence[Sequence[float]], batch: int = 64
) -> JobClass:
    """A class from rows per GPU count 1, 2, 4, …"""
    counts = tuple(1 << k for k in range(len(times)))
    return JobClass(name, batch, counts, np.array(times, float), np.array(watts, float))


def jobs_of(
    classes: Sequence[int],
    iterations: Sequence[float],
    submit_s: Sequence[float] | None = None,
    requested: Sequence[int] | None = None,
) -> Jobs:
    """Jobs named a, b, c, …"""
    n = len(classes)
    return Jobs(
        tuple(chr(97 + k) if k < 26 else f"j{k}" for k in range(n)),
        np.array([0.0] * n if submit_s is None else submit_s, dtype=float),
        np.array(classes, dtype=np.int64),
        np.array(iterations, dtype=float),
        np.array([1] * n if requested is None else requested, dtype=np.int64),
    )


def two_jobs(limit_w: float = 480.0, gpus: int = 4, per_node: int = 4) -> ElasticProblem:
    """The two jobs of the written-out example of Algorithm 1; restarts and idling are free."""
    return ElasticProblem.of(
        [table("A", *JOB_A), table("B", *JOB_B)],
        jobs_of([0, 1], [1000, 500]),
        CLOCKS,
        gpus=gpus,
        gpus_per_node=per_node,
        eta=limit_w / (gpus * 150),
        p_max_w=150.0,
        idle_w=0.0,
        overhead=FREE,
        name="two jobs",
    )


def rigid(
    rows: Sequence[tuple[float, float, int]],
    gpus: int = 4,
    per_node: int = 4,
    overhead: Overhead = FREE,
) -> ElasticProblem:
    """(submission, seconds, GPUs) jobs of one iteration per second whatever they run on."""
    times = [[1.0]] * (int(np.log2(gpus)) + 1)
    watts = [[100.0 * (1 << k)] for k in range(len(times))]
    return ElasticProblem.of(
        [table("unit", times, watts)],
        jobs_of([0] * len(rows), [r[1] for r in rows], [r[0] for r in rows], [r[2] for r in rows]),
        [1000.0],
        gpus=gpus,
        gpus_per_node=per_node,
        cap="none",
        idle_w=10.0,
        overhead=overhead,
        name="rigid",
    )


@st.composite
def job_classes(draw: st.DrawFn, name: str, counts: int, clocks: int) -> JobClass:
    """Tables that may save or cost time with more GPUs, and energy with a higher clock."""
    single = draw(st.sampled_from((0.5, 1.0, 2.0, 3.7)))
    share = draw(st.sampled_from((0.3, 0.6, 0.95, 1.0)))
    fixed = draw(st.sampled_from((0.0, 0.1, 0.5)))
    watts = draw(st.sampled_from((80.0, 150.0, 233.3)))
    times, powers = [], []
    for k in range(counts):
        n = 1 << k
        clock = np.linspace(0.6, 1.0, clocks)
        times.append(
            single * (share / n + 1 - share + 0.02 * (n - 1)) * (fixed + (1 - fixed) / clock)
        )
        powers.append(watts * n * (0.3 + 0.7 * clock ** draw(st.sampled_from((1.0, 2.0, 3.0)))))
    return table(name, times, powers)


@st.composite
def elastic_problems(
    draw: st.DrawFn,
    *,
    max_jobs: int = 4,
    max_clocks: int = 3,
    free: bool = False,
    gpus: Sequence[int] = (1, 2, 4),
) -> ElasticProblem:
    """A few jobs on a few GPUs; limits from tight to loose."""
    total = draw(st.sampled_from(list(gpus)))
    per_node = draw(st.sampled_from([n for n in (1, 2, 4) if n <= total]))
    clocks = draw(st.integers(1, max_clocks))
    counts = total.bit_length()
    kinds = draw(st.integers(1, 2))
    classes = [draw(job_classes(f"m{k}", counts, clocks)) for k in range(kinds)]
    size = draw(st.integers(1, max_jobs))
    needed = max(float(c.power_w.min()) for c in classes)
    limit = needed * draw(st.sampled_from((1.01, 1.5, 2.5, 10.0)))
    return ElasticProblem.of(
        classes,
        jobs_of(
            draw(st.lists(st.integers(0, kinds - 1), min_size=size, max_size=size)),
            draw(st.lists(st.sampled_from((1.0, 10.0, 55.0, 300.0)), min_size=size, max_size=size)),
            sorted(
                draw(st.lists(st.sampled_from((0.0, 0.0, 7.0, 60.0)), min_size=size, max_size=size))
            ),
            [draw(st.sampled_from([n for n in (1, 2, 4) if n <= total])) for _ in range(size)],
        ),
        list(np.linspace(600, 1000, clocks)),
        gpus=total,
        gpus_per_node=per_node,
        eta=1.0,
        p_max_w=limit / total,
        idle_w=draw(st.sampled_from((0.0, 5.0))),
        overhead=FREE if free else draw(st.sampled_from((FREE, Overhead(2.0, 2.0, 27.0)))),
        name="random",
    )
