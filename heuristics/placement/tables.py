"""Tables of the compiled event loop: arrivals, requests, nodes and scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.heuristics.placement.rule import Rule
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.kernels import BoolArray, Table

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
        ("bit", "i8"),  # which one: -1, 0 or k
        ("cached", "i8"),  # row of the cache; 0 for requests whose scores are not kept
    ]
)
"""Fields of a task on which scores depend: all but memory."""

STATE = np.dtype(
    [
        ("free_cpu", "i8"),
        ("free_memory", "i8"),
        ("most_free", "i2"),  # of one GPU that fractional tasks may use, -1 for none
        ("whole", "i2"),  # idle GPUs
        ("tasks", "i2"),
        ("model", "i2"),  # as in the nodes' table, which the search then need not touch
        ("changes", "i8"),  # tasks that came or left so far
        ("free_gpu", "i8"),
        ("kinds", "i8"),  # of the GPU tasks placed, and not left again, as bits
        ("fragment", "f8"),  # F_n(M), milli-GPU
        ("power", "f8"),  # W
    ]
)
"""Fields of a node that change, besides the free milli-GPU of each GPU: one cache line."""

SCORES = np.dtype([("stamp", "i4"), ("first", "f8"), ("second", "f8")])
"""Scores of a request on a node, valid while `stamp` equals the node's number of changes."""

CANDIDATE = np.dtype([("node", "i8"), ("first", "f8"), ("second", "f8")])


class PlacementRun(NamedTuple):
    """Tables of a run in the dtypes above, with work space.

    `accepts` is (requests, models), `workload` (models, M), `gpu_free` (N, most GPUs),
    `cache` (rows, N), `profile` (M,), `found` (N,); `kinds` (N, bits) counts tasks.
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
    kinds: IntArray
