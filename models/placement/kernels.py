"""Compiled arithmetic of one node: fragmentation (FGD, section 4) and power (Eq. 2-3).

The floating-point operations and their order are those of `fragmentation.py` and `power.py`,
so that results agree to the last bit. Tables are structured arrays: few arguments make calls
between compiled functions cheap, and a node's fields lie beside one another in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from optgap.models.compiled import compiled
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.problem import PlacementProblem

BoolArray = npt.NDArray[np.bool_]
Table = npt.NDArray[np.void]
Row = Any
BucketValues = tuple[float, float, float, float, float, float, float]

WORKLOAD = np.dtype(
    [
        ("cpu_milli", "i8"),
        ("gpu_milli", "i8"),  # per GPU
        ("num_gpu", "i8"),
        ("popularity", "f8"),
        ("refused", "?"),
    ]
)
"""A class of the target workload M, and whether it refuses a certain GPU model."""

PROFILE = np.dtype([("fitting", "i8"), ("below", "i8")])
"""Per class of M: GPUs of a node that fit it, free milli-GPU of those that do not."""

NODE = np.dtype(
    [
        ("model", "i8"),  # index into `model_names`
        ("gpus", "i8"),
        ("cpu_milli", "i8"),
        ("memory_mib", "i8"),
        ("gpu_idle_w", "f8"),  # per GPU
        ("gpu_full_w", "f8"),
        ("cpu_cores", "i8"),  # per package
        ("cpu_idle_w", "f8"),
        ("cpu_full_w", "f8"),
        ("cpu_eq1", "?"),
    ]
)
"""Fields of a node that never change."""


def model_names(problem: PlacementProblem) -> tuple[str, ...]:
    """Return the distinct GPU models of the cluster, sorted."""
    return tuple(sorted(set(problem.cluster.models)))


def accepts(specs: tuple[str, ...], models: tuple[str, ...]) -> BoolArray:
    """Return (specs, models): whether a constraint admits a model."""
    rows = [[not spec or model in spec.split("|") for model in models] for spec in specs]
    return np.array(rows, dtype=np.bool_).reshape(len(specs), len(models))


def workload_table(problem: PlacementProblem) -> Table:
    """Return (models, M): the target workload as each GPU model sees it."""
    workload = problem.workload
    admitted = accepts(workload.gpu_specs, model_names(problem)).T
    table = np.zeros(admitted.shape, dtype=WORKLOAD)
    table["cpu_milli"] = workload.cpu_milli
    table["gpu_milli"] = workload.gpu_milli
    table["num_gpu"] = workload.num_gpu
    table["popularity"] = workload.popularity
    table["refused"] = ~admitted
    return table


def node_table(problem: PlacementProblem, order: IntArray) -> Table:
    """Return (N,): the nodes, in the given order."""
    cluster, power = problem.cluster, problem.power
    place = {model: k for k, model in enumerate(model_names(problem))}
    models = [cluster.models[int(n)] for n in order]
    table = np.zeros(len(models), dtype=NODE)
    table["model"] = [place[model] for model in models]
    table["gpus"] = cluster.gpus[order]
    table["cpu_milli"] = cluster.cpu_milli[order]
    table["memory_mib"] = cluster.memory_mib[order]
    table["gpu_idle_w"] = [power.gpu_idle_w.get(model, 0.0) for model in models]
    table["gpu_full_w"] = [power.gpu_full_w.get(model, 0.0) for model in models]
    table["cpu_cores"] = power.cpu.cores
    table["cpu_idle_w"] = power.cpu.idle_w
    table["cpu_full_w"] = power.cpu.full_w
    table["cpu_eq1"] = power.cpu_rule == "eq1"
    return table


def idle_gpus(gpus: IntArray) -> IntArray:
    """Return (N, most GPUs): free milli-GPU of idle nodes, -1 where a node has no such GPU."""
    index = np.arange(max(1, int(gpus.max())))
    return np.where(index[None, :] < gpus[:, None], 1000, -1).astype(np.int64)


@compiled
def gpu_profile(workload: Table, gpu_free: IntArray, gpus: int, profile: Table) -> int:
    """Fill the (M,) profile of a node's first `gpus` GPUs; returns their whole free milli-GPU."""
    free = 0
    for g in range(gpus):
        free += gpu_free[g]
    for m in range(len(workload)):
        wanted = workload[m]["gpu_milli"]
        fitting = 0
        below = 0
        for g in range(gpus):
            if gpu_free[g] >= wanted:
                fitting += 1
            else:
                below += gpu_free[g]
        profile[m]["fitting"] = fitting
        profile[m]["below"] = below
    return free


