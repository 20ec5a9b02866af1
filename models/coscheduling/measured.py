"""Schedules that a clock has seen: read from a log, and the problem that they solve."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import replace

from optgap.models.coscheduling.problem import Application, CoschedulingProblem, Mode
from optgap.models.coscheduling.solution import MEASURED_TO_S, CoschedulingSolution, JobRun
from optgap.models.errors import InputError, NoQuote
from optgap.models.tables import Column, read_table

COLUMNS = (
    Column("app"),
    Column("gpu_count", "integer", minimum=1),
    Column("start_s", "time"),
    Column("end_s", "time"),
    Column("job", "integer", required=False, empty=-1),
    Column("gpu_index", required=False, empty=""),
    Column("gpus_or_placement", required=False, empty=""),
    Column("platform", required=False, empty=""),
    Column("queue", required=False, empty=""),
    Column("policy", required=False, empty=""),
)


def read_schedule(
    path: str | os.PathLike[str],
    problem: CoschedulingProblem,
    *,
    where: str = "",
) -> CoschedulingSolution:
    """Return a measured schedule of `problem` from a CSV log, one row per run.

    The columns are ``app,gpu_count,start_s,end_s``; ``job`` says which of several jobs of an
    application it is, else they are taken in queue order (``name#2`` is the application
    ``name``). ``gpu_index`` or ``gpus_or_placement`` lists the GPUs; without them they are
    dealt out, lowest first. Where one file holds several schedules, `where` picks the rows of
    one, as ``platform/queue/policy``.

    Raises
    ------
    InputError: naming the row and column of what is not a run of the problem.
    """
    table = read_table(path, COLUMNS)
    keys = ["/".join(key) for key in zip(*(table[c] for c in COLUMN_KEYS), strict=True)]
    chosen = [k for k, key in enumerate(keys) if not where or key == where]
    if not chosen:
        known = ", ".join(dict.fromkeys(keys))
        raise InputError(str(path), "", NoQuote(f"no rows of {where or 'any'}"), f"one of {known}")
    if not where and len({keys[k] for k in chosen}) > 1:
        found = NoQuote(f"{len(set(keys))} schedules")
        raise InputError(str(path), "", found, "one, picked as platform/queue/policy")
    jobs = _Jobs(problem, str(path))
    for k in chosen:
        jobs.take({name: column[k] for name, column in table.items()})
    return CoschedulingSolution.of(jobs.runs(), measured=True)


COLUMN_KEYS = ("platform", "queue", "policy")


class _Jobs:
    """Jobs of the rows of a log."""

    def __init__(self, problem: CoschedulingProblem, path: str) -> None:
        self.problem = problem
        self.path = path
        self.left: dict[str, list[int]] = defaultdict(list)
        for job in range(len(problem)):
            self.left[problem.application(job).name].append(job)
        self.rows: list[tuple[int, int, float, float, tuple[int, ...]]] = []

    def take(self, row: dict[str, object]) -> None:
        """Add one run."""
        number, count = row["#"], row["gpu_count"]
        assert isinstance(count, int)
        name = str(row["app"]).partition("#")[0] or str(row["app"])
        name = str(row["app"]) if str(row["app"]) in self.left else name
        job = row["job"]
        mine = self.left.get(name, [])
        if not mine or (job != -1 and job not in mine):
            found = row["app"] if job == -1 else NoQuote(f"job {job} ({row['app']})")
            raise InputError(self.path, f"row {number}", found, "a job of the problem, once")
        taken = mine[0] if job == -1 else int(str(job))
        mine.remove(taken)
        listed = str(row["gpu_index"] or row["gpus_or_placement"])
        listed = "" if listed.startswith("(") else listed  # GPUs per domain: none by name
        gpus = tuple(sorted(map(int, re.findall(r"\d+", listed))))
        if gpus and len(gpus) != count:
            raise InputError(self.path, f"row {number}", listed, f"{count} GPUs")
        start, end = float(str(row["start_s"])), float(str(row["end_s"]))
        if end <= start:
            raise InputError(self.path, f"row {number}, column end_s", end, "a later time")
        self.rows.append((taken, count, start, end, gpus))

    def runs(self) -> list[JobRun]:
        """Return every run, with GPUs dealt out where the log has none."""
        runs: list[JobRun] = []
        for job, count, start, end, gpus in sorted(self.rows, key=lambda row: row[2]):
            held = {g for run in runs if run.end_s > start + MEASURED_TO_S for g in run.gpu_index}
            free = [g for g in range(self.problem.gpus) if g not in held]
            # too few free GPUs: the same ones again, for the referee to complain about
            chosen = gpus or tuple((free + sorted(held))[:count])
            runs.append(JobRun(job, start, end, chosen))
        return runs


def as_measured(
    problem: CoschedulingProblem, solution: CoschedulingSolution
) -> CoschedulingProblem:
    """Return the problem of the jobs that ran, each with its measured time on its GPU count.

    Every other GPU count of an application keeps its profile. Run times are shorter by the
    tolerance, within which measured runs may overlap: bounds for this problem are bounds for
    what was measured.
    """
    applications: list[Application] = []
    jobs: list[int] = []
    releases: list[float] = []
    for run in sorted(solution.runs, key=lambda run: run.job):
        app = problem.application(run.job)
        modes = tuple(
            _seen(problem, m, run, solution.tolerance_s) if m.gpu_count == run.gpu_count else m
            for m in app.modes
        )
        jobs.append(len(applications))
        applications.append(Application(problem.job_names[run.job], modes))
        releases.append(min(problem.release_s(run.job), run.start_s))
    return replace(
        problem,
        applications=tuple(applications),
        jobs=tuple(jobs),
        releases=tuple(releases) if any(releases) else (),
        name=f"{problem.name} (as measured)",
    )


def _seen(problem: CoschedulingProblem, mode: Mode, run: JobRun, tolerance_s: float) -> Mode:
    lasted = run.end_s - run.start_s
    shorter = max(lasted - tolerance_s, lasted / 2)
    # A mode that draws less than idle GPUs is worth more the longer it lasts: that is kept.
    below_idle = min(0.0, mode.power_per_gpu_w - problem.idle_w)
    power = mode.power_per_gpu_w + below_idle * (lasted / shorter - 1)
    return replace(mode, runtime_s=shorter, power_per_gpu_w=max(power, 1e-9))
