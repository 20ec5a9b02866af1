from __future__ import annotations

from pathlib import Path

import pytest
from strategies_coscheduling import three_jobs

from optgap.models.coscheduling import CoschedulingProblem, CoschedulingSolution, Run
from optgap.models.coscheduling.measured import read_schedule
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields

HEADER = "app,gpu_count,start_s,end_s\n"


def log(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(text)
    return path


def test_measured_runs_last_as_long_as_they_were_seen_to(tmp_path: Path) -> None:
    problem = three_jobs()
    rows = "Y,4,0,110\nX,2,110,300\nZ,1,110.02,262\n"
    found = read_schedule(log(tmp_path, HEADER + rows), problem)
    assert problem.check(found) == []
    metrics = problem.evaluate(found).metrics
    assert metrics["makespan_s"] == 300
    assert metrics["active_j"] == pytest.approx(1280 * 110 + 620 * 190 + 300 * 151.98)
    assert metrics["idle_j"] == pytest.approx(70 * (4 * 300 - 440 - 380 - 151.98))
    assert metrics["profiled_s"] == pytest.approx(100 + 180 + 150)
    assert metrics["measured_s"] == pytest.approx(110 + 190 + 151.98)
    assert not problem.serves_all(found)  # bounds for the profiles say nothing about it


def test_a_measured_schedule_survives_its_json() -> None:
    problem = three_jobs()
    seen = CoschedulingSolution.of([Run(0, 0, 181, (0, 1))], measured=True, tolerance_s=0.5)
    again = CoschedulingSolution.from_json(Fields(seen.to_json(problem), "x"), problem)
    assert again == seen


def test_a_bound_for_what_was_measured_is_for_the_measured_run_times() -> None:
    problem = three_jobs()
    seen = CoschedulingSolution.of([Run(0, 0, 200, (0, 1)), Run(2, 0, 100, (2,))], measured=True)
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
    path = log(tmp_path, head + rows)
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
        read_schedule(log(tmp_path, HEADER + rows), three_jobs())
    assert "\n" not in str(caught.value)


def test_the_authors_plan_is_worth_what_their_solver_said(data_dir: Path) -> None:
    from reproduction.ecosched import H100, LOG, queue

    problem = queue(H100, data_dir)
    plan = read_schedule(data_dir / LOG, problem, where="H100/main/oracle_model")
    assert problem.check(plan) == []
    assert problem.evaluate(plan).objective == pytest.approx(481_710.45, abs=0.01)
