"""Small queueing problems, with ties, wide jobs, awkward nodes, wrong estimates and patience."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from optgap.models.queueing import Jobs, QueueingProblem
from optgap.models.queueing.problem import Goal

GOALS: tuple[Goal, ...] = ("mean_wait", "mean_jct", "makespan")
TIMES = (1.0, 2.0, 3.0, 5.0, 0.25, 7.3, 10 / 3)
ARRIVALS = (0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 4.5, 10 / 3)


@st.composite
def queueing_problems(
    draw: st.DrawFn, *, goals: Sequence[Goal] = GOALS, max_jobs: int = 4, max_nodes: int = 2
) -> QueueingProblem:
    """A few jobs on a few nodes; times that are no decimals among them."""
    nodes = draw(st.integers(1, max_nodes))
    g = draw(st.integers(1, 4))
    count = draw(st.integers(1, max_jobs))
    whole = draw(st.booleans())
    times = [t for t in TIMES if not whole or t == round(t)]
    arrivals = [t for t in ARRIVALS if not whole or t == round(t)]
    jobs = Jobs.of(
        [draw(st.sampled_from(arrivals)) for _ in range(count)],
        [draw(st.sampled_from(times)) for _ in range(count)],
        [draw(st.integers(1, nodes * g)) for _ in range(count)],
    )
    placement = draw(st.sampled_from(("node", "node", "count")))
    return QueueingProblem.of(
        jobs,
        nodes=nodes,
        gpus_per_node=g,
        placement=placement,  # type: ignore[arg-type]  # one of the two
        goal=draw(st.sampled_from(list(goals))),
        name="random",
        origin="synthetic",
    )


def stream(seed: int, most: int = 40) -> QueueingProblem:
    """A random stream: every third with patience, every fifth with wrong estimates."""
    rng = np.random.default_rng(seed)
    count, nodes = int(rng.integers(1, most)), int(rng.integers(1, 5))
    g = int(rng.choice([1, 4, 8, 8]))
    duration = rng.integers(1, 12 if seed % 2 else 12_000, count).astype(float)
    gpus = np.minimum(rng.choice([1, 1, 2, 3, 4, 5, 8, 12, 16], count), nodes * g)
    last = 2 if seed % 4 == 0 else int(duration.sum() / nodes) + 2
    patience = rng.integers(1, 6000, count).astype(float)
    errors = rng.lognormal(0, 0.5, count)
    jobs = Jobs.of(
        rng.integers(0, last, count).astype(float),
        duration,
        gpus,
        families=[f"f{k}" for k in rng.integers(0, 3, count)],
        iterations=np.round(duration * gpus * rng.choice([1.0, 1.0, 1.3, 0.7], count)),
        patience_s=patience if seed % 3 == 1 else math.inf,
        estimate_s=np.maximum(1, np.round(duration * errors)) if seed % 5 == 2 else None,
    )
    return QueueingProblem.of(
        jobs,
        nodes=nodes,
        gpus_per_node=g,
        placement="count" if seed % 7 == 3 else "node",
        name=f"stream {seed}",
        origin="synthetic",
    )


def five_jobs(goal: Goal = "mean_wait") -> QueueingProblem:
    """Five jobs on one node of eight GPUs; under FIFO and SJF worked out by hand."""
    jobs = Jobs.of([0, 10, 20, 30, 40], [3600, 600, 1200, 300, 900], [4, 8, 2, 1, 4], names="12345")
    return QueueingProblem.of(jobs, nodes=1, goal=goal, name="five jobs")
