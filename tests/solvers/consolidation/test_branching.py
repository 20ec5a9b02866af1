"""Columns under whole counts of GPUs and under servers: prices, bounds, optima."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trees_consolidation import built, holds, least_watts

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.consolidation import METHODS, branching, generation
from optgap.solvers.consolidation.deciding import Decision, Verdict
from optgap.solvers.consolidation.exhaustive import exhaustive
from optgap.solvers.consolidation.generation import coarse_sizes
from optgap.solvers.consolidation.kernels import NOBODY_APART, best_sets, fill_tables
from optgap.solvers.consolidation.levels import closed_bound, counted, levels
from optgap.solvers.consolidation.master import Binding, Box, Master
from optgap.solvers.consolidation.neighbours import Neighbours
from optgap.solvers.consolidation.outcomes import CLOSE
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import applies


@settings(max_examples=60)
@given(problem=consolidation_problems(even=True, lines=False))
def test_the_tree_ends_at_the_optimum_with_a_bound_that_holds(
    problem: ConsolidationProblem,
) -> None:
    least, pack = least_watts(problem), packing(problem)
    if least is None or not applies(pack, levels(pack)):
        return
    branched, search = built(pack)
    if search.best is None:
        return
    holds(problem, search, branched.run(Limits(20)), least)
    assert search.watts == pytest.approx(least, rel=CLOSE, abs=1e-5)
    assert not branched.open()


@settings(max_examples=60)
@given(problem=consolidation_problems(even=True, lines=False), data=st.data())
def test_a_binding_costs_no_less_than_its_linear_program(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    """Any placement that keeps a binding is above the bound under that binding."""
    truth = exhaustive(problem, limits=Limits(20), seed=0)
    pack = packing(problem)
    own = levels(pack)
    if truth.solution is None or not applies(pack, own) or not pack.gang:
        return
    places = sorted(truth.solution.assignments, key=lambda one: one.task)
    width = int(pack.server_gpus[0])
    homes = [one.gpus[0] // width for one in places]
    # servers are numbered as the tree numbers them: by their first task of several GPUs
    turn = {home: k for k, home in enumerate(dict.fromkeys(homes))}
    server = np.full(pack.tasks, -1, dtype=np.int64)
    for ell, home in enumerate(homes):
        if pack.width[ell] > 1 and data.draw(st.booleans()):
            server[ell] = turn[home]
    servers = len(pack.server_w)
    counts = counted(pack, own, Limits())
    box = Box((*counts, 1), (*[pack.gpus] * len(counts), servers))
    master = Master(pack, own, box, servers)
    master.bind(Binding(server, np.zeros((pack.tasks, servers), dtype=bool)))
    least = problem.evaluate(truth.solution).objective
    few = master.run(Limits(), most_nodes=1)
    whole = master.run(Limits())
    assert few.bound <= least * (1 + 1e-9) + 1e-5
    assert whole.bound <= least * (1 + 1e-9) + 1e-5
    assert whole.bound <= whole.value * (1 + 1e-9) + 1e-9
    assert whole.bound == pytest.approx(whole.value, rel=1e-6, abs=1e-6)


@settings(max_examples=80)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 3), most=st.sampled_from((0, 3, 10**6)))
def test_no_set_is_worth_more_than_pricing_says(seed: int, rows: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    n, servers = 7, 3
    sizes = rng.integers(1, 60, (rows, n))
    limits = np.full(rows, 100, dtype=np.int64)
    profits = np.round(rng.uniform(0, 5, n), 2)
    cost = np.sort(np.round(rng.uniform(1, 6, n), 2))[::-1].copy()
    server = rng.integers(-1, servers, n)
    barred = rng.random((n, servers)) < 0.3
    toll = np.round(rng.uniform(0, 2, servers), 2)
    coarse, room = coarse_sizes(sizes, limits)
    tables = np.zeros((len(room), n + 1, int(room.max()) + 1))
    fill_tables(coarse, room, profits, tables)
    value, upper, size, items = best_sets(
        sizes, limits, profits, coarse, room, tables, cost, cost, most, NOBODY_APART, server,
        toll, barred,
    )  # fmt: skip
    for first in range(n):
        best = -math.inf
        for k in range(n):
            for others in itertools.combinations(range(first + 1, n), k):
                inside = [first, *others]
                homes = {int(server[j]) for j in inside} - {-1}
                if len(homes) > 1 or (sizes[:, inside].sum(axis=1) > limits).any():
                    continue
                home = next(iter(homes), -1)
                if home >= 0 and any(server[j] < 0 and barred[j, home] for j in inside):
                    continue
                worth = profits[inside].sum() - (toll[home] if home >= 0 else 0.0)
                best = max(best, float(worth))
        assert upper[first] >= best - 1e-9
        if most > 3 and best > cost[first] + 1e-9:
            assert value[first] == pytest.approx(best)
            chosen = items[first, : size[first]].tolist()
            assert chosen[0] == first
            assert (sizes[:, chosen].sum(axis=1) <= limits).all()


def test_servers_of_gangs_cost_what_free_gpus_do_not() -> None:
    """32 tasks whose GPUs fit three servers, but whose gangs need four."""
    watts = {}
    for gang in ("free", "server"):
        problem = mixed(seed=1, size=32, gang=gang)
        outcome = METHODS["exact"].load()(problem, limits=Limits(60), seed=0)
        assert outcome.status is Status.OPTIMAL
        assert problem.check(outcome.solution) == []
        watts[gang] = problem.evaluate(outcome.solution).objective
        assert outcome.bound <= watts[gang] <= outcome.bound * (1 + CLOSE)
    assert watts["server"] == pytest.approx(3420.7003, abs=1e-3)
    assert watts["free"] < watts["server"] - 50


@pytest.mark.parametrize("wide", [True, False])
def test_ways_beside_a_program_keep_a_tasks_gpus_in_one_server(
    wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no task has one GPU there are no layouts, and the way down binds no task."""
    problem = mixed(seed=1, size=15)
    if wide:
        both = tuple(replace(task, gpus=2) for task in problem.tasks)
        problem = replace(problem, tasks=both)
    grown, search = built(packing(problem))
    search.watts, search.best = 1e4, None
    tried: list[bool] = []
    used: list[bool] = []

    def decide(*arguments: Any, **_: Any) -> Decision:
        otherwise, placing = arguments[-2:]
        used.append(placing)
        tried.append(otherwise is not None and [otherwise() for _ in range(3)] != [])
        return Decision(Verdict.OPEN)

    monkeypatch.setattr(branching, "decide", decide)
    for more in range(4):
        assert not grown._decides(tuple(x + more for x in grown.root.box.low), False, 1.0)
        assert search.places is None or problem.check(grown.pack.solution(search.places)) == []
    assert tried == [not wide] * 4
    # a placement is of use where there is time for one and it keeps gangs
    for gang, wait in itertools.product((True, False), repeat=2):
        grown._decides(grown.root.box.low, gang, 1.0, wait)
        assert used[-1] == (gang and wait)
    assert (search.places is None) == wide


