from __future__ import annotations

import math
from dataclasses import replace

import pytest
from strategies_elastic import two_jobs

from optgap.heuristics.elastic.judged import Judge, judged
from optgap.models.elastic.presets import small
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.snapshot import Snapshot
from optgap.models.limits import Limits
from optgap.solvers.elastic.snapshot import solve


@pytest.mark.parametrize("slowdown", [False, True])
def test_every_event_is_judged_and_none_is_better_than_the_optimum(slowdown: bool) -> None:
    problem = small(seed=2, size=20, gpus=8, hours=0.5)
    found = judged(problem, Limits(), solve, slowdown=slowdown, checked=1)
    assert len(found) >= len(problem)
    for one in found:
        assert one.proven
        assert one.best - one.bound <= 1e-6 * one.best
        assert one.value >= one.bound
        assert one.off == pytest.approx(0, abs=1e-12)
    assert max(one.gap for one in found) > 0.01


def test_the_gap_of_the_written_out_decision() -> None:
    found = judged(two_jobs(360.0), Limits(), solve)
    assert found[0].gap == pytest.approx(1550 / 1460 - 1, abs=1e-3)
    assert found[0].off is None


def test_working_an_optimum_out_anew_finds_what_is_wrong_with_it() -> None:
    problem = small(seed=2, size=20, gpus=8, hours=0.5)
    judge = Judge(problem, Limits(), solve, 1e-6, slowdown=False, checked=0)
    simulate(problem, judge, Limits())
    c, left = problem.jobs.of_class, problem.jobs.iterations
    snapshot = Snapshot.of(judge.choices, problem, c, left, judge.limit_w)
    solved, wait = solve(snapshot, 1e-6), snapshot.wait_s
    assert judge.recomputed(solved, c, left, wait) < 1e-12
    assert solved.chosen is not None
    wrong = replace(solved, objective=solved.objective * 1.01)
    assert judge.recomputed(wrong, c, left, wait) == pytest.approx(0.0099, abs=1e-4)
    fastest = judge.choices.first[c]  # every job at its fastest: more than there is
    assert judge.recomputed(replace(solved, chosen=fastest), c, left, wait) == math.inf
