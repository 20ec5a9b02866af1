"""What ways down leave: problems of their own, ended by integer programs."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trees_consolidation import built, counts_of, holds, least_watts

from optgap.models.consolidation import ConsolidationProblem
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Gang
from optgap.models.limits import Limits
from optgap.solvers.consolidation import branching, endings
from optgap.solvers.consolidation.deciding import Decision, Verdict, place
from optgap.solvers.consolidation.endings import EndedBy, ending, programmed, way_down
from optgap.solvers.consolidation.exhaustive import exhaustive
from optgap.solvers.consolidation.levels import counted, levels
from optgap.solvers.consolidation.master import Binding, Box, Master
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.plunge import Held
from optgap.solvers.consolidation.programs import Program
from optgap.solvers.consolidation.search import Places, Search
from optgap.solvers.consolidation.squeeze import applies


def begun(problem: ConsolidationProblem) -> tuple[Master, tuple[int, ...]] | None:
    """A program without servers, and the counts of some placement."""
    pack = packing(problem)
    own, search = levels(pack), Search(pack, 0)
    search.build(Limits(), tries=1)
    if search.places is None or pack.gang or not applies(pack, own):
        return None
    vector = tuple(counts_of(pack, own, search.places).tolist())
    low = counted(pack, own, Limits())
    high = (pack.gpus,) * len(low) + (len(pack.server_w),)
    return Master(pack, own, Box((*low, pack.servers_for(low[0])), high), 0), vector


@settings(max_examples=80)
@given(
    problem=consolidation_problems(even=True, lines=False),
    few=st.sampled_from((0, 1, 3, 45)),
    most=st.sampled_from((1, 8000)),
    smaller=st.sampled_from((0.6, 1.0)),
    ended=st.sampled_from(("search", "programs")),
    seed=st.integers(0, 99),
)
def test_what_is_placed_in_parts_keeps_the_counts(
    problem: ConsolidationProblem,
    few: int,
    most: int,
    smaller: float,
    ended: EndedBy,
    seed: int,
) -> None:
    found = begun(problem)
    if found is None:
        return
    master, vector = found
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endings, "FEW_LEFT", few)
        patch.setattr(endings, "MOST_SETS", most)
        patch.setattr(endings, "SMALLER", smaller)
        patch.setattr(endings, "LEAST", 2)
        none, rng = Binding.none(master.pack.tasks, 0), np.random.default_rng(seed)
        places = way_down(master, vector, none, Limits(), rng, 1.0, ended, few)
    if places is not None:
        assert problem.check(master.pack.solution(places)) == []
        assert (counts_of(master.pack, master.own, places) <= vector).all()


@settings(max_examples=80)
@given(problem=consolidation_problems(even=True, lines=False), data=st.data())
def test_a_way_ends_where_nothing_can_be_placed_and_only_there(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    """All is left to the integer program; counts are those of the optimum, or fewer."""
    found, truth = begun(problem), exhaustive(problem, limits=Limits(20), seed=0)
    if found is None or truth.solution is None:
        return
    master, _ = found
    placed = sorted(truth.solution.assignments, key=lambda one: one.task)
    places = [tuple(one.gpus) for one in placed]
    vector = counts_of(master.pack, master.own, places).tolist()
    vector[0] -= data.draw(st.integers(0, 1))
    if vector[0] == 0 or any(more > vector[0] for more in vector[1:-1]):
        return
    vector[-1] = master.pack.servers_for(vector[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endings, "END_S", 300.0)  # a first compilation counts as well
        end = ending(master, tuple(vector), Limits(), np.random.default_rng(0), 1.0)
        over, whole = end([])
    assert over
    if whole is None:  # the optimum has no more GPUs than any other placement this dear
        least = problem.evaluate(truth.solution).objective
        assert master.watts(vector) < least * (1 - 1e-9) + 1e-6
    else:
        assert problem.check(master.pack.solution(whole)) == []
        assert (counts_of(master.pack, master.own, whole) <= vector).all()


def test_a_denied_rest_ends_the_way() -> None:
    """With a GPU less than all placements have: said at once, and not looked for."""
    problem = mixed(seed=0, size=6, capacity="none", gang="free")
    pack = packing(problem)
    own = levels(pack)
    low = counted(pack, own, Limits())
    box = Box((*low, 1), (pack.gpus,) * len(low) + (9,))
    master = Master(pack, own, box, 0)
    less = (low[0] - 1, *(min(low[0] - 1, count) for count in low[1:]), 1)
    assert ending(master, less, Limits(), np.random.default_rng(0), 0.0)([]) == (True, None)


def test_what_is_covered_needs_no_program() -> None:
    """Sets that hold all tasks are the placement."""
    problem = mixed(seed=1, size=8, capacity="none", gang="free")
    found = begun(problem)
    assert found is not None
    master, vector = found
    alone: Held = [((ell,), int(master.pack.width[ell])) for ell in range(8)]
    end = ending(master, vector, Limits(), np.random.default_rng(0), 0.0)
    over, places = end(alone)
    assert over
    assert places is not None
    assert problem.check(master.pack.solution(places)) == []


def test_fewer_tasks_must_be_left_before_another_program_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is open with 40 tasks is not asked again with 39 or 31, but with 30."""
    found = begun(mixed(seed=3, size=40, capacity="mean", gang="free"))
    assert found is not None
    master, vector = found
    asked: list[int] = []

    def undecided(rest: Master, *_: object) -> Decision:
        asked.append(rest.pack.tasks)
        return Decision(Verdict.OPEN)

    monkeypatch.setattr(endings, "_decided", undecided)
    end = ending(master, vector, Limits(), np.random.default_rng(0), 0.0)
    for covered in (0, 1, 9, 10, 11):
        whole: Held = [((ell,), int(master.pack.width[ell])) for ell in range(covered)]
        assert end(whole) == (False, None)
    assert asked == [40, 30]


