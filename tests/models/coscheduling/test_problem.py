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
    Mode,
    Run,
)
from optgap.models.coscheduling.presets import from_csv, synthetic
from optgap.models.csvout import csv_text
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields

BEST = (Run(1, 0, 100, (0, 1, 2, 3)), Run(0, 100, 280, (0, 1)), Run(2, 100, 250, (2,)))


def broken(*runs: Run) -> set[str]:
    problem = three_jobs()
    return {v.constraint for v in problem.check(CoschedulingSolution.of(runs))}


def test_a_job_that_does_not_run_breaks_nothing_but_is_seen() -> None:
    problem = three_jobs()
    part = CoschedulingSolution.of(BEST[1:])
    assert problem.check(part) == []
    assert not problem.serves_all(part)
    assert problem.restrict(part).jobs == (0, 2)


def test_a_schedule_survives_its_json_and_reads_as_csv() -> None:
    problem, solution = three_jobs(), CoschedulingSolution.of(BEST)
    document = json.loads(json.dumps(solution.to_json(problem)))
    assert CoschedulingSolution.from_json(Fields(document, "x"), problem) == solution
    assert set(document["schedule"][0]) == {
        "job",
        "app",
        "gpu_count",
        "start_s",
        "end_s",
        "gpu_index",
    }
    lines = csv_text(*solution.schedule(problem)).splitlines()
    assert lines[:2] == ["job,app,gpu_count,start_s,end_s,gpu_index", "1,Y,4,0,100,0-1-2-3"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"job": 9}, "a job below 3"),
        ({"job": 0}, "job 0 twice"),
        ({"app": "Z"}, "'Y' for job 1"),
        ({"gpu_count": 3}, "3 GPU indices"),
        ({"start_s": -1}, "start_s"),
    ],
)
def test_a_schedule_that_cannot_be_read_names_the_field(change: dict[str, Any], said: str) -> None:
    problem = three_jobs()
    document = CoschedulingSolution.of(BEST).to_json(problem)
    document["schedule"].reverse()
    document["schedule"][-1].update(change)
    with pytest.raises(InputError, match=said):
        CoschedulingSolution.from_json(Fields(document, "x"), problem)


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"numa": 0}, "field numa: found 0"),
        ({"gpus": 0}, "field gpus: found 0"),
        ({"idle_w": float("nan")}, "field idle_w: found nan"),
        ({"jobs": []}, "no jobs"),
        ({"jobs": [4]}, r"field jobs\[0\]: found 4"),
        ({"goal": "speed"}, "objective.goal"),
    ],
)
def test_a_node_that_cannot_be_is_refused(node: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CoschedulingProblem.of([Application("a", (Mode(1, 1.0, 1.0),))], **node)


@pytest.mark.parametrize(
    ("modes", "said"),
    [
        ((Mode(5, 1.0, 1.0),), "at least 5 GPUs needed"),
        ((), "no modes"),
        ((Mode(1, 0.0, 1.0),), "runtime_s: found 0.0"),
        ((Mode(1, 1.0, float("nan")),), "power: found nan"),
        ((Mode(1, 1.0, 1.0), Mode(1, 2.0, 1.0)), "gpu_count 1 twice"),
        ((Mode(1, 1.0, 1.0, -1.0),), "dram_util_sum"),
    ],
)
def test_an_application_that_cannot_run_is_refused(modes: tuple[Mode, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CoschedulingProblem.of([Application("a", modes)])


HEADER = "app,gpu_count,runtime_s,avg_power_per_gpu_w\n"


@pytest.mark.parametrize(
    ("profiles", "jobs", "said"),
    [
        ("app,gpu_count\n", None, "a column runtime_s"),
        (HEADER, None, "no rows"),
        (HEADER + "a,1,0,100\n", None, "row 2, column runtime_s: found 0"),
        (HEADER + "a,1,-3,100\n", None, "row 2, column runtime_s"),
        (HEADER + "a,1,10,nan\n", None, "row 2, column avg_power_per_gpu_w: found 'nan'"),
        (HEADER + "a,0,10,100\n", None, "row 2, column gpu_count"),
        (HEADER + "a,1,10,100\na,1,11,100\n", None, "row 3, column gpu_count: found 1 GPUs of a"),
        (HEADER + "a,8,10,100\n", None, "at least 8 GPUs needed"),
        (HEADER + "a,1,10,100\n", "app,count\nb,1\n", "row 2, column app: found 'b'"),
        (HEADER + "a,1,10,100\n", "app,count\na,-1\n", "row 2, column count"),
        (HEADER + "a,1,10,100\n", "app,count\na,0\n", "no jobs"),
    ],
)
def test_a_table_that_cannot_be_used_is_told_in_one_line(
    tmp_path: Path, profiles: str, jobs: str | None, said: str
) -> None:
    first, second = tmp_path / "profiles.csv", tmp_path / "jobs.csv"
    first.write_text(profiles)
    if jobs is not None:
        second.write_text(jobs)
    with pytest.raises(InputError, match=said) as caught:
        from_csv(first, second if jobs is not None else None, seed=0)
    assert "\n" not in str(caught.value)


def test_tables_make_a_queue_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(HEADER + "a,2,10,100\na,1,15,90\nb,4,7,80\nb,8,5,70\n")
    (tmp_path / "j.csv").write_text("app,count\nb,1\na,2\n")
    problem = from_csv(tmp_path / "p.csv", tmp_path / "j.csv", seed=0, numa=1, idle_w=43.0)
    assert problem.job_names == ("b", "a#1", "a#2")
    assert [mode.gpu_count for mode in problem.application(0).modes] == [4]
    assert [mode.gpu_count for mode in problem.application(1).modes] == [1, 2]
    assert (problem.numa, problem.idle_w) == (1, 43.0)


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
