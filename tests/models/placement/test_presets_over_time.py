"""Presets and tables whose tasks leave."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from small_time import small_time
from trust.samples import TABLES

import optgap
from optgap.models.csvout import csv_text
from optgap.models.errors import InputError
from optgap.models.placement import PlacementProblem
from optgap.models.placement.alibaba import LIVES_S
from optgap.models.placement.openb import (
    read_devices,
    read_nodes,
    read_tasks,
)
from optgap.models.placement.presets import from_csv
from optgap.models.placement.presets_over_time import alibaba_time

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,8000,9000,2,T4\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text(NODES)
    return path


def tasks(folder: Path, header: str, *rows: str) -> Path:
    path = folder / "tasks.csv"
    lines = [f"{HEAD},{header}", *(f"t{k},1000,10,1,500,,{row}" for k, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_synthetic_lives_have_the_published_median_and_mean() -> None:
    made = alibaba_time(seed=1, size=20_000, nodes=1213)
    lives = made.tasks.duration_s
    assert "synthetic" in made.origin
    assert np.median(lives) == pytest.approx(540, rel=0.05)
    assert 15_000 < lives.mean() < 45_000
    assert lives.max() > 30 * 86_400
    for share, quantile in LIVES_S[1:-2]:
        assert np.quantile(lives, share) == pytest.approx(quantile, rel=0.5)


def test_synthetic_times_are_those_of_the_seed_and_the_days() -> None:
    one, other = (alibaba_time(seed=3, size=500, days=2.0) for _ in range(2))
    assert np.array_equal(one.tasks.submit_s, other.tasks.submit_s)
    assert one.over_time.horizon_s == 2 * 86_400
    assert (np.diff(one.tasks.submit_s) >= 0).all()
    assert one.never_fits == ()
    wide = alibaba_time(seed=3, size=500, days=2.0, nodes=1213)
    assert len(wide.cluster) == 1213 > len(one.cluster)


@pytest.mark.parametrize("settings", [{"nodes": -1}, {"load": 0.0}, {"days": -1.0}])
def test_settings_out_of_range_are_named(settings: dict[str, float]) -> None:
    with pytest.raises(InputError) as refused:
        alibaba_time(seed=0, **settings)  # type: ignore[arg-type]
    assert refused.value.where == next(iter(settings))


# -- tables ------------------------------------------------------------------------------


def problem(nodes: Path, path: Path, **settings: object) -> PlacementProblem:
    return from_csv(nodes, path, seed=0, **settings)  # type: ignore[arg-type]


def test_our_columns_make_a_problem_over_time(nodes: Path, tmp_path: Path) -> None:
    made = problem(nodes, tasks(tmp_path, "submit_s,duration_s", "5,10", "2,1.5", "9,"))
    assert made.tasks.names == ("t1", "t0", "t2")
    assert made.tasks.duration_s.tolist() == [1.5, 10.0, np.inf]
    assert made.objective.goal == "energy"
    assert made.over_time.horizon_s == 13.0


def test_the_traces_columns_count_where_tasks_are_to_leave(nodes: Path, tmp_path: Path) -> None:
    path = tasks(tmp_path, "creation_time,deletion_time", "5,10", "7,7", "6,9")
    still = problem(nodes, path, load=0.5)
    assert still.over_time is None
    made = problem(nodes, path, queue="reject", goal="weighted")
    assert made.tasks.names == ("t0", "t2")
    assert made.lasting_s.tolist() == [5.0, 3.0]
    assert made.objective.goal == "mean_weighted"
    cut = problem(nodes, path, queue="reject", horizon_s=1.0)
    assert cut.lasting_s.tolist() == [1.0]
    with pytest.raises(InputError, match="queue: found 'fifo', expected reject: tasks no longer"):
        problem(nodes, path, queue="fifo")
    several = tasks(tmp_path, "nodes", "2", "1", "1")
    with pytest.raises(InputError, match="row 2, column nodes: found 2, expected 1: a placement"):
        problem(nodes, several)


def test_dates_are_times(nodes: Path, tmp_path: Path) -> None:
    rows = (
        "2026-03-01T12:00:00Z,2026-03-01T13:00:00Z",
        "2026-03-01T12:30:00Z,2026-03-02T12:30:00Z",
    )
    made = problem(nodes, tasks(tmp_path, "creation_time,deletion_time", *rows), queue="reject")
    assert made.lasting_s.tolist() == [3600.0, 86_400.0]


@pytest.mark.parametrize(
    ("header", "row", "where"),
    [
        ("creation_time,deletion_time", "9,3", "row 2, column deletion_time"),
        ("submit_s,duration_s", "9,-3", "row 2, column duration_s"),
        ("submit_s,duration_s", "9,0", "row 2, column duration_s"),
        ("submitted,took", "9,3", "header"),
    ],
)
def test_times_that_cannot_be_are_named(
    header: str, row: str, where: str, nodes: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        problem(nodes, tasks(tmp_path, header, row), queue="reject")
    assert refused.value.where == where


def test_an_order_and_times_do_not_go_together(nodes: Path, tmp_path: Path) -> None:
    path = tasks(tmp_path, "submit_s,duration_s", "5,10")
    order = tmp_path / "order.csv"
    shutil.copy(path, order)
    with pytest.raises(InputError, match="an order beside times"):
        problem(nodes, path, order=order)


# -- what comes out ----------------------------------------------------------------------


def test_tables_have_the_times() -> None:
    made = small_time(seed=0)
    found = optgap.run(made, "fgd").solution
    lines = csv_text(*found.placements(made)).splitlines()
    assert lines[0] == "seq,node,gpu_index,start_s,end_s"
    start, end = map(float, lines[1].split(",")[3:])
    assert (start, end - start) == (0.0, made.lasting_s[0])
    steps = csv_text(*found.series(made)).splitlines()
    assert steps[0].startswith("time_s,used_gpu_milli")
    assert [float(cell) for cell in steps[-1].split(",")[1:2]] == [0.0]


def test_a_result_draws_power_and_the_gpus_that_are_asked_for() -> None:
    power, gpus = optgap.run(small_time(seed=0), "pwr").plot().axes
    assert power.get_ylabel().startswith("power (")
    assert gpus.get_ylabel().startswith("GPUs asked for")


def test_a_model_with_power_figures_of_its_own_may_stand_in_both_lists(tmp_path: Path) -> None:
    for name, text in (
        ("devices", "model,idle_w,full_w\nG9,10,90\n"),
        ("nodes", TABLES["placement"][0]["nodes"].replace("G2", "G9")),
        ("tasks", TABLES["placement"][0]["tasks"].replace("G2", "G9|P100")),
    ):
        (tmp_path / name).write_text(text)
    devices = read_devices(tmp_path / "devices")
    cluster = read_nodes(tmp_path / "nodes", devices)
    assert (devices.gpu_idle_w["G9"], devices.gpu_full_w["G9"]) == (10, 90)
    assert len(read_tasks(tmp_path / "tasks", cluster, devices)) == 3
