"""A policy of your own, run through the same cycle as the built-in ones.

A policy is a class with a method ``place(task, state)``, or just such a function. It returns
a node (index or name), a node and the GPUs to use, or None to turn the task away:

>>> import numpy as np
>>> class Spread:
...     "The feasible node with the most CPU left, after `reserve` milli-vCPU were set aside."
...     def __init__(self, reserve=0):
...         self.reserve = reserve
...     def place(self, task, state):
...         nodes = state.feasible(task)
...         left = state.free_cpu_milli[nodes] - task.cpu_milli
...         nodes, left = nodes[left >= self.reserve], left[left >= self.reserve]
...         return nodes[np.argmax(left)] if nodes.size else None

>>> from optgap.models.limits import Limits
>>> from optgap.models.placement.presets import small
>>> problem = small(seed=1)
>>> outcome = run(problem, limits=Limits(), seed=0, policy=Spread, policy_params={"reserve": 1000})
>>> problem.check(outcome.solution)
[]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from optgap.heuristics.custom import Own
from optgap.heuristics.placement.engine import arrived, outcome_of, set_up, set_up_flow
from optgap.heuristics.placement.events import ARRIVED, decide, next_event
from optgap.heuristics.placement.loop import hold
from optgap.heuristics.placement.rule import NONE, Rule
from optgap.models.compiled import python_of
from optgap.models.errors import NoQuote
from optgap.models.limits import Limits
from optgap.models.placement import Cluster, PlacementProblem, Tasks
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.cluster import TASKS_PER_NODE
from optgap.models.result import Outcome, Termination

HOLD = python_of(hold)
"""Last step of the built-in policies' event loop, interpreted by Python as the policy is."""

Decision = tuple[int, tuple[int, ...]]
Answer = int | str | tuple[int | str, Iterable[int]] | None


