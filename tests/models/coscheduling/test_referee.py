"""What the referee of co-scheduled jobs says, to the last joule and to the edge of its slack."""

from __future__ import annotations

import pytest

from optgap.models.coscheduling import (
    Application,
    CoschedulingProblem,
    CoschedulingSolution,
    JobRun,
    Mode,
)
from optgap.models.result import Violation

X = Application("X", (Mode(1, 100.0, 300.0), Mode(2, 60.0, 250.0)))
Y = Application("Y", (Mode(1, 40.0, 200.0), Mode(4, 20.0, 150.0)))


def problem(*jobs: int, releases: tuple[float, ...] = (), numa: int = 2) -> CoschedulingProblem:
    """Four GPUs of 50 W idle."""
    return CoschedulingProblem.of(
        [X, Y], jobs, gpus=4, numa=numa, idle_w=50.0, releases=releases or None
    )


def plan(*runs: JobRun) -> CoschedulingSolution:
    return CoschedulingSolution.of(runs)


def clocked(*runs: JobRun, tolerance_s: float = 0.0) -> CoschedulingSolution:
    return CoschedulingSolution.of(runs, measured=True, tolerance_s=tolerance_s)


def names(problem: CoschedulingProblem, *runs: JobRun) -> list[str]:
    return [v.constraint for v in problem.check(plan(*runs))]


def test_numbers_that_are_none_are_told_with_the_last_that_is() -> None:
    three = problem(0, 1, 1)
    for job in (-1, 3, 9):
        found = three.check(plan(JobRun(job, 0, 100, (0,))))
        assert found == [Violation("job number", f"job {job}", job, 2)]
    for gpu in (-1, 4, 9):
        found = three.check(plan(JobRun(0, 0, 100, (gpu,))))
        assert found == [Violation("GPU index", "job 0 (X)", gpu, 3)]
    assert three.check(plan(JobRun(0, 0, 60, (0, 3)), JobRun(1, 0, 40, (2,)))) == []


def test_gpus_are_different_and_as_many_as_some_mode_has() -> None:
    found = problem(0).check(plan(JobRun(0, 0, 60, (1, 1))))
    assert found == [Violation("different GPUs", "job 0 (X)", "1-1", "each GPU once")]
    found = problem(1).check(plan(JobRun(0, 0, 40, (0, 1))))
    assert found == [Violation("GPU count", "job 0 (Y)", 2, "one of 1, 4")]
    # what else is wrong with it is told, too
    late = problem(1, releases=(50.0,))
    assert names(late, JobRun(0, 0, 40, (0, 1))) == ["GPU count", "release_s"]


def test_each_job_runs_once() -> None:
    found = problem(1, 1).check(plan(JobRun(1, 0, 40, (0,)), JobRun(1, 50, 90, (0,))))
    assert found == [Violation("runs per job", "job 1", 2, 1)]


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        (-0.001, 99.999, "-0.001 to 99.999"),
        (0.0, float("inf"), "0.0 to inf"),
        (float("nan"), 100.0, "nan to 100.0"),
    ],
)
def test_times_are_from_zero_on_and_end(start: float, end: float, shown: str) -> None:
    found = problem(0).check(plan(JobRun(0, start, end, (0,))))
    assert found == [Violation("times", "job 0 (X)", shown, "0 or later")]


def test_a_run_lasts_as_its_profile_says_to_a_microsecond() -> None:
    one = problem(0)
    for off in (9e-7, -9e-7):
        assert one.check(plan(JobRun(0, 0, 100 + off, (0,)))) == []
    for off in (1.1e-6, -1.1e-6):
        found = one.check(plan(JobRun(0, 0, 100 + off, (0,))))
        assert found == [Violation("runtime_s", "job 0 (X)", 100 + off, 100.0)]
    brief = CoschedulingProblem.of([Application("Z", (Mode(1, 1e-3, 1.0),))], [0])
    assert brief.check(plan(JobRun(0, 0, 1e-3 + 9e-7, (0,)))) == []
    assert len(brief.check(plan(JobRun(0, 0, 1e-3 + 1.1e-6, (0,))))) == 1
    # a run without an end gives nobody else slack
    both = names(problem(0, 0), JobRun(0, 0, float("inf"), (0,)), JobRun(1, 0, 101, (1,)))
    assert both == ["times", "runtime_s"]


