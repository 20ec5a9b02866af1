from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from optgap.models.consolidation.csvin import from_csv
from optgap.models.errors import InputError


def fit(model: str, groups: dict[str, dict[str, float]], low: float, high: float) -> dict[str, Any]:
    return {
        "schema": "optgap.fit/1",
        "model": model,
        "groups": [
            {
                "group": group,
                "params": {name: {"value": value} for name, value in params.items()},
                "validity": {"frequency_mhz": [low, high]},
            }
            for group, params in groups.items()
        ],
    }


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.csv"
    path.write_text("task,memory_gb,app\na,4,bfs\nb,5,lstm\n")
    return path


def saved(path: Path, document: dict[str, Any]) -> str:
    path.write_text(json.dumps(document))
    return str(path)


def test_a_fit_of_the_gpu_becomes_its_power_and_exponent(tasks: Path, tmp_path: Path) -> None:
    power = saved(
        tmp_path / "p.json", fit("linear-power", {"": {"P_gs": 30, "alpha": 0.1}}, 1, 2000)
    )
    time = saved(tmp_path / "t.json", fit("power-law-jct", {"V100": {"beta": 0.5}}, 1, 2000))
    kind = from_csv(tasks, model=[power, time], seed=0).kinds[0]
    assert (kind.power.static_w, kind.power.slope_w_per_mhz, kind.beta) == (30, 0.1, 0.5)


def test_a_fit_by_application_becomes_the_tasks_own(tasks: Path, tmp_path: Path) -> None:
    groups = {"bfs": {"P_gs": 30.0, "alpha": 0.1}, "lstm": {"P_gs": 50.0, "alpha": 0.2}}
    power = saved(tmp_path / "p.json", fit("linear-power", groups, 1, 2000))
    problem = from_csv(tasks, model=power, seed=0)
    assert [task.power.static_w for task in problem.tasks if task.power] == [30, 50]


def test_the_clocks_of_a_fit_are_taken_over_unless_others_are_asked_for(
    tasks: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    document = fit("linear-power", {"": {"P_gs": 30, "alpha": 0.1}}, 1200, 1380)
    path = saved(tmp_path / "p.json", document)
    with caplog.at_level(logging.WARNING):
        kind = from_csv(tasks, model=path, seed=0).kinds[0]
    assert (kind.f_min_mhz, kind.f_max_mhz) == (1200, 1380)
    assert not caplog.text
    with caplog.at_level(logging.WARNING):
        from_csv(tasks, model=path, seed=0, f_max_mhz=1350.0)
    assert "fitted on 1200 to 1380 MHz, used from 1104.9 to 1350 MHz" in caplog.text
    assert len(caplog.text.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (fit("linear-power", {"A100": {"P_gs": 3, "alpha": 1}}, 1, 2), "a model of A100, expected"),
        (fit("linear-power", {"bfs": {"P_gs": 3, "alpha": 1}}, 1, 2), "one fitted on lstm"),
        (fit("contention", {"": {"q": 1}}, 1, 2), "no knee"),
        (fit("dram-runtime", {"": {"a": 1}}, 1, 2), "linear-power or power-law-power or"),
        (fit("linear-power", {"": {"P_gs": 3}}, 1, 2), "no alpha"),
        (fit("linear-power", {}, 1, 2), "found none"),
    ],
)
def test_a_model_of_something_else_is_refused(
    tasks: Path, tmp_path: Path, document: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        from_csv(tasks, model=saved(tmp_path / "p.json", document), seed=0)
