"""What the compiled event loop works on: a policy as data, and tables of everything else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.placement.kernels import BoolArray, Table

# Node scores
NONE = 0
PWR = 1
FGD = 2
EXACT = 3
BESTFIT = 4
DOTPROD = 5
PACKING = 6
CLUSTERING = 7

# GPU selection; PWR, FGD and EXACT stand for "the GPU with the best such score"
BEST = 10
FIRST = 11
RANDOM = 12

ARRIVAL = np.dtype(
    [
        ("request", "i8"),  # row of the requests
        ("memory_mib", "i8"),
        ("node_draw", "f8"),  # uniform in [0, 1)
        ("gpu_draw", "f8"),
    ]
)
REQUEST = np.dtype(
    [
        ("cpu_milli", "i8"),
        ("num_gpu", "i8"),
        ("gpu_milli", "i8"),
        ("kind", "i8"),  # a bit: 0 for CPU only, 1 for a share, 2^k for k GPUs
        ("cached", "i8"),  # row of the cache; 0 for requests whose scores are not kept
    ]
)
"""What scores can tell apart about tasks: all but memory."""

STATE = np.dtype(
    [
        ("free_cpu", "i8"),
        ("free_memory", "i8"),
        ("most_free", "i4"),  # of one GPU that fractional tasks may use, -1 for none
        ("whole", "i4"),  # idle GPUs
        ("tasks", "i4"),
        ("model", "i4"),  # as in the nodes' table, which the search then need not touch
        ("free_gpu", "i8"),
        ("kinds", "i8"),  # of the GPU tasks placed so far, as bits
        ("fragment", "f8"),  # F_n(M), milli-GPU
        ("power", "f8"),  # W
    ]
)
"""What changes about a node, besides the free milli-GPU of each GPU: one cache line."""

SCORES = np.dtype([("stamp", "i4"), ("first", "f8"), ("second", "f8")])
"""Scores of a request on a node, good while `stamp` is the number of the node's tasks."""

CANDIDATE = np.dtype([("node", "i8"), ("first", "f8"), ("second", "f8")])


class Rule(NamedTuple):
    """A policy as data.

    Parameters
    ----------
    first, second: the kinds of its node scores.
    first_weight, second_weight: total = first_weight·first + second_weight·second.
    normalise: stretch the first score to 0..100 over the feasible nodes, in integers.
    gpu: how a fractional task's GPU is selected.
    random_node: draw a feasible node instead of scoring.
    watt_weight, fragment_weight: the EXACT score is −(watt_weight·ΔP + fragment_weight·ΔF).
    share_limit: the largest free milli-GPU of a GPU that fractional tasks may use.
    steps: (100,) the smallest fragment decrease in GPUs that earns 1..100 FGD points.
    """

    first: int
    second: int
    first_weight: float
    second_weight: float
    normalise: bool
    gpu: int
    random_node: bool
    watt_weight: float
    fragment_weight: float
    share_limit: int
    steps: FloatArray


class Run(NamedTuple):
    """What a run needs: tables in the dtypes above, and work space.

    `accepts` is (requests, models), `workload` (models, M), `gpu_free` (N, most GPUs),
    `cache` (rows, N), `profile` (M,), `found` (N,).
    """

    rule: Rule
    arrivals: Table
    requests: Table
    accepts: BoolArray
    workload: Table
    nodes: Table
    state: Table
    gpu_free: IntArray
    cache: Table
    profile: Table
    found: Table
