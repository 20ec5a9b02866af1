"""Branching rules, verdicts on counts, covers, and trees that end at the optimum."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from exhaustive_consolidation import exhaustive
from hypothesis import given
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trees_consolidation import all_counts, counts_of_placement, grown, tight_problems, tree_of
from trust.agreement import examples

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, Gang, Rules
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.consolidation import METHODS, covering
from optgap.solvers.consolidation.bounds import (
    closed_form_bound,
    closed_form_w,
    cost_levels,
    level_counts,
)
from optgap.solvers.consolidation.branch_and_price.branching import (
    split_around,
    split_beyond,
    split_count,
    split_servers,
    unassigned,
)
from optgap.solvers.consolidation.branch_and_price.feasibility import (
    OPEN,
    pack_columns,
    solve_cover,
)
from optgap.solvers.consolidation.column_generation.generation import ColumnGeneration
from optgap.solvers.consolidation.column_generation.master import FREE
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.covering import CoverAnswer, solve_covering
from optgap.solvers.consolidation.exact import Exact
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.numerics import CLOSE, Column, CountBox, Placement
from optgap.solvers.consolidation.outcome import Incumbent, closed
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.diving import Diving
from optgap.solvers.consolidation.primal.iterated_greedy import improve


def inside(box: CountBox) -> set[tuple[int, ...]]:
    ends = zip(box.low, box.high, strict=True)
    return set(itertools.product(*(range(a, b + 1) for a, b in ends)))


@st.composite
def boxes(draw: st.DrawFn) -> CountBox:
    low = [draw(st.integers(0, 2)) for _ in range(3)]
    return CountBox(tuple(low), tuple(a + draw(st.integers(0, 3)) for a in low))


@given(box=boxes(), data=st.data())
def test_splits_lose_no_counts_and_none_is_in_two_children(
    box: CountBox, data: st.DataObject
) -> None:
    counts = data.draw(st.sampled_from(sorted(inside(box))))
    around = [inside(one) for one in split_around(box, counts)]
    assert set().union(*around) == inside(box)
    assert sum(map(len, around)) == len(inside(box))
    assert around[0] == {counts}
    beyond = [inside(one) for one in split_beyond(box, counts)]
    more = {one for one in inside(box) if any(a > b for a, b in zip(one, counts, strict=True))}
    assert set().union(*beyond) == more
    assert sum(map(len, beyond)) == len(more)
    found = np.array(counts) + np.array([data.draw(st.sampled_from((0.0, 0.4))) for _ in counts])
    halves = split_count(box, found, np.array([3.0, 2.0, 1.0]))
    assert bool(halves) == bool((found > counts).any())
    if halves:
        assert set().union(*map(inside, halves)) == inside(box)
        assert not inside(halves[0]) & inside(halves[1])


def test_a_task_goes_into_each_server_in_use_and_one_that_is_empty() -> None:
    tasks = [Task("s", 4.0), Task("v", 6.0, gpus=2), Task("w", 8.0, gpus=2)]
    instance = instance_of(
        ConsolidationProblem.of([GpuKind(memory_gb=16.0)], [Server((0, 0))] * 8, tasks)
    )
    none = np.full(3, -1)
    assert unassigned(instance, none).tolist() == [1, 2]
    even = np.zeros((3, 8))
    (first,) = split_servers(instance, none, 8, even)
    assert first.tolist() == [-1, -1, 0]  # the larger
    assert [one.tolist() for one in split_servers(instance, first, 8, even)] == [
        [-1, 0, 0], [-1, 1, 0],
    ]  # fmt: skip
    assert len(list(split_servers(instance, first, 1, even))) == 1
    even[1, 1] = 0.5  # where most of it lies comes first
    assert [int(one[1]) for one in split_servers(instance, first, 8, even)] == [1, 0]


ANY = consolidation_problems(even=True, lines=False)
GANGS = tight_problems(gangs=("server",))


@pytest.mark.parametrize(("heuristics", "problems"), [(False, ANY), (True, ANY), (False, GANGS)])
def test_trees_end_at_the_optimum_with_a_bound_that_holds(heuristics: bool, problems: Any) -> None:
    """What assignments of gangs to servers leave open is decided by the columns they allow."""

    @examples(20 if problems is GANGS else 12)
    @given(problem=problems)
    def ends_at_the_optimum(problem: ConsolidationProblem) -> None:
        tree = grown(problem, heuristics=heuristics)
        least = exhaustive(problem).claimed
        if least is None or tree is None:
            return
        limits = Limits(20)
        while (tree.open or tree.reopen()) and limits.stop is None:
            tree.run(limits)
        assert min(tree.bound, tree.incumbent.watts) <= least * (1 + 1e-9) + 1e-5
        agrees(problem, tree.incumbent)
        assert tree.incumbent.watts == pytest.approx(least, rel=CLOSE, abs=1e-5)
        assert tree.bound >= tree.incumbent.watts * (1 - CLOSE)

    ends_at_the_optimum()


@pytest.mark.parametrize("most", [1, 20_000])
@examples(10)
@given(problem=tight_problems() | ANY, data=st.data())
def test_counts_are_denied_exactly_where_no_placement_has_them(
    most: int, problem: ConsolidationProblem, data: st.DataObject
) -> None:
    """Where not all columns are looked at, nothing is infeasible but by the linear program."""
    tree = grown(problem)
    if tree is None:
        return
    instance, levels, master = tree.instance, tree.levels, tree.generation.master
    truth = all_counts(instance, levels)
    if not truth:
        return
    rounded = data.draw(st.sampled_from(truth))
    less = [data.draw(st.integers(-1, 1)) for _ in rounded]
    counts = [max(1, int(rounded[0]) - less[0])]
    for q in range(1, len(rounded) - 1):
        counts.append(int(np.clip(rounded[q] - less[q], 0, counts[-1])))
    counts.append(int(np.clip(rounded[-1] - less[-1], 1, len(instance.server_w))))
    costs = [master.watts(one.tolist()) for one in truth]
    cutoff = data.draw(st.sampled_from([math.inf, *costs]))
    verdict = tree.feasibility.decide(tuple(counts), cutoff, Limits(), most_columns=most)
    within = [cost for one, cost in zip(truth, costs, strict=True) if (one <= counts).all()]
    if within and min(within) <= cutoff:
        assert not verdict.infeasible
        assert verdict.placement is not None or most == 1
    elif not within:
        assert verdict.placement is None
        assert verdict.infeasible or most == 1
    assert (tree.feasibility.dominating(tuple(counts)) is not None) == verdict.infeasible
    if verdict.placement is not None:
        reached = counts_of_placement(instance, levels, verdict.placement)
        assert (reached[:-1] <= counts[:-1]).all()
        if not instance.gang:
            assert problem.check(instance.solution(verdict.placement)) == []


def test_a_cover_is_found_that_costs_less_than_it_may_and_no_other() -> None:
    """Three tasks of two GPUs and one of one: two that are slow, and two that are fast."""
    tasks = [
        *(Task(f"slow{k}", 5.0, 2, 1.5) for k in range(2)),
        *(Task(f"fast{k}", 5.0, v, 1.1) for k, v in enumerate((2, 1))),
    ]
    servers, kinds = [Server((0,) * 4, 100.0)], [GpuKind(memory_gb=16.0)]
    instance = instance_of(ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none")))
    levels, box = cost_levels(instance), CountBox.up_to((4, 4, 1))
    master = ColumnGeneration(instance, levels, box, 1).master
    columns: list[Column] = [one for n in (1, 2, 3) for one in itertools.combinations(range(4), n)]
    least = master.watts((3, 2, 1))  # seven in threes; a task of two GPUs is on two
    for watts, found in ((least + 1e-4, True), (least - 1e-2, False)):
        cover = solve_cover(master, columns, box, watts, limits=Limits(60))
        assert (cover.placement is not None, cover.infeasible) == (found, not found)
        if cover.placement is not None:
            counts = counts_of_placement(instance, levels, cover.placement)
            assert master.watts(counts.tolist()) <= watts


def test_a_program_that_is_interrupted_proves_nothing() -> None:
    tree = tree_of(mixed(seed=2, size=64, gang="free", kappas=0, server_static_w=0.0))
    gone = Limits(20)
    gone.interrupted.set()
    pairs = itertools.combinations(range(64), 2)
    demand, limit = tree.instance.demand, tree.instance.max_capacity
    fit: list[Column] = [p for p in pairs if (demand[:, p].sum(axis=1) <= limit).all()]
    watts = 2 * tree.incumbent.watts
    assert solve_cover(tree.generation.master, fit, tree.root.box, watts, limits=gone) == OPEN


def test_columns_are_packed_into_their_servers_and_no_others() -> None:
    tasks = [Task("a", 20.0, gpus=2), Task("b", 20.0, gpus=2), Task("c", 10.0), Task("d", 20.0)]
    problem = ConsolidationProblem.of([GpuKind()], [Server((0, 0, 0))] * 2, tasks)
    master = tree_of(problem).generation.master
    sets: list[tuple[Column, int]] = [((0, 2), 1), ((0,), 1), ((1,), 0), ((1,), 0), ((3,), FREE)]
    placement = pack_columns(master, sets)
    assert problem.check(instance_of(problem).solution(placement)) == []
    assert {g // 3 for g in placement[0]} == {1}
    assert {g // 3 for g in placement[1]} == {0}
    assert pack_columns(master, [(one, 0) for one, _ in sets]) is None  # three GPUs
    assert pack_columns(master, sets[1:]) is None  # a task is missing
    assert pack_columns(master, [*sets, ((2,), FREE)]) is not None  # once too often


def test_servers_of_gangs_cost_what_free_gpus_do_not() -> None:
    """32 tasks whose GPUs fit three servers, but whose gangs need four."""
    watts = {}
    gangs: tuple[Gang, Gang] = ("free", "server")
    for gang in gangs:
        problem = mixed(seed=1, size=32, gang=gang)
        outcome = METHODS["exact"].load()(problem, limits=Limits(60), seed=0)
        assert outcome.status is Status.OPTIMAL
        assert problem.check(outcome.solution) == []
        watts[gang] = problem.evaluate(outcome.solution).objective
        assert outcome.bound <= watts[gang] <= outcome.bound * (1 + CLOSE)
    assert watts["server"] == pytest.approx(3420.7003, abs=1e-3)
    assert watts["free"] < watts["server"] - 50


def test_servers_that_cost_nothing_are_branched_on_as_well() -> None:
    problem = mixed(seed=836932, size=9, capacity="peak", gpus_per_server=4, server_static_w=0.0)
    tree = tree_of(problem, heuristics=True)
    bound = tree.run(Limits(20))
    assert not tree.open
    assert bound <= tree.incumbent.watts == pytest.approx(1066.009593, abs=1e-4)


def test_where_it_is_stopped_bound_and_placement_stay_apart() -> None:
    tree = tree_of(mixed(seed=1, size=64), heuristics=True)
    bound = tree.run(Limits(0.3))
    floor = closed_form_w(tree.instance, tree.levels, tree.root.box.low[:-1])
    assert floor - 1e-6 <= bound < tree.incumbent.watts
    assert tree.open
    assert tree.run(Limits(0.3)) >= bound
    gone = Limits()
    gone.interrupted.set()
    assert bound <= tree.run(gone) <= tree.incumbent.watts


# -- the covering program ------------------------------------------------------------------


def covered(problem: ConsolidationProblem, first: Placement | None = None) -> CoverAnswer | None:
    """Solve the program from a first placement, and hold its placement and bound to the optimum."""
    least, incumbent = exhaustive(problem).claimed, Incumbent(instance_of(problem))
    incumbent.offer(first)
    levels = cost_levels(incumbent.instance)
    bound = closed_form_bound(incumbent.instance, levels, level_counts(incumbent.instance, levels))
    answer = solve_covering(incumbent, bound, Limits(20), 0)
    assert answer.infeasible == (least is None)
    if least is not None:
        agrees(problem, incumbent)
        assert answer.bound.watts <= least * (1 + 1e-9)
        assert incumbent.watts == pytest.approx(least, rel=CLOSE)
        assert closed(incumbent, answer.bound)
    return answer


@examples(15)
@given(problem=consolidation_problems() | tight_problems(gangs=("server",)))
def test_the_program_over_all_sets_ends_at_the_optimum(problem: ConsolidationProblem) -> None:
    covered(problem)


def test_a_first_placement_limits_the_servers_of_the_program_by_no_one_too_many() -> None:
    """Three pairs of GPUs need three servers of three, where six GPUs would do with two."""
    tasks = [Task(f"w{k}", 11.0, 2, 1.2) for k in range(3)] + [Task("s", 4.0, 1, 1.2)]
    servers, kinds = [Server((0,) * 3, 200.0)] * 3, [GpuKind(memory_gb=16.0)]
    problem = ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none"))
    covered(problem, [(0, 1), (3, 4), (6, 7), (2,)])  # a GPU more than it takes


def test_without_a_tree_and_a_program_the_row_says_why_the_gap_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = replace(DEFAULT, exact=replace(DEFAULT.exact, cover_columns=0))
    monkeypatch.setattr(covering, "DEFAULT", small)
    kinds = [GpuKind(name="a", memory_gb=16.0), GpuKind(name="b", memory_gb=24.0)]
    tasks = [Task(f"t{k}", 9.0, 1, 1.1 + 0.2 * k) for k in range(5)]
    servers = [Server((k % 2,) * 2, 100.0) for k in range(4)]
    problem = ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none"))
    outcome = Exact(instance_of(problem), Limits(), 0).run()
    assert outcome.status is Status.FEASIBLE
    assert outcome.message == "not proven: too many sets of tasks fit a GPU"
    assert outcome.bound < problem.evaluate(outcome.solution).objective


# -- primal heuristics ---------------------------------------------------------------------


def agrees(problem: ConsolidationProblem, incumbent: Incumbent) -> None:
    """The referee takes the incumbent, at the power that it is kept with."""
    assert incumbent.placement is not None
    solution = incumbent.instance.solution(incumbent.placement)
    assert problem.check(solution) == []
    power = problem.evaluate(solution).objective
    assert power == pytest.approx(incumbent.watts, rel=1e-12)


@examples(10)
@given(problem=consolidation_problems())
def test_placements_made_again_keep_the_rules_and_cost_no_less_than_the_optimum(
    problem: ConsolidationProblem,
) -> None:
    incumbent, rng = Incumbent(instance_of(problem)), np.random.default_rng(0)
    construct(incumbent, Limits(), rng)
    least, before = exhaustive(problem).claimed, incumbent.watts
    if incumbent.placement is None:
        return
    improve(incumbent, Limits(), 0.0, rng)
    assert incumbent.instance.total_flat(incumbent.flat) == pytest.approx(incumbent.watts)
    agrees(problem, incumbent)
    assert least * (1 - 1e-9) <= incumbent.watts <= before


@pytest.mark.parametrize(
    ("gang", "capacity", "kappas", "seed"),
    [("free", "none", 0, 3), ("server", "none", 0, 3), ("free", "mean", 4, 2)],
)
def test_dives_better_a_first_placement_by_one_that_the_referee_takes(
    gang: Gang, capacity: Capacity, kappas: int, seed: int
) -> None:
    problem = mixed(seed=seed, size=48, capacity=capacity, gang=gang, kappas=kappas)
    tree = tree_of(problem)
    value, before = tree.generation.solve(Limits()).value, tree.incumbent.watts
    made = Diving()
    for _ in range(12):
        if tree.incumbent.watts == before:
            made(tree, Limits(10.0))
    assert tree.incumbent.watts < before
    agrees(problem, tree.incumbent)
    tree.generation.master.set_box(tree.root.box)
    tree.generation.master.set_servers(tree.root.assignment)
    again = tree.generation.solve(Limits())  # what was fixed is let go
    assert again.value == pytest.approx(value, rel=1e-7)
