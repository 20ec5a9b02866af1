from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies_consolidation import micro

from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
    GpuKind,
    PowerLine,
    Server,
    Task,
)
from optgap.models.consolidation.csvin import from_csv
from optgap.models.consolidation.presets import PRESETS, mixed
from optgap.models.consolidation.problem import Rules
from optgap.models.csvout import csv_text
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields


def solution(*places: tuple[int, ...], mhz: float = 1350.0) -> ConsolidationSolution:
    used = sorted({g for gpus in places for g in gpus})
    return ConsolidationSolution.of(
        [Assignment(k, gpus) for k, gpus in enumerate(places)], [Clock(g, mhz) for g in used]
    )


def test_the_paper_constants_give_the_numbers_worked_out_by_hand() -> None:
    kind = GpuKind()
    assert kind.power.watts(1350) == pytest.approx(144.8)
    assert kind.floor_mhz(1.2) == pytest.approx(1104.896, abs=1e-3)
    assert kind.power.watts(kind.floor_mhz(1.2)) == pytest.approx(122.741, abs=1e-3)
    assert GpuKind(frequencies_mhz=(135.0, 1110.0, 1350.0)).floor_mhz(1.2) == 1110
    assert kind.floor_mhz(1.0) == 1350
    assert kind.floor_mhz(1e5) == 135


@pytest.mark.parametrize("wake_s", [-1.0, float("nan"), 1e7])
def test_a_latency_that_is_none_is_refused(wake_s: float) -> None:
    with pytest.raises(InputError, match="field wake_s"):
        micro(wake_s=wake_s)


