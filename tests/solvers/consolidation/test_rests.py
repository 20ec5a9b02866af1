"""Ways down beside a tree of many tasks, whose rest integer programs place."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trees_consolidation import built, counts_of, holds, least_watts

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.solvers.consolidation import branching, endings, rests
from optgap.solvers.consolidation.beside import Beside
from optgap.solvers.consolidation.branching import MOST_FAILED, Tree
from optgap.solvers.consolidation.deciding import place
from optgap.solvers.consolidation.levels import closed_bound, counted, dearer, levels
from optgap.solvers.consolidation.master import Box, Master
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.rests import HOPE, LOST, MOST_HOPE, Rests
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import applies


def large(problem: ConsolidationProblem, monkeypatch: pytest.MonkeyPatch) -> tuple[Tree, Search]:
    """A tree that takes the problem for one of many tasks, and begins with rests at once."""
    monkeypatch.setattr(branching, "MOST_DECIDED", 0)
    monkeypatch.setattr(branching, "LATER_S", 0.0)
    monkeypatch.setattr(endings, "LEAST", 4)
    return built(packing(problem))


def begun(problem: ConsolidationProblem, seed: int = 0) -> tuple[Rests, Search, float] | None:
    """Rests without sets of another program, a placement that they may undercut, and a bound."""
    pack = packing(problem)
    own, search = levels(pack), Search(pack, 0)
    search.build(Limits(), tries=1)
    if search.places is None or pack.gang or not applies(pack, own):
        return None
    low = counted(pack, own, Limits())
    high = (pack.gpus,) * len(low) + (len(pack.server_w),)
    asked = Rests(pack, own, Box((*low, pack.servers_for(low[0])), high), seed)
    asked.learn([], Limits())
    return asked, search, closed_bound(pack, own, low)


@settings(max_examples=80)
@given(
    problem=consolidation_problems(even=True, lines=False),
    each=st.integers(1, 12),
    hope=st.floats(0.0, 1.0),
    lost=st.sampled_from((0.0, 1e9)),
    seed=st.integers(0, 99),
)
def test_what_is_placed_keeps_the_rules_and_costs_what_its_counts_do(
    problem: ConsolidationProblem, each: int, hope: float, lost: float, seed: int
) -> None:
    found = begun(problem, seed)
    if found is None:
        return
    asked, search, bound = found
    asked.hope, pack = hope, asked.pack
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endings, "CHOSEN", each * pack.tasks)
        patch.setattr(rests, "LOST", lost)
        patch.setattr(endings, "LEAST", 1)
        places = asked.attempt(bound, search.watts, Limits())
    if places is not None:
        assert problem.check(pack.solution(places)) == []
        assert pack.total(places) <= bound + hope * (search.watts - bound) + 1e-3
        assert pack.total(places) < search.watts


def test_hope_rises_while_nothing_is_placed_and_begins_anew_after_a_placement() -> None:
    found = begun(mixed(seed=4, size=24, capacity="mean", gang="free"))
    assert found is not None
    asked, search, bound = found
    hopes = []
    for _ in range(12):  # for nothing that costs less than the bound
        assert asked.attempt(bound, bound, Limits()) is None
        hopes.append(asked.hope)
    assert hopes == sorted(hopes)
    assert HOPE < hopes[0] < hopes[-1] == MOST_HOPE
    for _ in range(60):
        if asked.attempt(bound, search.watts, Limits(30)) is not None:
            break
    assert asked.hope == HOPE


def test_a_program_over_few_sets_denies_nothing_and_places_within_the_counts() -> None:
    """With a GPU fewer than all placements have there is none, with those of one there is."""
    problem = mixed(seed=0, size=12, capacity="mean", gang="free")
    pack = packing(problem)
    own, search = levels(pack), Search(pack, 0)
    search.build(Limits(), tries=8)
    assert search.places is not None
    vector = tuple(counts_of(pack, own, search.places).tolist())
    low = counted(pack, own, Limits())
    least = (0,) * len(vector)
    master = Master(pack, own, Box(least, vector), 0)
    places = place(master, least, vector, 12, Limits(), 0)
    assert places is not None
    assert (counts_of(pack, own, places) <= vector).all()
    fewer = (low[0] - 1, *(min(low[0] - 1, count) for count in low[1:]), vector[-1])
    assert place(master, least, fewer, 12, Limits(), 0) is None


@settings(max_examples=60)
@given(
    problem=consolidation_problems(even=True, lines=False),
    share=st.floats(0.0, 0.2),
    seed=st.integers(0, 99),
)
def test_counts_that_are_drawn_are_no_fewer_and_no_dearer_than_asked(
    problem: ConsolidationProblem, share: float, seed: int
) -> None:
    pack = packing(problem)
    own = levels(pack)
    if not applies(pack, own):
        return
    low = counted(pack, own, Limits())
    most = closed_bound(pack, own, low) * (1 + share)
    more = dearer(pack, own, low, most, np.random.default_rng(seed))
    assert all(a >= b for a, b in zip(more, low, strict=True))
    assert closed_bound(pack, own, more) <= most + 1e-9
    for q, count in enumerate(more):  # one GPU more of any level would be too dear
        one = (*more[:q], count + 1, *more[q + 1 :])
        if count < (more[q - 1] if q else pack.gpus):
            assert closed_bound(pack, own, one) > most


def test_placements_come_from_rests_beside_a_large_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = mixed(seed=4, size=40, capacity="mean", gang="free")
    tree, search = large(problem, monkeypatch)
    assert tree.rests
    before, deadline = search.watts, time.monotonic() + 60
    tree.nodes = 1
    with Beside(tree, None, Limits(60)):
        assert not tree.apart
        while search.watts >= before and time.monotonic() < deadline:
            time.sleep(0.01)
    assert search.watts < before
    assert search.places is not None
    assert problem.check(tree.pack.solution(search.places)) == []


def test_rests_wait_for_tight_counts_or_a_while_and_end_with_the_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, _ = large(mixed(seed=4, size=24, capacity="mean", gang="free"), monkeypatch)
    asked: list[float] = []
    monkeypatch.setattr(Rests, "attempt", lambda _, bound, *__: asked.append(bound))
    assert not tree.rest(Limits())  # the root comes first
    tree.nodes = 1
    assert tree.rest(Limits())
    monkeypatch.setattr(branching, "LATER_S", 1e9)
    assert not tree.rest(Limits())
    tree.room, tree.failed = 0.9 * LOST * tree.master.top, MOST_FAILED
    assert tree.tight
    assert tree.rest(Limits())
    tree.room = 1.1 * LOST * tree.master.top
    assert not tree.tight
    tree.room, tree.failed = 0.0, MOST_FAILED - 1
    assert not tree.tight
    tree.failed = MOST_FAILED
    assert tree.tight
    tree.heap, tree.left = [], math.inf
    assert not tree.rest(Limits())
    assert len(asked) == 2


@pytest.mark.parametrize("failed", [0, MOST_FAILED])
def test_where_ways_lose_too_much_programs_end_one_instead(
    failed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, search = large(mixed(seed=4, size=24, capacity="mean", gang="free"), monkeypatch)
    search.watts = math.inf  # nothing counts as placed
    tree.room, tree.failed = 0.0, failed
    asked: list[str] = []
    monkeypatch.setattr(Tree, "_denied", lambda *_: None)
    monkeypatch.setattr(Tree, "rest", lambda _, __, which: asked.append(f"rest {which}"))
    monkeypatch.setattr(branching, "way_down", lambda *_: asked.append("way"))
    assert tree._look(tree.root, tree.root.box.low, complete=True) is None
    assert asked == ["way"] * (MOST_FAILED - failed) + ["rest 1"]


@pytest.mark.parametrize("gang", ["server", "free"])
def test_only_large_trees_of_free_gangs_have_rests(gang: str) -> None:
    tree, _ = built(packing(mixed(seed=4, size=24, gang=gang)))  # type: ignore[arg-type]
    assert not tree.rests
    assert not tree.tight
    assert not tree.rest(Limits())


@settings(max_examples=40)
@given(problem=consolidation_problems(even=True, lines=False))
def test_bounds_hold_where_all_ways_end_in_programs(problem: ConsolidationProblem) -> None:
    least, pack = least_watts(problem), packing(problem)
    if least is None or pack.gang or not applies(pack, levels(pack)):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branching, "MOST_DECIDED", 0)
        patch.setattr(branching, "MOST_FAILED", 0)
        patch.setattr(branching, "LOST", 1e9)
        patch.setattr(branching, "LATER_S", 0.0)
        patch.setattr(rests, "LOST", 1e9)
        patch.setattr(endings, "LEAST", 1)
        patch.setattr(rests, "DRAWN", 2)
        tree, search = built(pack)
        if search.best is None:
            return
        assert tree.rests
        bound = tree.run(Limits(20))
    holds(problem, search, bound, least)
