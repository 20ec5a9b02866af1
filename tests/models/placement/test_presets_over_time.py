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
    read_order,
    read_ranks,
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


# -- node and pod lists: what each reader refuses, by file, row and column -----------------


GOOD = TABLES["placement"][0]
NODES, TASKS = GOOD["nodes"], GOOD["tasks"]
REFUSED = [
    ("nodes", NODES.splitlines()[0], "found no nodes below the header, expected at least one"),
    ("nodes", NODES.replace("n1", "n0"), "row 3, column sn: found 'n0', .* in row 2 too"),
    (
        "nodes",
        NODES.replace("8000", "100000001"),
        "row 3, column cpu_milli: found 100000001, .*at m",
    ),
    ("nodes", NODES.replace(",2,G2", ",63,G2"), "row 2, column gpu: found 63, expected at most 62"),
    ("nodes", NODES.replace("G2", "G9"), "row 2, column model: found 'G9', .* figures: .*G2"),
    ("tasks", TASKS.splitlines()[0], "found no tasks below the header"),
    ("tasks", TASKS.replace("p2", "p1"), "row 4, column name: found 'p1', expected every name"),
    ("tasks", TASKS.replace("1,500", "1,1001"), "row 2, column gpu_milli: found 1001"),
    ("tasks", TASKS.replace("2,1000", "2,900"), "row 3, column gpu_milli: found 900"),
    (
        "tasks",
        TASKS.replace("G2", "G2|G9"),
        r"row 3, column gpu_spec: found 'G2\|G9', .*among .*G2",
    ),
    ("tasks", TASKS.replace("2000", "16001"), "row 3, column cpu_milli: found 16001, .*most 16000"),
    ("tasks", TASKS.replace(",20,", ",4097,"), "row 3, column memory_mib: found 4097"),
    ("tasks", TASKS.replace("2,1000", "3,1000"), "row 3, column num_gpu: found 3, .* at most 2"),
    ("order", "seq,task\n", "found no arrivals below the header"),
    ("order", "seq,task\n0,p1\n2,p0\n", "row 3, column seq: found 2, expected 1, the next"),
    ("order", "seq,task\n0,p9\n", "row 2, column task: found 'p9', expected a task of the trace"),
    ("ranks", "rank,node\n0,n1\n0,n0\n", "row 3, column rank: found 0, expected every rank once"),
    ("ranks", "rank,node\n0,n1\n1,n1\n", "row 3, column node: found 'n1', expected every node"),
    ("ranks", "rank,node\n0,n9\n", "row 2, column node: found 'n9', expected a node of"),
    ("ranks", "rank,node\n2,n0\n", "row 2, column rank: found 2, expected a rank below 2"),
    ("ranks", "rank,node\n0,n1\n", "found no rank for node n0, expected one for every node"),
    ("devices", "model,idle_w,full_w\nG2,30,29\n", "row 2, column full_w: found 29.*idle_w, 30"),
    ("devices", "model,idle_w,full_w\nX,1,2\nX,1,2\n", "row 3, column model: found 'X'"),
]


def read_all(paths: dict[str, Path]) -> None:
    cluster = read_nodes(paths["nodes"])
    read_order(paths["order"], read_tasks(paths["tasks"], cluster))
    read_ranks(paths["ranks"], cluster)
    read_devices(paths["devices"])


@pytest.mark.parametrize(("kind", "text", "said"), REFUSED)
def test_what_cannot_be_is_named(kind: str, text: str, said: str, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.csv" for name in GOOD}
    for name, path in paths.items():
        path.write_text(text if name == kind else GOOD[name])
    with pytest.raises(InputError, match=said) as caught:
        read_all(paths)
    assert str(caught.value).startswith(str(paths[kind]))


def test_a_model_with_power_figures_of_its_own_may_stand_in_both_lists(tmp_path: Path) -> None:
    for name, text in (
        ("devices", "model,idle_w,full_w\nG9,10,90\n"),
        ("nodes", NODES.replace("G2", "G9")),
        ("tasks", TASKS.replace("G2", "G9|P100")),
    ):
        (tmp_path / name).write_text(text)
    devices = read_devices(tmp_path / "devices")
    cluster = read_nodes(tmp_path / "nodes", devices)
    assert (devices.gpu_idle_w["G9"], devices.gpu_full_w["G9"]) == (10, 90)
    assert len(read_tasks(tmp_path / "tasks", cluster, devices)) == 3
