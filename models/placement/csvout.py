"""A placement as CSV text: where each arrival went, and the totals after it."""

from __future__ import annotations

from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.series import replay
from optgap.models.placement.solution import PlacementSolution


def placements(problem: PlacementProblem, solution: PlacementSolution) -> str:
    """``seq,node,gpu_index`` per arrival.

    `gpu_index` joins ascending indices with ``-``; both fields are empty for a task that was
    not placed, `gpu_index` also for one without GPUs.
    """
    names = problem.cluster.names
    lines = ["seq,node,gpu_index"]
    for k, node in enumerate(solution.node.tolist()):
        name = _quoted(names[node]) if node >= 0 else ""
        lines.append(f"{k},{name},{'-'.join(map(str, solution.gpus(k)))}")
    return "\n".join(lines) + "\n"


def series(problem: PlacementProblem, solution: PlacementSolution) -> str:
    """Cumulative demand, use (milli-GPU, milli-vCPU), fragmentation and power (W) per arrival."""
    found = replay(problem, solution)
    columns = {
        "arrived_gpu_milli": found.arrived_gpu_milli,
        "used_gpu_milli": found.used_gpu_milli,
        "used_cpu_milli": found.used_cpu_milli,
        "frag_gpu_milli": found.frag_gpu_milli,
        "power_cpu_w": found.power_cpu_w,
        "power_gpu_w": found.power_gpu_w,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(["seq", *columns])]
    lines += [",".join([str(k), *map(repr, row)]) for k, row in enumerate(rows)]
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    if any(letter in name for letter in ',"\r\n'):
        return '"' + name.replace('"', '""') + '"'
    return name
