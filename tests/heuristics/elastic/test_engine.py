from __future__ import annotations

import numpy as np
from strategies_elastic import rigid

from optgap.models.elastic import Kind, Overhead
from optgap.models.elastic.simulation.cluster import Cluster
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, Settings, State
from optgap.models.limits import Limits


class Blink:
    """Stops a job for a moment too short to count, and goes on elsewhere."""

    settings = Settings(making="none")

    def decide(self, state: State) -> Decision:
        now, size = state.time_s, len(state.jobs)
        clock = np.zeros(size, dtype=np.int64)
        if 20 <= now < 20.0000001:
            return Decision(np.full(size, -1), clock, wake_s=20 + 1e-7, places=[()] * size)
        place = (0,) if now < 20 else (2,)
        wake = 20.0 if now < 20 else np.inf
        return Decision(np.zeros(size, dtype=np.int64), clock, wake_s=wake, places=[place] * size)


def test_a_job_that_goes_on_elsewhere_after_a_blink_has_been_moved() -> None:
    problem = rigid([(0, 100, 1)], overhead=Overhead(2.0, 2.0, 27.0))
    outcome = simulate(problem, Blink(), Limits())
    solution = outcome.solution
    assert problem.check(solution) == []
    restarts = (solution.end_s - solution.start_s)[solution.kind == Kind.RESTART]
    assert np.allclose(np.sort(restarts), [4, 31])


def cluster_of(*sizes: int) -> Cluster:
    """Two nodes of four GPUs, with these jobs placed one after another."""
    cluster = Cluster(rigid([(0, 1, 1)] * len(sizes), gpus=8))
    for job, n in enumerate(sizes):
        assert cluster.start(job, n, "none")
    return cluster


def test_placing_anew_makes_room_that_no_single_place_has() -> None:
    cluster = cluster_of(1, 1, 1, 1, 2, 2)
    for job in (1, 3, 5):
        cluster.release(job)
    assert not cluster.start(5, 4, "none")
    assert cluster.start(5, 4, "repack")
    assert sorted(cluster.free.tolist()) == [0, 0]
    assert np.bincount(cluster.owner, minlength=6).tolist() == [1, 0, 1, 0, 2, 4]
    assert not cluster.start(1, 1, "repack")
