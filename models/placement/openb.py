"""Readers for the Alibaba 2023 CSV files (``openb_*``) and for orders, ranks and device tables."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from optgap.models.errors import InputError, NoQuote
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.cluster import MAX_CPU_MILLI, MAX_GPUS_PER_NODE, Cluster
from optgap.models.placement.power import PowerModel
from optgap.models.placement.tasks import ONE_NODE, Tasks, gpu_request_error
from optgap.models.quantities import warn
from optgap.models.shown import counted
from optgap.models.tables import Column, read_header, read_table
from optgap.models.times import SHORTEST_S, shown

Path = str | os.PathLike[str]
Table = dict[str, list[Any]]
PUBLISHED = PowerModel()
"""Power figures of the GPU models that a file may name without a table of its own."""

NODE_COLUMNS = (
    Column("sn"),
    Column("cpu_milli", "integer", quantity="node_cpu_milli"),
    Column("memory_mib", "integer", quantity="node_memory_mib"),
    Column("gpu", "integer"),
    Column("model", empty=""),
)
TASK_COLUMNS = (
    Column("name"),
    Column("cpu_milli", "integer"),
    Column("memory_mib", "integer"),
    Column("num_gpu", "integer"),
    Column("gpu_milli", "integer"),
    # the multi-GPU files end after gpu_milli
    Column("gpu_spec", required=False, empty=""),
    Column("nodes", "integer", 1, required=False, empty=1),
)


TIMES = {
    "submit_s": ("submit_s", "duration_s"),
    "creation_time": ("creation_time", "deletion_time"),
}
"""Columns that say when a task comes, and how long it stays or when it is gone."""


def read_devices(path: Path, strict: bool = False, power: PowerModel = PUBLISHED) -> PowerModel:
    """Read ``model,idle_w,full_w`` (W), on top of the GPU models of `power`.

    Raises
    ------
    InputError: naming the row of a repeated model, or one that draws less when busy.
    """
    columns = (Column("model"), Column("idle_w", "number"), Column("full_w", "number"))
    table = read_table(path, columns, strict=strict)
    _no_duplicates(table, "model", str(path))
    idle_w, full_w = dict(power.gpu_idle_w), dict(power.gpu_full_w)
    rows = zip(table["model"], table["idle_w"], table["full_w"], table["#"], strict=True)
    for model, idle, full, row in rows:
        if full < idle:
            raise InputError(
                str(path), f"row {row}, column full_w", full, f"at least idle_w, {idle:g}"
            )
        idle_w[model], full_w[model] = idle, full
    return replace(power, gpu_idle_w=idle_w, gpu_full_w=full_w)


def read_nodes(path: Path, power: PowerModel = PUBLISHED, strict: bool = False) -> Cluster:
    """Read a node list: ``sn,cpu_milli,memory_mib,gpu,model``.

    Raises
    ------
    InputError: naming row and column of what is missing, malformed or repeated, of a GPU
        model without power figures, and of a node with more GPUs than can be represented.
    """
    source = str(path)
    table = read_table(path, NODE_COLUMNS, strict=strict)
    _not_empty(table, source, "node")
    _no_duplicates(table, "sn", source)
    known = power.gpu_full_w
    columns = (table["cpu_milli"], table["gpu"], table["model"], table["#"])
    for cpu_milli, gpus, model, row in zip(*columns, strict=True):
        if cpu_milli > MAX_CPU_MILLI:
            expected = f"at most {MAX_CPU_MILLI} milli-vCPU"
            raise InputError(source, f"row {row}, column cpu_milli", cpu_milli, expected)
        if gpus > MAX_GPUS_PER_NODE:
            raise InputError(
                source, f"row {row}, column gpu", gpus, f"at most {MAX_GPUS_PER_NODE} GPUs"
            )
        if gpus and model not in known:
            models = ", ".join(sorted(known))
            expected = f"a GPU model with power figures: {models}, or those of a table `devices`"
            raise InputError(source, f"row {row}, column model", model, expected)
    return Cluster.of(
        table["sn"], table["cpu_milli"], table["memory_mib"], table["gpu"], table["model"], source
    )


def has_times(path: Path) -> bool:
    """Tell whether a pod list says when tasks come and how long they stay in our own columns.

    Raises
    ------
    InputError: for a list that says the first alone.
    """
    header = read_header(path)
    came, gone = TIMES["submit_s"]
    if came in header and gone not in header:
        expected = f"{gone} beside it (empty: never leaves), or neither where tasks do not leave"
        raise InputError(str(path), "row 1", NoQuote(f"{came} alone"), expected)
    return came in header


def read_tasks(
    path: Path, cluster: Cluster, power: PowerModel = PUBLISHED, times: bool = False
) -> Tasks:
    """Read a pod list: ``name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,…]``.

    `gpu_milli` is per GPU. Phases and quality classes are passed over: the simulators do not use
    them either; and so are times, unless asked for: ``submit_s`` and ``duration_s``, or
    ``creation_time`` and ``deletion_time`` (s, or dates). An empty duration or deletion is a task
    that never leaves; one that is deleted when it is created is left out, and a line says so.

    Raises
    ------
    InputError: naming row and column of what is missing, malformed or repeated, of a GPU
        request that is neither a share of one GPU nor whole GPUs, of an unknown model in
        `gpu_spec`, and of a task that asks for more of something than any node has.
    """
    source = str(path)
    table = read_table(path, (*TASK_COLUMNS, *(_time_columns(path) if times else ())))
    _not_empty(table, source, "task")
    _no_duplicates(table, "name", source)
    known = set(power.gpu_full_w) | set(cluster.models)
    largest = {
        "cpu_milli": int(cluster.cpu_milli.max()),
        "memory_mib": int(cluster.memory_mib.max()),
        "num_gpu": int(cluster.gpus.max()),
    }
    for k, row in enumerate(table["#"]):
        expected = gpu_request_error(table["num_gpu"][k], table["gpu_milli"][k])
        if expected:
            where = f"row {row}, column gpu_milli"
            raise InputError(source, where, table["gpu_milli"][k], expected)
        for model in filter(None, table["gpu_spec"][k].split("|")):
            if model not in known:
                where = f"row {row}, column gpu_spec"
                expected = "GPU models among " + ", ".join(sorted(known - {""}))
                raise InputError(source, where, table["gpu_spec"][k], expected)
        for name, most in largest.items():
            if table[name][k] > most:
                where = f"row {row}, column {name}"
                expected = f"at most {most}, the most that any node has"
                raise InputError(source, where, table[name][k], expected)
    made = Tasks.of(
        table["name"],
        table["cpu_milli"],
        table["memory_mib"],
        table["num_gpu"],
        table["gpu_milli"],
        table["gpu_spec"],
        source,
    )
    if max(table["nodes"]) > 1:
        k = table["nodes"].index(max(table["nodes"]))
        raise InputError(source, f"row {table['#'][k]}, column nodes", table["nodes"][k], ONE_NODE)
    return _with_times(made, table, source) if times else made


def _time_columns(path: Path) -> tuple[Column, Column]:
    header = set(read_header(path))
    for came, gone in TIMES.values():
        if {came, gone} <= header:
            kind: Literal["number", "time"] = "number" if gone == "duration_s" else "time"
            ended = Column(gone, kind, SHORTEST_S if kind == "number" else 0, empty=math.inf)
            return Column(came, "time"), ended
    found = NoQuote("no times")
    expected = " or ".join(f"columns {came} and {gone}" for came, gone in TIMES.values())
    raise InputError(str(path), "header", found, expected)


def _with_times(tasks: Tasks, table: Table, source: str) -> Tasks:
    """Return the tasks with their times; those without a life left out."""
    came, gone = next(pair for pair in TIMES.values() if pair[1] in table)
    submit, second = np.array(table[came]), np.array(table[gone])
    duration = second if gone == "duration_s" else second - submit
    early = np.flatnonzero(duration < 0)
    if early.size:
        k = int(early[0])
        where = f"row {table['#'][k]}, column {gone}"
        raise InputError(source, where, shown(second[k]), f"at least {came}, {shown(submit[k])}")
    lives = np.flatnonzero(duration >= SHORTEST_S)
    if len(lives) < len(tasks):
        left = counted(len(tasks) - len(lives), "task that ended when it came left out")
        warn(f"{source}: {left}")
    if not lives.size:
        raise InputError(source, "", NoQuote("no task that lasts"), "at least one")
    made = tasks.take(lives.tolist())
    return replace(made, submit_s=submit[lives], duration_s=duration[lives])


def read_order(path: Path, tasks: Tasks) -> IntArray:
    """Read an order of arrivals, ``seq,task``: indices into `tasks`, by ascending `seq`.

    A task may arrive several times.

    Raises
    ------
    InputError: naming the row of a task that is not in the trace, or of a `seq` that is not
        the next of 0, 1, 2, ….
    """
    source = str(path)
    table = read_table(path, (Column("seq", "integer"), Column("task")))
    _not_empty(table, source, "arrival")
    place = {name: k for k, name in enumerate(tasks.names)}
    order: list[int] = []
    for seq, name, row in zip(table["seq"], table["task"], table["#"], strict=True):
        if seq != len(order):
            raise InputError(source, f"row {row}, column seq", seq, f"{len(order)}, the next")
        if name not in place:
            raise InputError(source, f"row {row}, column task", name, "a task of the trace")
        order.append(place[name])
    return np.array(order, dtype=np.int64)


def read_ranks(path: Path, cluster: Cluster) -> IntArray:
    """Read tie-breaking ranks, ``rank,node``: (N,) the rank of each node.

    Raises
    ------
    InputError: naming the row of an unknown or repeated node or rank; when a node has none.
    """
    source = str(path)
    table = read_table(path, (Column("rank", "integer"), Column("node")))
    _no_duplicates(table, "rank", source)
    _no_duplicates(table, "node", source)
    ranks = np.full(len(cluster), -1, dtype=np.int64)
    for rank, name, row in zip(table["rank"], table["node"], table["#"], strict=True):
        if name not in cluster.index:
            raise InputError(source, f"row {row}, column node", name, "a node of the cluster")
        if rank >= len(cluster):
            raise InputError(
                source, f"row {row}, column rank", rank, f"a rank below {len(cluster)}"
            )
        ranks[cluster.index[name]] = rank
    missing = np.flatnonzero(ranks < 0)
    if missing.size:
        name = cluster.names[int(missing[0])]
        raise InputError(source, "", NoQuote(f"no rank for node {name}"), "one for every node")
    return ranks


def _not_empty(table: Table, source: str, what: str) -> None:
    if not table["#"]:
        raise InputError(
            source, "", NoQuote(f"no {what}s below the header"), f"at least one {what}"
        )


def _no_duplicates(table: Table, column: str, source: str) -> None:
    first: dict[Any, int] = {}
    for value, row in zip(table[column], table["#"], strict=True):
        if value in first:
            raise InputError(
                source,
                f"row {row}, column {column}",
                value,
                f"every {column} once (it stands in row {first[value]} too)",
            )
        first[value] = row
