"""Placements from a thread beside the tree, and what happens to both."""

from __future__ import annotations

import math
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from trees_consolidation import built, holds, least_watts

from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.solvers.consolidation import branching
from optgap.solvers.consolidation.beside import SWITCH_S, Beside
from optgap.solvers.consolidation.branching import FEW_ON_A_GPU, FEW_TASKS, Tree
from optgap.solvers.consolidation.exact import exact
from optgap.solvers.consolidation.layouts import Layouts
from optgap.solvers.consolidation.neighbours import Neighbours
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.search import Search


def grown() -> tuple[Tree, Search]:
    """Of 40 tasks, with prices for layouts."""
    tree, search = built(packing(mixed(seed=3, size=40)))
    tree.prepare()
    return tree, search


def test_placements_come_from_beside_while_nothing_is_branched_on() -> None:
    problem = mixed(seed=3, size=40)
    tree, search = grown()
    before, deadline = search.watts, time.monotonic() + 30
    with Beside(tree, Neighbours(tree.pack, search, 0), Limits(30)):
        assert tree.apart
        while search.watts >= before and time.monotonic() < deadline:
            time.sleep(0.01)
    assert not tree.apart
    assert search.watts < before
    assert search.places is not None
    assert problem.check(tree.pack.solution(search.places)) == []


def test_it_ends_with_its_block_and_gives_the_interpreter_back() -> None:
    tree, _ = grown()
    interval, threads = sys.getswitchinterval(), threading.active_count()
    with Beside(tree, None, Limits()):
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        assert threading.active_count() == threads + 1
    assert sys.getswitchinterval() == pytest.approx(interval)
    assert threading.active_count() == threads


def test_nothing_is_laid_where_nothing_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, _ = built(packing(mixed(seed=3, size=40)))
    tree.heap = []
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(Layouts, "attempt", lambda _, wanted, *__: asked.append(wanted))
    with Beside(tree, None, Limits(0.05)) as beside:
        beside.done.wait(0.1)
    assert not asked
    assert tree.layouts is not None
    assert tree.layouts.learned
    assert not tree.lay([], Limits())
    assert not asked
    assert tree.lay([(30, 20, 10, 5, 4)], Limits())
    assert [one[:4] for one in asked] == [(30, 20, 10, 5)]


def test_while_the_last_node_is_looked_at_any_better_placement_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, search = grown()
    tree.heap, tree.halted, tree.left = [], [], float("inf")
    below: list[float] = []
    monkeypatch.setattr(Layouts, "attempt", lambda _, __, watts, *___: below.append(watts))
    tree.lay([tree.root.aim], Limits())
    assert below == [search.watts]


def test_a_fault_beside_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, _ = grown()
    asked = threading.Event()

    def broken(*_: object) -> None:
        asked.set()
        raise ZeroDivisionError

    monkeypatch.setattr(tree, "lay", broken)
    with pytest.raises(ZeroDivisionError), Beside(tree, None, Limits(60)):
        assert asked.wait(60)
    assert not tree.apart


@pytest.mark.parametrize(("near", "way", "share"), [(True, "_dive", 0.3), (False, "_nearest", 0.5)])
def test_layouts_are_left_to_the_thread_beside(
    monkeypatch: pytest.MonkeyPatch, near: bool, way: str, share: float
) -> None:
    tree, _ = grown()
    monkeypatch.setattr(branching, "FARTHER", math.inf if near else 0.0)
    tree.apart, laid, dived = True, [0], [0]

    def dive(*_: object) -> None:
        dived[0] += 1
        tree.dives += 1
        tree.diving = 1e9

    monkeypatch.setattr(tree, "_lay", lambda *_: laid.append(1))
    monkeypatch.setattr(tree, way, dive)
    for _ in range(8):
        tree.diving = share - 0.05  # of a second
        tree._seek(tree.heap[0], 1.0)
    assert laid == [0]
    assert dived == [8]
    tree.diving = share + 0.05
    assert not tree._seek(tree.heap[0], 1.0)
    assert dived == [8]


def test_the_best_of_what_several_threads_offer_is_kept() -> None:
    pack = packing(mixed(seed=1, size=24))
    offers = []
    for seed in range(16):
        one = Search(pack, seed)
        one.build(Limits(), tries=4 + seed)
        assert one.places is not None
        offers.append(one.places)
    search = Search(pack, 0)
    threads = [threading.Thread(target=search.offer, args=(one,)) for one in offers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert search.places is not None
    assert search.watts == pytest.approx(min(pack.total(one) for one in offers))
    assert pack.total(search.places) == pytest.approx(search.watts)


def test_with_memory_alone_fewer_tasks_are_few() -> None:
    pack = packing(mixed(seed=1, size=12))
    tree, _ = built(pack)

    def few(tasks: int, rows: int) -> bool:
        width = np.ones(tasks, dtype=np.int64)
        tree.pack = replace(pack, width=width, rows=pack.rows[:rows])
        return tree.few

    assert (few(FEW_TASKS, 1), few(FEW_TASKS + 1, 1)) == (True, False)
    assert (few(FEW_ON_A_GPU, 2), few(FEW_ON_A_GPU + 1, 2)) == (True, False)


@pytest.mark.parametrize("capacity", ["none", "mean"])
def test_what_is_proven_beside_a_thread_is_the_optimum(
    capacity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread begins at once."""
    monkeypatch.setattr("optgap.solvers.consolidation.exact.ALONE_S", 1e-3)
    for seed in range(3):
        problem = mixed(seed=seed, size=5, gpus_per_server=4, capacity=capacity)  # type: ignore[arg-type]
        least = least_watts(problem)
        assert least is not None
        result = exact(problem, limits=Limits(60), seed=0)
        assert result.claimed == pytest.approx(least)
        tree, search = built(packing(problem))
        with Beside(tree, None, Limits(20)):
            bound = tree.run(Limits(20))
        holds(problem, search, bound, least)
