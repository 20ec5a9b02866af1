"""Fragmentation F_n(m) and F_n(M) of a node (FGD, section 4), in milli-GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from optgap.models.placement.tasks import TargetWorkload


class Buckets(NamedTuple):
    """Free GPU of a node by what a task of M could do with it, popularity-weighted milli-GPU.

    q1: neither GPU nor CPU suffice; q2: the CPU suffices, these GPUs do not; q3: usable;
    q4: the GPUs suffice, the CPU does not; xl and xr: the task wants no GPU and its CPU
    fits, or does not; na: the model is not one the task accepts.
    """

    q1: float
    q2: float
    q3: float
    q4: float
    xl: float
    xr: float
    na: float

    @property
    def fragment(self) -> float:
        """F_n(M): everything but the usable part, added in the simulators' order."""
        return self.q1 + self.q2 + self.q4 + self.xl + self.xr + self.na


def node_fragmentation(
    workload: TargetWorkload, model: str, free_cpu_milli: int, gpu_free_milli: Sequence[int]
) -> Buckets:
    """Split a node's free GPU into the seven buckets.

    One double accumulator per bucket, classes in M's order: FGD truncates differences of
    these sums, so their last bits decide placements.
    """
    q1 = q2 = q3 = q4 = xl = xr = na = 0.0
    free = sum(gpu_free_milli)
    for m in range(len(workload)):
        p = float(workload.popularity[m])
        per_gpu = int(workload.gpu_milli[m])
        cpu_ok = free_cpu_milli >= workload.cpu_milli[m]
        spec = workload.gpu_specs[m]
        if per_gpu == 0:
            if cpu_ok:
                xl += p * free
            else:
                xr += p * free
            continue
        if spec and model not in spec.split("|"):
            na += p * free
            continue
        fitting = sum(1 for r in gpu_free_milli if r >= per_gpu)
        if fitting >= workload.num_gpu[m]:
            if cpu_ok:
                useless = sum(r for r in gpu_free_milli if r < per_gpu)
                q2 += p * useless
                q3 += p * (free - useless)
            else:
                q4 += p * free
        elif cpu_ok:
            q2 += p * free
        else:
            q1 += p * free
    return Buckets(q1, q2, q3, q4, xl, xr, na)
