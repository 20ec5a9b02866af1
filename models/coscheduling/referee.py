"""The referee: plain Python that shares nothing with any method or policy."""

from __future__ import annotations

import math

from optgap.models.coscheduling.problem import CoschedulingProblem
from optgap.models.coscheduling.solution import CoschedulingSolution, JobRun
from optgap.models.result import Evaluation, Violation
from optgap.models.times import freed_s, shown, slack_s


def check(problem: CoschedulingProblem, solution: CoschedulingSolution) -> list[Violation]:
    """Return every broken constraint, job by job and then over time.

    Measured times may differ from the profiles' and overlap by the schedule's own tolerance.
    """
    broken: list[Violation] = []
    seen: set[int] = set()
    latest_s = problem.latest_s
    for run in solution.runs:
        alone = _alone(problem, run, solution)
        broken += alone
        if not alone and run.start_s > latest_s:
            broken.append(Violation("latest start_s", f"job {run.job}", run.start_s, latest_s))
        if run.job in seen:
            broken.append(Violation("runs per job", f"job {run.job}", 2, 1))
        seen.add(run.job)
    if not broken:
        broken += _together(problem, solution)
    return broken


def _alone(
    problem: CoschedulingProblem, run: JobRun, solution: CoschedulingSolution
) -> list[Violation]:
    """Return what is wrong with one run, whatever the others do."""
    if not 0 <= run.job < len(problem):
        return [Violation("job number", f"job {run.job}", run.job, len(problem) - 1)]
    where = f"job {run.job} ({problem.job_names[run.job]})"
    broken = []
    for g in run.gpu_index:
        if not 0 <= g < problem.gpus:
            broken.append(Violation("GPU index", where, g, problem.gpus - 1))
    if len(set(run.gpu_index)) != len(run.gpu_index):
        shown = "-".join(map(str, run.gpu_index))
        broken.append(Violation("different GPUs", where, shown, "each GPU once"))
    mode = problem.application(run.job).mode(len(run.gpu_index))
    if mode is None:
        counts = ", ".join(str(m.gpu_count) for m in problem.application(run.job).modes)
        broken.append(Violation("GPU count", where, len(run.gpu_index), f"one of {counts}"))
    if not (math.isfinite(run.start_s) and math.isfinite(run.end_s) and run.start_s >= 0):
        broken.append(Violation("times", where, f"{run.start_s} to {run.end_s}", "0 or later"))
        return broken
    lasted = run.end_s - run.start_s
    near = min(slack_s(run.end_s), mode.runtime_s / 2) if mode is not None else 0.0
    if solution.measured and lasted <= 0:
        broken.append(Violation("times", where, f"{run.start_s} to {run.end_s}", "a later end"))
    elif not solution.measured and mode is not None and abs(lasted - mode.runtime_s) > near:
        broken.append(Violation("runtime_s", where, lasted, mode.runtime_s))
    released = problem.releases[run.job] if problem.releases else 0.0
    if run.start_s < released - slack_s(run.start_s) - _more_s(solution, run):
        broken.append(Violation("release_s", where, run.start_s, released))
    return broken


def _more_s(solution: CoschedulingSolution, run: JobRun) -> float:
    """Return the tolerance of measured times beyond rounding, s.

    It is at most half of the run, so runs shorter than the tolerance are not side by side.
    """
    return min(solution.tolerance_s, (run.end_s - run.start_s) / 2) if solution.measured else 0.0


def _together(problem: CoschedulingProblem, solution: CoschedulingSolution) -> list[Violation]:
    """GPUs held twice, and more jobs at a time than NUMA domains; each shown once per start."""
    broken = []
    running: list[JobRun] = []
    until = {
        run.job: freed_s(run.start_s, run.end_s) - _more_s(solution, run) for run in solution.runs
    }
    for run in sorted(solution.runs, key=lambda run: run.start_s):
        running = [other for other in running if until[other.job] > run.start_s]
        where = f"job {run.job} ({problem.job_names[run.job]}) at {shown(run.start_s)} s"
        for other in running:
            shared = sorted(set(other.gpu_index) & set(run.gpu_index))
            if shared:
                found = f"GPU {shared[0]} still held by job {other.job}"
                broken.append(Violation("one job per GPU", where, found, "a free GPU"))
        running.append(run)
        if len(running) > problem.numa:
            broken.append(Violation("jobs at a time", where, len(running), problem.numa))
    return broken


def evaluate(problem: CoschedulingProblem, solution: CoschedulingSolution) -> Evaluation:
    """Objective and metrics; energy counts every GPU from the first release to the last end.

    Measured runs last as long as they were seen to, at the power of their profile.
    """
    active: list[float] = []
    held: list[float] = []
    loss: list[float] = []
    waits: list[float] = []
    makespan, epoch_s = 0.0, problem.epoch_s
    for run in solution.runs:
        app = problem.application(run.job)
        mode = problem.mode(run.job, len(run.gpu_index))
        lasted = run.end_s - run.start_s if solution.measured else mode.runtime_s
        active.append(mode.power_w * lasted)
        held.append(mode.gpu_count * lasted)
        loss.append(lasted / min(m.runtime_s for m in app.modes) - 1)
        waits.append(run.start_s - (problem.releases[run.job] if problem.releases else 0.0))
        makespan = max(makespan, run.start_s - epoch_s + lasted)
    gpu_seconds = math.fsum(held)
    idle_j = problem.idle_w * max(0.0, problem.gpus * makespan - gpu_seconds)
    energy = math.fsum([*active, idle_j])
    metrics: dict[str, float | int] = {
        "energy_j": energy,
        "makespan_s": makespan,
        "edp_js": energy * makespan,
        "active_j": math.fsum(active),
        "idle_j": idle_j,
        "gpu_utilisation": gpu_seconds / (problem.gpus * makespan) if makespan else 0.0,
        "mean_performance_loss": math.fsum(loss) / len(loss) if loss else 0.0,
        "worst_performance_loss": max(loss, default=0.0),
        "mean_wait_s": math.fsum(waits) / len(waits) if waits else 0.0,
        "jobs_run": len(solution.runs),
    }
    if solution.measured:
        metrics["profiled_s"] = _profiled(problem, solution)
        metrics["measured_s"] = math.fsum(run.end_s - run.start_s for run in solution.runs)
    return Evaluation(problem.value(energy, makespan), metrics)


def _profiled(problem: CoschedulingProblem, solution: CoschedulingSolution) -> float:
    """Run time of all jobs by their profiles, to hold the measured one against, s."""
    modes = (problem.application(run.job).mode(run.gpu_count) for run in solution.runs)
    return math.fsum(mode.runtime_s for mode in modes if mode is not None)
