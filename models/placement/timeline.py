"""Metrics of a solution over time: every node after every start and end, from scratch.

Numpy over all events at once; it shares nothing with the compiled event loop of the policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optgap.models.placement.arrays import FloatArray, IntArray
from optgap.models.times import freed_s

if TYPE_CHECKING:
    from optgap.models.placement.problem import PlacementProblem
    from optgap.models.placement.solution import PlacementSolution


@dataclass(frozen=True, eq=False)
class NodeEvents:
    """E = 2 · (tasks placed) starts and ends, node after node, each in order of time.

    Of what happens at one node at the same time (`freed_s`), ends come first.

    Parameters
    ----------
    task, node: (E,) which task starts or ends, and where.
    start: (E,) whether it starts.
    time_s: (E,) when, s.
    lasts_s: (E,) how long the node stays as this event leaves it, s; 0 after its last.
    free_cpu_milli, free_memory_mib, running: (E,) what is free of the node and how many tasks run
        there, after the event.
    gpu_free_milli: (E, most GPUs of a node) the same of each GPU; -1 for one that is not there.
    """

    task: IntArray
    node: IntArray
    start: IntArray
    time_s: FloatArray
    lasts_s: FloatArray
    free_cpu_milli: IntArray
    free_memory_mib: IntArray
    running: IntArray
    gpu_free_milli: IntArray

    def __len__(self) -> int:
        return len(self.task)


def node_events(problem: PlacementProblem, solution: PlacementSolution) -> NodeEvents:
    """Return the events of a solution over time, without nodes and GPUs that do not exist."""
    assert solution.start_s is not None
    cluster, tasks = problem.cluster, problem.tasks
    placed = np.flatnonzero((solution.node >= 0) & (solution.node < len(cluster)))
    start = solution.start_s[placed]
    end = start + problem.lasting_s[placed]
    freed = freed_s(start, end)
    task = np.concatenate([placed, placed])
    node = solution.node[task]
    starts = np.repeat(np.array([1, 0]), len(placed))
    time = np.concatenate([start, end])
    order = np.lexsort((task, starts, np.concatenate([start, freed]), node))
    task, node, starts, time = task[order], node[order], starts[order], time[order]
    sign = 2 * starts - 1
    lasts = np.zeros(len(task))
    same = node[1:] == node[:-1]
    lasts[:-1][same] = (time[1:] - time[:-1])[same]
    # what starts at a node ends there: running sums over all nodes are 0 again at each next one
    size = max(1, int(cluster.gpus.max()))
    index = np.arange(size)
    there = index < cluster.gpus[node][:, None]
    uses = (solution.gpu_mask[task][:, None] >> index) & 1
    held = np.cumsum(uses * (sign * tasks.gpu_milli[task])[:, None] * there, axis=0)
    return NodeEvents(
        task,
        node,
        starts,
        time,
        lasts,
        cluster.cpu_milli[node] - np.cumsum(sign * tasks.cpu_milli[task]),
        cluster.memory_mib[node] - np.cumsum(sign * tasks.memory_mib[task]),
        np.cumsum(sign),
        np.where(there, 1000 - held, -1),
    )


@dataclass(frozen=True, eq=False)
class NodeValues:
    """Power and fragmentation of nodes, with one row per state.

    Parameters
    ----------
    cpu_w, gpu_w: (R,) the two parts of a node's power, Eq. 1-2, W.
    fragment: (R,) F_n(M), milli-GPU.
    """

    cpu_w: FloatArray
    gpu_w: FloatArray
    fragment: FloatArray


def node_values(
    problem: PlacementProblem, node: IntArray, free_cpu_milli: IntArray, gpu_free_milli: IntArray
) -> NodeValues:
    """Power and fragmentation of R states: of which node, (R,), and what is free, (R,) and (R, G).

    Nodes of one model and one size of CPU count as one, and so do GPUs in any order.
    """
    cluster, power = problem.cluster, problem.power
    names = sorted(set(cluster.models))
    model_of = np.array([names.index(model) for model in cluster.models], dtype=np.int64)
    rows = np.column_stack(
        [
            model_of[node],
            cluster.cpu_milli[node],
            free_cpu_milli,
            np.sort(gpu_free_milli, axis=1)[:, ::-1],
        ]
    )
    distinct, row_of = _distinct(rows)
    gpus = distinct[:, 3:]
    watts: dict[tuple[int, int], float] = {}
    cpu_w, gpu_w = np.zeros(len(distinct)), np.zeros(len(distinct))
    for k, (capacity, free) in enumerate(distinct[:, 1:3].tolist()):
        if (capacity, free) not in watts:
            watts[capacity, free] = power.cpu_w(capacity, free)
        cpu_w[k] = watts[capacity, free]
    there = gpus >= 0
    busy, count = (there & (gpus < 1000)).sum(axis=1), there.sum(axis=1)
    for m, name in enumerate(names):
        mine = (distinct[:, 0] == m) & (count > 0)
        if mine.any():
            active = power.gpu_full_w[name] * busy[mine]
            gpu_w[mine] = active + power.gpu_idle_w[name] * (count - busy)[mine]
    fragment = _fragments(problem, names, distinct)
    return NodeValues(cpu_w[row_of], gpu_w[row_of], fragment[row_of])


def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows, and which of them each row is."""
    weights = np.random.default_rng(0).integers(1, 2**62, size=rows.shape[1]) | 1
    key = (rows * weights).sum(axis=1)  # modulo 2^64
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    distinct: IntArray = rows[first]
    if not np.array_equal(distinct[inverse], rows):  # two rows with one key
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    return distinct, inverse.reshape(-1)


