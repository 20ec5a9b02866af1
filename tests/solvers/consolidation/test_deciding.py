"""What integer programs over all sets say of counts, against every placement of tiny problems."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from decisions_consolidation import denied_exactly, tight_problems
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems
from trees_consolidation import built, counts_of

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation import deciding
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.columns import columns
from optgap.solvers.consolidation.covering import Covering, Question
from optgap.solvers.consolidation.deciding import Decision, Verdict, decide
from optgap.solvers.consolidation.generation import Set, coarse_sizes, table_shape
from optgap.solvers.consolidation.kernels import all_sets, fill_tables
from optgap.solvers.consolidation.levels import counted, levels
from optgap.solvers.consolidation.master import Box, Master, Relaxed
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.set_programs import SetProgram, Together


@settings(max_examples=100)
@given(problem=tight_problems(), data=st.data())
def test_counts_are_denied_exactly_where_no_tight_placement_has_them(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    denied_exactly(problem, data)


@settings(max_examples=80)
@given(problem=consolidation_problems(even=True, lines=False), data=st.data())
def test_counts_are_denied_exactly_where_no_placement_has_them(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    denied_exactly(problem, data)


@pytest.mark.parametrize("listed", [2, 4])
@settings(max_examples=40)
@given(problem=tight_problems(), data=st.data())
def test_pools_of_some_sets_deny_nothing(
    listed: int, problem: ConsolidationProblem, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "MOST_LISTED", listed)
        patch.setattr(deciding, "MOST_TOGETHER", listed)
        denied_exactly(problem, data, all_listed=False)


@settings(max_examples=40)
@given(problem=tight_problems(), data=st.data())
def test_pools_that_are_too_small_are_followed_by_larger_ones(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "POOLS", (1, 2, 1000))
        patch.setattr(deciding, "NEARLY", 1.0)
        denied_exactly(problem, data)


@settings(max_examples=60)
@given(problem=tight_problems(), data=st.data())
def test_counts_are_denied_exactly_by_an_integer_program_alone(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    """The search among sets would have told before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deciding, "Covering", SetProgram)
        denied_exactly(problem, data)


