"""Value of a node's free capacity, W: optimal stopping against the target workload M, and rent.

Serving a task of class c is worth π_c = w_gpu·β_c + w_cpu·cpu_c, its marginal cost of resources.
w_cpu is a package's full power less its idle power, over its vCPUs; w_gpu is the power of waking a
GPU of the cluster's most common model. β_c is the number of whole GPUs, and for a share the dual of
its row in the linear program that packs the shares of M into fewest GPUs.

A node is seen as (u, j, r): free CPU, idle GPUs, and the largest share free of a GPU in use.
Tasks of M arrive one by one, of class c with probability p_c; before each one arrivals end with
probability q. If neither an idle GPU nor half of one is left, q is at least q_full, because all
other such nodes wait for the same tasks. A node that may choose its tasks is worth

    V(s) = max over A of (1 − q)·Σ_{c in A} p_c·(π_c − ΔP_c + V(s after c)) / (q + (1 − q)·p(A)),

the root of q·v = (1 − q)·Σ p_c·max(0, π_c − ΔP_c + V(s after c) − v). A share goes to the GPU in
use or to an idle one, whichever is worth more; r is then the larger rest. Rent keeps GPUs that are
cheap to wake usable: R(s) is the expected Σ rent·β_c when GPU tasks of M fill the node in
random order until none fits, for models that cost no more than w_gpu. W = V + R.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optgap.heuristics.placement.parameters import NodeValueParams
from optgap.models.compiled import compiled
from optgap.models.placement import PlacementProblem
from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.kernels import Table, cpu_w, node_table

OFFER = np.dtype(
    [
        ("cpu", "i8"),  # steps
        ("count", "i8"),  # whole GPUs
        ("share", "i8"),  # steps, of one GPU; 0 for whole GPUs or none
        ("rest", "i8"),  # steps that such a share leaves of an idle GPU
        ("gpus", "f8"),  # β, GPUs
        ("worth", "f8"),  # π, W
        ("popularity", "f8"),
    ]
)
"""Fields of a class of M, rounded to the steps of the grid."""


Q, Q_LEAVING = 0.003, 0.05
"""Default q, chosen on seeds 300 to 302 of `alibaba`, and 300 to 305 of `alibaba-time`."""


@dataclass(frozen=True)
class Grid:
    """Steps in which W is tabulated: free amounts are rounded down, requests up.

    Parameters
    ----------
    cpu_milli: a step of free CPU, milli-vCPU.
    cpu_steps: most steps of one node; on larger nodes steps are longer.
    share_milli: a step of the share free of a GPU, milli-GPU.
    cells: most entries of all node types together, 8 bytes each; beyond them steps are longer.
    """

    cpu_milli: int = 500
    cpu_steps: int = 256
    share_milli: int = 20
    cells: int = 30_000_000


class NodeWorth(NamedTuple):
    """Worth W of every state of every node type.

    Parameters
    ----------
    table: (node types, free CPU, idle GPUs, largest share free) W; free amounts in steps.
    type_of: (N,) the row of a node, nodes in order of rank.
    cpu_milli, share_milli: the steps.
    """

    table: FloatArray
    type_of: IntArray
    cpu_milli: int
    share_milli: int

    @classmethod
    def empty(cls, problem: PlacementProblem, grid: Grid) -> NodeWorth:
        """Return a table in which every worth is 0."""
        cluster = problem.cluster
        largest = int(cluster.cpu_milli.max())
        types, gpus = len(cluster.types), int(cluster.gpus.max()) + 1
        shares = 1000 // grid.share_milli + 1
        steps = max(1, min(grid.cpu_steps, grid.cells // (types * gpus * shares)))
        step = max(grid.cpu_milli, -(-largest // steps))
        table = np.zeros((types, largest // step + 1, gpus, shares))
        return cls(table, cluster.type_of[np.argsort(problem.ranks)], step, grid.share_milli)


NO_WORTH = NodeWorth(np.zeros((0, 0, 0, 0)), np.zeros(0, dtype=np.int64), 1, 1)


def shares_worth(shares: IntArray, popularity: FloatArray) -> FloatArray:
    """Return β of each share, GPUs: the duals of packing shares (milli-GPU) into fewest GPUs.

    The program is max Σ p·β with β·a ≤ 1 for every pattern a that fits one GPU; violated
    patterns are added.
    """
    from scipy.optimize import linprog

    patterns = [np.where(np.arange(len(shares)) == c, 1000 // g, 0) for c, g in enumerate(shares)]
    while True:
        found = linprog(-popularity, A_ub=np.array(patterns), b_ub=np.ones(len(patterns)))
        worth: FloatArray = np.asarray(found.x)
        pattern = _best_pattern(shares, worth)
        if worth @ pattern <= 1 + 1e-9:
            return worth
        patterns.append(pattern)


def _best_pattern(shares: IntArray, worth: FloatArray) -> IntArray:
    """Return the count of each share that fills one GPU with most worth, a knapsack problem."""
    unit = int(np.gcd.reduce(shares, initial=1000))
    room, sizes = 1000 // unit, (shares // unit).tolist()
    best, last = [0.0] * (room + 1), [-1] * (room + 1)
    for used in range(1, room + 1):
        best[used] = best[used - 1]
        for c, size in enumerate(sizes):
            if size <= used and best[used - size] + worth[c] > best[used] + 1e-12:
                best[used], last[used] = best[used - size] + worth[c], c
    pattern = np.zeros(len(shares), dtype=np.int64)
    while room > 0:
        c = last[room]
        room -= sizes[c] if c >= 0 else 1
        pattern[c] += c >= 0
    return pattern


def worth_of_nodes(problem: PlacementProblem, options: NodeValueParams, values: NodeWorth) -> None:
    """Fill the table of `values` from the target workload."""
    cluster, workload = problem.cluster, problem.workload
    q = options.q or (Q if problem.over_time is None else Q_LEAVING)
    offers, w_gpu = offers_of(problem, values)
    for k, kind in enumerate(cluster.types):
        n = int(np.flatnonzero(cluster.type_of == k)[0])
        node = node_table(problem, np.array([n]))[0]
        wake = node["gpu_full_w"] - node["gpu_idle_w"]
        admitted = np.array(
            [not spec or kind.model in spec.split("|") for spec in workload.gpu_specs]
        )
        steps = np.minimum(
            np.arange(kind.cpu_milli // values.cpu_milli + 1) * values.cpu_milli, kind.cpu_milli
        )
        watts = np.array([cpu_w(node, int(free)) for free in steps])
        chosen = offers[admitted | (workload.num_gpu == 0)]
        rent = options.rent_w if wake <= w_gpu else 0.0
        half = -(-500 // values.share_milli)
        fill(
            values.table[k], chosen, watts, kind.gpus, wake, (q, max(q, options.q_full), half), rent
        )


def offers_of(problem: PlacementProblem, values: NodeWorth) -> tuple[Table, float]:
    """Return the classes of the target workload as `OFFER`, and w_gpu."""
    cluster, power, workload = problem.cluster, problem.power, problem.workload
    counts: dict[str, int] = {}
    for model, gpus in zip(cluster.models, cluster.gpus.tolist(), strict=True):
        counts[model] = counts.get(model, 0) + gpus
    marginal = max(counts, key=lambda model: (counts[model], model))
    w_gpu = 0.0
    if counts[marginal]:
        w_gpu = power.gpu_full_w[marginal] - power.gpu_idle_w[marginal]
    w_cpu = (power.cpu.full_w - power.cpu.idle_w) / power.cpu.vcpu_milli
    share = (workload.num_gpu == 1) & (workload.gpu_milli < 1000)
    table = np.zeros(len(workload), dtype=OFFER)
    table["cpu"] = -(-workload.cpu_milli // values.cpu_milli)
    table["count"] = np.where(share, 0, workload.num_gpu)
    table["share"] = np.where(share, -(-workload.gpu_milli // values.share_milli), 0)
    table["rest"] = np.where(share, (1000 - workload.gpu_milli) // values.share_milli, 0)
    table["gpus"] = workload.num_gpu
    if share.any():
        sizes, place = np.unique(workload.gpu_milli[share], return_inverse=True)
        weights: FloatArray = np.bincount(place, workload.popularity[share]).astype(np.float64)
        table["gpus"][share] = shares_worth(sizes, weights)[place]
    table["worth"] = w_gpu * table["gpus"] + w_cpu * workload.cpu_milli
    table["popularity"] = workload.popularity
    return table, w_gpu


@compiled
def fill(
    table: FloatArray,
    offers: Table,
    watts: FloatArray,
    gpus: int,
    wake: float,
    ends: tuple[float, float, int],
    rent: float,
) -> None:
    """Write the worth W of each state of a node type into its (free CPU, idle GPUs, share) table.

    `watts` is P_CPU by free CPU, `wake` the power of waking a GPU, `ends` q with and without GPUs
    left, and the steps of half a GPU. A task leaves less CPU, fewer idle GPUs or less of a share,
    so the entry of that state has been filled before. Newton's method from 0 solves the equation
    of V, and ends.
    """
    shares = table.shape[2]
    with_gpus, without, half = ends
    rents = np.zeros(table.shape)
    gain = np.zeros(len(offers))
    for u in range(len(watts)):
        for j in range(gpus + 1):
            for r in range(shares if j < gpus else 1):
                earned = 0.0
                fitting = 0.0
                for c in range(len(offers)):
                    offer = offers[c]
                    gain[c] = -np.inf
                    if offer["cpu"] > u or (offer["cpu"] == 0 and offer["gpus"] == 0):
                        continue
                    left = u - offer["cpu"]
                    base = offer["worth"] - (watts[left] - watts[u])
                    after = -1.0
                    if offer["share"] > 0:
                        if offer["share"] <= r:
                            gain[c] = base + table[left, j, r - offer["share"]]
                            after = rents[left, j, r - offer["share"]]
                        if j > 0:
                            rest = max(r, offer["rest"])
                            opened = base - wake + table[left, j - 1, rest]
                            gain[c] = max(gain[c], opened)
                            if offer["share"] > r:
                                after = rents[left, j - 1, rest]
                    elif offer["count"] <= j:
                        gain[c] = base - wake * offer["count"] + table[left, j - offer["count"], r]
                        after = rents[left, j - offer["count"], r]
                    if rent > 0 and after >= 0 and (offer["count"] > 0 or offer["share"] > 0):
                        fitting += offer["popularity"]
                        earned += offer["popularity"] * (rent * offer["gpus"] + after)
                q = with_gpus if j > 0 or r >= half else without
                value, taken = 0.0, len(gain) + 1
                while True:  # fewer at every step, as the value rises
                    total, mass, size = 0.0, 0.0, 0
                    for c in range(len(gain)):
                        if gain[c] > value:
                            total += offers[c]["popularity"] * gain[c]
                            mass += offers[c]["popularity"]
                            size += 1
                    if size == 0 or size >= taken:
                        break
                    taken = size
                    value = (1 - q) * total / (q + (1 - q) * mass)
                table[u, j, r] = value
                if fitting > 0:
                    rents[u, j, r] = earned / fitting
    table += rents
