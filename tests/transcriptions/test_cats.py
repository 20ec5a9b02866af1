"""CATS and its comparators, task by task and clock by clock, against the slow transcription."""

from __future__ import annotations

import random

import numpy as np
import pytest
from transcriptions.cats import RULES, Slow
from trust.agreement import many

from optgap.heuristics.consolidation import POLICIES
from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.parameters import split_call, typed

CASES = many(35)


def cluster(seed: int) -> ConsolidationProblem:
    """Three to fourteen tasks on two or three servers; every third all at one instant."""
    draw = random.Random(seed)
    timed = seed % 3 != 0
    width, span = draw.randint(1, 3), draw.choice((300, 900))
    tasks = []
    for k in range(draw.randint(3, 14)):
        length = draw.choice((1, 2, 3, 4, 5, 12))
        level = draw.choice((20, 50, 95))
        series = [float(draw.randint(0, level)) for _ in range(length)]
        tasks.append(
            Task(
                f"t{k}",
                draw.choice((1.0, 3.0, 4.5, 7.0)),
                draw.choice((1, 1, 1, min(2, width))),
                draw.choice((1.0, 1.1, 1.2, 1.2, 1.5)),
                submit_s=round(draw.uniform(0, span), 3) if timed else 0.0,
                duration_s=length * 60.0 - draw.choice((0.0, 17.0)),
                util_percent=np.array(series),
            )
        )
    return ConsolidationProblem.of(
        [GpuKind(memory_gb=draw.choice((8.0, 16.0)))],
        [Server((0,) * width, 100.0)] * draw.randint(2, 3),
        sorted(tasks, key=lambda t: t.submit_s),
        goal="energy" if timed else "power",
        rules=Rules(contention=draw.choice((1.0, 0.6))),
        period_s=60.0,
    )


@pytest.mark.parametrize("call", RULES)
def test_every_task_goes_where_and_when_the_transcription_puts_it(call: str) -> None:
    name, given = split_call(call, "test")
    entry = POLICIES[name]
    rule, dfs = RULES[call]
    shared = 0
    for seed in range(CASES):
        problem = cluster(seed)
        slow = Slow(problem, rule, dfs).run()
        params = typed(given, entry.params, name, "test")
        solution = entry.load()(problem, limits=Limits(), seed=0, **params).solution
        found = {a.task: list(a.gpus) for a in solution.assignments}
        assert found == slow.where, seed
        for a in solution.assignments:
            assert a.start_s == pytest.approx(slow.start[a.task], abs=1e-6), seed
        clocks = [(c.time_s, c.gpu, c.mhz) for c in solution.clocks]
        if problem.objective.goal == "power":
            slow.clocks = [(0.0, g, f) for g, f in enumerate(slow.f) if f]
        assert len(clocks) == len(slow.clocks), seed
        for one, other in zip(clocks, sorted(slow.clocks), strict=True):
            assert one == pytest.approx(other, abs=1e-6), seed
        shared += len({tuple(gpus) for gpus in found.values()}) < len(found)
    assert shared > CASES / 4