def test_programs_are_for_fewer_tasks_each_time_and_for_more_sets_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None before 30 of 50 tasks are left; each next with 0.72 of those at most, as long as 12."""
    problem = mixed(seed=3, size=50, capacity="mean", gang="free")
    found = begun(problem)
    assert found is not None
    master, vector = found
    more = tuple(2 * count for count in vector)
    asked: list[tuple[int, int]] = []

    def unplaced(rest: Master, _: object, __: object, each: int, *___: object) -> None:
        asked.append((rest.pack.tasks, each))

    monkeypatch.setattr(endings, "place", unplaced)
    monkeypatch.setattr(endings, "LEAST", 12)
    monkeypatch.setattr(endings, "CHOSEN", 240)
    end = programmed(master, more, Limits(), np.random.default_rng(0), 0.0, 30)
    for covered in (0, 19):
        whole: Held = [((ell,), int(master.pack.width[ell])) for ell in range(covered)]
        assert end(whole) == (False, None)
    assert asked == []
    over, places = end([((ell,), int(master.pack.width[ell])) for ell in range(20)])
    assert over
    assert places is None or problem.check(master.pack.solution(places)) == []
    assert len(asked) > 1
    assert asked[0] == (30, 8)
    assert all(later <= 0.72 * tasks for (tasks, _), (later, _) in itertools.pairwise(asked))
    assert all(each == 240 // tasks for tasks, each in asked)
    assert all(0.72 * tasks >= 12 for tasks, _ in asked[:-1])
    asked.clear()  # a smaller problem long before programs: its linear programs take less time
    sooner = programmed(master, more, Limits(), np.random.default_rng(0), 0.0, 20)
    over, _ = sooner([((ell,), int(master.pack.width[ell])) for ell in range(20)])
    assert over
    assert asked[0][0] <= 20


def test_a_placement_of_a_program_ends_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With counts of a placement all is placed at once; with a first GPU taken it still counts."""
    asked: list[int] = []

    def counted_place(rest: Master, *given: Any) -> Places | None:
        asked.append(rest.pack.tasks)
        return place(rest, *given)

    monkeypatch.setattr(endings, "place", counted_place)
    monkeypatch.setattr(endings, "LEAST", 1)
    problem = mixed(seed=1, size=12, capacity="mean", gang="free")
    found = begun(problem)
    assert found is not None
    master, vector = found
    for covered in (0, 1):
        whole: Held = [((ell,), int(master.pack.width[ell])) for ell in range(covered)]
        more = tuple(count + covered for count in vector)
        end = programmed(master, more, Limits(), np.random.default_rng(0), 0.0)
        over, places = end(whole)
        assert over
        assert places is not None
        assert problem.check(master.pack.solution(places)) == []
        assert (counts_of(master.pack, master.own, places) <= more).all()
    assert asked == [12, 11]


