"""A schedule that is given, such as one that was measured, among the policies.

``--policy 'optgap.heuristics.coscheduling.replayed:Replay(schedule=log.csv)'``
"""

from __future__ import annotations

from optgap.heuristics.coscheduling.engine import State
from optgap.models.coscheduling.measured import read_schedule
from optgap.models.errors import InputError, NoQuote


class Replay:
    """The GPU counts and the order of starts of a CSV log, with the profiles' run times.

    Parameters
    ----------
    schedule: the file, ``app,gpu_count,start_s,end_s`` and more; see
        `optgap.models.coscheduling.measured.read_schedule`.
    rows: which rows of it, as ``platform/queue/policy``; empty where it holds one schedule.
    """

    def __init__(self, schedule: str = "", rows: str = "") -> None:
        if not schedule:
            raise InputError("Replay", "schedule", NoQuote("nothing"), "a CSV file")
        self.schedule = schedule
        self.rows = rows
        self.plan: list[tuple[int, int]] | None = None

    def place(self, state: State) -> list[tuple[int, int]]:
        """Each job as soon as it fits, none before one that started earlier in the log.

        Raises
        ------
        InputError: for a log that cannot be read or leaves out a job.
        """
        if self.plan is None:
            self.plan = self._read(state)
        free, places, action = state.free_gpus, state.free_domains, []
        while self.plan and self.plan[0][1] <= free and places:
            job, count = self.plan[0]
            if job not in state.waiting:
                break
            action.append(self.plan.pop(0))
            free, places = free - count, places - 1
        return action

    def _read(self, state: State) -> list[tuple[int, int]]:
        problem = state.problem
        given = read_schedule(self.schedule, problem, where=self.rows)
        if len(given) < len(problem):
            found = NoQuote(f"{len(given)} of {len(problem)} jobs")
            raise InputError(self.schedule, self.rows, found, "every job of the problem")
        return [(run.job, run.gpu_count) for run in given.runs]
