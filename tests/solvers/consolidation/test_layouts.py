"""Tasks of several GPUs first, the others beside them: worth of room, layouts, what is left."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.limits import Limits
from optgap.solvers.consolidation.branching import Tree
from optgap.solvers.consolidation.exhaustive import Enumeration
from optgap.solvers.consolidation.layout_kernels import AT_ALL, TOO_FULL, lay, room_worth
from optgap.solvers.consolidation.layouts import Layouts
from optgap.solvers.consolidation.levels import counted, levels
from optgap.solvers.consolidation.packing import IntArray, Packing, packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import applies


def layouts_of(pack: Packing) -> Layouts:
    return Layouts(pack, levels(pack), Search(pack, 0), Tree, 0)


@settings(max_examples=40)
@given(data=st.data())
def test_room_is_worth_the_dearest_tasks_that_fit_less_the_rent(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 5))
    numbers = st.integers(0, 4)
    size = np.array([[data.draw(numbers) for _ in range(count)] for _ in range(2)], dtype=np.int64)
    size = size.reshape(2, count)
    profit = np.array([float(data.draw(st.integers(0, 9))) for _ in range(count)])
    level = np.sort(np.array([data.draw(st.integers(0, 2)) for _ in range(count)], dtype=np.int64))
    rents = np.cumsum([float(data.draw(st.integers(0, 5))) for _ in range(3)])
    cells = np.array([data.draw(st.integers(0, 6)), data.draw(st.integers(0, 6))], dtype=np.int64)
    worth = room_worth(size, profit, level, rents, cells)
    for q, x, y in itertools.product(range(3), range(cells[0] + 1), range(cells[1] + 1)):
        best = -np.inf
        for chosen in itertools.product((False, True), repeat=count):
            inside = np.flatnonzero(np.array(chosen, dtype=bool))
            if size[0, inside].sum() <= x and size[1, inside].sum() <= y:
                top = max([q, *level[inside].tolist()])
                best = max(best, float(profit[inside].sum() - rents[top]))
        assert worth[q, x, y] == pytest.approx(best)


def cost_of_runs(
    first: IntArray, wide: dict[str, IntArray], limit: IntArray, others: IntArray,
    wanted: IntArray, steps: np.ndarray, worth: np.ndarray, gpus: int, weight: float,
) -> float:  # fmt: skip
    """What `lay` minimises, counted GPU by GPU; one row, which is its first line."""
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
            total += TOO_FULL * steps.sum() * (AT_ALL - left)
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
    share = np.array([0.1])
    first = np.full(count, 0, dtype=np.int64)
    best = lay(
        worth, size[None, :], limit, width, level, share, others, wanted, steps, 3.0, span,
        servers, first, 300, 30.0, 0.1, np.random.default_rng(0),
    )  # fmt: skip
    assert (first // span == (first + width - 1) // span).all()
    assert (first >= 0).all()
    assert (first < span * servers).all()
    wide = {"width": width, "size": size, "level": level}
    exact = cost_of_runs(
        first, wide, limit, others, wanted, steps, worth, span * servers, weight=3.0
    )
    assert best == pytest.approx(exact, abs=1e-6)


@settings(max_examples=60)
@given(problem=consolidation_problems(even=True, lines=False, max_tasks=5), data=st.data())
def test_what_a_layout_leaves_is_solved_to_its_optimum(
    problem: ConsolidationProblem, data: st.DataObject
) -> None:
    """Against all placements of the others beside the same layout."""
    pack = packing(problem)
    own, layouts = levels(pack), layouts_of(pack)
    if not applies(pack, own) or not layouts.useful:
        return
    servers = data.draw(st.integers(1, len(pack.server_w)))
    first = np.array(
        [
            layouts.span * data.draw(st.integers(0, servers - 1))
            + data.draw(st.integers(0, layouts.span - width))
            for width in pack.width[layouts.wide].tolist()
        ],
        dtype=np.int64,
    )
    if not layouts.holds(first, servers):
        return
    part = layouts.part(first, servers)
    brute = Enumeration(part.pack, Limits())
    brute.run()
    search = Search(part.pack, 0)
    search.watts = float((pack.width * pack.least_watts).sum() + pack.server_w.sum() + 1)
    inside = replace(own, of=own.of[part.top])
    tree = Tree(part.pack, inside, counted(part.pack, inside, Limits()), search, 0)
    bound = tree.run(Limits(20))
    if brute.best is None:
        assert search.places is None
        return
    assert search.places is not None
    assert min(bound, search.watts) <= brute.best * (1 + 1e-9) + 1e-5
    assert search.watts == pytest.approx(brute.best, rel=1e-6, abs=1e-5)
    whole = part.places(search.places)
    assert problem.check(pack.solution(whole)) == []
    assert pack.total(whole) == pytest.approx(search.watts)


def test_tasks_of_several_gpus_are_laid_over_one_another_where_room_is_short() -> None:
    """Two of 2 GPUs share theirs, and four of one GPU fill two more: one server of four."""
    wide = [Task(f"w{k}", 8.0, 2, 1.2) for k in range(2)]
    narrow = [Task(f"n{k}", 8.0, 1, 1.2) for k in range(4)]
    problem = ConsolidationProblem.of(
        [GpuKind(memory_gb=16.0)], [Server((0,) * 4, 100.0)] * 3, wide + narrow, rules=Rules("none")
    )
    pack = packing(problem)
    search = Search(pack, 0)
    layouts = Layouts(pack, levels(pack), search, Tree, 0)
    layouts.attempt((4, 1), 1e6, Limits(20), 5.0)
    assert search.places is not None
    assert search.watts == pytest.approx(4 * float(pack.watts[0, 0]) + 100.0)
    assert search.places[0] == search.places[1]


@pytest.mark.parametrize("capacity", ["none", "mean", "slot"])
@pytest.mark.parametrize("kappas", [4, 0])
def test_layouts_lead_to_placements_that_the_referee_takes(capacity: str, kappas: int) -> None:
    problem = mixed(seed=3, size=30, capacity=capacity, kappas=kappas)  # type: ignore[arg-type]
    pack = packing(problem)
    own, search = levels(pack, 600), Search(pack, 0)
    search.build(Limits(), tries=1)
    tree = Tree(pack, own, counted(pack, own, Limits()), search, 0)
    layouts, start = tree.layouts, search.watts
    assert layouts is not None
    limits = Limits(20)
    layouts.begin(tree.master, tree.root.aim, limits)
    for _ in range(12):
        layouts.attempt(tree.root.aim, search.watts, limits, 1.0)
    assert search.watts < start
    assert search.places is not None
    solution = pack.solution(search.places)
    assert problem.check(solution) == []
    assert problem.evaluate(solution).objective == pytest.approx(search.watts)
