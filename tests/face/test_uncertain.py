"""Intervals: how many draws they take, by which methods, and that they hold their own gap."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

import optgap
from optgap.comparing.uncertain import Interval, UncertainComparison, draws, least_samples
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status
from optgap.models.spec import Entry
from optgap.render import text_table


@pytest.fixture(scope="module")
def problem() -> Any:
    """Six tasks with the power of two measured applications."""
    clock = [600, 900, 1200, 1350]
    table = {
        "app": ["bfs"] * 4 + ["lud"] * 4,
        "frequency_mhz": clock * 2,
        "power_w": [78, 104, 131, 145, 92, 126, 158, 176],
    }
    fit = optgap.fit(table, "linear-power", by="application", cv=0)
    return optgap.generate("consolidation", seed=0, size=6, servers=2, models=[fit])


@pytest.mark.parametrize(("level", "draws"), [(0.8, 9), (0.9, 19), (0.95, 39), (0.99, 199)])
def test_a_level_takes_as_many_draws_as_its_ends_need(level: float, draws: int) -> None:
    assert least_samples(level) == draws
    values = np.random.default_rng(1).random(draws).tolist()
    one = Interval.of("p", values, level, None)
    assert (one.low, one.high) == pytest.approx((min(values), max(values)))


def test_an_interval_holds_one_more_draw_as_often_as_it_says() -> None:
    """Test the share of new draws inside, over many intervals of 39 and of 5 draws."""
    rng = np.random.default_rng(2)
    for count, holds in ((39, 0.9), (5, 4 / 6)):
        inside = []
        for _ in range(2000):
            *drawn, new = rng.normal(size=count + 1)
            one = Interval.of("p", drawn, 0.9, None)
            inside.append(one.low <= new <= one.high)
        assert np.mean(inside) == pytest.approx(holds, abs=0.02)


def test_more_draws_keep_the_first_ones(problem: Any) -> None:
    once, again = (list(islice(draws(problem.fits, 5), n)) for n in (20, 40))
    assert [[f.groups for f in fits] for fits in once] == [
        [f.groups for f in fits] for fits in again[:20]
    ]
    assert once[0][0].groups != once[1][0].groups != once[19][0].groups


def test_fewer_draws_are_a_range_and_say_what_it_holds(problem: Any) -> None:
    gaps = optgap.compare(problem, "cats", uncertainty=5)
    assert gaps.title == "range of 5 draws (holds 67 %); 90 % takes 19 draws"
    assert gaps.title in str(gaps)
    rows = tuple(replace(row, gap_to_bound=9.0) for row in gaps.comparison.rows)
    outside = replace(gaps, comparison=replace(gaps.comparison, rows=rows))
    assert {row[1] for row in outside.table()[1] if row} == {"!900.00"}
    assert "lies OUTSIDE its interval: " in str(outside)
    with pytest.raises(optgap.InputError, match="a share between 0 and 1"):
        optgap.compare(problem, "cats", uncertainty=5, level=1)


def test_a_gap_outside_its_interval_is_marked() -> None:
    assert Interval.of("p", [0.1, 0.2, 0.3], 0.5, 0.4).outside
    assert not Interval.of("p", [0.1, 0.2, 0.3], 0.5, 0.3).outside


def dear(problem: Any, *, limits: Limits, seed: int, units: float = 10.0) -> Outcome:
    """An exact method that takes its time: it runs the cheap one."""
    limits.spend(units)
    found = optgap.solve(problem, "exact")
    return Outcome(
        found.solution, Status.OPTIMAL, claimed=found.objective, bound=found.bound, bound_by="dear"
    )


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """The family with a method and a policy that take as many units as they are told."""
    import optgap.heuristics.consolidation as policies
    import optgap.solvers.consolidation as room

    entry = Entry("dear", "", "exact", {"units": 10.0}, functions=lambda: {"dear": dear})
    monkeypatch.setattr(room, "METHODS", {**room.METHODS, "dear": entry})
    own = Entry("slow", "", params={"units": 10.0}, functions=lambda: {"slow": slow})
    monkeypatch.setattr(policies, "POLICIES", {**policies.POLICIES, "slow": own})


def slow(problem: Any, *, limits: Limits, seed: int, units: float = 10.0) -> Outcome:
    """A policy that plans for so many units."""
    limits.spend(units)
    return Outcome(optgap.run(problem, "first").solution, Status.FEASIBLE)


def drawn(problem: Any, policies: str, methods: str, **given: Any) -> UncertainComparison:
    return optgap.compare(problem, policies, methods, uncertainty=2, level=0.3, **given)


@pytest.mark.usefixtures("methods")
def test_a_dear_method_gives_way_to_one_bound_for_fit_and_draws(problem: Any) -> None:
    gaps = drawn(problem, "cats", "dear(units=40.0)")
    (told,) = gaps.remarks
    assert told.startswith("dear(units=40.0) at the fit: cats ")
    assert "takes 40 units a draw, 80 for 2: intervals and their gap are against bound-" in told
    assert {c.bound_by for c in gaps.samples} == {gaps.basis.bound_by} != {"dear"}
    (cats,) = (one for one in gaps.intervals if one.method == "cats")
    assert cats.value == gaps.basis.row("cats").gap_to_bound
    assert gaps.comparison.row("cats").gap_to_bound is not None  # as it was asked for
    assert not drawn(problem, "cats", "dear(units=40.0)", effort=2.0).remarks


@pytest.mark.usefixtures("methods")
def test_a_dear_policy_keeps_its_row_and_is_not_drawn(problem: Any) -> None:
    gaps = drawn(problem, "cats,slow(units=40.0)", "exact")
    assert gaps.remarks == ("not drawn: slow(units=40.0), 40 units a draw",)
    assert [(one.method, one.count) for one in gaps.intervals][-2:] == [
        ("cats", 2), ("slow(units=40.0)", 0)
    ]  # fmt: skip
    assert "not drawn" in str(gaps)


@pytest.mark.usefixtures("methods")
def test_where_nothing_is_affordable_no_interval_is_given(problem: Any) -> None:
    gaps = drawn(problem, "slow(units=20.0),slow(units=21.0)", "exact")
    (told,) = gaps.remarks
    assert "no intervals: 2 draws take 8" in told
    assert "--effort 2 draws them" in told
    assert not gaps.samples


def test_the_documented_example_is_what_the_page_says(tmp_path: Path) -> None:
    """Test the five lines of csv-to-gap.md on its table, to the last digit that it shows."""
    page = (ROOT / "docs" / "csv-to-gap.md").read_text()
    fences = re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL)
    (csv,) = (text for kind, text in fences if kind == "csv")
    (shown,) = (text for kind, text in fences if kind == "" and "gap to bound" in text)
    (tmp_path / "sweep.csv").write_text(csv)
    fits = [
        optgap.fit(tmp_path / "sweep.csv", model, by="application")
        for model in ("linear-power", "power-law-jct")
    ]
    problem = optgap.generate("consolidation", seed=0, size=8, models=fits)
    gaps = optgap.compare(problem, "cats,first", uncertainty=19)
    assert {comparison.bound_by for comparison in gaps.comparisons} == {gaps.comparison.bound_by}
    assert text_table(*gaps.table()) == shown.rstrip()
    assert len(gaps.samples) == 19
    assert len(gaps.objectives) >= len(gaps.intervals)
    assert not gaps.remarks
    for one in gaps.intervals:
        assert (one.count, one.outside) == (19, False)
        assert one.low <= one.value <= one.high
    assert "OUTSIDE" not in str(gaps)
