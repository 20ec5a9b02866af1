"""Event loop: tasks arrive, a policy places them, residents slow one another, tasks end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from optgap.heuristics.consolidation.clocks import highest
from optgap.heuristics.consolidation.state import ClockRule, ConsolidationState, Decide
from optgap.models.compiled import UP_TO, interpreted
from optgap.models.consolidation.problem import ConsolidationProblem
from optgap.models.consolidation.solution import Assignment, Clock, ConsolidationSolution
from optgap.models.limits import Limits
from optgap.models.result import Outcome, Status, Termination

LOOK_EVERY = 64
"""Number of events between two checks of the limits."""


Observe = Callable[["Engine"], None]


def simulate(
    problem: ConsolidationProblem, decide: Decide, limits: Limits, clocks: ClockRule = highest
) -> Outcome:
    """Run a policy, at f_max or by a rule for clocks; small problems are interpreted."""
    with interpreted(len(problem) * len(problem.places) <= UP_TO.consolidation_cells):
        return Engine(problem, decide, clocks, limits).run()


class Engine:
    """Run of a policy on a problem, at one instant or over time.

    Parameters
    ----------
    decide: rule that places a task.
    clocks: rule that sets the frequency of a GPU after its residents have changed.
    repack: function that is called after each change, to move running tasks; see `move`.
    """

    def __init__(
        self,
        problem: ConsolidationProblem,
        decide: Decide,
        clocks: ClockRule,
        limits: Limits,
        *,
        repack: Observe | None = None,
    ) -> None:
        self.problem, self.limits = problem, limits
        self.decide, self.clocks, self.repack = decide, clocks, repack
        self.state = ConsolidationState(problem)
        self.timed = problem.objective.goal == "energy"
        self.assignments: list[Assignment] = []
        self.last: dict[int, int] = {}  # where the last assignment of each task stands
        self.changes: list[Clock] = []
        self.queue: list[int] = []
        self.refused = 0
        self.decisions = 0
        self.stopped: Termination | None = None

    def run(self) -> Outcome:
        """Serve all arrivals; over time, serve all ends, too."""
        tasks, state = self.problem.tasks, self.state
        upcoming = 0
        while upcoming < len(tasks) or (self.timed and (state.present or self.queue)):
            if (upcoming + self.decisions) % LOOK_EVERY == 0 and self.limits.stop is not None:
                self.stopped = self.limits.stop
                break
            if not self.timed:
                self._arrive(upcoming)
                upcoming += 1
                continue
            arrival = tasks[upcoming].submit_s if upcoming < len(tasks) else float("inf")
            when, ended = state.next_end(arrival)
            if ended < 0 and not np.isfinite(when):
                break  # what waits never fits
            state.time_s = max(state.time_s, when)
            if ended >= 0:
                self._end(ended)
            else:
                self._arrive(upcoming)
                upcoming += 1
        return self._outcome()

    def _arrive(self, task: int) -> None:
        self.queue.append(task)
        if not self._try(task):
            if not self.timed or not self.problem.rules.waiting:
                self.queue.remove(task)
                self.refused += 1
        elif self.repack is not None:
            self.repack(self)

    def _try(self, task: int) -> bool:
        self.decisions += 1
        gpus = self.decide(self.state, task)
        if gpus is None:
            return False
        self.queue.remove(task)
        self.state.put(task, gpus)
        self._note(task, gpus)
        self._settle(gpus)
        return True

    def _end(self, task: int) -> None:
        gpus = self.state.take(task)
        self._settle(gpus)
        for waiting in list(self.queue):
            self._try(waiting)
        if self.repack is not None:
            self.repack(self)

    def move(self, task: int, gpus: tuple[int, ...]) -> None:
        """Move a running task to other GPUs."""
        state = self.state
        state.progress[task] = state.progress_of(task)
        state.since[task] = state.time_s
        before = state.take(task)
        state.put(task, gpus)
        self._note(task, gpus)
        self._settle({*before, *gpus})

    def _note(self, task: int, gpus: Iterable[int]) -> None:
        """Log the GPUs of a task from now on; the entry replaces one of the same instant."""
        stay = Assignment(task, tuple(sorted(gpus)), self.state.time_s)
        known = self.last.get(task)
        if known is not None and self.assignments[known].start_s == stay.start_s:
            self.assignments[known] = stay
        else:
            self.last[task] = len(self.assignments)
            self.assignments.append(stay)

    def _settle(self, gpus: Iterable[int]) -> None:
        """Set frequencies after residents have changed; a GPU that has woken starts at f_max."""
        state, chosen = self.state, list(gpus)
        for g in chosen:
            if not state.count[g]:
                state.clock_mhz[g] = 0.0
                continue
            kind = self.problem.kinds[int(self.problem.gpu_kind[g])]
            present = float(state.clock_mhz[g]) or kind.f_max_mhz
            now = self.clocks(state, g, present)
            if state.clock_mhz[g] != now:
                self.changes.append(Clock(g, now, state.time_s))
            state.set_clock(g, now)
        if self.timed:
            state.retimed(chosen)

    def _outcome(self) -> Outcome:
        changes = self.changes
        if not self.timed:
            final = enumerate(self.state.clock_mhz.tolist())
            changes = [Clock(g, mhz) for g, mhz in final if mhz]
        solution = ConsolidationSolution.of(self.assignments, changes)
        info: dict[str, float | int | str] = {"decisions": self.decisions}
        if self.refused:
            info["turned_down"] = self.refused
        return Outcome(
            solution if solution.assignments else None,
            Status.FEASIBLE if solution.assignments else Status.NO_SOLUTION,
            self.stopped or Termination.COMPLETED,
            info=info,
        )