def test_a_solution_survives_its_json_and_has_the_promised_keys() -> None:
    problem = micro()
    made = solution((0,), (0,), (1,))
    document = json.loads(json.dumps(made.to_json(problem)))
    assert document["assignments"][2] == {"task": "t3", "gpus": [[0, 1]]}
    assert document["frequencies_mhz"] == [[1350.0, 1350.0], [0.0, 0.0]]
    assert ConsolidationSolution.from_json(Fields(document, "x"), problem) == made
    assert csv_text(*made.placements(problem)).splitlines()[1] == "t1,0.0,0,0"
    part = solution((0,), (0,))
    assert not problem.serves_all(part)
    assert len(problem.restrict(part)) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"task": "t9"}, "a task of the problem"),
        ({"task": "t2"}, "t2 twice"),
        ({"gpus": [[0, 7]]}, r"field assignments\[0\].gpus\[0\]"),
        ({"gpus": [3]}, r"\[server, gpu\]"),
    ],
)
def test_a_solution_that_cannot_be_read_names_the_field(change: dict[str, Any], said: str) -> None:
    problem = micro()
    document = solution((0,), (0,), (1,)).to_json(problem)
    document["assignments"][0].update(change)
    with pytest.raises(InputError, match=said):
        ConsolidationSolution.from_json(Fields(document, "x"), problem)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (Task("a", 33.0), "memory_gb: found 33.0, expected at most 32"),
        (Task("a", 1.0, gpus=3), "gpus: found 3, expected at most 2"),
        (Task("a", 1.0, kappa=0.9), "kappa: found 0.9"),
        (Task("a", 1.0, util_percent=np.array([])), "no samples"),
        (Task("a", 1.0, util_percent=np.array([10.0, np.nan])), "nan"),
        (Task("a", 1.0, util_percent=np.array([10.0, 101.0])), "101 "),
        (Task("a", 1.0, duration_s=-1.0), "duration_s"),
        (Task("a", 1.0, power=PowerLine(0.0, 0.0)), "0 W at any clock"),
    ],
)
def test_a_task_that_cannot_be_is_refused(task: Task, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ConsolidationProblem.of([GpuKind()], [Server((0, 0))] * 2, [task])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (GpuKind(f_min_mhz=1400.0), "f_min"),
        (GpuKind(memory_gb=0.0), "memory_gb"),
        (GpuKind(power=PowerLine(-1.0, 0.1)), "static_w"),
        (GpuKind(frequencies_mhz=(300.0, 200.0)), "highest clock"),
    ],
)
def test_a_gpu_that_cannot_be_is_refused(kind: GpuKind, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ConsolidationProblem.of([kind], [Server((0,))], [Task("a", 0.1)])


TASKS = "task,memory_gb,gpus,kappa\na,4,1,1.2\nb,5,2,1.5\n"
SERIES = "task,t_s,util_percent\na,0,10\na,60,20\nb,0,30\nb,60,50\n"


@pytest.mark.parametrize(
    ("tasks", "series", "said"),
    [
        ("task\na\n", None, "a column memory_gb"),
        ("task,memory_gb\n", None, "no rows"),
        ("task,memory_gb\na,1\na,2\n", None, "a twice"),
        ("task,memory_gb,kappa\na,1,0.5\n", None, "row 2, column kappa"),
        ("task,memory_gb,util_percent\na,1,120\n", None, "row 2, column util_percent"),
        (TASKS, SERIES + "b,120,1\n", "task b: found 3 samples, expected 2"),
        (TASKS, SERIES.replace("20", "10"), "task a: found 10 throughout"),
        (TASKS, SERIES.replace("20", "nan"), "row 3, column util_percent"),
        (TASKS, SERIES.replace("20", "150"), "row 3, column util_percent"),
        (TASKS, "task,t_s,util_percent\n", "no rows"),
        (TASKS, "task,t_s,util_percent\na,0,1\na,1,2\n", "task b: found no samples"),
        (TASKS, SERIES + "c,0,1\n", "row 6, column task"),
        (TASKS, SERIES.replace("b,60", "b,61"), "61 s between samples"),
    ],
)
def test_a_table_that_cannot_be_used_is_told_in_one_line(
    tmp_path: Path, tasks: str, series: str | None, said: str
) -> None:
    (tmp_path / "tasks.csv").write_text(tasks)
    (tmp_path / "series.csv").write_text(series or "")
    with pytest.raises(InputError, match=said) as caught:
        from_csv(tmp_path / "tasks.csv", tmp_path / "series.csv" if series else None, seed=0)
    assert "\n" not in str(caught.value)


def test_tables_make_a_problem(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TASKS)
    (tmp_path / "s.csv").write_text(SERIES)
    problem = from_csv(
        tmp_path / "t.csv",
        tmp_path / "s.csv",
        seed=0,
        servers=2,
        capacity="slot",
        clock_step_mhz=15,
    )
    assert problem.rows.tolist() == [[10_000_000, 30_000_000], [20_000_000, 50_000_000]]
    assert len(problem.kinds[0].frequencies_mhz) == 82
    assert len(problem.places) == 16
    loose = SERIES + "b,120,1\n"
    (tmp_path / "s.csv").write_text(loose)
    assert (
        from_csv(tmp_path / "t.csv", tmp_path / "s.csv", seed=0, series_rule="loose").horizon == 3
    )
    with pytest.raises(InputError, match="expected its util_percent"):
        from_csv(tmp_path / "t.csv", seed=0, capacity="mean")


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_the_same_for_the_same_seed(name: str) -> None:
    entry = PRESETS[name]
    size = {"size": 20} if "size" in entry.params else {}
    first, again = (entry.load()(seed=5, **size) for _ in range(2))
    assert first.to_json() == again.to_json()
    assert "synthetic" in first.origin


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("mixed", {"samples": 0}, "samples: found 0, expected at least 1"),
        ("mixed", {"kappas": -1}, "kappas: found -1, expected at least 0"),
        ("pai", {"servers": -2}, "servers: found -2"),
        ("pai", {"present": 0.0}, "present: found 0.0"),
        ("pai", {"gpus_per_server": 0}, "gpus_per_server: found 0"),
        ("testbed", {"stage": 5}, "stage: found 5"),
    ],
)
def test_a_preset_names_the_parameter_that_is_out_of_range(
    name: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        PRESETS[name].load()(seed=0, **given)


def test_means_that_fill_a_gpu_exactly_fit() -> None:
    tasks = [Task(f"t{k}", 1.0, util_percent=np.full(7, 10.0)) for k in range(10)]
    problem = ConsolidationProblem.of([GpuKind()], [Server((0,))], tasks, rules=Rules("mean"))
    assert problem.check(solution(*[(0,)] * 10)) == []
    assert mixed(seed=0, size=4).rules.capacity == "mean"
