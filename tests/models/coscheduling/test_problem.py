from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from strategies_coscheduling import three_jobs

from optgap.models.coscheduling import (
    Application,
    CoschedulingProblem,
    CoschedulingSolution,
    JobRun,
    Mode,
)
from optgap.models.coscheduling.measured import read_schedule
from optgap.models.coscheduling.presets import from_csv, stream, synthetic
from optgap.models.csvout import csv_text
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields

BEST = (JobRun(1, 0, 100, (0, 1, 2, 3)), JobRun(0, 100, 280, (0, 1)), JobRun(2, 100, 250, (2,)))


def test_a_job_that_does_not_run_breaks_nothing_but_is_seen() -> None:
    problem = three_jobs()
    part = CoschedulingSolution.of(BEST[1:])
    assert problem.check(part) == []
    assert not problem.serves_all(part)
    assert problem.restrict(part).jobs == (0, 2)
    stream = CoschedulingProblem.of(problem.applications, [0, 2], releases=[10.0, 0.0])
    first = CoschedulingSolution.of([JobRun(0, 12, 192, (0, 1))])
    assert stream.restrict(first).releases == (10.0,)


def test_a_schedule_reads_as_csv() -> None:
    lines = csv_text(*CoschedulingSolution.of(BEST).schedule(three_jobs())).splitlines()
    assert lines[:2] == ["job,app,gpu_count,start_s,end_s,gpu_index", "1,Y,4,0,100,0-1-2-3"]


@pytest.mark.parametrize(
    ("modes", "node", "said"),
    [
        (None, {}, "no modes"),
        ((), {"idle_w": float("nan")}, "field idle_w: found nan"),
        ((), {"jobs": []}, "no jobs"),
        ((), {"jobs": [4]}, r"field jobs\[0\]: found 4"),
        ((), {"jobs": [0, 0], "releases": [0.0]}, "1 times"),
        ((), {"jobs": [0, 0], "releases": [0.0, -1.0]}, r"release_s\[1\]"),
        ((), {"jobs": [0, 0], "releases": [0.0, float("nan")]}, "release_s"),
        ((Mode(1, 0.0, 1.0),), {}, "runtime_s: found 0.0"),
        ((Mode(1, 1.0, float("nan")),), {}, "power: found nan"),
        ((Mode(1, 1.0, 1.0), Mode(1, 2.0, 1.0)), {}, "gpu_count 1 twice"),
        ((Mode(1, 1.0, 1.0, -1.0),), {}, "dram_util_sum"),
    ],
)
def test_what_cannot_be_is_refused(
    modes: tuple[Mode, ...] | None, node: dict[str, Any], said: str
) -> None:
    """One application, of one mode unless told."""
    given = () if modes is None else modes or (Mode(1, 1.0, 1.0),)
    with pytest.raises(InputError, match=said):
        CoschedulingProblem.of([Application("a", given)], **node)


HEADER = "app,gpu_count,runtime_s,avg_power_per_gpu_w\n"


def test_tables_make_a_queue_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(HEADER + "a,2,10,100\na,1,15,90\nb,4,7,80\nb,8,5,70\n")
    (tmp_path / "j.csv").write_text("app,count,release_s\nb,1,0\na,2,7.5\n")
    problem = from_csv(tmp_path / "p.csv", tmp_path / "j.csv", seed=0, numa=1, idle_w=43.0)
    assert problem.job_names == ("b", "a#1", "a#2")
    assert [mode.gpu_count for mode in problem.application(0).modes] == [4]
    assert [mode.gpu_count for mode in problem.application(1).modes] == [1, 2]
    assert (problem.numa, problem.idle_w) == (1, 43.0)
    assert problem.releases == (0.0, 7.5, 7.5)
    assert "released until 7.5 s" in problem.summary


def test_the_synthetic_pool_has_the_mix_of_the_paper() -> None:
    for seed in range(5):
        problem = synthetic(seed=seed)
        assert problem.origin == "synthetic"
        assert sorted(problem.jobs) == list(range(17))
        best = [app.fastest.gpu_count for app in problem.applications]
        assert {1, 2, 3, 4} <= set(best)
        assert sum(count == 4 for count in best) >= 4
        assert sum(len(app.modes) == 1 for app in problem.applications) == 2
        assert all(150 < m.power_per_gpu_w < 500 for a in problem.applications for m in a.modes)
    assert len(synthetic(seed=1, size=60)) == 60
    with pytest.raises(InputError, match="size"):
        synthetic(seed=0, size=0)


# -- release times, slow-down limits, and run times that a model predicts ------------------


PROFILES = "app,gpu_count,runtime_s,avg_power_per_gpu_w,dram_util_sum\n"


def of_a(**values: float) -> dict[str, Any]:
    """What a fit says of application a."""
    return {"group": "a", "params": {name: {"value": v} for name, v in values.items()}}


FIT = {
    "schema": "optgap.fit/1",
    "model": "dram-runtime",
    "settings": {},
    "groups": [of_a(a=0.0, b=0.1)],
}


