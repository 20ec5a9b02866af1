"""The queueing policies, job by job and node by node, against the slow transcriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strategies_queueing import stream
from transcriptions.queue_schedulers import RULES, Slow

from optgap.heuristics.queueing import POLICIES
from optgap.models.limits import Limits
from optgap.models.queueing import Jobs, QueueingProblem
from optgap.parameters import split_call, typed


def queue(seed: int) -> QueueingProblem:
    """Three to twelve jobs of two families that all wait at 0 s: many batches to choose from."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 13))
    g = int(rng.choice([3, 4, 8]))
    gpus = np.minimum(rng.choice([1, 2, 4, 8], count, p=[0.4, 0.3, 0.2, 0.1]), g)
    duration = np.round(np.exp(rng.uniform(np.log(300), np.log(20000), count)))
    family, rate = rng.integers(0, 2, count), rng.lognormal(0, 0.3, count)
    if seed % 3 == 0:  # ties, which larger batches win
        duration, rate = rng.choice([1800.0, 3600.0], count), np.ones(count)
    names, work = [f"f{k}" for k in family], duration * gpus * rate
    jobs = Jobs.of([0.0] * count, duration, gpus, families=names, iterations=work)
    return QueueingProblem.of(jobs, nodes=int(rng.integers(1, 3)), gpus_per_node=g)


STREAMS = 100
MAIN = ("fifo", "sjf", "easy")


def schedule(problem: QueueingProblem, text: str) -> dict[int, tuple[float, Any]]:
    """Start and nodes of every job that starts."""
    name, given = split_call(text, "test")
    entry = POLICIES[name]
    params = typed(given, entry.params, name, "test")
    solution = entry.load()(problem, limits=Limits(), seed=0, **params).solution
    if solution is None:
        return {}
    assert problem.check(solution) == []
    started = solution.started.tolist()
    return {k: (float(solution.start_s[k]), solution.nodes_of(k)) for k in started}


@pytest.mark.parametrize("rule", RULES)
def test_every_job_starts_when_and_where_the_slow_simulator_starts_it(rule: str) -> None:
    problems = [stream(seed) for seed in range(STREAMS if rule in MAIN else 40)]
    problems += [queue(seed) for seed in range(150 if "sbs" in rule else 0)]
    for seed, problem in enumerate(problems):
        slow = Slow(problem).run(RULES[rule])
        expected = {k: (slow.start[k], slow.nodes[k]) for k in slow.start}
        assert schedule(problem, rule) == expected, seed