@pytest.mark.parametrize("slow", [0.0, 1e9])
def test_large_trees_end_at_the_optimum_however_long_linear_programs_may_take(
    slow: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No integer program over all sets, and nodes that wait: what the others prove is the same."""
    problem = mixed(seed=4, size=24, capacity="mean", gang="free")
    plain, known = built(packing(problem))
    assert not plain.large
    plain.run(Limits(20))
    monkeypatch.setattr(branching, "MOST_DECIDED", 0)
    monkeypatch.setattr(branching, "SLOW_S", slow)
    tree, search = built(packing(problem))
    assert tree.large
    assert tree.ended
    bound = tree.run(Limits(10))
    assert bound <= known.watts * (1 + 1e-9)
    if slow:
        assert search.watts == pytest.approx(known.watts, rel=1e-7)
    else:
        assert tree.halted
        patience = tree.patience
        assert tree.again()
        assert tree.patience > patience
        assert not tree.halted
        assert tree.bound <= known.watts * (1 + 1e-9)


@settings(max_examples=60)
@given(problem=consolidation_problems(even=True, lines=False), few=st.sampled_from((0, 2, 45)))
def test_bounds_hold_where_linear_programs_alone_deny_counts(
    problem: ConsolidationProblem, few: int
) -> None:
    least, pack = least_watts(problem), packing(problem)
    if least is None or not applies(pack, levels(pack)):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branching, "MOST_DECIDED", 0)
        patch.setattr(endings, "FEW_LEFT", few)
        tree, search = built(pack)
        if search.best is None:
            return
        bound = tree.run(Limits(20))
    holds(problem, search, bound, least)


@pytest.mark.parametrize(("gang", "kind"), [(False, "server"), (True, "server"), (False, "free")])
def test_only_placements_of_the_same_kind_are_taken_from_programs(
    gang: bool, kind: Gang, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one with a task's GPUs anywhere, where they must be in one server."""
    pack = packing(mixed(seed=0, size=12, gang=kind))
    tree, search = built(pack)
    _, better = built(pack)
    assert search.places is not None
    vector = tuple(counts_of(pack, tree.own, search.places).tolist())
    assert tree._placed(vector)
    search.watts += 1.0
    assert not tree._placed(vector)
    decision = Decision(Verdict.PLACED, better.places)
    monkeypatch.setattr(branching, "decide", lambda *_, **__: decision)
    assert not tree._decides(vector, gang, 1.0)
    assert (search.watts == better.watts) == (gang == pack.gang)


def test_a_look_that_was_ended_does_not_end_the_next_one() -> None:
    """HiGHS keeps what a callback told it, unless it is told otherwise."""
    rng = np.random.default_rng(0)
    program = Program()
    sizes = rng.integers(20, 100, (2, 24))
    rows = [program.row(float(one.sum() // 2), float(one.sum() // 2 + 1)) for one in sizes]
    for k in range(24):
        worth = float(rng.integers(1, 9))
        held = {row: float(one[k]) for row, one in zip(rows, sizes, strict=True)}
        program.column(worth, 1.0, held)
    program.build()
    done = threading.Event()
    done.set()
    program.run(Limits(60), done)
    assert not program.solved
    program.run(Limits(60))
    assert program.solved
