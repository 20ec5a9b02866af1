"""The compiled event loop against an independent, slow simulator, job by job and node by node."""

from __future__ import annotations

from typing import Any

import pytest
from strategies_queueing import stream
from transcriptions.queue_schedulers import RULES, Slow, conservative

from optgap.heuristics.queueing import POLICIES
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.parameters import split_call, typed

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
    for seed in range(STREAMS if rule in MAIN else 40):
        problem = stream(seed)
        slow = Slow(problem).run(RULES[rule])
        expected = {k: (slow.start[k], slow.nodes[k]) for k in slow.start}
        assert schedule(problem, rule) == expected, seed


def test_conservative_reservations_are_those_of_the_slow_planner() -> None:
    seen = 0
    for seed in range(120):
        problem = stream(seed)
        if not (problem.jobs.exact_estimates and problem.jobs.patient):
            continue
        slow = conservative(problem)
        found = schedule(problem, "conservative")
        assert found == {k: (slow.start[k], slow.nodes[k]) for k in slow.start}, seed
        seen += 1
    assert seen > 50


def test_conservative_plans_survive_wrong_estimates_and_departures() -> None:
    for seed in range(90):
        problem = stream(seed)
        found = schedule(problem, "conservative")
        if problem.jobs.patient:
            assert len(found) == len(problem), seed