def test_no_job_starts_before_its_release() -> None:
    stream = problem(0, 1, releases=(0.0, 30.0))
    assert stream.check(plan(JobRun(0, 0, 100, (0,)), JobRun(1, 30 - 9e-7, 70, (1,)))) == []
    found = stream.check(plan(JobRun(0, 0, 100, (0,)), JobRun(1, 29.9, 69.9, (1,))))
    assert found == [Violation("release_s", "job 1 (Y)", 29.9, 30.0)]


def test_a_gpu_is_free_once_the_job_before_has_ended() -> None:
    two = problem(0, 1)
    assert two.check(plan(JobRun(0, 0, 100, (0,)), JobRun(1, 100, 140, (0,)))) == []
    assert two.check(plan(JobRun(0, 0, 100, (0,)), JobRun(1, 100 - 9e-7, 140 - 9e-7, (0,)))) == []
    for gpus, took, first in (((3,), 40, 3), ((0, 1, 2, 3), 20, 2)):
        found = two.check(plan(JobRun(0, 0, 60, (2, 3)), JobRun(1, 59.9, 59.9 + took, gpus)))
        held = f"GPU {first} still held by job 0"
        assert found == [Violation("one job per GPU", "job 1 (Y) at 59.9 s", held, "a free GPU")]
    assert names(two, JobRun(0, 0, 60, (2, 3)), JobRun(1, 10, 50, (1,))) == []


def test_a_gpu_that_two_jobs_hold_is_seen_past_a_shorter_one_on_another() -> None:
    long = problem(0, 1, 1, numa=4)
    runs = (JobRun(0, 0, 100, (0,)), JobRun(1, 10, 50, (1,)), JobRun(2, 60, 100, (0,)))
    assert names(long, *runs) == ["one job per GPU"]


def test_no_more_jobs_run_at_a_time_than_there_are_domains() -> None:
    three = problem(1, 1, 1)
    runs = [JobRun(k, 0, 40, (k,)) for k in range(3)]
    found = three.check(plan(*runs))
    assert found == [Violation("jobs at a time", "job 2 (Y#3) at 0 s", 3, 2)]
    assert three.check(plan(*runs[:2], JobRun(2, 40, 80, (2,)))) == []
    assert problem(1, 1, 1, numa=3).check(plan(*runs)) == []
    alone = problem(1, 1, numa=1)
    assert names(alone, *runs[:2]) == ["jobs at a time"]


def test_measured_runs_may_differ_from_profiles_and_overlap_by_their_tolerance() -> None:
    two = problem(0, 1)
    runs = (JobRun(0, 0, 90, (0,)), JobRun(1, 89.5, 120, (0,)))
    assert two.check(clocked(*runs, tolerance_s=0.5)) == []
    found = two.check(clocked(*runs, tolerance_s=0.4))
    assert [v.constraint for v in found] == ["one job per GPU"]
    for end in (50.0, 49.0):
        found = two.check(clocked(JobRun(0, 50.0, end, (0,))))
        assert found == [Violation("times", "job 0 (X)", f"50.0 to {end}", "a later end")]
    assert two.check(clocked(JobRun(0, 50.0, 50.5, (0,)))) == []
    assert two.check(clocked(JobRun(0, 0, 100, (0, 1, 2))))[0].constraint == "GPU count"


