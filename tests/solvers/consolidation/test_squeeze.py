"""Counts of GPUs by level, cheapest first, and placements that keep them."""

from __future__ import annotations

import pytest

from optgap.models.consolidation.presets import mixed
from optgap.models.limits import Limits
from optgap.solvers.consolidation.levels import closed_bound, counted, levels
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze import _vectors, squeeze_to


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