def test_servers_that_cost_nothing_are_branched_on_last() -> None:
    problem = mixed(seed=836932, size=9, capacity="peak", gpus_per_server=4, server_static_w=0.0)
    branched, search = built(packing(problem))
    bound = branched.run(Limits(20))
    assert not branched.open()
    assert bound <= search.watts == pytest.approx(1066.009593, abs=1e-4)


def test_where_it_is_stopped_bound_and_placement_stay_apart() -> None:
    problem = mixed(seed=1, size=64)
    pack = packing(problem)
    own = levels(pack)
    branched, search = built(pack)
    bound = branched.run(Limits(0.3))
    floor = closed_bound(pack, own, counted(pack, own, Limits()))
    assert floor - 1e-6 <= bound < search.watts
    assert branched.open()
    later = branched.run(Limits(0.3))
    assert later >= bound


def test_neighbours_keep_a_placement_whole_and_never_worsen_it() -> None:
    problem = mixed(seed=2, size=60)
    pack = packing(problem)
    search = Search(pack, 0)
    search.build(Limits(), tries=1)
    before = search.watts
    Neighbours(pack, search, 0).run(Limits(1.5), 0.0)
    assert search.places is not None
    assert problem.check(pack.solution(search.places)) == []
    power = problem.evaluate(pack.solution(search.places)).objective
    assert power == pytest.approx(search.watts, rel=1e-12)
    assert power < before


