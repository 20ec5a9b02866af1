"""Searches for covers of tasks by sets, against all covers of small ones."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import numpy as np
import pytest
from decisions_consolidation import all_counts, denied_exactly, tight_problems
from hypothesis import given, settings
from hypothesis import strategies as st

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation import covering
from optgap.solvers.consolidation.covering import Covering, Question, Verdict
from optgap.solvers.consolidation.covering_kernels import FOUND, NONE, OPEN, cover
from optgap.solvers.consolidation.deciding import relax
from optgap.solvers.consolidation.levels import counted, levels
from optgap.solvers.consolidation.master import Box, Master
from optgap.solvers.consolidation.packing import packing

Sets = list[tuple[tuple[int, ...], int, int]]
"""Tasks, level and reduced cost."""


def covered(
    sets: Sets, prices: list[int], needed: list[int], allowed: list[int], budget: int
) -> bool:
    """Whether some sets cover all tasks for the budget: all choices, in the order of the tasks."""

    def rest(wanted: tuple[int, ...], counts: tuple[int, ...], spare: int) -> bool:
        if spare < 0 or min(counts) < 0:
            return False
        first = next((ell for ell, v in enumerate(wanted) if v > 0), None)
        if first is None:
            return True
        for inside, level, cost in sets:
            if first in inside:
                more = sum(prices[ell] for ell in inside if wanted[ell] <= 0)
                left = tuple(v - (ell in inside) for ell, v in enumerate(wanted))
                fewer = tuple(n - (q <= level) for q, n in enumerate(counts))
                if rest(left, fewer, spare - cost - more):
                    return True
        return False

    return rest(tuple(needed), tuple(allowed), budget)


@st.composite
def covers(draw: st.DrawFn) -> tuple[Sets, list[int], list[int], list[int], int]:
    tasks, levels = draw(st.integers(2, 5)), draw(st.integers(1, 3))
    needed = [draw(st.sampled_from((1, 1, 2))) for _ in range(tasks)]
    subsets = [c for n in (1, 2, 3) for c in itertools.combinations(range(tasks), n)]
    chosen = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=9, unique=True))
    sets = [(one, draw(st.integers(0, levels - 1)), draw(st.integers(0, 5))) for one in chosen]
    prices = [draw(st.integers(0, 6)) for _ in range(tasks)]
    allowed = sorted((draw(st.integers(0, 5)) for _ in range(levels)), reverse=True)
    return sets, prices, needed, allowed, draw(st.integers(0, 14))


def searched(
    sets: Sets, prices: list[int], needed: list[int], allowed: list[int], budget: int, work: int
) -> tuple[int, list[int]]:
    inside = np.zeros((len(sets), max(len(one) for one, _, _ in sets)), dtype=np.int64)
    for k, (one, _, _) in enumerate(sets):
        inside[k, : len(one)] = one
    size = np.array([len(one) for one, _, _ in sets], dtype=np.int64)
    level = np.array([level for _, level, _ in sets], dtype=np.int64)
    ended, found = cover(
        inside, size, level, np.array([float(cost) for _, _, cost in sets]),
        np.array(prices, dtype=np.float64), np.array(needed, dtype=np.int64),
        np.array(allowed, dtype=np.int64), budget + 1e-9, work,
    )  # fmt: skip
    return ended, [int(k) for k in found]


@settings(max_examples=150)
@given(one=covers())
def test_a_cover_is_found_exactly_where_there_is_one(
    one: tuple[Sets, list[int], list[int], list[int], int],
) -> None:
    sets, prices, needed, allowed, budget = one
    ended, found = searched(*one, 10**6)
    assert ended == (FOUND if covered(*one) else NONE)
    if ended == FOUND:
        times = [sum(ell in sets[k][0] for k in found) for ell in range(len(needed))]
        assert all(a >= b for a, b in zip(times, needed, strict=True))
        over = sum(p * (a - b) for p, a, b in zip(prices, times, needed, strict=True))
        assert sum(sets[k][2] for k in found) + over <= budget
        for q, most in enumerate(allowed):
            assert sum(sets[k][1] >= q for k in found) <= most


def test_a_search_that_takes_too_long_stays_open() -> None:
    """Pairs of thirteen tasks: none of the ways to choose them leaves no task over."""
    sets: Sets = [(pair, 0, 0) for pair in itertools.combinations(range(13), 2)]
    needed, prices = [1] * 13, [1] * 13
    assert searched(sets, prices, needed, [99], 0, 10**4) == (OPEN, [])
    assert searched(sets, prices, needed, [99], 0, 10**8)[0] == NONE
    ended, found = searched(sets, prices, needed, [99], 1, 10**8)
    assert (ended, len(found)) == (FOUND, 7)


@pytest.mark.parametrize(
    "changed",
    [
        {"SEARCHED": 0},
        {"SEARCHED": 0, "FRESH": 1, "MOST_USED": 6},
        {"SEARCHED": 0, "SLICE_S": 1e-4, "DEAR": 0.01, "DEAREST": 50.0},
        {"MOST_WORK": 20, "SLICE_S": 1e-3},
    ],
)
@settings(max_examples=30)
@given(problem=tight_problems(), data=st.data())
def test_counts_are_denied_exactly_however_the_search_is_made(
    changed: dict[str, float], problem: ConsolidationProblem, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changed.items():
            patch.setattr(covering, name, value)
        denied_exactly(problem, data)


@settings(max_examples=50)
@given(problem=tight_problems())
def test_the_bound_is_no_more_than_any_placement_costs(problem: ConsolidationProblem) -> None:
    pack = packing(problem)
    own = levels(pack)
    for counts in all_counts(pack, own, False) or []:
        vector = tuple(counts.tolist())
        master = Master(pack, own, Box(vector, vector), 0)
        _, watts = relax(master, (0,) * len(vector), vector, math.inf, Limits())
        listed, complete = master.listed(watts, 10**4, 10**6)
        assert complete
        search = Covering(Question(master, [one for _, one in listed], vector, watts))
        relaxed = search._relax(search.root, Limits())
        assert relaxed is not None
        assert relaxed[0] <= master.watts(vector) - master.static_w * vector[-1] + 1e-6


def test_what_a_choice_takes_is_gone_below_and_nothing_comes_back_beside() -> None:
    """Two GPUs, one of the dearer level, for a task of one GPU and one of two."""
    tasks = [Task("wide", 6.0, 2, 1.2), Task("fast", 6.0, 1, 1.1)]
    servers, kinds = [Server((0,) * 2, 100.0)], [GpuKind(memory_gb=16.0)]
    pack = packing(ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none", gang="free")))
    own, vector = levels(pack), (2, 1, 1)
    master = Master(pack, own, Box(vector, vector), 0)
    search = Covering(Question(master, [(0, 1), (0,)], vector, master.watts(vector)))
    run = search.whole
    node = run.stack[0]
    search._choose(run, node, 0)
    below = run.stack[1]
    assert (below.wanted.tolist(), below.counts.tolist()) == ([1, 0], [1, 0])
    assert below.watts == pytest.approx(node.watts - master.steps.sum())
    assert (below.sets.tolist(), node.sets.tolist()) == ([1], [1])
    search._choose(run, below, 1)
    assert (run.stack[2].wanted.tolist(), run.stack[2].counts.tolist()) == ([0, 0], [0, 0])
    assert (run.chosen, run.stack[2].sets.tolist()) == ([0, 1], [])


def program(seed: int, vector: tuple[int, ...]) -> Covering:
    """The search for a placement of 24 tasks with given counts."""
    pack = packing(mixed(seed=seed, size=24, capacity="mean", gang="free"))
    own = levels(pack, pack.tasks)
    master = Master(pack, own, Box(vector, vector), 0)
    relaxed, watts = relax(master, (0,) * len(vector), vector, math.inf, Limits())
    assert relaxed.bound < watts
    listed, complete = master.listed(watts, 10**5, 10**7)
    assert complete
    return Covering(Question(master, [one for _, one in listed], vector, watts))


def counts(seed: int, more: int) -> tuple[int, ...]:
    pack = packing(mixed(seed=seed, size=24, capacity="mean", gang="free"))
    low = counted(pack, levels(pack, pack.tasks), Limits())
    return (*(n + more for n in low), pack.servers_for(low[0] + more))


def test_a_search_goes_on_where_it_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering, "SEARCHED", 0)
    look, done, looks = Covering._look, threading.Event(), 0

    def counted_look(self: Covering, *arguments: Any) -> list[int] | None:
        nonlocal looks
        looks += 1
        if looks % 3 == 0:
            done.set()
        return look(self, *arguments)

    monkeypatch.setattr(Covering, "_look", counted_look)
    vector = counts(0, 2)
    assert program(0, vector).solve(Limits()).verdict is Verdict.PLACED
    at_once, looks, rounds = looks, 0, 0
    search = program(0, vector)
    verdict = Verdict.OPEN
    while verdict is Verdict.OPEN:
        done.clear()
        verdict = search.solve(Limits(), 0, done).verdict
        rounds += 1
    assert verdict is Verdict.PLACED
    assert rounds > 1
    assert looks == at_once


def test_a_search_ends_with_the_limits_and_when_it_is_told_to() -> None:
    search, done, limits = program(0, counts(0, 2)), threading.Event(), Limits()
    done.set()
    assert search.solve(limits, 0, done).verdict is Verdict.OPEN
    limits.interrupted.set()
    assert search.solve(limits).verdict is Verdict.OPEN
    assert not search.denied
    assert search.solve(Limits()).verdict is Verdict.PLACED
