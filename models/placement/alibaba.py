"""The Alibaba 2023 GPU cluster and its Default workload, as counts.

Facts taken from the public trace cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata):
1,213 nodes with 6,212 GPUs, and 8,152 tasks in 151 classes. Please cite Q. Weng et al.,
"Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023, when you use them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any


def _counts(name: str) -> tuple[tuple[Any, ...], ...]:
    """Read the rows of a table beside this file; all but names of GPU models are integers."""
    with Path(__file__).with_name(name).open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return tuple(tuple(int(v) if v.isdigit() else v for v in row) for row in rows)


NODE_TYPES: tuple[tuple[str, int, int, int, int], ...] = _counts("alibaba_nodes.csv")
"""(GPU model, GPUs, milli-vCPU, MiB, number of nodes)."""

TASK_CLASSES: tuple[tuple[int, int, int, int, int], ...] = _counts("alibaba_tasks.csv")
"""(number of GPUs, milli-GPU of each, milli-vCPU, MiB, number of tasks)."""

LIVES_S: tuple[tuple[float, float], ...] = (
    (0.0, 1),
    (0.01, 12),
    (0.05, 48),
    (0.10, 80),
    (0.25, 167),
    (0.50, 540),
    (0.75, 1_972),
    (0.90, 6_573),
    (0.95, 16_399),
    (0.99, 96_510),
    (0.995, 609_976),
    (0.999, 8_645_080),
    (1.0, 12_537_496),
)
"""Quantiles of deletion less creation of the Default workload's tasks, s; its mean is 25,839 s."""
