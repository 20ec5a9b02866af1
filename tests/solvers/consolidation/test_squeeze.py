"""Counts of GPUs by level, cheapest first, and placements that keep them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.solvers.consolidation.counts import quick_count
from optgap.solvers.consolidation.dealing_kernels import deal
from optgap.solvers.consolidation.exchange_kernels import exchange
from optgap.solvers.consolidation.levels import closed_bound, counted, levels
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import _vectors, squeeze_to
from optgap.solvers.consolidation.squeeze_kernels import spread, squeeze


def test_counts_come_cheapest_first_and_never_rise_with_the_level() -> None:
    pack = packing(mixed(seed=1, size=16, capacity="none"))
    own = levels(pack)
    counts = counted(pack, own, Limits())
    found = list(zip(range(60), _vectors(pack, own, counts), strict=False))
    watts = [one[0] for _, one in found]
    vectors = [one[1] for _, one in found]
    assert vectors[0] == counts
    assert watts == sorted(watts)
    assert len(set(vectors)) == len(vectors)
    assert all(list(one) == sorted(one, reverse=True) for one in vectors)


def test_counts_from_some_of_the_rows_are_no_more_than_from_all() -> None:
    pack = packing(mixed(seed=4, size=40, capacity="slot"))
    tasks = np.arange(pack.tasks)
    whole = quick_count(pack, tasks)
    area = max(-(-(pack.rows @ pack.width) // pack.most))
    for rows, alphas in (([0], 1), ([0, 3], 2), ([5], 40)):
        assert area <= quick_count(pack, tasks, np.array(rows), alphas) <= whole


@pytest.mark.parametrize("capacity", ["none", "mean", "slot", "peak"])
@pytest.mark.parametrize("gang", ["server", "free"])
def test_what_it_finds_the_referee_agrees_with(capacity: str, gang: str) -> None:
    problem = mixed(seed=3, size=20, capacity=capacity, gang=gang)  # type: ignore[arg-type]
    pack = packing(problem)
    own = levels(pack)
    search = Search(pack, 0)
    search.build(Limits(), tries=3)
    before = search.watts
    counts = counted(pack, own, Limits())
    squeeze_to(pack, own, counts, search, Limits(0.5), 0)
    assert search.places is not None
    solution = pack.solution(search.places)
    assert problem.check(solution) == []
    power = problem.evaluate(solution).objective
    assert power == pytest.approx(search.watts, rel=1e-12)
    assert closed_bound(pack, own, counts) <= power <= before + 1e-9


def test_tasks_are_dealt_where_no_move_and_no_swap_of_two_helps() -> None:
    """3 + 5 + 12 and 7 + 6 + 5 on GPUs of 19: 3 + 5 for 7 makes 19 of both, no swap of two does."""
    sizes = np.array([[3, 5, 12, 7, 6, 5]], dtype=np.int64)
    place = np.array([0, 0, 0, 1, 1, 1], dtype=np.int64)
    start = np.arange(7, dtype=np.int64)
    zeros, cap = np.zeros(6, dtype=np.int64), np.zeros(2, dtype=np.int64)
    left = exchange(
        start, np.arange(6, dtype=np.int64), sizes, np.array([19], dtype=np.int64), zeros, cap,
        1, False, place, 50, 0.0, np.random.default_rng(0),
    )  # fmt: skip
    assert left == 0.0
    assert [int(sizes[0, place == g].sum()) for g in (0, 1)] == [19, 19]


def test_room_that_is_scattered_is_driven_together() -> None:
    """Sixty full GPUs of three levels, taken apart and put together again with nothing to spare."""
    most, each, gpus = 3200, 6, 60
    rng = np.random.default_rng(5)
    cap = np.repeat([2, 1, 0], gpus // 3).astype(np.int64)
    sizes, level = [], []
    for g in range(gpus):
        cuts = np.sort(rng.choice(np.arange(1, most), each - 1, replace=False))
        sizes += np.diff([0, *cuts.tolist(), most]).tolist()
        level += [cap[g], *rng.integers(0, cap[g] + 1, each - 1).tolist()]
    held, of = np.array(sizes, dtype=np.int64), np.array(level, dtype=np.int64)
    place = np.array([rng.choice(np.flatnonzero(cap >= one)) for one in level], dtype=np.int64)
    left = deal(
        np.arange(len(sizes) + 1), np.arange(len(sizes)), held, most, 0, of, cap, gpus, False,
        place, 100_000, 0.02, np.random.default_rng(0),
    )  # fmt: skip
    assert left == 0.0
    assert [int(held[place == g].sum()) for g in range(gpus)] == [most] * gpus
    assert np.all(cap[place] >= of)


@settings(max_examples=60)
@given(data=st.data())
def test_moves_keep_levels_and_servers_and_say_what_is_left(data: st.DataObject) -> None:
    """Levels may change places between GPUs, but there are as many of each."""
    span, gpus = 3, 6
    cap = np.array([data.draw(st.integers(-1, 2)) for _ in range(gpus)], dtype=np.int64)
    cap[:span] = 2
    gang = data.draw(st.booleans())
    count = data.draw(st.integers(1, 8))
    width = np.array([data.draw(st.integers(1, span)) for _ in range(count)], dtype=np.int64)
    level = np.array([data.draw(st.integers(0, 2)) for _ in range(count)], dtype=np.int64)
    rows = np.array([[data.draw(st.integers(0, 9)) for _ in range(count)] for _ in range(2)])
    limit = np.array([12, 14], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    owner = np.repeat(np.arange(count), width).astype(np.int64)
    place = np.zeros(len(owner), dtype=np.int64)
    order = np.array(data.draw(st.permutations(range(count))), dtype=np.int64)
    sizes = rows.astype(np.int64)
    assert spread(order, start, sizes, limit, level, cap, span, gang, place)
    levels_before = sorted(cap.tolist())
    left = squeeze(
        start, owner, sizes, limit, level, cap, span, gang, place, 3000, 0.5, 0.01,
        np.random.default_rng(data.draw(st.integers(0, 9))),
    )  # fmt: skip
    loads = np.array([sizes[:, owner[place == g]].sum(axis=1) for g in range(gpus)])
    assert left == pytest.approx(float((np.maximum(0, loads - limit) / limit).sum()), abs=1e-9)
    assert sorted(cap.tolist()) == levels_before
    for ell in range(count):
        mine = place[start[ell] : start[ell + 1]].tolist()
        assert len(set(mine)) == len(mine)
        assert all(cap[g] >= level[ell] for g in mine)
        assert not gang or len({g // span for g in mine}) == 1


@pytest.mark.parametrize("single", [False, True])
@settings(max_examples=60)
@given(data=st.data())
def test_what_is_dealt_keeps_levels_and_shares_apart(single: bool, data: st.DataObject) -> None:
    gpus, span = 4, 2
    cap = np.array(sorted((data.draw(st.integers(-1, 1)) for _ in range(gpus)), reverse=True))
    cap[0] = 1
    awake = np.flatnonzero(cap >= 0).tolist()
    gang = data.draw(st.booleans())
    width, level, place = [], [], []
    for _ in range(data.draw(st.integers(1, 9))):
        own = data.draw(st.integers(0, 1))
        may = [g for g in awake if cap[g] >= own]
        both = [
            pair for pair in itertools.combinations(may, 2) if pair[0] // span == pair[1] // span
        ]
        wide = bool(both) and data.draw(st.booleans())
        gpu = data.draw(st.sampled_from(both)) if wide else (data.draw(st.sampled_from(may)),)
        width.append(len(gpu))
        level.append(own)
        place += gpu
    count = len(width)
    lines = 1 if single else 2
    rows = np.array([[data.draw(st.integers(0, 9)) for _ in range(count)] for _ in range(lines)])
    limit = np.array([12, 14][:lines], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    owner = np.repeat(np.arange(count), width).astype(np.int64)
    now = np.array(place, dtype=np.int64)

    def excess() -> float:
        total = 0.0
        for g in range(gpus):
            load = rows[:, owner[now == g]].sum(axis=1)
            total += float((np.maximum(0, load - limit) / limit).sum())
        return total

    before = excess()
    of, rng = np.array(level, dtype=np.int64), np.random.default_rng(0)
    fixed = data.draw(st.integers(0, count)) if single else 0
    if single:
        left = deal(
            start, owner, rows[0].astype(np.int64), 12, fixed, of, cap.astype(np.int64), span,
            gang, now, 200, 0.0, rng,
        )  # fmt: skip
        assert now[: start[fixed]].tolist() == place[: start[fixed]]
    else:
        left = exchange(
            start, owner, rows.astype(np.int64), limit, of, cap.astype(np.int64), span, gang, now,
            200, 0.0, rng,
        )  # fmt: skip
    assert left == pytest.approx(excess(), abs=1e-9)
    assert left <= before + 1e-9
    for ell in range(count):
        mine = now[start[ell] : start[ell + 1]].tolist()
        assert len(set(mine)) == len(mine)
        assert all(cap[g] >= level[ell] for g in mine)
        if gang and len(mine) > 1:
            assert {g // span for g in mine} == {place[start[ell]] // span}
