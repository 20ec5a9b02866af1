"""A problem over time as arrays for compiled loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optgap.models.compiled import floats
from optgap.models.consolidation import ConsolidationProblem
from optgap.solvers.consolidation.numerics import FloatArray, IntArray


class TaskStream(NamedTuple):
    """Tasks, GPUs and rules; K kinds, G GPUs, L tasks in order of submission.

    Parameters
    ----------
    submit, duration: (L,) s. width: (L,) GPUs of each task.
    demand, limit: (R, L) and (K, R): memory, and the capacity row where there is one.
    gpu_kind, gpu_server: (G,). server_start: (N+1,) the first GPU of each server.
    server_w: (N,) W of an awake server.
    f_max: (K,) MHz. beta, static, slope, floor: (K, L) exponent, W, W/MHz, least clock in MHz.
    waiting, one_server: the rules ``waiting`` and ``gang=server``.
    """

    submit: FloatArray
    duration: FloatArray
    width: IntArray
    demand: IntArray
    limit: IntArray
    gpu_kind: IntArray
    gpu_server: IntArray
    server_start: IntArray
    server_w: FloatArray
    f_max: FloatArray
    beta: FloatArray
    static: FloatArray
    slope: FloatArray
    floor: FloatArray
    waiting: bool
    one_server: bool


def case_of(problem: ConsolidationProblem) -> TaskStream:
    """Return the arrays behind a problem."""
    kinds, tasks, rules = problem.kinds, problem.tasks, problem.rules
    lines = [[problem.line(ell, k) for ell in range(len(tasks))] for k in range(len(kinds))]
    memory = np.zeros(len(kinds), dtype=np.int64)
    memory[problem.gpu_kind] = problem.gpu_memory
    limits = [memory, *[np.full(len(kinds), problem.limit_micro)] * len(problem.rows)]
    servers = np.arange(len(problem.servers) + 1)
    return TaskStream(
        submit=floats([t.submit_s for t in tasks]),
        duration=floats([t.duration_s for t in tasks]),
        width=problem.width,
        demand=np.concatenate([problem.memory[None, :], problem.rows]),
        limit=np.ascontiguousarray(np.stack(limits, axis=1)),
        gpu_kind=problem.gpu_kind,
        gpu_server=problem.gpu_server,
        server_start=np.searchsorted(problem.gpu_server, servers).astype(np.int64),
        server_w=floats([server.static_w for server in problem.servers]),
        f_max=floats([kind.f_max_mhz for kind in kinds]),
        beta=floats([[k.beta if t.beta is None else t.beta for t in tasks] for k in kinds]),
        static=floats([[line.static_w for line in row] for row in lines]),
        slope=floats([[line.slope_w_per_mhz for line in row] for row in lines]),
        floor=floats(problem.floors_mhz),
        waiting=rules.waiting,
        one_server=rules.gang == "server",
    )
