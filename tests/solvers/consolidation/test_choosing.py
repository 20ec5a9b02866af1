"""Ways down where nothing is taken back, and the cheapest choice among all sets."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trees_consolidation import built, holds, least_watts

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, Gang
from optgap.models.limits import Limits
from optgap.models.result import Status
from optgap.solvers.consolidation import branching
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.choosing import Choice, Choosing
from optgap.solvers.consolidation.exact import MOST_BRANCHED, exact
from optgap.solvers.consolidation.levels import levels
from optgap.solvers.consolidation.master import Binding, Box
from optgap.solvers.consolidation.outcomes import CLOSE
from optgap.solvers.consolidation.packing import Packing, packing
from optgap.solvers.consolidation.plunge import Plunge, part_of
from optgap.solvers.consolidation.squeeze import applies


def grown(problem: ConsolidationProblem) -> Tree | None:
    """A tree for which all counts are too many to be whole; None where there is no placement."""
    pack = packing(problem)
    own = levels(pack, MOST_BRANCHED)
    if not applies(pack, own):
        return None
    found, search = built(pack, own)
    return found if search.best is not None else None


def begun(tree: Tree, most: float, limits: Limits | None = None) -> Choosing:
    """A program for what costs less than `most` W, wherever it is."""
    choosing, box = Choosing(tree.master, tree.root.box), tree.root.box
    tree.master.confine(box)
    relaxed = tree.master.run(Limits(), priced=True)
    assert choosing.begin(box, relaxed.bound, most, limits or Limits(20))
    return choosing


def ended(choosing: Choosing) -> Choice:
    while not choosing.ready:
        time.sleep(0.001)
    choice = choosing.close()
    assert choice is not None
    return choice


@settings(max_examples=60)
@given(problem=consolidation_problems(even=True, lines=False))
def test_with_many_levels_the_tree_ends_at_the_optimum_as_well(
    problem: ConsolidationProblem,
) -> None:
    least = least_watts(problem)
    if least is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branching, "MOST_LEVELS", 0)
        tree = grown(problem)
        if tree is None:
            return
        assert tree.fine
        bound = tree.run(Limits(20))
        tree.close()
    holds(problem, tree.search, bound, least)
    assert tree.search.watts == pytest.approx(least, rel=CLOSE, abs=1e-5)
    assert tree.bound >= tree.search.watts * (1 - CLOSE)


@settings(max_examples=60)
@given(problem=consolidation_problems(even=True, lines=False), more=st.floats(1e-4, 0.5))
def test_the_cheapest_choice_is_the_optimum_and_nothing_is_cheaper(
    problem: ConsolidationProblem, more: float
) -> None:
    least = least_watts(problem)
    tree = None if least is None else grown(problem)
    if least is None or tree is None or tree.pack.gang or not tree.root.box.holds:
        return
    choice = ended(begun(tree, least * (1 + more)))
    assert choice.complete
    assert choice.bound <= least * (1 + 1e-9) + 1e-5
    assert choice.bound == pytest.approx(least, rel=1e-6, abs=1e-4)
    assert choice.places is not None
    assert problem.check(tree.pack.solution(choice.places)) == []
    assert tree.pack.total(choice.places) == pytest.approx(least, rel=1e-6, abs=1e-4)
    below = 0.999 * least - 1e-3
    none = begun(tree, below)
    nothing = ended(none)
    assert nothing.complete
    assert nothing.places is None
    assert nothing.bound == below


def many_levels(size: int = 40, gang: Gang = "free", seed: int = 2) -> ConsolidationProblem:
    """Each task with a level of its own, and servers that cost nothing."""
    return mixed(seed=seed, size=size, gang=gang, kappas=0, server_static_w=0.0)


def tree_of(problem: ConsolidationProblem) -> Tree:
    tree = grown(problem)
    assert tree is not None
    return tree


def test_few_sets_are_chosen_from_at_once_and_many_are_not() -> None:
    problem = many_levels(24, seed=3)  # one whose linear program is two watts below the optimum
    optimum = exact(problem, limits=Limits(30), seed=0)
    assert optimum.status is Status.OPTIMAL
    assert optimum.claimed is not None
    tree = tree_of(problem)
    master, box = tree.master, tree.root.box
    master.confine(box)
    bound = master.run(Limits(), priced=True).bound
    choosing, most = Choosing(master, box), optimum.claimed + 0.5
    assert bound < optimum.claimed - 1.5
    assert choosing.now(box, bound, most, Limits(20), 3) is None
    choice = choosing.now(box, bound, most, Limits(20), 10_000)
    assert choice is not None
    assert choice.complete
    assert choice.bound == pytest.approx(optimum.claimed, rel=1e-6)


def test_counts_of_a_node_hold_for_what_is_chosen_there() -> None:
    tree = tree_of(many_levels())
    master, root = tree.master, tree.root.box
    master.confine(root)
    master.run(Limits(), priced=True)
    optimum = ended(begun(tree, 2107.0)).places
    assert optimum is not None
    tops = [tree.own.of[one].max() for one in Packing.contents(optimum).values()]
    q = 13  # of which there are more than the least
    count, placed = int((np.array(tops) >= q).sum()), 0
    for low, high in (
        ((*root.low[:q], count + 1, *root.low[q + 1 :]), root.high),
        (root.low, (*root.high[:q], count - 1, *root.high[q + 1 :])),
        ((*root.low[:q], count, *root.low[q + 1 :]), (*root.high[:q], count, *root.high[q + 1 :])),
    ):
        box = Box(low, high)
        master.confine(box)
        bound = master.run(Limits(), priced=True).bound
        choice = Choosing(master, root).now(box, bound, bound + 2.0, Limits(120), 10_000)
        assert choice is not None
        if choice.places is None:
            assert choice.bound > 2107.0
            continue
        placed += 1
        tops = [tree.own.of[one].max() for one in Packing.contents(choice.places).values()]
        assert low[q] <= int((np.array(tops) >= q).sum()) <= high[q]
    assert placed


def test_a_program_that_is_stopped_proves_no_more_than_its_linear_program() -> None:
    tree = tree_of(many_levels(64))
    gone = Limits(20)
    gone.interrupted.set()
    choosing = begun(tree, tree.master.run(Limits()).bound + 4.0, gone)
    choice = ended(choosing)
    assert not choice.complete
    assert choice.bound < tree.search.watts
    assert choosing.sets == 0
    assert choosing.stop() is None
    # the tree keeps what is known, and is not ended by it
    tree.run(Limits(0.0))
    tree._known(choice)
    assert tree.open()
    assert tree.bound <= tree.search.watts
    tree._known(Choice(tree.search.watts, True, None))
    assert not tree.open()
    assert tree.bound == tree.search.watts


def test_another_program_is_only_begun_where_it_is_much_smaller() -> None:
    tree = tree_of(many_levels())
    box = tree.root.box
    tree.master.confine(box)
    bound = tree.master.run(Limits(), priced=True).bound
    choosing = begun(tree, bound + 4.0)
    first = choosing.sets
    assert not choosing.begin(box, bound, bound + 3.9, Limits(20))
    assert choosing.sets == first
    assert choosing.begin(box, bound, bound + 0.2, Limits(20))
    assert 0 < choosing.sets < first
    choosing.close()


@pytest.mark.parametrize("gang", ["free", "server"])
@pytest.mark.parametrize("capacity", ["none", "mean"])
def test_ways_down_keep_what_they_begin_with(gang: Gang, capacity: Capacity) -> None:
    problem = mixed(seed=1, size=48, capacity=capacity, gang=gang, kappas=0)
    tree = tree_of(problem)
    found = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        places = tree.search.places
        assert places is not None
        part = part_of(tree.pack, places, 0.5, rng)
        binding = tree.root.binding.bind(part.bound)
        box = tree.root.box
        down = Plunge(tree.master, Limits(20), rng, 1.0).down(
            box, binding, 2 * tree.search.watts, part.kept
        )
        if down is None:
            continue
        found += 1
        assert problem.check(tree.pack.solution(down)) == []
        homes: dict[int, int] = {}
        for ell, number in part.bound:
            home = int(tree.pack.gpu_server[down[ell][0]])
            assert homes.setdefault(number, home) == home
        # a task that is covered once more than it has to be is taken off one of its GPUs
        inside = [set(one) for one in Packing.contents(down).values()]
        kept = [any(set(one) <= other for other in inside) for one in part.kept]
        assert sum(kept) > 0.6 * len(kept)
    assert found


def test_no_way_down_is_dearer_than_it_may_be() -> None:
    tree = tree_of(many_levels())
    plunge = Plunge(tree.master, Limits(), np.random.default_rng(0), 0.0)
    box, binding = tree.root.box, Binding.none(tree.pack.tasks, tree.master.servers)
    down = plunge.down(box, binding, 2 * tree.search.watts)
    assert down is not None
    watts = tree.pack.total(down)
    assert watts < tree.search.watts
    assert plunge.down(box, binding, 0.9 * watts) is None
    again = plunge.down(box, binding, 2 * watts)  # what was fixed is let go
    assert again is not None


@pytest.mark.parametrize("gang", ["free", "server"])
def test_with_many_levels_ways_down_have_the_gpus_and_servers_of_the_best_node(gang: Gang) -> None:
    tree = tree_of(many_levels(40, gang))
    root = tree.root.box
    gpus, servers = root.low[0] + 1, root.low[-1] + 1
    best = Box((gpus, *root.low[1:-1], servers), root.high)
    tree.heap[0] = branching.Node(0.0, 0, 0, best, tree.root.binding)
    for more in (0, servers + 1, root.high[-1] + 5):
        least = min(max(servers, more), root.high[-1])
        box = tree._near(more)
        assert box.low == (gpus, *root.low[1:-1], least)
        assert box.high == (*root.high[:-1], least if gang == "server" else root.high[-1])


def test_parts_are_whole_servers_where_tasks_are_in_one() -> None:
    gangs: tuple[Gang, Gang] = ("server", "free")
    for gang in gangs:
        tree = tree_of(many_levels(40, gang))
        places, home = tree.search.places, tree.pack.gpu_server
        assert places is not None
        contents = Packing.contents(places)
        part = part_of(tree.pack, places, 0.5, np.random.default_rng(0))
        awake = {int(home[g]) for g in contents}
        assert part.awake == len(awake)
        if gang == "free":
            assert not part.bound
            assert part.kept.total() == len(contents) // 2
            continue
        servers: dict[int, int] = {}
        for ell, number in part.bound:
            assert servers.setdefault(int(home[places[ell][0]]), number) == number
        assert len(set(servers.values())) == len(servers) <= len(awake) // 2
        bound = {ell for ell, _ in part.bound}
        for one in part.kept:
            assert all(ell in bound for ell in one if tree.pack.width[ell] > 1)


@pytest.mark.parametrize("gang", ["free", "server"])
def test_a_time_limit_leaves_bound_and_placement_in_order(gang: Gang) -> None:
    problem = mixed(seed=3, size=96, gang=gang, kappas=0)
    outcome = exact(problem, limits=Limits(2.0), seed=0)
    assert outcome.solution is not None
    assert problem.check(outcome.solution) == []
    assert outcome.bound is not None
    assert outcome.bound <= problem.evaluate(outcome.solution).objective * (1 + 1e-9)