@dataclass(frozen=True, slots=True)
class Task:
    """Arriving task, as a policy sees it.

    Parameters
    ----------
    name: name in the trace; a re-sampled task has the name of its original.
    cpu_milli: request in milli-vCPU.
    memory_mib: request in MiB.
    num_gpu: number of GPUs, 0 for a CPU-only task.
    gpu_milli: request per GPU in milli-GPU, below 1000 for a share of one GPU.
    gpu_spec: accepted GPU models separated by ``|``, "" for any.
    submit_s: submission, s from the horizon's begin; 0 if tasks never leave.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    num_gpu: int
    gpu_milli: int
    gpu_spec: str
    submit_s: float = 0.0


class PlacementState:
    """Cluster, as a policy sees it, read-only.

    Parameters
    ----------
    problem: the problem, with the arrivals so far, by its own clock.
    rng: random number generator of the run, made from its seed.
    """

    def __init__(
        self, problem: PlacementProblem, rng: np.random.Generator, shown: PlacementProblem
    ) -> None:
        cluster = problem.cluster
        self.rng = rng
        self._whole = shown
        self._by_rank = np.argsort(problem.ranks)
        nodes = np.arange(len(cluster))
        self._run = set_up(problem, Rule(NONE), nodes, seed=0, scored=False)
        self._flow = set_up_flow(problem)
        now = self._run.state
        self._cpu, self._memory, self._tasks = now["free_cpu"], now["free_memory"], now["tasks"]
        self._gpus, self._most_free, self._idle = self._run.gpu_free, now["most_free"], now["whole"]
        self._accepting: dict[str, npt.NDArray[np.bool_]] = {}
        self._views = tuple(_read_only(a) for a in (self._cpu, self._memory, self._gpus))

    @property
    def problem(self) -> PlacementProblem:
        """Problem with its power model, workload and objective; tasks are the arrivals so far."""
        tasks, k = self._whole.tasks, int(self._flow.counts[ARRIVED])
        so_far = Tasks(*(getattr(tasks, column.name)[:k] for column in fields(tasks)))
        return replace(self._whole, tasks=replace(so_far, duration_s=np.full(k, np.inf)))

    @property
    def cluster(self) -> Cluster:
        """Nodes of the cluster, as they are when idle."""
        return self._whole.cluster

    @property
    def time_s(self) -> float:
        """Current time, s from the beginning of the horizon; 0 if tasks never leave."""
        return float(self._flow.submit_s[self._flow.counts[ARRIVED] - 1])

    @property
    def free_cpu_milli(self) -> IntArray:
        """Free milli-vCPU of each node, shape (N,)."""
        return self._views[0]

    @property
    def free_memory_mib(self) -> IntArray:
        """Free MiB of each node, shape (N,)."""
        return self._views[1]

    @property
    def gpu_free_milli(self) -> IntArray:
        """Free milli-GPU of each GPU, (N, most GPUs of a node); -1 if a node has no such GPU."""
        return self._views[2]

    def feasible(self, task: Task) -> IntArray:
        """Return the indices of the nodes that fit `task` now, lowest rank first."""
        fits = (self._cpu >= task.cpu_milli) & (self._memory >= task.memory_mib)
        fits &= self._tasks < TASKS_PER_NODE
        if task.num_gpu:
            enough = (
                self._most_free >= task.gpu_milli
                if task.gpu_milli < 1000
                else self._idle >= task.num_gpu
            )
            fits &= enough
            if task.gpu_spec:
                fits &= self._accepts(task.gpu_spec)
        found: IntArray = self._by_rank[fits[self._by_rank]]
        return found

    def gpus_for(self, task: Task, node: int) -> tuple[int, ...]:
        """Return the GPUs that a decision for a node alone stands for.

        Whole GPUs are the lowest idle ones. A share takes the GPU with the least free capacity that
        suffices, and the lowest of equals.
        """
        free = self._gpus[node]
        fitting = np.flatnonzero(free >= max(1, task.gpu_milli))
        if task.num_gpu and task.gpu_milli < 1000:
            fitting = fitting[np.argsort(free[fitting], kind="stable")]
        return tuple(fitting[: task.num_gpu].tolist())

    def _accepts(self, spec: str) -> npt.NDArray[np.bool_]:
        if spec not in self._accepting:
            models = spec.split("|")
            self._accepting[spec] = np.array([m in models for m in self.cluster.models])
        return self._accepting[spec]

    def _why_not(self, task: Task, node: int) -> tuple[str, str] | None:
        """Return in words what `node` offers and what `task` needs; None if the task fits."""
        cpu, memory = int(self._cpu[node]), int(self._memory[node])
        if cpu < task.cpu_milli:
            return f"{cpu} milli-vCPU free", f"at least {task.cpu_milli}"
        if memory < task.memory_mib:
            return f"{memory} MiB free", f"at least {task.memory_mib}"
        if self._tasks[node] >= TASKS_PER_NODE:
            return f"{TASKS_PER_NODE} tasks", "fewer"
        if task.num_gpu and task.gpu_spec and not self._accepts(task.gpu_spec)[node]:
            return f"GPU model {self.cluster.models[node] or 'none'}", task.gpu_spec
        if len(self.gpus_for(task, node)) < task.num_gpu:
            fitting = int((self._gpus[node] >= task.gpu_milli).sum())
            wanted = f"{task.num_gpu} with {task.gpu_milli} milli-GPU free"
            return f"{fitting} fitting GPUs", wanted
        return None


def run(
    problem: PlacementProblem,
    *,
    limits: Limits,
    seed: int,
    policy: Any,
    policy_params: Mapping[str, Any] | None = None,
    shown: PlacementProblem | None = None,
) -> Outcome:
    """Run a policy from outside the package.

    Parameters
    ----------
    policy: a class that is made with `policy_params` and has ``place(task, state)``; or a
        function ``place(task, state)``, which gets `policy_params` by keyword. It may return
        a node index, a node name, ``(node, gpu_indices)``, or None to turn the task away.
        Where only a node is named, GPUs are picked as `PlacementState.gpus_for` says.
    shown: the problem by its own clock, which `state.problem` has; `problem` without it.

    Raises
    ------
    InputError: naming the policy, the arrival and what was wrong, for an answer that is none
        of these or that does not fit, and for a policy that raises.
    """
    own = Own(policy, policy_params, "place(task, state)")
    state = PlacementState(problem, np.random.default_rng(seed), deepcopy(shown or problem))
    run, flow, tasks = state._run, state._flow, list(_tasks(problem))
    due = 0
    while (ended := limits.stop) is None:
        k, sign = next_event(flow)
        if sign == 0:
            break
        if sign > 0:
            if k >= due:
                limits.progress(arrived(own.name, flow), None, None)
                due = k + 500
            decided = _asked(own, tasks[k], state, k)
            if decided is None:
                continue
            decide(flow, decided[0], sum(1 << g for g in decided[1]))
        HOLD(run, k, flow.node[k], flow.mask[k], sign)
    ended = ended or Termination.COMPLETED
    return outcome_of(problem, flow, np.arange(len(problem.cluster)), ended)


def _read_only(array: IntArray) -> IntArray:
    view = array.view()
    view.flags.writeable = False
    return view


def _tasks(problem: PlacementProblem) -> Iterable[Task]:
    tasks = problem.tasks
    columns = (tasks.cpu_milli, tasks.memory_mib, tasks.num_gpu, tasks.gpu_milli)
    given = (tasks.gpu_specs, tasks.submit_s.tolist())
    return map(Task, tasks.names, *(c.tolist() for c in columns), *given)


def _asked(own: Own, task: Task, state: PlacementState, k: int) -> Decision | None:
    """Ask the policy about arrival `k`."""
    where = f"arrival {k} (task {task.name})"
    answer: Answer = own.ask(where, "a node, or None", task, state)
    if answer is None:
        return None
    chosen: Any = answer
    gpus: Any = None
    if isinstance(answer, tuple):
        if len(answer) != 2:
            raise own.wrong(where, answer, "a node, (node, gpu_indices), or None")
        chosen, gpus = answer
    node = _node(chosen, state, own, where)
    misfit = state._why_not(task, node)
    if misfit:
        found = NoQuote(f"node {state.cluster.names[node]} with {misfit[0]}")
        raise own.wrong(where, found, f"a node that fits the task: {misfit[1]}")
    if gpus is None:
        return node, state.gpus_for(task, node)
    return node, _gpus(gpus, task, node, state, own=own, where=where)


def _node(chosen: Any, state: PlacementState, own: Own, where: str) -> int:
    size = len(state.cluster)
    if isinstance(chosen, str):
        if chosen not in state.cluster.index:
            raise own.wrong(where, chosen, "the name of a node")
        return state.cluster.index[chosen]
    if isinstance(chosen, bool) or not isinstance(chosen, (int, np.integer)):
        raise own.wrong(where, chosen, "a node index or name, (node, gpu_indices), or None")
    if not 0 <= chosen < size:
        raise own.wrong(where, int(chosen), f"a node index from 0 to {size - 1}")
    return int(chosen)


def _gpus(
    gpus: Any, task: Task, node: int, state: PlacementState, *, own: Own, where: str
) -> tuple[int, ...]:
    try:
        chosen = list(gpus)
    except TypeError:
        raise own.wrong(where, gpus, "a sequence of GPU indices") from None
    count = int(state.cluster.gpus[node])
    for g in chosen:
        if isinstance(g, bool) or not isinstance(g, (int, np.integer)) or not 0 <= g < count:
            raise own.wrong(where, g, f"GPU indices from 0 to {count - 1}")
        free = int(state.gpu_free_milli[node, g])
        if free < task.gpu_milli:
            found = NoQuote(f"GPU {g} with {free} milli-GPU free")
            raise own.wrong(where, found, f"at least {task.gpu_milli}")
    if len(chosen) != task.num_gpu or len(set(chosen)) != len(chosen):
        raise own.wrong(where, gpus, f"{task.num_gpu} different GPU indices")
    return tuple(int(g) for g in chosen)
