"""Node and pod lists: what each reader refuses, by file, row and column."""

from __future__ import annotations

from pathlib import Path

import pytest
from trust.samples import TABLES

from optgap.models.errors import InputError
from optgap.models.placement.openb import (
    read_devices,
    read_nodes,
    read_order,
    read_ranks,
    read_tasks,
)

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
    assert (devices.idle_w["G9"], devices.full_w["G9"]) == (10, 90)
    assert len(read_tasks(tmp_path / "tasks", cluster, devices)) == 3