def test_metrics_are_as_worked_out_by_hand() -> None:
    """X on 2 GPUs: 60 s at 500 W; Y on 1: 40 s at 200 W, waits 20 s; Y on 4: 20 s at 600 W."""
    three = problem(0, 1, 1, releases=(0.0, 10.0, 0.0))
    runs = (JobRun(0, 0, 60, (0, 1)), JobRun(1, 30, 70, (2,)), JobRun(2, 75, 95, (0, 1, 2, 3)))
    assert three.check(plan(*runs)) == []
    found = three.evaluate(plan(*runs))
    busy = 2 * 60 + 40 + 4 * 20
    energy = 30_000 + 8_000 + 12_000 + 50 * (4 * 95 - busy)
    assert found.objective == pytest.approx(energy)
    assert dict(found.metrics) == pytest.approx(
        {
            "energy_j": energy,
            "makespan_s": 95.0,
            "edp_js": energy * 95,
            "active_j": 50_000.0,
            "idle_j": 50.0 * (380 - 240),
            "gpu_utilisation": 240 / 380,
            "mean_performance_loss": 1 / 3,
            "worst_performance_loss": 1.0,
            "mean_wait_s": (20 + 75) / 3,
            "jobs_run": 3,
        }
    )


def test_metrics_of_measured_runs_use_the_clock_and_name_both_times() -> None:
    two = problem(0, 1)
    seen = clocked(JobRun(0, 5, 95, (0,)), JobRun(1, 0, 30, (1, 2, 3, 0)))
    assert not two.serves_all(seen)  # bounds for the profiles say nothing about it
    found = two.evaluate(seen).metrics
    assert found["idle_j"] == pytest.approx(50 * (4 * 95 - 90 - 120))
    assert found["active_j"] == pytest.approx(300 * 90 + 600 * 30)
    assert found["makespan_s"] == 95
    assert found["gpu_utilisation"] == pytest.approx((90 + 120) / (4 * 95))
    assert found["profiled_s"] == pytest.approx(100 + 20)
    assert found["measured_s"] == pytest.approx(90 + 30)
    assert found["mean_performance_loss"] == pytest.approx((90 / 60 - 1 + 30 / 20 - 1) / 2)
    plain = two.evaluate(plan(JobRun(1, 7, 47, (1,)))).metrics
    assert "profiled_s" not in plain
    assert plain["mean_wait_s"] == 7


def test_nothing_run_costs_nothing_and_what_cannot_run_has_no_numbers() -> None:
    found = problem(0).evaluate(plan())
    assert found.objective == 0
    assert set(found.metrics.values()) == {0}
    with pytest.raises(ValueError, match="job 0 has no mode on 3 GPUs"):
        problem(0).evaluate(plan(JobRun(0, 0, 60, (0, 1, 2))))


def test_measured_runs_that_hold_more_than_there_is_draw_no_less_than_nothing_idle() -> None:
    """Two overlapping measured runs on all GPUs: 240 GPU-s held in 35 s of four GPUs."""
    found = problem(1, 1).evaluate(
        clocked(JobRun(0, 0, 30, (0, 1, 2, 3)), JobRun(1, 5, 35, (0, 1, 2, 3)), tolerance_s=25.0)
    )
    assert found.metrics["idle_j"] == 0


def test_no_run_starts_later_than_makes_sense() -> None:
    one = problem(0, releases=(50.0,))
    assert one.check(plan(JobRun(0, 1e12, 1e12 + 100, (0,)))) == []
    late = JobRun(0, 1e12 + 60, 1e12 + 160, (0,))
    assert names(one, late) == ["latest start_s"]
    assert names(one, JobRun(0, 1e19, 1e19 + 100, (0,)))


def test_short_measured_runs_do_not_hide_behind_the_tolerance() -> None:
    """Five runs of 10 s side by side on one GPU, with a tolerance of a minute."""
    five = problem(*[1] * 5, numa=4)
    runs = [JobRun(job, 0, 10, (0,)) for job in range(5)]
    found = five.check(clocked(*runs, tolerance_s=60.0))
    assert {v.constraint for v in found} == {"one job per GPU", "jobs at a time"}
    apart = [JobRun(job, 5.0 * job, 5.0 * job + 10, (0,)) for job in range(5)]
    assert five.check(clocked(*apart, tolerance_s=60.0)) == []
    early = problem(1, releases=(50.0,))
    assert early.check(clocked(JobRun(0, 0, 10, (0,)), tolerance_s=60.0))
