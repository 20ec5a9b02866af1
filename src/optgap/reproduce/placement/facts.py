"""Tables I and II and Section V-A: what cluster and traces are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from optgap.models.placement import Cluster, Tasks, making
from optgap.models.placement.alibaba import NODE_TYPES
from optgap.models.placement.openb import read_nodes, read_tasks
from optgap.models.placement.power import GPU_FULL_W, GPU_IDLE_W, PowerModel
from optgap.reproduce.placement import ALL_NODES, COUNTS, NODES, pods
from optgap.reproduce.placement.claims import statement, told
from optgap.reproduce.placement.savings import FILES
from optgap.reproduce.report import Item, Report, Row, Study, holds

TABLE_1 = {
    "no GPU": (13.3, 0.0),
    "a share of a GPU": (37.8, 28.5),
    "1 GPU": (48.0, 64.2),
    "2 GPUs": (0.2, 0.5),
    "4 GPUs": (0.2, 1.0),
    "8 GPUs": (0.5, 5.8),
}
"""(share of the tasks, share of the GPU demand) in percent, as printed."""

TABLE_2 = {
    "V100M16": (195, 30, 300),
    "V100M32": (204, 30, 300),
    "P100": (265, 25, 250),
    "T4": (842, 10, 70),
    "A10": (2, 30, 150),
    "G2": (4392, 30, 150),
    "G3": (312, 50, 400),
}
"""(GPUs, idle W, TDP W), as printed."""


def _cluster(item: Item, study: Study) -> tuple[Cluster, Path | None]:
    if study.data is None or item.missing(study.data):
        return making.cluster_of(NODE_TYPES), None
    return read_nodes(study.data / NODES), study.data


def kinds(tasks: Tasks) -> dict[str, tuple[int, int]]:
    """(tasks, milli-GPU asked for) by the rows of Table I."""
    demand = np.asarray(tasks.demand_milli)
    chosen = {
        "no GPU": tasks.num_gpu == 0,
        "a share of a GPU": (tasks.num_gpu == 1) & (tasks.gpu_milli < 1000),
        "1 GPU": (tasks.num_gpu == 1) & (tasks.gpu_milli == 1000),
        **{f"{k} GPUs": tasks.num_gpu == k for k in (2, 4, 8)},
    }
    return {name: (int(rows.sum()), int(demand[rows].sum())) for name, rows in chosen.items()}


def table1(item: Item, study: Study) -> Report:
    """The Default trace by GPU request."""
    cluster, data = _cluster(item, study)
    tasks = (
        making.trace_of_classes() if data is None else read_tasks(data / pods("default"), cluster)
    )
    total, demand = len(tasks), int(tasks.demand_milli.sum())
    rows = [statement("tasks", "8,152", f"{total:,}", total == 8152)]
    for name, (count, milli) in kinds(tasks).items():
        share, part = 100 * count / total, 100 * milli / demand
        printed = TABLE_1[name]
        off = max(abs(share - printed[0]), abs(part - printed[1]))
        rows.append(
            statement(
                f"{name}: of the tasks, of the GPU demand",
                f"{printed[0]} %, {printed[1]:g} %",
                f"{share:.2f} %, {part:.2f} %",
                holds(off <= 0.05, off <= 0.1),
            )
        )
    return Report(item, COUNTS if data is None else Path(pods("default")).name, told(rows, study))


def table2(item: Item, study: Study) -> Report:
    """The cluster and its devices."""
    cluster, data = _cluster(item, study)
    models = np.array(cluster.models)
    cpu, gpus = int(cluster.cpu_milli.sum()), int(cluster.gpus.sum())
    rows = [
        _nodes_row(cluster, data),
        statement("vCPUs", "107,018", f"{cpu / 1000:,.0f}", cpu == 107_018_000),
        statement("GPUs", "6,212", f"{gpus:,}", gpus == 6212),
    ]
    for name, printed in TABLE_2.items():
        found = (int(cluster.gpus[models == name].sum()), GPU_IDLE_W[name], GPU_FULL_W[name])
        rows.append(
            statement(
                f"{name}: GPUs, idle power, TDP",
                f"{printed[0]:,}, {printed[1]} W, {printed[2]} W",
                f"{found[0]:,}, {found[1]:g} W, {found[2]:g} W",
                found == printed,
                note="power figures are input, not results" if name == "V100M16" else "",
            )
        )
    for name, printed_cpu, printed_mib in (("G2", 96, 393_216), ("G3", 128, 786_432)):
        shapes = {
            (int(cluster.cpu_milli[n]) // 1000, int(cluster.memory_mib[n]))
            for n in np.flatnonzero(models == name)
        }
        words = "; ".join(f"{vcpu} vCPUs, {mib:,} MiB" for vcpu, mib in sorted(shapes))
        rows.append(
            statement(
                f"nodes with {name}",
                f"{printed_cpu} vCPUs, {printed_mib:,} MiB",
                words,
                shapes == {(printed_cpu, printed_mib)},
            )
        )
    package = PowerModel().cpu
    rows.append(
        statement(
            "CPU package: cores, idle power, TDP",
            "16, 15 W, 120 W",
            f"{package.cores}, {package.idle_w:g} W, {package.full_w:g} W",
            (package.cores, package.idle_w, package.full_w) == (16, 15, 120),
            note="taken for packages, as the published simulator does; the paper says cores",
        )
    )
    source = COUNTS if data is None else Path(NODES).name
    return Report(item, source, told(rows, study))


def _nodes_row(cluster: Cluster, data: Path | None) -> Row:
    without = int((cluster.gpus == 0).sum())
    ours = f"{len(cluster):,}, {without} without GPU"
    if data is not None and (data / ALL_NODES).is_file():
        everything = read_nodes(data / ALL_NODES)
        bare = int((everything.gpus == 0).sum())
        ours += f" (whole trace: {len(everything):,}, {bare} without)"
    return statement(
        "nodes",
        "1,213, 310 without GPU",
        ours,
        without == 310,
        why="the 1,213 nodes simulated all have GPUs; the trace's 310 others are extra and unused",
    )


MULTI = {"multigpu20": 20, "multigpu50": 50}
SHARE = {"gpushare40": 40, "gpushare100": 100}
SPEC = {"gpuspec10": 10, "gpuspec33": 33}


def _multi_rows(base: dict[str, tuple[int, int]], read: dict[str, Tasks]) -> list[Row]:
    """The multi-GPU traces beside Default."""
    rows = []
    for name, percent in MULTI.items():
        own = kinds(read[name])
        demand = sum(milli for _, milli in own.values())
        several = 100 * sum(own[f"{k} GPUs"][1] for k in (2, 4, 8)) / demand
        before = sum(base[key][1] for key in base if key not in ("no GPU", "a share of a GPU"))
        after = sum(own[key][1] for key in own if key not in ("no GPU", "a share of a GPU"))
        grown = 100 * (after / before - 1)
        rows.append(
            statement(
                f"{name}: GPU demand of tasks with 1 or more whole GPUs",
                f"{percent} % more than Default",
                f"{grown:.1f} % more",
                abs(grown - percent) < 1,
                why=f"the number is another one: tasks with 2, 4 or 8 GPUs ask for {several:.1f} % "
                "of all GPUs",
            )
        )
        kept = all(own[key] == base[key] for key in ("no GPU", "a share of a GPU"))
        rows.append(
            statement(
                f"{name}: CPU-only and sharing tasks",
                "unchanged",
                f"{own['no GPU'][0]:,}, {own['a share of a GPU'][0]:,} as in Default"
                if kept
                else f"{own['no GPU'][0]:,}, {own['a share of a GPU'][0]:,}",
                kept,
            )
        )
    return rows


def traces(item: Item, study: Study) -> Report:
    """How far the other traces are what Section V-A says."""
    data = study.data
    assert data is not None  # Item.run has made sure of the files
    cluster = read_nodes(data / NODES)
    read = {
        name: read_tasks(data / pods(name), cluster) for name in ("default", *MULTI, *SHARE, *SPEC)
    }
    base = kinds(read["default"])
    rows = _multi_rows(base, read)
    for name, percent in SHARE.items():
        own = kinds(read[name])
        part = 100 * own["a share of a GPU"][1] / sum(milli for _, milli in own.values())
        rows.append(
            statement(
                f"{name}: share of the GPU demand by sharing tasks",
                f"{percent} %",
                f"{part:.1f} %",
                abs(part - percent) < 0.5,
            )
        )
    for name, percent in SPEC.items():
        tasks = read[name]
        gpu = tasks.num_gpu > 0
        named = int(sum(1 for spec, has in zip(tasks.gpu_specs, gpu, strict=True) if spec and has))
        part = 100 * named / int(gpu.sum())
        rows.append(
            statement(
                f"{name}: GPU tasks that name GPU models",
                f"{percent} %",
                f"{part:.1f} %",
                abs(part - percent) < 1,
            )
        )
    return Report(item, FILES, told(rows, study))
