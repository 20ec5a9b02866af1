"""SBS's batches: all of them in small families, neighbours in large ones.

Every queueing policy is compared with its transcription in `tests/heuristics/queueing`.
"""

from __future__ import annotations

import numpy as np
from transcriptions.queue_schedulers import Slow, sbs

from optgap.heuristics.queueing import POLICIES
from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem


def queue(seed: int) -> QueueingProblem:
    """Three to twelve jobs of two families that all wait at 0 s."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 13))
    g = int(rng.choice([3, 4, 8]))
    gpus = np.minimum(rng.choice([1, 2, 4, 8], count, p=[0.4, 0.3, 0.2, 0.1]), g)
    duration = np.round(np.exp(rng.uniform(np.log(300), np.log(20000), count)))
    family, rate = rng.integers(0, 2, count), rng.lognormal(0, 0.3, count)
    if seed % 3 == 0:  # ties, which larger batches win
        duration, rate = rng.choice([1800.0, 3600.0], count), np.ones(count)
    jobs = Jobs.of(
        [0.0] * count,
        duration,
        gpus,
        families=[f"f{k}" for k in family],
        iterations=duration * gpus * rate,
    )
    return QueueingProblem.of(jobs, nodes=int(rng.integers(1, 3)), gpus_per_node=g)


def test_the_best_batch_is_found_where_neighbours_miss_it() -> None:
    differs = 0
    for seed in range(150):
        starts = {}
        for every in (0, 12):
            solution = (
                POLICIES["sbs"].load()(queue(seed), limits=Limits(), seed=0, every=every).solution
            )
            slow = Slow(queue(seed)).run(sbs(every))
            found = {k: (solution.start_s[k], solution.nodes_of(k)) for k in range(len(slow.start))}
            assert found == {k: (slow.start[k], slow.nodes[k]) for k in slow.start}, seed
            starts[every] = found
        differs += starts[0] != starts[12]
    assert differs > 1