def test_a_linear_program_begins_where_another_ended() -> None:
    pack = packing(mixed(seed=0, size=40))
    own = levels(pack)
    counts = counted(pack, own, Limits())
    high = (*[pack.gpus] * len(counts), 99)
    some, more = Box((*counts, 1), high), Box((*(2 * count for count in counts), 8), high)
    master = Master(pack, own, some, 0)
    value, basis = master.run(Limits()).value, master.basis
    assert len(basis.sets) > 10
    master.confine(more)
    assert master.run(Limits()).value > value + 1
    assert len(master.sets) > len(basis.columns)
    steps = []
    for start in (basis, None):
        master.confine(more)
        master.run(Limits())
        master.confine(some)
        master.begin(start)
        master._highs.run()
        info = master._highs.getInfo()
        assert info.objective_function_value == pytest.approx(value, rel=1e-7)
        steps.append(info.simplex_iteration_count)
    assert 2 * steps[0] < steps[1]
    # without a set of it there is no such basis, and the program begins where it was
    gone = next(iter(basis.sets))
    master._known.remove(gone)
    master.confine(more)
    master.run(Limits())
    before = master.basis
    master.begin(basis)
    assert master.basis == before


def test_forgotten_sets_do_not_change_the_value() -> None:
    pack = packing(mixed(seed=0, size=40))
    own = levels(pack)
    counts = counted(pack, own, Limits())
    master = Master(pack, own, Box((*counts, 1), (*[pack.gpus] * len(counts), 99)), 0)
    value = master.run(Limits()).value
    pairs = itertools.combinations(range(pack.tasks), 2)
    master.add(p for p in pairs if (pack.rows[:, p].sum(axis=1) <= pack.most).all())
    known = len(master.sets)
    import optgap.solvers.consolidation.master as module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_SETS", 60)
        patch.setattr(module, "SETS_PER_TASK", 1)
        master.shrink()
    assert len(master.sets) < known
    assert {(ell,) for ell in range(pack.tasks)} <= set(master.sets)
    found = master.run(Limits())
    assert found.value == pytest.approx(value, rel=1e-8)
    assert len(found.amounts) == len(master.sets)
    held = np.zeros(pack.tasks)
    for one, amount in zip(master.sets, found.amounts.tolist(), strict=True):
        held[list(one)] += amount
    assert (held >= pack.width - 1e-6).all()


def test_counts_that_are_too_few_cost_more_the_longer_one_asks() -> None:
    branched, _ = built(packing(mixed(seed=0, size=40, capacity="mean", gang="free")))
    master, low = branched.master, branched.root.box.low
    few = (*(count - 2 for count in low[:-1]), low[-1])
    master.confine(Box(few, few))
    own_watts, each = master.watts(few), master.top + master.static_w
    asked = master.run(Limits(), enough=own_watts + 0.5 * each)
    assert own_watts + 0.5 * each <= asked.bound < own_watts + 20 * each
    at_most = master.run(Limits())  # two GPUs too few, and the dearest fine for each
    assert at_most.bound >= own_watts + 50 * each
    assert at_most.bound <= at_most.value * (1 + 1e-9)
    # the next box begins with the least again
    master.confine(Box(few, few))
    again = master.run(Limits(), enough=own_watts + 0.5 * each)
    assert again.bound < own_watts + 20 * each


def test_a_linear_program_that_time_cuts_off_leaves_what_was_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pack = packing(mixed(seed=0, size=128, capacity="mean", gang="free"))
    whole = built(pack)[0].master.run(Limits())
    monkeypatch.setattr(generation, "LEAST_S", 1e-5)
    branched, _ = built(pack)
    master, low = branched.master, branched.root.box.low
    cut = master.run(Limits(0.0))
    assert cut.bound <= whole.bound
    assert cut.bound >= master.watts(low) - 1e-9
    assert len(cut.amounts) == len(master.sets)
    assert len(cut.vector) == len(low)
    assert master.run(Limits()).value == pytest.approx(whole.value, rel=1e-7)


def test_what_is_looked_at_is_part_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one node the heap is empty while it is looked at."""
    branched, search = built(packing(mixed(seed=2, size=24, capacity="mean", gang="free")))
    expand, seen = branching.Tree._expand, []

    def watched(tree: branching.Tree, node: branching.Node) -> bool:
        seen.append(tree.bound)
        return expand(tree, node)

    monkeypatch.setattr(branching.Tree, "_expand", watched)
    branched.run(Limits(20))
    assert seen
    assert seen == sorted(seen)
    assert seen[-1] <= search.watts


def test_tables_have_more_cells_for_more_tasks() -> None:
    rng = np.random.default_rng(0)
    limits = np.array([3200, 10**8])
    for tasks, cells in ((20, 800), (256, 2048), (600, 4096)):
        rows = rng.integers(1, limits[:, None], (2, tasks))
        coarse, room = coarse_sizes(rows, limits)
        assert room.tolist() == [cells] * 3
        assert (coarse[:2] * limits[:, None] <= rows * cells).all()
