"""Primal heuristics: what they leave keeps the rules, and costs what they say."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from exhaustive_consolidation import Enumeration
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trees_consolidation import least_watts, tree_of

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, Gang, Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation.bounds.level_counts import (
    closed_form_w,
    cost_levels,
    counts_fix_power,
    level_counts,
)
from optgap.solvers.consolidation.bounds.martello_toth import gpus_needed
from optgap.solvers.consolidation.branch_and_price.feasibility import pack_columns
from optgap.solvers.consolidation.branch_and_price.tree import PrimalHeuristic, Tree
from optgap.solvers.consolidation.column_generation.master import FREE
from optgap.solvers.consolidation.config import DEFAULT
from optgap.solvers.consolidation.instance import instance_of
from optgap.solvers.consolidation.numerics import IntArray
from optgap.solvers.consolidation.outcome import Incumbent
from optgap.solvers.consolidation.primal.annealing import anneal
from optgap.solvers.consolidation.primal.construction import construct
from optgap.solvers.consolidation.primal.diving import Diving, dive, dive_to
from optgap.solvers.consolidation.primal.gang_layout import GangLayout
from optgap.solvers.consolidation.primal.gang_layout_kernels import empty_gpus, lay_out, room_worth
from optgap.solvers.consolidation.primal.gpu_state import Cluster
from optgap.solvers.consolidation.primal.lns import ServerNeighbourhoods
from optgap.solvers.consolidation.primal.pairwise_exchange import (
    PairwiseExchange,
    exchange,
    fill_levels,
)
from optgap.solvers.consolidation.primal.server_diving import ServerDiving

RNG = np.random.default_rng
PATIENT = replace(DEFAULT, gang_layout=replace(DEFAULT.gang_layout, dual_s=20.0, residual_s=4.0))
"""Layouts whose programs end, however busy the machine."""


def agrees(problem: ConsolidationProblem, incumbent: Incumbent) -> None:
    """The referee takes the incumbent, at the power that it is kept with."""
    assert incumbent.placement is not None
    solution = incumbent.instance.solution(incumbent.placement)
    assert problem.check(solution) == []
    power = problem.evaluate(solution).objective
    assert power == pytest.approx(incumbent.watts, rel=1e-12)


# -- any instance --------------------------------------------------------------------------


@settings(max_examples=30)
@given(problem=consolidation_problems())
def test_annealed_placements_keep_the_rules_and_cost_no_less_than_the_optimum(
    problem: ConsolidationProblem,
) -> None:
    incumbent = Incumbent(instance_of(problem))
    construct(incumbent, Limits(), RNG(0))
    least, before = least_watts(problem), incumbent.watts
    if incumbent.placement is None:
        return
    quick = replace(DEFAULT.annealing, rounds=2, steps=300, max_steps=2000)
    anneal(incumbent, Limits(), 0.0, RNG(0), quick)
    agrees(problem, incumbent)
    assert least is not None
    assert least * (1 - 1e-9) <= incumbent.watts <= before


# -- given counts --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_richer_counts_are_no_fewer_and_as_dear_as_they_may_be(share: float) -> None:
    tree = tree_of(mixed(seed=1, size=16, capacity="none"))
    instance, levels, least = tree.instance, tree.levels, tree.root.box.low
    target = closed_form_w(instance, levels, least[:-1]) * (1 + 0.2 * share)
    for seed in range(5):
        state = replace(tree.state(), target=target, rng=RNG(seed))
        counts = state.richer_counts()
        assert all(a <= b for a, b in zip(least, counts, strict=True))
        counts = counts[:-1]
        assert list(counts) == sorted(counts, reverse=True)
        assert closed_form_w(instance, levels, counts) <= target
        for q in range(len(counts)):
            more = (*counts[:q], counts[q] + 1, *counts[q + 1 :])
            if list(more) == sorted(more, reverse=True) and more[0] <= instance.gpus:
                assert closed_form_w(instance, levels, more) > target


def test_counts_from_some_of_the_rows_are_no_more_than_from_all() -> None:
    instance = instance_of(mixed(seed=4, size=40, capacity="slot"))
    tasks = np.arange(instance.tasks)
    whole = gpus_needed(instance, tasks)
    area = max(-(-(instance.demand @ instance.width) // instance.max_capacity))
    for rows, alphas in (([0], 1), ([0, 3], 2), ([5], 40)):
        assert area <= gpus_needed(instance, tasks, np.array(rows), alphas) <= whole


def test_exchanged_placements_are_no_cheaper_than_their_counts() -> None:
    problem = mixed(seed=3, size=128, capacity="none", gang="free")
    instance = instance_of(problem)
    levels, incumbent = cost_levels(instance), Incumbent(instance)
    construct(incumbent, Limits(), RNG(0), 3)
    before, counts = incumbent.watts, level_counts(instance, levels)
    exchanger = PairwiseExchange(instance, levels, RNG(0))
    assert exchanger.applies
    assert exchanger.attempt(incumbent, tuple(count + 1 for count in counts))
    agrees(problem, incumbent)
    assert closed_form_w(instance, levels, counts) <= incumbent.watts < before
    for more in ({"capacity": "mean"}, {"gang": "server"}):
        other = instance_of(replace(problem, rules=replace(problem.rules, **more)))  # type: ignore[arg-type]
        assert not PairwiseExchange(other, levels, RNG(0)).applies


def cluster(size: IntArray, width: IntArray, limit: int, gpus: int) -> Cluster:
    """One server of GPUs that draw nothing, with memory as their only capacity."""
    count, start = len(size), np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    nothing = np.zeros((1, count))
    return Cluster(
        start, np.repeat(np.arange(count), width).astype(np.int64), size[None, :].astype(np.int64),
        nothing, np.array([[limit]]), np.zeros(gpus, np.int64), np.zeros(gpus, np.int64),
        np.array([0, gpus]), np.zeros(1), nothing, nothing, nothing, False,
    )  # fmt: skip


def test_tasks_are_exchanged_where_no_move_and_no_swap_of_two_helps() -> None:
    """3 + 5 + 12 and 7 + 6 + 5 on GPUs of 19: 3 + 5 for 7 makes 19 of both, no swap of two does."""
    sizes = np.array([3, 5, 12, 7, 6, 5], dtype=np.int64)
    place = np.array([0, 0, 0, 1, 1, 1], dtype=np.int64)
    zeros, cap = np.zeros(6, dtype=np.int64), np.zeros(2, dtype=np.int64)
    two = cluster(sizes, np.ones(6, dtype=np.int64), 19, 2)
    left = exchange(zeros, cap, 50, 0.0, two, place, RNG(0))
    assert left == 0.0
    assert [int(sizes[place == g].sum()) for g in (0, 1)] == [19, 19]


def test_room_that_is_scattered_is_driven_together() -> None:
    """Sixty full GPUs of three levels, taken apart and put together again with nothing to spare."""
    most, each, gpus = 3200, 6, 60
    rng = RNG(5)
    cap = np.repeat([2, 1, 0], gpus // 3).astype(np.int64)
    sizes, level = [], []
    for g in range(gpus):
        cuts = np.sort(rng.choice(np.arange(1, most), each - 1, replace=False))
        sizes += np.diff([0, *cuts.tolist(), most]).tolist()
        level += [cap[g], *rng.integers(0, cap[g] + 1, each - 1).tolist()]
    held, of = np.array(sizes, dtype=np.int64), np.array(level, dtype=np.int64)
    place = np.array([rng.choice(np.flatnonzero(cap >= one)) for one in level], dtype=np.int64)
    sixty = cluster(held, np.ones_like(held), most, gpus)
    left = exchange(of, cap, 100_000, 0.02, sixty, place, RNG(0))
    assert left == 0.0
    assert [int(held[place == g].sum()) for g in range(gpus)] == [most] * gpus
    assert np.all(cap[place] >= of)


@settings(max_examples=60)
@given(data=st.data())
def test_exchange_keeps_levels_and_says_what_is_left(
    data: st.DataObject,
) -> None:
    span, gpus, limit = 3, 6, 12
    cap = np.array([data.draw(st.integers(0, 2)) for _ in range(gpus)], dtype=np.int64)
    cap[:span] = 2
    count = data.draw(st.integers(1, 8))
    width = np.array([data.draw(st.integers(1, span)) for _ in range(count)], dtype=np.int64)
    level = np.array([data.draw(st.integers(0, 2)) for _ in range(count)], dtype=np.int64)
    size = np.array([data.draw(st.integers(0, 9)) for _ in range(count)], dtype=np.int64)
    six = cluster(size, width, limit, gpus)
    start, owner = six.start, six.owner
    place = np.full(len(owner), -1, dtype=np.int64)
    order = np.array(data.draw(st.permutations(range(count))), dtype=np.int64)
    assert fill_levels(order, level, cap, six, place)
    left = exchange(level, cap, 200, 0.0, six, place, RNG(data.draw(st.integers(0, 9))))
    loads = np.array([size[owner[place == g]].sum() for g in range(gpus)])
    assert left == pytest.approx(float((np.maximum(0, loads - limit) / limit).sum()), abs=1e-9)
    for ell in range(count):
        mine = place[start[ell] : start[ell + 1]].tolist()
        assert len(set(mine)) == len(mine)
        assert all(cap[g] >= level[ell] for g in mine)


# -- dives and neighbourhoods --------------------------------------------------------------


def heuristic(name: str, tree: Tree) -> PrimalHeuristic:
    made: dict[str, PrimalHeuristic] = {
        "diving": Diving(),
        "servers": ServerNeighbourhoods(
            lambda *_: (ServerDiving(),), 0
        ),
        "server_diving": ServerDiving(),
        "layout": GangLayout(tree.instance, tree.levels, 0, PATIENT),
    }  # fmt: skip
    return made[name]


@pytest.mark.parametrize(
    ("name", "gang", "capacity", "kappas"),
    [
        ("diving", "free", "none", 0),
        ("servers", "server", "mean", 4), ("server_diving", "server", "none", 0),
        ("diving", "free", "mean", 4),
        ("layout", "server", "none", 4), ("layout", "server", "mean", 0),
        ("layout", "server", "slot", 4),
    ],
)  # fmt: skip
def test_heuristics_better_a_first_placement_by_one_that_the_referee_takes(
    name: str, gang: Gang, capacity: Capacity, kappas: int
) -> None:
    problem = mixed(seed=3, size=48, capacity=capacity, gang=gang, kappas=kappas)
    tree = tree_of(problem)
    value, before = tree.generation.solve(Limits()).value, tree.incumbent.watts
    made = heuristic(name, tree)
    for _ in range(12):
        if tree.incumbent.watts == before:
            tree.ambition = min(1.0, 1.2 * tree.ambition)
            made.improve(tree.state(), Limits(10.0))
            made.realise(tree.state(), tree.root, tree.root.rounded, Limits(0.2))
    assert tree.incumbent.watts < before
    agrees(problem, tree.incumbent)
    tree.generation.master.set_box(tree.root.box)
    tree.generation.master.set_servers(tree.root.assignment)
    again = tree.generation.solve(Limits())  # what was fixed is let go
    assert again.value == pytest.approx(value, rel=1e-7)


def test_no_dive_is_dearer_than_it_may_be() -> None:
    tree = tree_of(mixed(seed=2, size=40, gang="free", kappas=0, server_static_w=0.0))
    usage = dive(tree.generation, tree.root.box, 2 * tree.incumbent.watts, Limits())
    assert usage is not None
    columns = tree.generation.master.columns
    held = [one for one, n in zip(columns, usage, strict=True) for _ in range(n)]
    watts = sum(tree.instance.cost(0, list(one)) for one in held)
    assert watts < tree.incumbent.watts
    assert dive(tree.generation, tree.root.box, 0.9 * watts, Limits()) is None


def test_a_dive_to_counts_needs_no_more_gpus() -> None:
    tree = tree_of(mixed(seed=0, size=32, capacity="mean", gang="free"))
    counts = tuple(np.ceil(tree.generation.solve(Limits()).counts + 1 - 1e-6).astype(int).tolist())
    found = dive_to(tree.generation, counts, Limits())
    assert found is not None
    assert pack_columns(tree.generation.master, [(one, FREE) for one in found]) is not None
    tops = [int(tree.levels.of[list(one)].max()) for one in found]
    for q, count in enumerate(counts[:-1]):
        assert sum(top >= q for top in tops) <= count


# -- gang layouts --------------------------------------------------------------------------


@settings(max_examples=40)
@given(data=st.data())
def test_room_is_worth_the_dearest_tasks_that_fit_less_the_rent(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 5))
    numbers = st.integers(0, 4)
    size = np.array([[data.draw(numbers) for _ in range(count)] for _ in range(2)], dtype=np.int64)
    size = size.reshape(2, count)
    profit = np.array([float(data.draw(st.integers(0, 9))) for _ in range(count)])
    level = np.sort(np.array([data.draw(st.integers(0, 2)) for _ in range(count)], dtype=np.int64))
    gpu_prices = np.cumsum([float(data.draw(st.integers(0, 5))) for _ in range(3)])
    cells = np.array([data.draw(st.integers(0, 6)), data.draw(st.integers(0, 6))], dtype=np.int64)
    worth = room_worth(size, profit, level, gpu_prices, cells)
    for q, x, y in itertools.product(range(3), range(cells[0] + 1), range(cells[1] + 1)):
        best = -np.inf
        for chosen in itertools.product((False, True), repeat=count):
            inside = np.flatnonzero(np.array(chosen, dtype=bool))
            if size[0, inside].sum() <= x and size[1, inside].sum() <= y:
                top = max([q, *level[inside].tolist()])
                best = max(best, float(profit[inside].sum() - gpu_prices[top]))
        assert worth[q, x, y] == pytest.approx(best)


def cost_of_runs(
    first: IntArray, wide: dict[str, IntArray], limit: IntArray, others: IntArray,
    wanted: IntArray, steps: np.ndarray, worth: np.ndarray, gpus: int, weight: float,
) -> float:  # fmt: skip
    """What `lay_out` minimises, counted GPU by GPU; one row, which is its first line."""
    total, count = 0.0, np.zeros(len(wanted))
    used = np.zeros(len(wanted))
    for g in range(gpus):
        here = (first <= g) & (g < first + wide["width"])
        if not here.any():
            continue
        load = int(wide["size"][here].sum())
        top = int(wide["level"][here].max())
        left = (limit[0] - load) / limit[0]
        if left < 0:
            total += 50.0 * steps.sum() * (0.3 - left)
        cells = worth.shape[1] - 1
        total -= worth[top, max(0, int(left * cells + 1e-9)), 0]
        count[: top + 1] += 1
        used[: top + 1] += load
    needed = np.maximum(count, (used + others[:, 0]) / limit[0])
    return total + weight * float((steps * np.maximum(0, needed - wanted)).sum())


@settings(max_examples=40)
@given(data=st.data())
def test_runs_stay_in_servers_and_cost_what_is_said(data: st.DataObject) -> None:
    span, servers = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
    count = data.draw(st.integers(1, 5))
    width = np.array([data.draw(st.integers(2, span)) for _ in range(count)], dtype=np.int64)
    size = np.array([data.draw(st.integers(0, 8)) for _ in range(count)], dtype=np.int64)
    level = np.array([data.draw(st.integers(0, 1)) for _ in range(count)], dtype=np.int64)
    limit = np.array([10], dtype=np.int64)
    others = np.array([[data.draw(st.integers(0, 40))], [0]], dtype=np.int64)
    wanted = np.array([data.draw(st.integers(0, 6)), 1], dtype=np.int64)
    steps = np.array([100.0, 10.0])
    worth = room_worth(
        np.array([[3], [0]], dtype=np.int64), np.array([40.0]), np.zeros(1, dtype=np.int64),
        np.cumsum(steps), np.array([10, 0], dtype=np.int64),
    )  # fmt: skip
    first = np.full(count, 0, dtype=np.int64)
    gangs = empty_gpus(size[None, :], width, level, limit, worth, 50 * 110.0, 0.3, span * servers)
    best = lay_out(gangs, others, wanted, steps, 3.0, span, first, 300, 30.0, 0.1, RNG(0))
    assert (first // span == (first + width - 1) // span).all()
    assert (first >= 0).all()
    assert (first < span * servers).all()
    wide = {"width": width, "size": size, "level": level}
    exact = cost_of_runs(
        first, wide, limit, others, wanted, steps, worth, span * servers, weight=3.0
    )
    assert best == pytest.approx(exact, abs=1e-6)


@settings(max_examples=40)
@given(problem=consolidation_problems(even=True, lines=False, max_tasks=5), data=st.data())
def test_what_a_layout_leaves_is_solved_to_its_optimum(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    """Against all placements of the others beside the same layout."""
    instance = instance_of(problem)
    levels = cost_levels(instance)
    layout = GangLayout(instance, levels, 0)
    if not counts_fix_power(instance, levels) or not layout.applies:
        return
    servers, seats = data.draw(st.integers(1, len(instance.server_w))), layout.server_gpus
    widths = instance.width[layout.wide].tolist()
    first = np.array(
        [
            seats * data.draw(st.integers(0, servers - 1)) + data.draw(st.integers(0, seats - v))
            for v in widths
        ],
        dtype=np.int64,
    )
    if not layout.fits(first, servers):
        return
    residual = layout.residual(first, servers)
    brute = Enumeration(residual.instance)
    brute.run()
    found = Incumbent(residual.instance)
    found.watts = float((instance.width * instance.least_watts).sum() + instance.server_w.sum() + 1)
    own = replace(levels, of=levels.of[residual.cost_task])
    counts = level_counts(residual.instance, own)
    tree = Tree(residual.instance, own, counts, found, (Diving(),))
    bound = tree.run(Limits(20))
    if brute.best is None:
        assert found.placement is None
        return
    assert found.placement is not None
    assert min(bound, found.watts) <= brute.best * (1 + 1e-9) + 1e-5
    assert found.watts == pytest.approx(brute.best, rel=1e-6, abs=1e-5)
    whole = Incumbent(instance)
    whole.offer_flat(residual.whole(found.placement))
    agrees(problem, whole)
    assert whole.watts == pytest.approx(found.watts)


def test_tasks_of_several_gpus_are_laid_over_one_another_where_room_is_short() -> None:
    """Two of 2 GPUs share theirs, and four of one GPU fill two more: one server of four."""
    wide = [Task(f"w{k}", 8.0, 2, 1.2) for k in range(2)]
    narrow = [Task(f"n{k}", 8.0, 1, 1.2) for k in range(4)]
    problem = ConsolidationProblem.of(
        [GpuKind(memory_gb=16.0)], [Server((0,) * 4, 100.0)] * 3, wide + narrow, rules=Rules("none")
    )
    tree = tree_of(problem)
    layout = GangLayout(tree.instance, tree.levels, 0, PATIENT)
    tree.incumbent.watts = math.inf
    layout.improve(tree.state(), Limits(5))
    first = layout.anneal((4, 1))
    assert first[0] == first[1]
    assert layout.fits(first, 1)
    assert tree.incumbent.placement is not None
    least = 4 * float(tree.instance.watts[0, 0]) + 100.0
    assert tree.incumbent.watts == pytest.approx(least)
