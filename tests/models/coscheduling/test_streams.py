"""Release times, slow-down limits, and run times that a model predicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from strategies_coscheduling import three_jobs

from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution, Run
from optgap.models.coscheduling.presets import from_csv, stream, synthetic
from optgap.models.errors import InputError

PROFILES = "app,gpu_count,runtime_s,avg_power_per_gpu_w,dram_util_sum\n"
FIT = {
    "schema": "optgap.fit/1",
    "model": "dram-runtime",
    "settings": {},
    "groups": [{"group": "a", "params": {"a": {"value": 0.0}, "b": {"value": 0.1}}}],
}


def test_a_job_must_not_start_before_it_comes() -> None:
    one = three_jobs()
    problem = CoschedulingProblem.of(one.applications, [0, 2], releases=[10.0, 0.0])
    early = CoschedulingSolution.of([Run(0, 5, 185, (0, 1))])
    assert [v.constraint for v in problem.check(early)] == ["release_s"]
    late = CoschedulingSolution.of([Run(0, 12, 192, (0, 1)), Run(1, 0, 150, (2,))])
    assert problem.check(late) == []
    assert problem.evaluate(late).metrics["mean_wait_s"] == 1
    assert problem.restrict(CoschedulingSolution.of([Run(0, 12, 192, (0, 1))])).releases == (10.0,)


@pytest.mark.parametrize(
    ("times", "said"),
    [([0.0], "1 times"), ([0.0, -1.0], r"release_s\[1\]"), ([0.0, float("nan")], "release_s")],
)
def test_release_times_that_are_none_are_refused(times: list[float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CoschedulingProblem.of(three_jobs().applications, [0, 1], releases=times)


def test_a_queue_may_come_over_time(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(PROFILES + "a,1,10,100,0.5\n")
    (tmp_path / "j.csv").write_text("app,count,release_s\na,2,0\na,1,7.5\n")
    problem = from_csv(tmp_path / "p.csv", tmp_path / "j.csv", seed=0)
    assert problem.releases == (0.0, 0.0, 7.5)
    assert "released until 7.5 s" in problem.summary


def test_presets_have_their_sizes_and_a_stream_spreads_them() -> None:
    assert len(synthetic(seed=0, size=25)) == 25
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
        (
            {"groups": [{"group": "a", "params": {"z": {"value": 1.0}}}]},
            "a,1,,100,0.5\n",
            "a, b, c, k",
        ),
        (
            {"groups": [{"group": "a", "params": {"a": {"value": -1.0}, "b": {"value": 0.0}}}]},
            "a,1,,100,0.5\n",
            "a positive run time",
        ),
    ],
)
def test_a_model_that_says_nothing_is_named(
    change: dict[str, object], rows: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text(PROFILES + rows)
    (tmp_path / "fit.json").write_text(json.dumps({**FIT, **change}))
    with pytest.raises(InputError, match=said):
        from_csv(tmp_path / "p.csv", None, tmp_path / "fit.json", seed=0)
