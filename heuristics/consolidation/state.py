"""Cluster as a policy sees it while tasks run: residents, free capacity and frequencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from optgap.models.consolidation.problem import ConsolidationProblem
from optgap.models.consolidation.tasks import FloatArray, IntArray
from optgap.solvers.consolidation.over_time.loop import advance, refresh, tables_of

Choice = tuple[int, ...] | None
Decide = Callable[["ConsolidationState", int], Choice]
"""Rule that returns the GPUs for a task, or None to let it wait."""
ClockRule = Callable[["ConsolidationState", int, float], float]
"""Rule that returns the clock of a GPU after a change, from its present clock, MHz."""


class ConsolidationState:
    """Cluster as a policy sees it. Arrays are the engine's own: read them, do not write.

    Parameters
    ----------
    problem: servers, rules and tasks; a policy looks at no task before it has arrived.
    """

    def __init__(self, problem: ConsolidationProblem) -> None:
        self.problem = problem
        gpus, tasks = len(problem.places), len(problem)
        self.time_s = 0.0
        self.free_bytes: IntArray = problem.gpu_memory.copy()
        self.rows = problem.rows
        self.used: IntArray = np.zeros((len(self.rows), gpus), dtype=np.int64)
        self.mean_micro: IntArray = np.zeros(gpus, dtype=np.int64)
        self.tables = tables = tables_of(problem, 8)
        self.count = tables.many
        self.slowdown, self.due = tables.slowdown, tables.due
        self.progress, self.since = tables.progress, tables.since
        self.awake: IntArray = np.zeros(len(problem.servers), dtype=np.int64)
        self.clock_mhz: FloatArray = np.zeros(gpus)
        self.first_gpu: IntArray = np.searchsorted(
            problem.gpu_server, np.arange(len(problem.servers) + 1)
        ).astype(np.int64)
        self.running: IntArray = np.zeros(tasks, dtype=np.int64)
        self.present = 0

    # -- what policies ask ----------------------------------------------------------------

    def residents(self, gpu: int) -> list[int]:
        """Return the tasks on a GPU."""
        found: list[int] = self.tables.held[gpu, : self.count[gpu]].tolist()
        return found

    def gpus_of(self, task: int) -> tuple[int, ...]:
        """Return the GPUs of a running task."""
        start = self.tables.start
        return tuple(self.tables.place[start[task] : start[task + 1]].tolist())

    def util_now(self) -> FloatArray:
        """Return the sum of utilisation of the tasks on each GPU at this instant, %, shape (G,)."""
        total = np.zeros(len(self.count))
        tasks = self.running[: self.present]
        for task in tasks.tolist():
            total[list(self.gpus_of(task))] += self.tables.sample[task]
        return total

    def fits(self, task: int) -> np.ndarray:
        """Tell for each GPU whether memory and capacity leave room for `task`, shape (G,)."""
        room = self.free_bytes >= self.problem.memory[task]
        if len(self.rows):
            limit = self.problem.limit_micro
            room &= (self.used + self.rows[:, task, None] <= limit).all(axis=0)
        return np.asarray(room)

    def progress_of(self, task: int) -> float:
        """Return the progress of a task by now, s at f_max."""
        return float(
            self.progress[task] + (self.time_s - self.since[task]) * self.tables.rate[task]
        )

    # -- what the engine does -------------------------------------------------------------

    def put(self, task: int, gpus: Iterable[int]) -> None:
        """Let a task run on some GPUs from now on."""
        chosen = sorted(gpus)
        problem, first = self.problem, int(self.tables.start[task])
        self.tables.place[first : first + len(chosen)] = chosen
        for m, g in enumerate(chosen, first):
            held = self.tables.held
            if self.count[g] == held.shape[1]:
                held = np.concatenate([held, np.zeros_like(held)], axis=1)
                self.tables = self.tables._replace(held=held)
            held[g, self.count[g]] = task
            self.count[g] += 1
            if self.count[g] == 1:
                self.awake[problem.gpu_server[g]] += 1
            self.free_bytes[g] -= problem.memory[task]
            self.mean_micro[g] += problem.mean_micro[task]
            self.tables.speed[m] = 1.0
        self.used[:, chosen] += self.rows[:, task, None]
        self.running[self.present] = task
        self.present += 1
        self.since[task] = self.time_s

    def take(self, task: int) -> tuple[int, ...]:
        """Take a task off its GPUs."""
        gpus = self.gpus_of(task)
        problem = self.problem
        for g in gpus:
            own = self.residents(g)
            own.remove(task)
            self.count[g] -= 1
            self.tables.held[g, : self.count[g]] = own
            if not self.count[g]:
                self.awake[problem.gpu_server[g]] -= 1
            self.free_bytes[g] += problem.memory[task]
            self.mean_micro[g] -= problem.mean_micro[task]
        self.used[:, list(gpus)] -= self.rows[:, task, None]
        k = int(np.flatnonzero(self.running[: self.present] == task)[0])
        self.running[k : self.present - 1] = self.running[k + 1 : self.present]
        self.present -= 1
        self.due[task] = np.inf
        return gpus

    def set_clock(self, gpu: int, mhz: float) -> None:
        """Change a GPU's clock, and with it the speed of its residents (Eq. 5)."""
        self.clock_mhz[gpu] = mhz
        kind = self.problem.kinds[int(self.problem.gpu_kind[gpu])]
        for task in self.residents(gpu):
            beta = self.problem.tasks[task].beta
            exponent = kind.beta if beta is None else beta
            for m in range(int(self.tables.start[task]), int(self.tables.start[task + 1])):
                if self.tables.place[m] == gpu:
                    self.tables.speed[m] = (mhz / kind.f_max_mhz) ** exponent

    def retimed(self, gpus: Iterable[int]) -> None:
        """Bring progress and rates on some GPUs up to now after a change."""
        for g in gpus:
            refresh(self.tables, g, self.time_s, True)

    def next_end(self, horizon: float) -> tuple[float, int]:
        """Return the time of the next end up to `horizon`, and the task; −1 for none."""
        when, k = advance(self.tables, self.running, self.present, self.time_s, horizon)
        return when, int(self.running[k]) if k >= 0 else -1
