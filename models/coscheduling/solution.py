"""Start, end and GPUs of every job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from optgap.models.errors import NoQuote
from optgap.models.shown import Brief

if TYPE_CHECKING:
    from optgap.models.coscheduling.problem import CoschedulingProblem
    from optgap.models.csvout import Table
    from optgap.models.jsonio import Fields

SCHEMA = "optgap.coscheduling.solution/1"
TIMES = ("profiled", "measured")
MEASURED_TO_S = 0.05
"""Default tolerance of measured times of two jobs that follow each other, s."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """Run of one job.

    Parameters
    ----------
    job: position of the job in the queue.
    start_s, end_s: start and end, s, on the clock of the problem's releases.
    gpu_index: its GPUs, ascending; their number is its mode.
    """

    job: int
    start_s: float
    end_s: float
    gpu_index: tuple[int, ...]

    @property
    def gpu_count(self) -> int:
        """Number of GPUs, which is the mode."""
        return len(self.gpu_index)


@dataclass(frozen=True, slots=True, repr=False)
class CoschedulingSolution(Brief):
    """Co-scheduling solution: one run per job, in order of start.

    Parameters
    ----------
    measured: whether the times were measured and need not match the profiles.
    tolerance_s: allowed overlap of measured times of different jobs, s.
    """

    runs: tuple[JobRun, ...]
    measured: bool = False
    tolerance_s: float = 0.0

    @classmethod
    def of(
        cls, runs: Iterable[JobRun], measured: bool = False, tolerance_s: float = MEASURED_TO_S
    ) -> CoschedulingSolution:
        """Make a solution of runs in any order; `tolerance_s` is for measured times only."""
        ordered = tuple(sorted(runs, key=lambda run: (run.start_s, run.job)))
        return cls(ordered, measured, tolerance_s if measured else 0.0)

    def moved(self, by_s: float) -> CoschedulingSolution:
        """Return the same schedule with all times shifted by `by_s`."""
        runs = (replace(r, start_s=r.start_s + by_s, end_s=r.end_s + by_s) for r in self.runs)
        return replace(self, runs=tuple(runs))

    def __len__(self) -> int:
        return len(self.runs)

    def to_json(self, problem: CoschedulingProblem) -> dict[str, Any]:
        """Return the JSON form; `job` is the position in the queue."""
        return {
            "schema": SCHEMA,
            **({"times": "measured", "tolerance_s": self.tolerance_s} if self.measured else {}),
            "schedule": [
                {
                    "job": run.job,
                    "app": problem.application(run.job).name,
                    "gpu_count": run.gpu_count,
                    "start_s": run.start_s,
                    "end_s": run.end_s,
                    "gpu_index": list(run.gpu_index),
                }
                for run in self.runs
            ],
        }

    def schedule(self, problem: CoschedulingProblem) -> Table:
        """Return a row per run."""
        header = ("job", "app", "gpu_count", "start_s", "end_s", "gpu_index")
        return header, [
            (r.job, problem.application(r.job).name, r.gpu_count, r.start_s, r.end_s, r.gpu_index)
            for r in self.runs
        ]

    @classmethod
    def from_json(cls, fields: Fields, problem: CoschedulingProblem) -> CoschedulingSolution:
        """Read a schedule of `problem`; jobs left out do not run.

        ``"times": "measured"`` says that the run times are observed ones, with ``tolerance_s``.

        Raises
        ------
        InputError: for an unknown job, a job given twice, an `app` that is not that job's, or
            a `gpu_count` that is not the number of GPUs listed.
        """
        fields.schema(SCHEMA)
        runs: list[JobRun] = []
        seen: set[int] = set()
        for entry in fields.objects("schedule"):
            job = entry.integer("job")
            if job >= len(problem):
                raise entry.fail("job", job, f"a job below {len(problem)}")
            if job in seen:
                raise entry.fail("job", NoQuote(f"job {job} twice"), "it once")
            seen.add(job)
            name = problem.application(job).name
            if entry.text("app", name) != name:
                raise entry.fail("app", entry.text("app"), f"{name!r} for job {job}")
            gpus = entry.integers("gpu_index")
            if entry.integer("gpu_count", minimum=1, default=len(gpus)) != len(gpus):
                raise entry.fail("gpu_index", gpus, f"{entry.integer('gpu_count')} GPU indices")
            runs.append(JobRun(job, entry.number("start_s"), entry.number("end_s"), tuple(gpus)))
        measured = fields.choice("times", TIMES, TIMES[0]) == "measured"
        tolerance = fields.number("tolerance_s", 0.0, 60.0, default=MEASURED_TO_S)
        return cls.of(runs, measured, tolerance)

    @classmethod
    def from_table(cls, path: str, problem: CoschedulingProblem, part: str) -> CoschedulingSolution:
        """Read a measured schedule from a CSV log; `part` picks its rows as platform/queue/policy.

        Raises
        ------
        InputError: with row and column of an entry that is no run of the problem.
        """
        from optgap.models.coscheduling.measured import read_schedule

        return read_schedule(path, problem, where=part)