def test_a_stream_spreads_the_releases_of_a_pool() -> None:
    spread = stream(seed=0)
    assert spread.releases[0] == 0
    assert sorted(spread.releases) == list(spread.releases)
    assert spread.applications == synthetic(seed=0).applications


def test_slow_gpu_counts_can_be_left_out() -> None:
    problem = synthetic(seed=0, tau=0.1)
    for app in problem.applications:
        assert max(m.runtime_s for m in app.modes) <= 1.1 * app.fastest.runtime_s * (1 + 1e-9)
    with pytest.raises(InputError, match="tau"):
        synthetic(seed=0, tau=-0.1)


def test_a_fitted_model_fills_in_run_times(tmp_path: Path) -> None:
    rows = "a,1,,100,0.5\na,2,12,90,1.0\nb,2,5,80,0\n"
    (tmp_path / "p.csv").write_text(PROFILES + rows)
    (tmp_path / "fit.json").write_text(json.dumps(FIT))
    problem = from_csv(tmp_path / "p.csv", None, tmp_path / "fit.json", seed=0)
    assert [m.runtime_s for m in problem.applications[0].modes] == pytest.approx([20.0, 12.0])
    with pytest.raises(InputError, match="row 2, column runtime_s"):
        from_csv(tmp_path / "p.csv", seed=0)


@pytest.mark.parametrize(
    ("change", "rows", "said"),
    [
        ({"model": "jct-power-law"}, "a,1,,100,0.5\n", "dram-runtime"),
        ({}, "c,1,,100,0.5\nc,2,,100,0.5\n", "none for c"),
        ({}, "a,1,,100,0.5\na,2,,100,\n", "dram_util_sum above 0"),
        ({"groups": [of_a(z=1.0)]}, "a,1,,100,0.5\n", "a, b, c, k"),
        ({"groups": [of_a(a=-1.0, b=0.0)]}, "a,1,,100,0.5\n", "a positive run time"),
    ],
)
def test_a_model_that_says_nothing_is_named(
    change: dict[str, object], rows: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text(PROFILES + rows)
    (tmp_path / "fit.json").write_text(json.dumps({**FIT, **change}))
    with pytest.raises(InputError, match=said):
        from_csv(tmp_path / "p.csv", None, tmp_path / "fit.json", seed=0)


# -- measured runs -------------------------------------------------------------------------


SEEN = "app,gpu_count,start_s,end_s\n"


def logged(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(text)
    return path


def test_a_measured_schedule_survives_its_json() -> None:
    problem = three_jobs()
    seen = CoschedulingSolution.of([JobRun(0, 0, 181, (0, 1))], measured=True, tolerance_s=0.5)
    again = CoschedulingSolution.from_json(Fields(seen.to_json(problem), "x"), problem)
    assert again == seen


def test_a_bound_for_what_was_measured_is_for_the_measured_run_times() -> None:
    problem = three_jobs()
    seen = CoschedulingSolution.of(
        [JobRun(0, 0, 200, (0, 1)), JobRun(2, 0, 100, (2,))], measured=True
    )
    part = problem.restrict(seen)
    assert len(part) == 2
    assert part.application(0).mode(2).runtime_s == pytest.approx(200, abs=0.1)  # type: ignore[union-attr]
    assert part.application(0).mode(4).runtime_s == 160  # type: ignore[union-attr]


def test_equal_jobs_are_taken_in_queue_order_and_one_of_many_schedules_is_picked(
    tmp_path: Path,
) -> None:
    one = three_jobs()
    problem = CoschedulingProblem.of(one.applications, [0, 0], numa=2)
    head = "platform,queue,policy,app,gpu_count,start_s,end_s,gpus_or_placement\n"
    rows = "A,q,p,X#1,2,0,180,[2 3]\nA,q,p,X#2,2,1,181,[0 1]\nA,q,other,X#1,2,0,5,\n"
    path = logged(tmp_path, head + rows)
    found = read_schedule(path, problem, where="A/q/p")
    assert [(run.job, run.gpu_index) for run in found.runs] == [(0, (2, 3)), (1, (0, 1))]
    with pytest.raises(InputError, match="2 schedules"):
        read_schedule(path, problem)
    with pytest.raises(InputError, match="one of A/q/p, A/q/other"):
        read_schedule(path, problem, where="B/q/p")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("W,1,0,10\n", "row 2: found 'W'"),
        ("X,2,0,180\nX,2,200,380\n", "row 3: found 'X'"),
        ("X,2,10,10\n", "column end_s"),
        ("X,2,-1,10\n", "column start_s"),
        ("X,two,0,10\n", "column gpu_count"),
        ("", "no rows"),
    ],
)
def test_a_log_that_cannot_be_used_is_told_in_one_line(
    rows: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read_schedule(logged(tmp_path, SEEN + rows), three_jobs())
    assert "\n" not in str(caught.value)


def test_the_authors_plan_is_worth_what_their_solver_said(data_dir: Path) -> None:
    from reproduction.ecosched import H100, LOG, queue

    problem = queue(H100, data_dir)
    plan = read_schedule(data_dir / LOG, problem, where="H100/main/oracle_model")
    assert problem.check(plan) == []
    assert problem.evaluate(plan).objective == pytest.approx(481_710.45, abs=0.01)
