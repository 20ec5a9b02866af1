"""Times of tables may be dates: Unix seconds, time zones respected, UTC where there is none."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optgap
from optgap.models.coscheduling import (
    Application,
    CoschedulingProblem,
    CoschedulingSolution,
    JobRun,
    Mode,
)
from optgap.models.errors import InputError
from optgap.models.quantities import warn
from optgap.models.tables import Date
from optgap.models.times import SHORTEST_S, TOLERANCE_S, freed_s, shown, slack_s

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
TASK: dict[str, list[Any]] = {"task": ["a", "b"], "memory_gb": [4, 4], "duration_s": [60, 60]}
FAMILIES: dict[str, tuple[Callable[[list[Any]], Any], Callable[[Any], list[float]]]] = {
    "queueing": (
        lambda times: optgap.problem(
            "queueing",
            jobs={"job": ["a", "b"], "arrival_s": times, "duration_s": [9, 9], "gpus": [1, 1]},
        ),
        lambda problem: problem.jobs.arrival_s.tolist(),
    ),
    "consolidation": (
        lambda times: optgap.problem("consolidation", tasks={**TASK, "submit_s": times}),
        lambda problem: [task.submit_s for task in problem.tasks],
    ),
    "coscheduling": (
        lambda times: optgap.problem(
            "coscheduling",
            profiles={
                "app": ["a"], "gpu_count": [1], "runtime_s": [9], "avg_power_per_gpu_w": [90],
            },
            jobs={"app": ["a", "a"], "count": [1, 1], "release_s": times},
        ),
        lambda problem: list(problem.releases),
    ),
    "elastic": (
        lambda times: optgap.problem(
            "elastic",
            jobs={
                "job": ["a", "b"], "submit_s": times, "model": ["bert", "bert"], "batch": [32, 32],
                "iterations": [10, 10],
            },
        ),
        lambda problem: problem.jobs.submit_s.tolist(),
    ),
}  # fmt: skip
"""Per family a problem with two times, and what has become of them."""


@pytest.fixture(autouse=True)
def _afresh() -> None:
    warn.cache_clear()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-03-01T12:00:00Z", "2026-03-01T12:01:30.5Z"),
        ("2026-03-01 13:00:00+01:00", "2026-03-01T07:01:30.500000-05:00"),
        (str(NOON), str(NOON + 90.5)),
        (pd.Timestamp("2026-03-01T12:00", tz="UTC"), pd.Timestamp("2026-03-01T21:01:30.5+09:00")),
    ],
)
def test_a_date_is_the_second_that_it_names_wherever_its_zone(
    family: str, first: Any, second: Any, caplog: pytest.LogCaptureFixture
) -> None:
    make, times = FAMILIES[family]
    with caplog.at_level(logging.WARNING):
        assert times(make([first, second])) == pytest.approx([NOON, NOON + 90.5], abs=1e-6)
    assert caplog.messages == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_date_without_a_zone_is_utc_and_a_line_says_so(
    family: str, caplog: pytest.LogCaptureFixture
) -> None:
    make, times = FAMILIES[family]
    with caplog.at_level(logging.WARNING):
        problem = make(["2026-03-01 12:00:00", "2026-03-01T12:00:10"])
    assert times(problem) == [NOON, NOON + 10]
    (said,) = caplog.messages
    assert said.endswith(": dates without a time zone are taken as UTC")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["2026-03-01T12:00:00Z", "12"], "row 1, .*_s: found 12.*expected a date, as in row 0"),
        (["0", "2026-02-30"], "row 1, .*_s: found '2026-02-30', expected .* or a date such as"),
        (["0", "1903-01-01T00:00:00Z"], "row 1, column .*_s: found '1903.*expected"),
        (["noon", "0"], "row 0, column .*_s: found 'noon', expected .*2026-03-01T12:00:00Z"),
    ],
)
def test_what_is_no_time_is_refused_by_its_cell(family: str, times: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        FAMILIES[family][0](times)


@given(st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_every_date_that_python_writes_is_read_to_the_microsecond(
    stamp: datetime, minutes: int
) -> None:
    aware = stamp.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    for text in (aware.isoformat(), str(aware)):
        assert Date.parse(text) == Date(aware.timestamp(), False)
    assert Date.parse(str(stamp)) == Date(stamp.replace(tzinfo=UTC).timestamp(), True)


def test_public_traces_keep_the_zones_that_they_name() -> None:
    philly = {
        "timestamp": ["2017-10-03 12:00:00+02:00", "2017-10-03 10:00:30"],
        "duration": [60, 60],
        "num_gpus": [1, 1],
    }
    queue: Any = optgap.problem("queueing", jobs=philly)
    assert queue.jobs.arrival_s.tolist() == [0, 30]
    training: Any = optgap.problem("elastic", trace=philly)
    assert training.jobs.submit_s.tolist() == [0, 30]


# -- what counts as the same time, whatever the clock shows --------------------------------


CLOCKS = (0.0, 1.7e9)


def test_the_same_is_a_microsecond_and_what_rounding_makes_of_the_number_itself() -> None:
    assert slack_s(0.0) == TOLERANCE_S == SHORTEST_S == 1e-6
    for time_s in (1.0, 1.7e9, 1e12):
        rounding = slack_s(time_s) - TOLERANCE_S
        assert 2 * math.ulp(time_s) <= rounding + 1e-16 <= 4 * math.ulp(time_s) + 2e-16
    assert slack_s(1.7e9) < 2e-6
    assert slack_s(np.array([-1.7e9, 0.0])).tolist() == [slack_s(1.7e9), TOLERANCE_S]


def test_room_is_made_no_earlier_than_half_way() -> None:
    assert freed_s(0.0, 10.0) == 10.0 - slack_s(10.0)
    assert freed_s(0.0, 1e-6) == 0.5e-6
    assert freed_s(3.0, 3.0) == 3.0
    for start in CLOCKS:  # half a step of the number itself is none
        assert freed_s(start, math.nextafter(start, math.inf)) > start


def test_a_clock_that_counts_from_1970_is_told_to_the_second() -> None:
    assert shown(59.9999978) == "60"
    assert shown(1_700_000_012.0) == "1700000012"


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("lasts", [1e-5, 10.0])
def test_two_jobs_on_one_gpu_are_seen_however_short(clock: float, lasts: float) -> None:
    app = Application("a", (Mode(1, lasts, 100.0),))
    problem = CoschedulingProblem.of([app], [0, 0], gpus=1, releases=[clock, clock])

    def broken(start: float) -> list[str]:
        runs = [JobRun(k, t, t + lasts, (0,)) for k, t in enumerate((clock, clock + start))]
        return [v.constraint for v in problem.check(CoschedulingSolution.of(runs))]

    assert broken(lasts) == []
    assert broken(0.2 * lasts) == broken(0.0) == ["one job per GPU"]