@pytest.mark.parametrize("kind", [SetProgram, Together])
def test_a_cover_is_found_that_costs_as_much_as_it_may_and_no_more(kind: type[SetProgram]) -> None:
    """Three tasks of two GPUs and one of one: two that are slow, and two that are fast."""
    tasks = [
        *(Task(f"slow{k}", 5.0, 2, 1.5) for k in range(2)),
        *(Task(f"fast{k}", 5.0, v, 1.1) for k, v in enumerate((2, 1))),
    ]
    servers, kinds = [Server((0,) * 4, 100.0)], [GpuKind(memory_gb=16.0)]
    pack = packing(ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none")))
    vector = (4, 4, 1)
    master = Master(pack, levels(pack), Box((0, 0, 1), vector), 1)
    sets: list[Set] = [one for n in (1, 2, 3) for one in itertools.combinations(range(4), n)]
    least = master.watts((3, 2, 1))  # seven in threes; a task of two GPUs is on two
    for watts, verdict in ((least + 1e-5, Verdict.PLACED), (least - 1e-2, Verdict.DENIED)):
        program = kind(Question(master, sets, vector, watts))
        for turn in range(2):
            decision = program.solve(Limits(60), turn)
            assert decision.verdict is verdict
            assert program.denied == (verdict is Verdict.DENIED)
        if decision.places is not None:
            assert master.watts(counts_of(pack, master.own, decision.places).tolist()) <= watts


def test_sets_are_spread_over_tasks() -> None:
    pack = packing(mixed(seed=0, size=4, capacity="none", gang="free"))
    master = Master(pack, levels(pack), Box((0, 0), (4, 1)), 0)
    sets: list[Set] = [(0, 1), (0,), (1,), (0, 2), (1, 2), (2,), (3,)]
    asked = Question(master, sets, (4, 1), 1e3)
    assert (asked.spread(1).sets, asked.spread(1).part) == ([(0, 1), (0, 2), (3,)], True)
    two = asked.spread(2)
    assert two.sets == [(0, 1), (0,), (1,), (0, 2), (1, 2), (3,)]
    assert (asked.spread(4).sets, asked.spread(4).part) == (sets, False)
    assert two.spread(2).part


class Late(Covering):
    """A search that has nothing to say for as long as a small program takes."""

    asked_for = 0

    def solve(self, limits: Limits, turn: int = 0, done: threading.Event | None = None) -> Decision:
        Late.asked_for += 1
        if Late.asked_for > 40:
            return super().solve(limits)
        time.sleep(0.005)
        return Decision(Verdict.OPEN)


@pytest.mark.parametrize(("more", "verdict"), [(0, Verdict.DENIED), (2, Verdict.PLACED)])
@pytest.mark.parametrize("most", [0, 10**5])
def test_what_is_denied_with_few_sets_for_each_task_is_searched_on(
    more: int, verdict: Verdict, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one set for each task nothing is placed, and with all sets there may be no program."""
    pack = packing(mixed(seed=0, size=24, capacity="mean", gang="free"))
    own = levels(pack, pack.tasks)
    low = counted(pack, own, Limits())
    vector = (*(n + more for n in low), pack.servers_for(low[0] + more))
    master = Master(pack, own, Box(vector, vector), 0)
    # a linear program that says nothing by itself
    relaxed, watts = deciding.relax(master, (0,) * len(vector), vector, math.inf, Limits())
    monkeypatch.setattr(deciding, "relax", lambda *_: (replace(relaxed, bound=0.0), watts))
    sets = master.listed(max(watts, relaxed.bound + 1.0), 10**5, 10**7)
    monkeypatch.setattr(Master, "listed", lambda *_: sets)
    monkeypatch.setattr(deciding, "Covering", Late)
    monkeypatch.setattr(deciding, "SPREAD", (1,))
    monkeypatch.setattr(deciding, "MOST_PROGRAMMED", most)
    Late.asked_for, limits = 0, Limits(60)
    decision = decide(master, (0,) * len(vector), vector, math.inf, limits, False, lambda: False)
    assert decision.verdict is verdict
    assert (decision.places is not None) == (verdict is Verdict.PLACED)


def test_where_few_sets_are_known_a_program_has_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not many more than some for each task; a search that says nothing, and sets are missing."""
    pack = packing(mixed(seed=0, size=8, capacity="none", gang="free"))
    own = levels(pack)
    vector = (*(pack.gpus for _ in own.quanta), len(pack.server_w))
    master = Master(pack, own, Box(vector, vector), 0)
    monkeypatch.setattr(Covering, "solve", lambda *_: Decision(Verdict.OPEN))
    sets: list[Set] = [(ell,) for ell in range(8)]
    asked = Question(master, sets, vector, master.watts(vector), part=True)
    for otherwise in (None, lambda: False):
        decision = deciding._searched(asked, Limits(60), 0.01, otherwise)
        assert decision.verdict is Verdict.PLACED


@settings(max_examples=80)
@given(data=st.data())
def test_every_set_that_earns_enough_is_listed_or_a_larger_one_is(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 7))
    rows = np.array([[data.draw(st.integers(1, 9)) for _ in range(count)] for _ in range(2)])
    limit = np.array([10, 14], dtype=np.int64)
    profit = np.array([float(data.draw(st.integers(0, 6))) for _ in range(count)])
    level = -np.sort(-np.array([data.draw(st.integers(0, 2)) for _ in range(count)]))
    width = np.array([data.draw(st.integers(1, 3)) for _ in range(count)], dtype=np.int64)
    least = np.array([4.0, 6.0, 8.0])[level]
    same = np.searchsorted(-level, -level)
    sizes = rows.astype(np.int64)
    coarse, room = coarse_sizes(sizes, limit)
    tables = np.zeros(table_shape(coarse, room))
    fill_tables(coarse, room, profit, tables)
    found = np.zeros((200, count), dtype=np.int64)
    size, worth = np.zeros(200, dtype=np.int64), np.zeros(200)
    number, complete = all_sets(
        sizes, limit, profit, coarse, room, tables, least, same.astype(np.int64), width, found,
        size, worth, 100_000,
    )  # fmt: skip
    assert complete
    listed = {tuple(found[k, : size[k]].tolist()): worth[k] for k in range(number)}
    expected = {}
    for chosen in itertools.product((False, True), repeat=count):
        inside = np.flatnonzero(chosen)
        total = sizes[:, inside].sum(axis=1)
        if not inside.size or (total > limit).any() or profit[inside].sum() < least[inside[0]]:
            continue
        larger = [
            i
            for i in range(int(same[inside[0]]), count)
            if i not in inside
            and width[i] >= width[inside].min()
            and (total + sizes[:, i] <= limit).all()
        ]
        if not larger:
            expected[tuple(inside.tolist())] = profit[inside].sum() - least[inside[0]]
    assert listed.keys() == expected.keys()
    for one, value in expected.items():
        assert listed[one] == pytest.approx(value)


def test_too_many_sets_are_not_all_of_them() -> None:
    ones = np.ones((1, 12), dtype=np.int64)
    limit = np.array([6], dtype=np.int64)
    coarse, room = coarse_sizes(ones, limit)
    tables = np.zeros(table_shape(coarse, room))
    fill_tables(coarse, room, np.ones(12), tables)
    zeros, width = np.zeros(12, dtype=np.int64), np.ones(12, dtype=np.int64)
    for most, nodes in ((100, 10**6), (10**4, 50)):
        found = np.zeros((most, 6), dtype=np.int64)
        _, complete = all_sets(
            ones, limit, np.ones(12), coarse, room, tables, np.full(12, 6.0), zeros, width, found,
            np.zeros(most, dtype=np.int64), np.zeros(most), nodes,
        )  # fmt: skip
        assert not complete


def decided(problem: ConsolidationProblem, vector: tuple[int, ...], gang: bool) -> Verdict:
    pack = packing(problem)
    own = levels(pack)
    low = (0,) * len(own.quanta)
    master = Master(pack, own, Box((*low, 0), vector), len(pack.server_w) if pack.gang else 0)
    return decide(master, (*low, 0), vector, math.inf, Limits(), gang).verdict


def test_fractions_of_sets_are_no_placement() -> None:
    """Four threes cover six tasks twice, so half of each is two GPUs; no two of them cover all."""
    fit = {(0, 1, 2), (0, 3, 4), (1, 3, 5), (2, 4, 5)}
    rest = [one for one in itertools.combinations(range(6), 3) if one not in fit]
    tasks = [
        Task(f"t{k}", 1.0, 1, 1.2, util_percent=np.array([40.0 * (k in one) for one in rest]))
        for k in range(6)
    ]
    servers, kinds = [Server((0,) * 4, 100.0)] * 2, [GpuKind(memory_gb=16.0)]
    problem = ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("slot"))
    assert decided(problem, (1, 1), False) is Verdict.DENIED
    assert decided(problem, (2, 1), False) is Verdict.DENIED
    assert decided(problem, (3, 1), False) is Verdict.PLACED


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("count", "placing", "verdict"),
    [(2, True, Verdict.PLACED), (1, True, Verdict.OPEN), (2, False, Verdict.OPEN)],
)
def test_sets_of_least_reduced_cost_may_place_and_never_deny(
    count: int, placing: bool, verdict: Verdict, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four tasks of which two fit a GPU; there are said to be too many sets at first."""
    tasks = [Task(f"t{k}", 8.0, 1, 1.2) for k in range(4)]
    servers, kinds = [Server((0,) * 4, 100.0)], [GpuKind(memory_gb=16.0)]
    problem = ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none", gang="free"))
    pack, asked = packing(problem), []
    pairs: list[tuple[float, Set]] = [(0.0, one) for one in itertools.combinations(range(4), 2)]

    def listed(_: Master, watts: float, *__: int) -> tuple[list[tuple[float, Set]], bool]:
        asked.append(watts)
        return (pairs, True) if len(asked) > 1 else ([], False)

    # a linear program that bounds nothing: by itself it would deny one GPU
    relaxed = Relaxed(0.0, 0.0, np.zeros(2), np.zeros(0))
    monkeypatch.setattr(Master, "run", lambda *_, **__: relaxed)
    monkeypatch.setattr(Master, "listed", listed)
    master = Master(pack, levels(pack), Box((0, 0), (4, 1)), 0)
    otherwise = None if alone else lambda: False
    limits = Limits(0.5)
    decision = decide(master, (0, 0), (count, 1), math.inf, limits, False, otherwise, placing)
    assert decision.verdict is verdict
    assert (decision.places is not None) == (verdict is Verdict.PLACED)
    assert asked == pytest.approx([asked[0] * 0.5**k for k in range(1 + placing)])


def test_where_some_of_the_sets_are_of_no_use_too_many_decide_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pack = packing(mixed(seed=0, size=24, capacity="mean", gang="free"))
    verdicts = []
    for most in (20_000, 1):
        monkeypatch.setattr(deciding, "MOST_TOGETHER", most)
        branched, _ = built(pack)
        low = branched.root.box.low
        more = (*(count + 4 for count in low[:-1]), low[-1] + 1)
        decision = decide(
            branched.master, low, more, math.inf, Limits(20), False, lambda: False, partly=False
        )
        verdicts.append(decision.verdict)
    assert verdicts == [Verdict.PLACED, Verdict.OPEN]


@pytest.mark.parametrize("times", [1.5, 2.00001, 3.00001])
def test_all_sets_are_listed_where_twice_the_bound_may_be_spent(times: float) -> None:
    """Of three small tasks there could be more on a GPU, but for their size."""
    sizes = (8.0, 8.0, 3.0, 3.0, 3.0)
    tasks = [Task(f"t{k}", size, 1, 1.2) for k, size in enumerate(sizes)]
    servers, kinds = [Server((0,) * 4, 100.0)], [GpuKind(memory_gb=16.0)]
    pack = packing(ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none", gang="free")))
    master = Master(pack, levels(pack), Box((0, 1), (4, 1)), 0)
    bound = master.run(Limits()).bound
    sets, complete = master.listed(times * bound, 100, 10**6)
    assert complete
    pairs = [(large, *two) for large in (0, 1) for two in itertools.combinations((2, 3, 4), 2)]
    assert {one for _, one in sets} == {(0, 1), *pairs, (2, 3, 4)}
    assert max(cost for cost, _ in sets) > 1
    assert master.listed(times * bound, 5, 10**6) == ([], False)


def test_a_look_at_a_hard_program_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of 128 tasks that nothing decides in seconds."""
    pack = packing(mixed(seed=14, size=128, capacity="mean", gang="free"))
    own = levels(pack, pack.tasks)
    low = (*counted(pack, own, Limits()), 0)
    master = Master(pack, own, Box(low, (*[pack.gpus] * (len(low) - 1), 99)), 0)
    kept: list[deciding.SetProgram] = []

    def looked(programs: list[deciding.SetProgram], *_: Any) -> Decision:
        kept.extend(programs)
        return Decision(Verdict.OPEN)

    monkeypatch.setattr(deciding, "_looked", looked)
    decide(master, low, (81, 57, 40, 18, 11), 1e6, Limits(60), False)
    program, done = kept[-1], threading.Event()
    done.set()
    assert program.solve(Limits(60), 0, done).verdict is Verdict.OPEN
    status = program._highs.modelStatusToString(program._highs.getModelStatus())
    assert status == "Interrupted by user"


@pytest.mark.parametrize("kappa", [1.2, 1.5])
def test_gpus_of_two_servers_are_not_those_of_one(kappa: float) -> None:
    """Three tasks of two whole GPUs each, with three GPUs in a server."""
    tasks = [Task(f"w{k}", 11.0, 2, 1.2) for k in range(2)] + [Task("w2", 11.0, 2, kappa)]
    servers, kinds = [Server((0,) * 3, 100.0)] * 3, [GpuKind(memory_gb=16.0)]
    problem = ConsolidationProblem.of(kinds, servers, tasks, rules=Rules("none"))
    counts = (6,) if kappa == 1.2 else (6, 4)
    assert decided(problem, (*counts, 2), False) is Verdict.PLACED
    assert decided(problem, (*counts, 2), True) is Verdict.DENIED
    assert decided(problem, (*counts, 3), True) is Verdict.PLACED
    fewer = (5,) if kappa == 1.2 else (6, 3)
    assert decided(problem, (*fewer, 3), True) is Verdict.DENIED


@pytest.mark.parametrize("gang", ["server", "free"])
@pytest.mark.parametrize("capacity", ["none", "mean", "slot"])
def test_denied_counts_leave_the_optimum_where_it_is(gang: str, capacity: str) -> None:
    """The tree, which splits around what is denied, against branch-and-price on pairs."""
    for seed in (1, 2):
        problem = mixed(seed=seed, size=12, capacity=capacity, gang=gang)  # type: ignore[arg-type]
        pack = packing(problem)
        own, search = levels(pack), Search(pack, 0)
        search.build(Limits(), tries=1)
        tree = Tree(pack, own, counted(pack, own, Limits()), search, seed)
        bound = tree.run(Limits(20))
        other = columns(problem, limits=Limits(20), seed=seed)
        assert other.bound is not None
        assert other.claimed is not None
        assert min(bound, search.watts) <= other.claimed * (1 + 1e-6)
        assert other.bound <= search.watts * (1 + 1e-6)


class Look:
    """Says what it is told, after some looks that say nothing."""

    def __init__(self, verdict: Verdict, looks: int, *, part: bool = False) -> None:
        self.verdict, self.looks, self.part = verdict, looks, part
        self.times: list[float] = []
        self.turns: list[int] = []

    @property
    def denied(self) -> bool:
        return self.verdict is Verdict.DENIED and len(self.times) >= self.looks

    def solve(self, limits: Limits, turn: int, done: threading.Event) -> Decision:
        self.times.append(limits.time_limit or math.inf)
        self.turns.append(turn)
        assert not done.is_set()
        time.sleep(0.001)
        told = len(self.times) >= self.looks
        return Decision(self.verdict if told else Verdict.OPEN)


def looked(programs: list[Look], limits: Limits, otherwise: Callable[[], bool] | None) -> Verdict:
    return deciding._looked(programs, limits, 0.01, otherwise).verdict  # type: ignore[arg-type]


def test_quick_looks_come_before_longer_ones_and_what_is_denied_is_left_out() -> None:
    few, some = Look(Verdict.DENIED, 1, part=True), Look(Verdict.OPEN, 9)
    whole = Look(Verdict.DENIED, 5)
    assert looked([few, some, whole], Limits(60), lambda: False) is Verdict.DENIED
    assert len(few.times) == 1
    assert whole.times == some.times == [0.01, 0.01, 0.02, 0.02, 0.04]
    assert whole.turns == [0, 1, 2, 3, 4]


def test_what_denies_some_of_the_sets_denies_nothing() -> None:
    some = Look(Verdict.DENIED, 1, part=True)
    assert looked([some, Look(Verdict.OPEN, 1)], Limits(0.05), None) is Verdict.OPEN
    assert len(some.times) == 1
    assert looked([Look(Verdict.OPEN, 9), Look(Verdict.DENIED, 1)], Limits(60), None) is (
        Verdict.DENIED
    )
    assert looked([Look(Verdict.PLACED, 1), Look(Verdict.DENIED, 1)], Limits(60), None) is (
        Verdict.PLACED
    )


def test_without_anything_else_to_try_looks_go_on_as_well() -> None:
    some = Look(Verdict.PLACED, 2, part=True)
    assert looked([some], Limits(60), None) is Verdict.PLACED
    assert some.times == [0.01, 0.01]


def test_a_program_that_is_alone_and_has_all_sets_is_not_begun_anew() -> None:
    program = Look(Verdict.DENIED, 1)
    assert looked([program], Limits(60), None) is Verdict.DENIED
    assert program.times[0] > 50


def test_what_is_found_beside_ends_the_looks() -> None:
    program, tried = Look(Verdict.DENIED, 10**6), iter([False, False, True])
    assert looked([program], Limits(60), lambda: next(tried)) is Verdict.OPEN
    assert not list(tried)


def test_what_goes_on_beside_is_told_that_there_are_no_more_looks() -> None:
    """As a search has, what is beside waits for nothing else here."""
    ended, programs = threading.Event(), [Look(Verdict.DENIED, 3)]

    def waits() -> bool:
        assert ended.wait(60)
        return False

    decision = deciding._looked(programs, Limits(60), 0.01, waits, ended=ended)  # type: ignore[arg-type]
    assert decision.verdict is Verdict.DENIED


def test_an_interrupt_ends_the_looks() -> None:
    limits = Limits(60)

    def interrupted() -> bool:
        limits.interrupted.set()
        return False

    assert looked([Look(Verdict.DENIED, 10**6)], limits, interrupted) is Verdict.OPEN


def test_a_fault_beside_is_not_swallowed() -> None:
    def broken() -> bool:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        looked([Look(Verdict.DENIED, 10**6)], Limits(60), broken)


def test_a_fault_of_a_program_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Look(Verdict.DENIED, 1)
    monkeypatch.setattr(program, "solve", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        looked([program], Limits(60), lambda: False)
