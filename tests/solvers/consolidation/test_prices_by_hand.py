"""What prices prove of columns over contents of a GPU, and what trees leave out, by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine, Server, Task
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation import partition
from optgap.solvers.consolidation.branching import Node, Tree
from optgap.solvers.consolidation.levels import closed_bound, levels
from optgap.solvers.consolidation.master import MANY, Binding, Box, Master
from optgap.solvers.consolidation.outcomes import CLOSE
from optgap.solvers.consolidation.packing import Packing, packing
from optgap.solvers.consolidation.partition import Item, Partition, contents_of, shared, sharing
from optgap.solvers.consolidation.search import Search

EVEN = GpuKind(
    memory_gb=10.0, power=PowerLine(10.0, 0.1), f_min_mhz=500.0, f_max_mhz=1000.0, beta=1.0
)
"""A GPU costs 110 W where κ = 1 is the least of its tasks, 90 W at 1.25 and 60 W at 2."""
THREE = [Task(f"t{k}", 4.0, kappa=2.0) for k in range(3)]
"""Two of them fit a GPU of 60 W."""
STEPS = [
    Task("a", 6.0, kappa=1.0), Task("b", 6.0, kappa=1.25), Task("c", 6.0, kappa=2.0),
    Task("d", 3.0, kappa=2.0),
]  # fmt: skip
"""The last fits beside any other: GPUs of 110, 90 and 60 W."""
WIDE = [
    Task("v", 6.0, gpus=2, kappa=2.0), Task("w", 6.0, gpus=2, kappa=2.0), Task("s", 4.0, kappa=2.0)
]  # fmt: skip
"""Two that need two GPUs each, and one that fits beside either."""


def packed(
    tasks: list[Task], gang: Any = "server", seats: int = 2, static_w: float = 100.0
) -> Packing:
    """On eight servers, of two GPUs and 100 W unless told."""
    servers = [Server((0,) * seats, static_w)] * 8
    return packing(ConsolidationProblem.of([EVEN], servers, tasks, rules=Rules(gang=gang)))


# -- the linear program over whole counts --------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "low", "high", "prices", "rents", "spread", "bound"),
    [
        # a GPU costs 60 and 50 of its server: any two tasks are worth it, half of it each
        (THREE, (1, 1), (16, 8), [55] * 3, [110], 50, 165),
        # where pairs are worth 120 all is scaled by 11/12, or 10 paid for each of few GPUs
        (THREE, (1, 1), (16, 8), [60] * 3, [110], 50, 165),
        (THREE, (1, 1), (2, 8), [60] * 3, [110], 50, 165),
        (THREE, (1, 1), (1, 8), [60] * 3, [110], 50, 170),
        (THREE, (1, 1), (2, 8), [55.25] * 3, [110], 50, 165),
        (THREE, (1, 1), (1, 8), [55.25] * 3, [110], 50, 165.25),
        (THREE, (1, 1), (16, 8), [55, 75, 35], [110], 50, 165 * 110 / 130),
        # servers that are not paid by their GPUs cost what the least of them do
        (THREE, (1, 1), (16, 8), [30] * 3, [60], 0, 90 + 100),
        (THREE, (2, 2), (16, 8), [30] * 3, [60], 0, 90 + 200),
        # rents below and above a GPU's cost: the least or the most GPUs, at the difference
        (THREE, (2, 1), (16, 8), [20] * 3, [40], 0, 60 + 2 * 20 + 100),
        (THREE, (2, 1), (5, 8), [40] * 3, [80], 0, 120 - 5 * 20 + 100),
        # servers paid for more than once: the most of them, at what is lost by each
        (THREE, (1, 1), (16, 3), [60] * 3, [120], 60, 180 - 3 * 20),
        # sets that cost nothing cannot be scaled but to nothing; a GPU may hold a pair worth 20
        (THREE, (1, 1), (2, 8), [10] * 3, [0], 0, 0 + 60 + 100),
        (THREE, (1, 1), (1, 8), [10] * 3, [0], 0, 30 - 20 + 60 + 100),
        (STEPS, (1, 1, 1, 1), (16, 16, 16, 8), [160, 140, 110, 0], [110, 30, 20], 50, 410),
        (STEPS, (1, 1, 1, 1), (16, 16, 16, 8), [150, 130, 100, 10], [110, 30, 20], 50, 390),
        (STEPS, (3, 2, 1, 2), (16, 16, 16, 8), [110, 90, 60, 0], [60, 30, 20], 0, 460),
        # the second level is 20 dearer than its rent
        (STEPS, (3, 2, 1, 2), (16, 16, 16, 8), [140, 120, 110, 0], [110, 10, 20], 50, 410),
        (STEPS, (3, 1, 1, 2), (16, 16, 16, 8), [140, 120, 110, 0], [110, 10, 20], 50, 390),
    ],
)
def test_prices_of_tasks_gpus_and_servers_prove_what_they_add_up_to(
    tasks: list[Task],
    low: tuple[int, ...],
    high: tuple[int, ...],
    prices: list[float],
    rents: list[float],
    spread: float,
    bound: float,
) -> None:
    pack = packed(tasks)
    master = Master(pack, levels(pack), Box(low, high), 0)
    duals = np.array([*prices, *rents, spread], dtype=float)
    found, _, exact = master._price(duals, MANY)
    assert found == pytest.approx(bound, rel=1e-7)
    assert found <= bound * (1 - 0.9e-9)  # sums are rounded
    # prices below nothing are none
    free = np.array([-1.0, *[0.0] * (len(duals) - 1)])
    assert master._price(free, MANY)[0] == pytest.approx(master.watts(low), rel=1e-7)
    assert exact == (max(prices) + sorted(prices)[-2] <= sum(rents) + 1e-9 or tasks is STEPS)


def test_sets_worth_more_than_they_cost_are_offered_the_best_first() -> None:
    pack = packed(STEPS)
    master = Master(pack, levels(pack), Box((1,) * 4, (16, 16, 16, 8)), 0)
    # of the costs of 160, 140 and 110 W: 5 more beside the first, 15 beside the second
    duals = np.array([145.0, 135.0, 80.0, 20.0, 110.0, 30.0, 20.0, 50.0])
    bound, fresh, exact = master._price(duals, MANY)
    assert fresh == [(1, 3), (0, 3)]
    assert not exact
    assert bound == pytest.approx(380 * 140 / 155, rel=1e-7)
    assert master.add(fresh) == 2
    assert master.add([*fresh, (3, 1), ()]) == 0
    assert master.watts((3, 2, 1, 2)) == pytest.approx(460, rel=1e-7)
    assert master.run(Limits()).vector.shape == (4,)
    assert master._tables(master.coarse[:, :3]).shape[1:] == (4, int(master.room.max()) + 1)


@pytest.mark.parametrize("nodes", [MANY, 2000])
@pytest.mark.parametrize(
    ("prices", "tolls", "bound"),
    [
        # a GPU and half a server are 110 W; 10 more in the first server, which has two GPUs
        ([120, 110, 0], (10, 0), 2 * 230 - 2 * 10),
        ([110, 100, 10], (10, 0), 2 * 210 + 10 - 20),
        ([100, 100, 10], (0, 0), 2 * 200 + 10),
        ([110, 110, 10], (10, 10), 2 * 220 + 10 - 40),
        # the second is worth 120 in a server without a toll: all but tolls is scaled by 11/12
        ([120, 120, 0], (10, 0), 480 * 11 / 12 - 20),
        ([120, 120, 0], (0, 10), 480 * 11 / 12 - 20),
        # what is bound to no server is worth 130 without a toll
        ([0, 0, 130], (21, 21), 130 * 11 / 13 - 84),
    ],
)
def test_gpus_of_a_server_cost_its_toll_and_are_no_more_than_it_has(
    prices: list[float], tolls: tuple[float, float], bound: float, nodes: int
) -> None:
    pack = packed(WIDE)
    master = Master(pack, levels(pack), Box((4, 2), (16, 8)), 2)
    master.bind(Binding.none(3, 2).bind([(0, 0), (1, 1)]))
    duals = np.array([*prices, 110, 50, *tolls], dtype=float)
    found, _, _ = master._price(duals, nodes)
    assert found == pytest.approx(bound, rel=1e-7)
    assert found <= bound * (1 - 0.9e-9)  # sums are rounded


def test_sets_of_two_servers_or_in_a_server_that_bars_them_are_not_used() -> None:
    sizes = (("v", 3.0, 2), ("w", 3.0, 2), ("s", 3.0, 1), ("r", 1.0, 1))
    pack = packed([Task(name, size, gpus, kappa=2.0) for name, size, gpus in sizes])
    master = Master(pack, levels(pack), Box((2, 1), (16, 8)), 3)
    master.add([(0, 1), (0, 2), (1, 2), (2, 3), (0, 1, 2)])
    at = {one: k for k, one in enumerate(master.sets)}
    binding = Binding.none(4, 3).bind([(0, 0), (1, 1)]).bar([(2, 1), (2, 2)])
    master.bind(binding)
    assert {one: int(master.homes[k]) for one, k in at.items()} == {
        (0,): 0, (1,): 1, (2,): -1, (3,): -1, (0, 1): -2, (0, 2): 0, (1, 2): -2, (2, 3): -1,
        (0, 1, 2): -2,
    }  # fmt: skip
    assert binding.fresh == 2
    # four GPUs of two servers; the third task beside the first
    assert master.run(Limits()).value == pytest.approx(4 * 60 + 200, rel=1e-6)
    # bound anew, each set is where it would be had it been so from the start
    for pairs_, bars in (([(0, 1), (1, 0)], [(2, 0)]), ([(1, 2)], []), ([(0, 2), (2, 2)], [])):
        again = Binding.none(4, 3).bind(pairs_).bar(bars)
        master.bind(again)
        fresh = Master(pack, levels(pack), Box((2, 1), (16, 8)), 3)
        fresh.add(master.sets)
        fresh.bind(again)
        assert master.homes.tolist() == [
            int(fresh.homes[fresh.sets.index(one)]) for one in master.sets
        ]
        dual, primal = master.run(Limits()), fresh.run(Limits())
        assert dual.value == pytest.approx(primal.value, rel=1e-7)
        for found in (dual, primal):
            assert found.bound == pytest.approx(found.value, rel=1e-6)
            assert found.amounts.min() >= 0
            held = found.amounts @ [[ell in one for ell in range(4)] for one in master.sets]
            assert (held >= pack.width - 1e-6).all()
    # bound to one server, three GPUs do not fit it: one is beyond the counts, and dear
    tight = Master(pack, levels(pack), Box((2, 1), (16, 8)), 1)
    tight.bind(Binding.none(4, 1).bind([(0, 0), (1, 0)]))
    assert tight.run(Limits()).value == pytest.approx(2 * 60 + 100, rel=1e-6)
    apart = packed(WIDE[:2])
    full = Master(apart, levels(apart), Box((2, 1), (16, 8)), 1)
    full.bind(Binding.none(2, 1).bind([(0, 0), (1, 0)]))
    assert full.run(Limits()).value > 10 * (4 * 60 + 200)
    full.bind(Binding.none(2, 1))
    assert full.run(Limits()).value == pytest.approx(4 * 60 + 200, rel=1e-6)


# -- what the trees leave out --------------------------------------------------------------


def tree(tasks: list[Task], counts: tuple[int, ...], watts: float, **more: Any) -> Tree:
    """Where a placement of so many W is known."""
    pack = packed(tasks, **more)
    search = Search(pack, 0)
    search.build(Limits(), tries=1)
    search.watts = watts
    return Tree(pack, levels(pack), counts, search, 0)


def test_counts_go_as_far_as_the_gap_pays() -> None:
    """Steps of 60, 30 and 20 W and servers of 100 W, of which 460 W pay two."""
    for watts, high in (
        (460.5, (3, 2, 1, 2)), (480, (3, 2, 2, 2)), (519.9, (3, 3, 3, 2)), (520, (4, 4, 4, 2)),
        (560, (4, 5, 6, 3)),
    ):  # fmt: skip
        box = tree(STEPS, (3, 2, 1), watts).root.box
        assert box == Box((3, 2, 1, 2), high), watts
    assert tree(STEPS, (3, 2, 1), 1e6).root.box.high == (16, 16, 16, 8)


def covered(grown: Tree) -> list[tuple[int, ...]]:
    """The counts in every node, one after another."""
    return [
        vector
        for node in grown.heap
        for vector in itertools.product(
            *(range(a, b + 1) for a, b in zip(node.box.low, node.box.high, strict=True))
        )
    ]


def test_no_counts_are_lost_and_none_is_looked_at_twice() -> None:
    grown = tree(STEPS, (3, 2, 1), 1e6)
    box = Box((3, 2, 1, 2), (5, 4, 2, 4))
    node = Node(460.0, 0, 0, box, grown.root.binding)
    every = sorted(itertools.product((3, 4, 5), (2, 3, 4), (1, 2), (2, 3, 4)))
    for vector in ((3, 2, 1, 2), (4, 3, 2, 3), (5, 4, 2, 4), (4, 2, 2, 4)):
        grown.heap = []
        grown._around(node, 470.0, vector)
        assert sorted(covered(grown)) == every
        assert Box(vector, vector) in [one.box for one in grown.heap]
    for found in ((3.5, 2.0, 1.0, 2.0), (4.0, 3.2, 1.0, 2.0), (4.0, 2.0, 1.0, 3.9)):
        grown.heap = []
        far = np.abs(np.array(found) - np.round(found))
        grown._on_counts(node, 470.0, np.array(found), far)
        assert len(grown.heap) == 2
        assert sorted(covered(grown)) == every
    # of two fractions the one that is dearer to round: half a server of 100 W
    grown.heap = []
    grown._on_counts(node, 470.0, np.array([3.2, 2, 1, 2.5]), np.array([0.2, 0, 0, 0.5]))
    assert {one.box.high[-1] for one in grown.heap} == {2, 4}
    assert min(one.bound for one in grown.heap) == 470


def test_beyond_denied_counts_is_all_that_is_more_somewhere() -> None:
    grown = tree(STEPS, (3, 2, 1), 1e6)
    box = Box((3, 2, 1, 2), (5, 4, 2, 4))
    node = Node(460.0, 0, 0, box, grown.root.binding)
    every = itertools.product((3, 4, 5), (2, 3, 4), (1, 2), (2, 3, 4))
    some = list(every)
    for denied in ((3, 2, 1, 2), (4, 3, 2, 3), (5, 4, 2, 3), (4, 2, 2, 4), (5, 4, 2, 4)):
        grown.heap = []
        grown._beyond(node, 470.0, denied)
        more = [one for one in some if any(a > b for a, b in zip(one, denied, strict=True))]
        assert sorted(covered(grown)) == more, denied


def test_counts_below_denied_ones_are_denied_without_another_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown = tree(STEPS, (3, 2, 1), 1e6, gang="free")
    asked = []
    lifted = [(5, 4, 2, 2), (5, 5, 4, 2)]  # a quick look is enough for more than is asked

    def decides(vector: tuple[int, ...], gang: bool, seconds: float, wait: bool = True) -> bool:
        assert wait is (vector not in lifted)
        asked.append(vector)
        return vector[1] <= 4

    monkeypatch.setattr(grown, "_decides", decides)
    node = Node(460.0, 0, 0, Box((3, 2, 1, 2), (5, 5, 5, 4)), grown.root.binding)
    # one more of the dearer levels, then two more, which is too many
    assert grown._denied(node, (5, 3, 1, 2)) == (5, 4, 2, 2)
    assert asked == [(5, 3, 1, 2), (5, 4, 2, 2), (5, 5, 4, 2)]
    assert grown._denied(node, (4, 4, 2, 2)) == (5, 4, 2, 2)
    small = Node(460.0, 0, 0, Box((3, 2, 1, 2), (4, 5, 5, 4)), grown.root.binding)
    assert grown._denied(small, (4, 3, 1, 2)) == (4, 4, 2, 2)
    assert len(asked) == 3
    assert grown._denied(node, (5, 5, 1, 2)) is None
    assert grown._denied(node, (5, 5, 1, 2)) is None
    assert len(asked) == 4


def test_more_of_the_dearer_levels_is_asked_for_rarely_where_it_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown = tree(STEPS, (3, 2, 1), 1e6, gang="free")
    node = Node(460.0, 0, 0, Box((3, 2, 1, 2), (16, 16, 16, 8)), grown.root.binding)
    vectors = [(10, 2 + k, 1, 2) for k in range(8)]
    asked = []
    lifted = [(10, 3, 2, 2), (10, 9, 2, 2)]  # the first and, six denials later, the seventh

    def decides(vector: tuple[int, ...], gang: bool, seconds: float, wait: bool = True) -> bool:
        assert wait is (vector not in lifted)
        asked.append(vector)
        return vector in vectors

    monkeypatch.setattr(grown, "_decides", decides)
    for vector in vectors:
        assert grown._denied(node, vector) == vector
    assert asked == [vectors[0], lifted[0], *vectors[1:7], lifted[1], vectors[7]]


def test_what_was_decided_neither_way_is_gone_back_to_with_more_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown = tree(STEPS, (3, 2, 1), 1e6, gang="free")
    grown.heap = []
    given: list[float] = []

    def decides(vector: tuple[int, ...], gang: bool, seconds: float) -> bool:
        given.append(seconds)
        return False

    monkeypatch.setattr(grown, "_decides", decides)
    monkeypatch.setattr(grown, "_plunge", lambda *_: None)
    grown.misses = 99  # annealing is not what this is about
    box = Box((3, 2, 1, 2), (3, 2, 1, 2))
    node = Node(460.0, 0, 0, box, grown.root.binding)
    assert not grown.again()  # nothing to go back to
    grown._settle(node, 470.0, box.low)
    assert (grown.bound, grown.heap) == (470.0, [])
    times = 0
    while grown.again():
        times += 1
        assert grown.halted == []
        grown._settle(grown.heap.pop(), 470.0, box.low)
        assert grown.bound == 470.0
    assert times == 4
    assert given == pytest.approx([given[0] * 3.0**k for k in range(5)])
    # where servers are branched on there is more to do than to wait
    tied = tree(STEPS, (3, 2, 1), 1e6)
    tied._stick(node, 470.0, box.low)
    assert not tied.again()


def test_what_is_too_dear_by_now_is_not_gone_back_to() -> None:
    grown = tree(STEPS, (3, 2, 1), 1e6, gang="free")
    grown.heap = []
    grown._stick(grown.root, 470.0, (3, 2, 1, 2))
    grown.search.watts = 470.0
    assert not grown.again()
    assert grown.bound == 470.0


def test_annealing_that_misses_counts_by_far_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = tree(STEPS, (3, 2, 1), 1e6, gang="free")
    tried: list[tuple[int, ...]] = []

    class Missing:
        left = 0.5

        def __call__(self, vector: tuple[int, ...]) -> None:
            tried.append(vector)

    grown.attempts = Missing()  # type: ignore[assignment]
    monkeypatch.setattr(grown, "_denied", lambda *_: None)
    monkeypatch.setattr(grown, "_plunge", lambda *_: None)
    for k in range(4):
        vector = (10, 2 + k, 1, 2)
        grown._look(replace(grown.root, box=Box(vector, vector)), vector, True)
    assert tried == [(10, 2, 1), (10, 3, 1)]


def test_where_servers_tell_more_no_integer_program_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown = tree(WIDE, (4,), 1e6)
    node = Node(430.0, 0, 0, Box((4, 2), (5, 2)), grown.root.binding)
    monkeypatch.setattr(grown, "_decides", lambda *_: pytest.fail("asked"))
    assert grown._denied(node, (4, 2)) is None


@pytest.mark.parametrize("down", [True, False])
def test_guessed_counts_fall_with_the_level_and_keep_to_a_share_of_the_gap(
    down: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Annealed, or ways down to them."""
    grown = tree(STEPS, (3, 2, 1), 700.0)
    guessed: list[tuple[int, ...]] = []
    width = int(grown.pack.server_gpus[0])

    def plunge(vector: tuple[int, ...], *_: object) -> None:
        assert vector[-1] == max(2, -(-vector[0] // width))
        guessed.append(vector[:-1])

    monkeypatch.setattr(type(grown), "ended", property(lambda _: down))
    monkeypatch.setattr(grown, "_plunge", plunge)

    class Recorder:
        longer = 1.0

        def __call__(self, vector: tuple[int, ...]) -> None:
            assert not down
            guessed.append(vector)

    grown.attempts = Recorder()  # type: ignore[assignment]
    grown.heap = [
        Node(460.0, 0, 0, Box((3, 2, 1, 2), (5, 4, 2, 4)), grown.root.binding, (3, 2, 1, 2))
    ]
    for share in (0.5, 0.6, 0.72, 0.864, 0.95, 0.95):
        assert grown.guess == pytest.approx(share)
        grown._deal((3, 2, 1, 2))
        last = guessed[-1]
        assert len(last) == 3
        assert all(a <= b for a, b in zip((3, 2, 1), last, strict=True))
        assert list(last) == sorted(last, reverse=True)
        target = 460 + share * (700 - 460)
        assert closed_bound(grown.pack, grown.own, last) <= target
        more = [(*last[:q], last[q] + 1, *last[q + 1 :]) for q in range(3)]
        falling = [one for one in more if list(one) == sorted(one, reverse=True)]
        assert all(closed_bound(grown.pack, grown.own, one) > target for one in falling)
    assert len(set(guessed)) > 1


def test_servers_that_cost_nothing_are_split_where_only_they_are_in_doubt() -> None:
    free = tree(STEPS, (3, 2, 1), 1e6, static_w=0.0)
    free.heap = []
    node = Node(260.0, 0, 0, Box((3, 2, 1, 2), (5, 4, 2, 4)), free.root.binding)
    free._on_counts(node, 260.0, np.array([3, 2, 1, 2.5]), np.array([0, 0, 0, 0.5]))
    assert {(one.box.low[-1], one.box.high[-1]) for one in free.heap} == {(2, 2), (3, 4)}


def test_a_node_whose_counts_are_whole_is_settled_only_where_nothing_is_left_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A placement of 445 W is known; the node costs as much, or less and more may be in it."""
    grown = tree(WIDE, (4,), 445.0)
    monkeypatch.setattr(grown, "_look", lambda *_: None)
    bound_tasks = grown.root.binding.bind([(0, 0), (1, 1)])
    vector, many = (4, 2), Box((4, 2), (5, 2))

    def settled(bound: float, box: Box, binding: Binding) -> tuple[float, float, int]:
        grown.heap, grown.left, grown.halted = [], math.inf, []
        grown._settle(Node(bound, 0, 0, box, binding), bound, vector)
        return grown.left, grown.stuck, len(grown.heap)

    near = 445 * (1 - 0.4 * CLOSE)
    assert settled(near, many, bound_tasks) == (near, math.inf, 0)
    far = 445 * (1 - 2 * CLOSE)
    assert settled(far, Box(vector, vector), bound_tasks) == (math.inf, far, 0)
    # half a watt is worth another look: at each count, or else nobody knows
    assert settled(444.5, Box(vector, vector), bound_tasks) == (math.inf, 444.5, 0)
    # the counts that it has by themselves; with a GPU more they cost 500 W, too many
    assert settled(439.5, many, bound_tasks) == (pytest.approx(500), math.inf, 1)
    assert grown.heap[0].box == Box(vector, vector)
    # as long as a task has no server yet, that is what is decided
    assert settled(439.5, many, grown.root.binding) == (math.inf, math.inf, 1)
    assert grown.heap[0].box == many
    grown.limits.interrupted.set()
    # where time ran out meanwhile it is open again, with the bound that it has
    assert settled(430.0, many, bound_tasks) == (math.inf, math.inf, 1)
    assert (grown.heap[0].bound, grown.heap[0].box) == (430.0, many)


def test_counts_that_a_placement_keeps_are_settled_by_it() -> None:
    grown = tree(WIDE, (4,), 1e6)
    bound_tasks = grown.root.binding.bind([(0, 0), (1, 1)])
    grown.heap = []
    assert grown._expand(Node(430.0, 0, 0, Box((4, 2), (4, 2)), bound_tasks))
    assert grown.search.watts == pytest.approx(440)
    assert (grown.stuck, grown.heap) == (math.inf, [])
    assert grown.left == pytest.approx(440, rel=1e-6)
    # where GPUs of a task may be anywhere there is no server to decide on
    anywhere = tree(WIDE, (4,), 1e6, gang="free")
    assert anywhere._unbound(anywhere.root.binding).size == 0
    assert grown._unbound(grown.root.binding).tolist() == [0, 1]


def test_counts_that_are_too_few_are_not_denied_where_their_bound_does_not() -> None:
    """Three tasks of which two fit a GPU, on one GPU: not possible, which a bound need not say."""
    grown = tree(THREE, (1,), 1e6)
    few = Node(160.0, 0, 0, Box((1, 1), (1, 1)), grown.root.binding)
    grown.heap = []
    assert grown._expand(few)
    assert (grown.heap, grown.left) == ([], math.inf)
    assert 160 <= grown.stuck < 1e6
    assert grown.bound == grown.stuck
    # below what is known already it is too dear to look at
    grown = tree(THREE, (1,), 159.0)
    grown.heap = []
    assert grown._expand(few)
    assert (grown.stuck, grown.heap) == (math.inf, [])
    assert grown.left >= 160
    # where the program finds half GPUs, either side of them is looked at
    grown = tree(THREE, (1,), 1e6)
    grown.heap = []
    assert grown._expand(Node(160.0, 0, 0, Box((1, 1), (16, 8)), grown.root.binding))
    assert sorted((one.box.low[0], one.box.high[0]) for one in grown.heap) == [(1, 1), (2, 16)]
    assert min(one.bound for one in grown.heap) == pytest.approx(1.5 * 60 + 100, rel=1e-6)
    grown.limits.interrupted.set()
    again = Node(160.0, 0, 0, Box((1, 1), (16, 8)), grown.root.binding)
    assert not grown._expand(again)
    assert again.bound == pytest.approx(1.5 * 60 + 100, rel=1e-6)


def test_a_node_costs_no_less_than_its_parent_and_its_least_counts() -> None:
    grown = tree(STEPS, (3, 2, 1), 600.0)
    grown.heap = []
    node = Node(470.0, 3, 0, grown.root.box, grown.root.binding)
    for bound, low, expected in (
        (465.0, (3, 2, 1, 2), 470.0), (475.0, (3, 2, 1, 2), 475.0), (465.0, (4, 2, 1, 2), 520.0),
    ):  # fmt: skip
        grown.heap = []
        grown._push(node, bound, Box(low, (5, 4, 2, 4)), node.binding)
        assert [(n.bound, n.deep) for n in grown.heap] == [(pytest.approx(expected), 2)]
    assert grown.left == math.inf
    # what is too dear to look at still counts, and is the bound where nothing is left
    grown.heap = []
    grown._push(node, 465.0, Box((5, 4, 2, 3), (5, 4, 2, 4)), node.binding)
    assert grown.heap == []
    assert grown.left == grown.bound == pytest.approx(5 * 60 + 4 * 30 + 2 * 20 + 300)
    grown._push(node, 480.0, Box((3, 2, 1, 2), (5, 4, 2, 4)), node.binding)
    assert grown.bound == 480
    grown.halted = [Node(473.0, 0, 0, grown.root.box, node.binding)]
    assert grown.bound == 473


def test_a_task_goes_into_each_server_that_is_used_and_one_that_is_not() -> None:
    grown = tree(WIDE, (4,), 1e6)
    box = Box((4, 2), (16, 8))
    grown.heap = []
    grown._on_servers(Node(440.0, 0, 0, box, grown.root.binding), 450.0)
    assert [node.binding.server.tolist() for node in grown.heap] == [[0, -1, -1]]
    first = grown.heap[0]
    for most, homes in ((8, {0, 1}), (1, {0})):
        grown.heap = []
        few = Node(440.0, 0, 0, Box((4, 1), (16, most)), first.binding)
        grown._on_servers(few, 450.0)
        assert {int(node.binding.server[1]) for node in grown.heap} == homes


# -- pairs of tasks ------------------------------------------------------------------------


def pairs(
    tasks: list[Task], counts: tuple[int, ...], floor: float, watts: float, gang: Any = "free",
    **more: Any,
) -> Partition:  # fmt: skip
    pack = packed(tasks, gang, **more)
    search = Search(pack, 0)
    search.build(Limits(), tries=1)
    search.watts = watts
    return Partition(pack, levels(pack), counts, floor, search, Limits())


def test_counts_of_the_tree_of_pairs_go_as_far_as_the_gap_pays() -> None:
    for watts, high in (
        (460.5, (3, 2, 1, 2)), (480, (3, 2, 2, 2)), (520, (4, 4, 4, 2)), (559, (4, 5, 5, 2)),
        (560, (4, 5, 6, 3)), (1e6, (16, 16, 16, 8)),
    ):  # fmt: skip
        node = pairs(STEPS, (3, 2, 1), 460.0, watts).heap[0]
        assert (node.low, node.high) == ((3, 2, 1, 2), high), watts
        assert node.bound == 460


@pytest.mark.parametrize(
    ("tasks", "low", "high", "duals", "bound"),
    [
        (THREE, (1, 1), (16, 8), [55, 55, 55, 110, 50], 165),
        # 10 paid for each of two GPUs that may hold a pair worth 120
        (THREE, (1, 1), (2, 8), [60, 60, 60, 110, 50], 160),
        (THREE, (2, 2), (16, 8), [30, 30, 30, 60, 0], 290),
        (THREE, (2, 1), (16, 8), [20, 20, 20, 40, 0], 60 + 2 * 20 + 100),
        (THREE, (2, 1), (5, 8), [40, 40, 40, 80, 0], 120 - 5 * 20 + 100),
        (THREE, (1, 1), (16, 3), [60, 60, 60, 120, 60], 180 - 3 * 20),
        (STEPS, (1, 1, 1, 1), (16, 16, 16, 8), [150, 130, 100, 10, 110, 30, 20, 50], 390),
        (STEPS, (3, 2, 1, 2), (16, 16, 16, 8), [140, 120, 110, 0, 110, 10, 20, 50], 410),
    ],
)
def test_prices_of_a_node_of_pairs_prove_what_they_add_up_to(
    tasks: list[Task],
    low: tuple[int, ...],
    high: tuple[int, ...],
    duals: list[float],
    bound: float,
) -> None:
    grown = pairs(tasks, low[:-1], 1.0, 1e5)
    node = replace(grown.heap[0], low=low, high=high)
    found, _, exact = partition.Master(grown, node)._price(np.array(duals, float), 2_000_000)
    assert found == pytest.approx(bound, rel=1e-7)
    assert found <= bound * (1 - 0.9e-9)  # sums are rounded
    assert exact == (duals[0] < 60 or tasks is STEPS or low == (1, 1) == (1, high[-1] - 2))


def test_items_kept_apart_are_worth_no_more_than_each() -> None:
    grown = pairs(THREE, (1,), 1.0, 1e5)
    singles = tuple(frozenset([k]) for k in range(3))
    node = replace(grown.heap[0], columns=singles)
    every = frozenset(frozenset(pair) for pair in itertools.combinations(range(3), 2))
    alone = replace(node, apart=every)
    duals = np.array([110.0, 110, 110, 110, 50])
    master = partition.Master(grown, alone)
    assert master._price(duals, 2_000_000)[0] == pytest.approx(330, rel=1e-7)
    found = master.run(Limits(), math.inf)
    assert found.bound == pytest.approx(330, rel=1e-6)
    assert found.counts.tolist() == pytest.approx([3, 1.5])
    assert sorted((sorted(one), x) for one, x in found.used) == [([0], 1), ([1], 1), ([2], 1)]
    together = partition.Master(grown, node).run(Limits(), math.inf)
    assert together.bound == pytest.approx(1.5 * 60 + 100, rel=1e-6)
    assert {pair: pytest.approx(x) for pair, x in shared(together).items()} == {
        (0, 1): 0.5, (0, 2): 0.5, (1, 2): 0.5
    }  # fmt: skip


def test_two_items_share_so_many_gpus_and_no_others() -> None:
    """Two on two GPUs each, of which they share none, one or both; a third beside either."""
    tasks = [Task("v", 3.0, gpus=2), Task("w", 3.0, gpus=2), Task("s", 3.0), Task("r", 1.0)]
    grown = pairs(tasks, (2,), 1.0, 1e5)
    node = replace(
        grown.heap[0], apart=frozenset([frozenset((1, 2))]),
        columns=tuple(map(frozenset, ((0,), (1,), (2,), (3,), (0, 1, 3), (0, 2)))),
    )  # fmt: skip
    v, w, s, r = (Item(frozenset([k]), width) for k, width in ((0, 2), (1, 2), (2, 1), (3, 1)))

    def sets(*some: tuple[int, ...]) -> set[frozenset[int]]:
        return {frozenset(one) for one in some}

    both = frozenset((0, 1))
    none = sharing(node, 0, 1, 0)
    assert none["items"] == (v, w, s, r)
    assert none["apart"] == sets((0, 1), (1, 2))
    assert set(none["columns"]) == sets((0,), (1,), (2,), (3,), (0, 2), (0, 3), (1, 3))
    one = sharing(node, 0, 1, 1)
    assert one["items"] == (Item(v.tasks, 1), Item(w.tasks, 1), s, r, Item(both, 1))
    assert one["apart"] == sets((0, 1), (0, 4), (1, 4), (1, 2), (2, 4))
    assert set(one["columns"]) == sets((0,), (1,), (2,), (3,), (4,), (0, 2), (0, 3), (1, 3), (3, 4))
    two = sharing(node, 0, 1, 2)
    assert two["items"] == (s, r, Item(both, 2))
    assert two["apart"] == sets((0, 2))
    assert set(two["columns"]) == sets((0,), (1,), (2,), (1, 2))


def test_contents_hold_what_is_wanted_and_no_more() -> None:
    grown = pairs(WIDE, (4,), 1.0, 1e5)
    node = grown.heap[0]
    used = [(frozenset((0, 2)), 2.0), (frozenset((1, 2)), 1.0), (frozenset((1,)), 1.0)]
    assert contents_of(node, used) == [{0, 2}, {0}, {1}, {1}]
    shared_two = replace(node, items=(Item(frozenset((0, 1)), 2), node.items[2]))
    assert contents_of(shared_two, [(frozenset((0,)), 3.0), (frozenset((1,)), 1.0)]) == [
        {0, 1}, {0, 1}, {2}
    ]  # fmt: skip


def sets_of(*used: tuple[tuple[int, ...], float]) -> list[tuple[frozenset[int], float]]:
    return [(frozenset(one), x) for one, x in used]


def leaf(
    grown: Partition, counts: list[float], *used: tuple[tuple[int, ...], float], **changes: Any
) -> partition.Node:
    """What a node whose sets are whole makes of them."""
    node = replace(grown.heap[0], **changes)
    grown.heap = []
    grown._leaf(node, partition.Relaxed(node.bound, np.array(counts), sets_of(*used), ()))
    return node


def test_whole_sets_that_find_seats_are_a_placement() -> None:
    grown = pairs(WIDE, (4,), 1.0, 1e5, "server")
    leaf(grown, [4.0, 2.0], ((0,), 1.0), ((0, 2), 1.0), ((1,), 2.0), bound=440.0 - 1e-5)
    assert grown.search.watts == pytest.approx(440)
    assert grown.search.places is not None
    assert grown.heap == []
    assert grown.bound == math.inf
    # where it costs more than the node does, something cheaper may be there
    grown = pairs(WIDE, (4,), 1.0, 1e5, "server")
    leaf(grown, [4.0, 2.0], ((0,), 1.0), ((0, 2), 1.0), ((1,), 2.0), bound=430.0)
    assert grown.search.watts == pytest.approx(440)
    assert grown.bound == 430


def test_whole_sets_without_seats_need_a_server_more_or_other_pairs() -> None:
    """Two tasks of two GPUs that share one: three GPUs of one server, but it has two."""
    chain = [Task("v", 3.0, gpus=2, kappa=2.0), Task("w", 3.0, gpus=2, kappa=2.0)]
    used = (((0,), 1.0), ((0, 1), 1.0), ((1,), 1.0))
    for static_w, servers in ((100.0, 2), (0.0, 5)):
        grown = pairs(chain, (2,), 1.0, 1e5, "server", static_w=static_w)
        node = leaf(grown, [3.0, 2.0], *used, bound=300.0, low=(2, 1), high=(9, 5))
        assert grown.search.watts == 1e5
        more = [one for one in grown.heap if one.low != node.low]
        assert [(one.low, one.high, len(one.items)) for one in more] == (
            [((2, servers + 1), (9, 5), 2)] if servers < 5 else []
        )
        rest = [one for one in grown.heap if one.low == node.low]
        assert {one.high for one in rest} == {(9, servers)}
        # sharing none, one or both of their GPUs
        shares = sorted(sorted((len(i.tasks), i.width) for i in one.items) for one in rest)
        assert shares == [[(1, 1), (1, 1), (2, 1)], [(1, 2), (1, 2)], [(2, 2)]]
        assert grown.bound == 300
    # that of two in servers of three only one fits each: for certain two servers are too few
    apart = [Task(f"w{k}", 6.0, gpus=2, kappa=2.0) for k in range(3)]
    grown = pairs(apart, (6,), 1.0, 1e5, "server", seats=3)
    leaf(grown, [6.0, 2.0], ((0,), 2.0), ((1,), 2.0), ((2,), 2.0), bound=500.0)
    assert [(one.low[-1], one.bound) for one in grown.heap] == [(3, 500.0)]
    assert grown.open == math.inf


def test_nothing_that_is_better_by_more_than_a_millionth_is_passed_over() -> None:
    assert pairs(THREE, (2,), 1.0, 1000.0).cut == pytest.approx(1000 * (1 - 1e-7), rel=1e-10)
    assert tree(THREE, (2,), 1000.0).cut == pytest.approx(1000 * (1 - 0.5 * CLOSE), rel=1e-10)
    assert CLOSE < 1e-6