@compiled
def after_move(
    fitting: int, below: int, wanted: int, moved: int, old: int, new: int
) -> tuple[int, int]:
    """Return a class's profile after `moved` GPUs went from `old` to `new` free milli-GPU."""
    if moved > 0:
        if old >= wanted:
            fitting -= moved
        else:
            below -= moved * old
        if new >= wanted:
            fitting += moved
        else:
            below += moved * new
    return fitting, below


@compiled
def buckets(
    workload: Table, free_cpu: int, free: int, profile: Table, moved: int, old: int, new: int
) -> BucketValues:
    """Return the seven buckets of a node; `moved` GPUs go from `old` to `new` milli-GPU free.

    `free` and `profile` describe the GPUs before that move, `free_cpu` is what it leaves;
    `workload` is (M,), as the node's model sees it. Order: q1, q2, q3, q4, xl, xr, na, in
    popularity-weighted milli-GPU: one double accumulator each, classes in M's order.
    """
    q1 = q2 = q3 = q4 = xl = xr = na = 0.0
    free += moved * (new - old)
    for m in range(len(workload)):
        p = workload[m]["popularity"]
        wanted = workload[m]["gpu_milli"]
        cpu_ok = free_cpu >= workload[m]["cpu_milli"]
        if wanted == 0:
            if cpu_ok:
                xl += p * free
            else:
                xr += p * free
            continue
        if workload[m]["refused"]:
            na += p * free
            continue
        fitting, below = after_move(
            profile[m]["fitting"], profile[m]["below"], wanted, moved, old, new
        )
        if fitting >= workload[m]["num_gpu"]:
            if cpu_ok:
                q2 += p * below
                q3 += p * (free - below)
            else:
                q4 += p * free
        elif cpu_ok:
            q2 += p * free
        else:
            q1 += p * free
    return q1, q2, q3, q4, xl, xr, na


@compiled
def fragment(values: BucketValues) -> float:
    """F_n(M) in milli-GPU: every bucket but q3, added in the simulators' order."""
    q1, q2, _q3, q4, xl, xr, na = values
    return q1 + q2 + q4 + xl + xr + na


@compiled
def fragment_increase(
    workload: Table,
    cpu_before: int,
    cpu_after: int,
    free: int,
    profile: Table,
    moved: int,
    old: int,
    new: int,
) -> float:
    """F_n(M) after a move less F_n(M) before it, in milli-GPU; arguments as for `buckets`.

    Summed over classes from whole milli-GPU, so that no change is exactly 0 and equal changes
    are equal, which a difference of two sums does not guarantee.
    """
    increase = 0.0
    left = free + moved * (new - old)
    for m in range(len(workload)):
        wanted, fitting, below = workload[m], profile[m]["fitting"], profile[m]["below"]
        before, after = free, left  # what the class can use of it is taken off
        if wanted["gpu_milli"] > 0 and not wanted["refused"]:
            if fitting >= wanted["num_gpu"] and cpu_before >= wanted["cpu_milli"]:
                before = below
            fitting, below = after_move(fitting, below, wanted["gpu_milli"], moved, old, new)
            if fitting >= wanted["num_gpu"] and cpu_after >= wanted["cpu_milli"]:
                after = below
        increase += workload[m]["popularity"] * (after - before)
    return increase


@compiled
def cpu_w(node: Row, free_cpu: int) -> float:
    """P_CPU of a node, one row of `NODE`, in W: Eq. 1 under either rule."""
    if node["cpu_eq1"]:
        size = 2000 * node["cpu_cores"]
        busy = -((free_cpu - node["cpu_milli"]) // size)
        return node["cpu_full_w"] * busy + node["cpu_idle_w"] * (free_cpu // size)
    cores = -(-node["cpu_milli"] // 2000)
    packages = -(-cores // node["cpu_cores"])
    active = -((free_cpu // 2000 - cores) // node["cpu_cores"])
    return node["cpu_full_w"] * active + node["cpu_idle_w"] * (packages - active)


@compiled
def gpu_w(node: Row, busy: int) -> float:
    """P_GPU in W of a node with `busy` GPUs in use, Eq. 2."""
    return node["gpu_full_w"] * busy + node["gpu_idle_w"] * (node["gpus"] - busy)
