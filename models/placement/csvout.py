"""A placement as CSV text: where each arrival went, and the totals after it."""

from __future__ import annotations

from optgap.models.placement.problem import PlacementProblem
from optgap.models.placement.series import replay
from optgap.models.placement.solution import PlacementSolution
from optgap.models.placement.timeline import timeline


def placements(problem: PlacementProblem, solution: PlacementSolution) -> str:
    """``seq,node,gpu_index`` per arrival, and ``,start_s,end_s`` where tasks leave.

    `gpu_index` joins ascending indices with ``-``; the fields are empty for a task that was
    not placed, `gpu_index` also for one without GPUs.
    """
    names = problem.cluster.names
    timed = solution.start_s is not None
    ends = (solution.start_s + problem.lasting_s).tolist() if solution.start_s is not None else []
    lines = ["seq,node,gpu_index" + (",start_s,end_s" if timed else "")]
    for k, node in enumerate(solution.node.tolist()):
        name = _quoted(names[node]) if node >= 0 else ""
        times = _times(solution, k, ends[k]) if timed else ""
        lines.append(f"{k},{name},{'-'.join(map(str, solution.gpus(k)))}{times}")
    return "\n".join(lines) + "\n"


def _times(solution: PlacementSolution, k: int, end: float) -> str:
    if solution.start_s is None or solution.node[k] < 0:
        return ",,"
    return f",{float(solution.start_s[k])!r},{end!r}"


def series(problem: PlacementProblem, solution: PlacementSolution) -> str:
    """Cumulative demand, use (milli-GPU, milli-vCPU), fragmentation and power (W) per arrival.

    Where tasks leave: use, fragmentation, power, and tasks that run and wait, from each time on.
    """
    if problem.over_time is not None:
        line = timeline(problem, solution)
        fields = ("time_s", "used_gpu_milli", "frag_gpu_milli", "power_w", "running", "waiting")
        values = zip(*(getattr(line, name).tolist() for name in fields), strict=True)
        return "\n".join([",".join(fields), *(",".join(map(repr, row)) for row in values), ""])
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
