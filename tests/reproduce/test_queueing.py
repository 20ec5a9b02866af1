"""The queueing paper's statements beside our runs, and the arithmetic of its numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from optgap.models.limits import Limits
from optgap.reproduce import Report, Stopped, Study, find
from optgap.reproduce.queueing import ITEMS, runs
from optgap.reproduce.queueing.impossible import MINUTES, least_variance, work_h
from optgap.reproduce.queueing.loads import ARRIVALS, Setting
from optgap.reproduce.queueing.runs import Spread


@pytest.fixture(scope="module")
def study() -> Iterator[Study]:
    """Two seeds of streams that are shorter than the paper's, and say the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "JOBS", 300)
        yield Study((42, 43))


def report(name: str, study: Study) -> Report:
    return find(name).run(study)


@pytest.mark.parametrize(
    "name", [item.name for item in ITEMS if item.name not in ("hps-gaps", "hps-loads")]
)
def test_every_item_runs_without_data_and_explains_what_differs(name: str, study: Study) -> None:
    found = report(name, study)
    assert found.rows
    for row in found.rows:
        assert row.ours
        if row.agrees == "no" and row.paper:
            assert row.note or "pairs" in row.ours or "score" in row.claim


def test_the_workload_passes_its_tests() -> None:
    rows = report("hps-workload", Study(tuple(range(42, 47)))).rows
    assert [row.agrees for row in rows[:4]] == ["yes"] * 4


def test_work_and_variance_are_what_the_arithmetic_says() -> None:
    assert work_h(MINUTES["middle"]) == pytest.approx(7.07, abs=0.005)
    assert work_h(MINUTES["least"]) == pytest.approx(3.56, abs=0.005)
    assert work_h(MINUTES["least"], True) == pytest.approx(1.10, abs=0.005)
    assert work_h(MINUTES["middle"], True) == pytest.approx(2.85, abs=0.005)
    assert least_variance(757, 12) == pytest.approx(13_213, abs=1)
    assert least_variance(823, 18) == pytest.approx(17_496, abs=1)
    assert least_variance(891, 25) == pytest.approx(21_187, abs=1)


def test_throughput_stays_below_what_the_cluster_can_do(study: Study) -> None:
    rows = {row.claim: row for row in report("hps-table2", study).rows}
    assert float(rows["HPS: jobs per hour"].ours.split()[0]) < 64 / work_h(MINUTES["least"])
    assert rows["HPS: jobs per hour"].agrees == "no"


def test_the_printed_boost_is_a_penalty_for_ten_minutes(study: Study) -> None:
    rows = report("hps-aging", study).rows
    assert [row.agrees for row in rows[:5]] == ["", "no", "no", "no", "yes"]


def test_intervals_are_students(study: Study) -> None:
    found = Spread.of(np.array([1.0, 2.0, 3.0]))
    assert (found.mean, found.half) == (2.0, pytest.approx(2.484, abs=0.001))
    assert Spread.of(np.array([5.0])).text() == "5.0"


def test_the_work_stops_when_asked() -> None:
    asked = threading.Event()
    asked.set()
    with pytest.raises(Stopped):
        find("hps-table2").run(Study((42,), limits=Limits(interrupted=asked)))


def test_streams_of_all_arrivals_have_the_same_jobs() -> None:
    poisson, regular, tens = (
        Setting(how, "none", "inf", 0.7).stream(3, size=40) for how in ARRIVALS
    )
    for other in (regular, tens):
        assert np.array_equal(poisson.jobs.duration_s, other.jobs.duration_s)
    assert np.ptp(np.diff(regular.jobs.arrival_s)) < 1e-6
    assert len(np.unique(tens.jobs.arrival_s)) == 4