def _fragments(problem: PlacementProblem, names: list[str], rows: IntArray) -> FloatArray:
    """F_n(M) of (model, CPU, free CPU, free GPUs in descending order): free less usable, by p_m."""
    workload = problem.workload
    gpus = np.maximum(rows[:, 3:], 0)
    free = gpus.sum(axis=1)
    total = np.zeros(len(rows))
    useful: dict[int, tuple[IntArray, IntArray]] = {}
    for m in range(len(workload)):
        wanted, number = int(workload.gpu_milli[m]), int(workload.num_gpu[m])
        spec = workload.gpu_specs[m]
        usable = np.zeros(len(rows), dtype=np.int64)
        if wanted:
            if wanted not in useful:
                fits = gpus >= wanted
                useful[wanted] = fits.sum(axis=1), np.where(fits, gpus, 0).sum(axis=1)
            fitting, amount = useful[wanted]
            can = (fitting >= number) & (rows[:, 2] >= workload.cpu_milli[m])
            if spec:
                admitted = np.array([name in spec.split("|") for name in names])
                can &= admitted[rows[:, 0]]
            usable = np.where(can, amount, 0)
        total += workload.popularity[m] * (free - usable)
    return total


@dataclass(frozen=True, eq=False)
class Timeline:
    """The whole cluster from one event to the next, S steps.

    Parameters
    ----------
    time_s: (S,) when each step begins, s; the first is the horizon's begin. The cluster stays as
        it is until the next, and after the last.
    power_w, frag_gpu_milli, used_gpu_milli: (S,) power (Eq. 3), fragmentation (Eq. 4) and the GPU
        demand of the tasks that run.
    running: (S,) tasks that run.
    """

    time_s: FloatArray
    power_w: FloatArray
    frag_gpu_milli: FloatArray
    used_gpu_milli: IntArray
    running: IntArray

    def __len__(self) -> int:
        return len(self.time_s)


def timeline(problem: PlacementProblem, solution: PlacementSolution) -> Timeline:
    """Follow a solution over time from the horizon's begin until the last task ends."""
    assert problem.over_time is not None
    events, rest = node_events(problem, solution), rest_values(problem)
    values = node_values(problem, events.node, events.free_cpu_milli, events.gpu_free_milli)
    empty_w = rest.cpu_w + rest.gpu_w
    sign = 2 * events.start - 1
    order = np.argsort(events.time_s, kind="stable")

    def followed(base: Any, change: Any) -> Any:
        """Return a value from the horizon's begin on, from what it changes by at each moment."""
        return np.cumsum(np.append(base, change[order]))[last]

    time = np.append(problem.over_time.begin_s, events.time_s[order])
    last = np.append(time[1:] > time[:-1], True)
    return Timeline(
        time[last],
        followed(empty_w.sum(), steps(events, values.cpu_w + values.gpu_w, empty_w)),
        followed(rest.fragment.sum(), steps(events, values.fragment, rest.fragment)),
        followed(0, problem.tasks.demand_milli[events.task] * sign),
        followed(0, sign),
    )


def steps(events: NodeEvents, after: FloatArray, rest: FloatArray) -> FloatArray:
    """Return (E,) by how much each event changes its node's value, `rest` before its first."""
    before = rest[events.node]
    at = np.flatnonzero(events.node[1:] == events.node[:-1])
    before[at + 1] = after[at]
    change: FloatArray = after - before
    return change


def rest_values(problem: PlacementProblem) -> NodeValues:
    """Power and fragmentation of every node with nothing on it, (N,) each."""
    cluster = problem.cluster
    index = np.arange(max(1, int(cluster.gpus.max())))
    gpus = np.where(index < cluster.gpus[:, None], 1000, -1)
    return node_values(problem, np.arange(len(cluster)), cluster.cpu_milli, gpus)
