"""The referee: works from the segments alone and shares nothing with any engine or policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from optgap.models.elastic.arrays import Floats, Ints
from optgap.models.elastic.checks import POWER_SLACK
from optgap.models.elastic.jobs import Kind
from optgap.models.result import Evaluation, Violation
from optgap.models.times import LATEST_S, ROUNDING, freed_s, shown, slack_s

if TYPE_CHECKING:
    from optgap.models.elastic.problem import ElasticProblem
    from optgap.models.elastic.solution import ElasticSolution

TOLERANCE = 1e-6
"""Relative: what floats make of sums of work and of energy."""
SUMS = 1e-12
"""Relative: what adding and taking away makes of a level."""
MOST_SHOWN = 50
"""Violations of one kind that are listed."""


# -- what each segment does ---------------------------------------------------------------


def _row(problem: ElasticProblem, solution: ElasticSolution) -> tuple[Ints, Ints]:
    """Return (class, index of the GPU count) of every segment; −1 for a count that no class has."""
    index = np.searchsorted(problem.counts, solution.gpus)
    index = np.minimum(index, len(problem.counts) - 1)
    index = np.where(problem.counts[index] == solution.gpus, index, -1)
    return problem.jobs.of_class[solution.job], index


def rates(problem: ElasticProblem, solution: ElasticSolution) -> Floats:
    """Return (S,) iterations per second."""
    c, k = _row(problem, solution)
    speed = 1.0 / problem.time_s
    running = np.where(solution.kind == Kind.RUN, speed[c, k, solution.frequency], 0.0)
    sweeping = speed.mean(axis=2)[c, k]
    return np.where(solution.kind == Kind.PROFILE, sweeping, running)


def powers(problem: ElasticProblem, solution: ElasticSolution) -> Floats:
    """Return (S,) mean W of all GPUs that the segment holds."""
    return _watts(problem, solution, problem.power_w.mean(axis=2))


def highest_powers(problem: ElasticProblem, solution: ElasticSolution) -> Floats:
    """Return highest W of each segment, (S,): of a profiling window at its hungriest frequency."""
    return _watts(problem, solution, problem.power_w.max(axis=2))


def _watts(problem: ElasticProblem, solution: ElasticSolution, sweep_w: Floats) -> Floats:
    """Return (S,) W; `sweep_w`: (C, K) of passing through all clocks."""
    c, k = _row(problem, solution)
    running = problem.power_w[c, k, solution.frequency]
    watts = np.where(solution.kind == Kind.RUN, running, 0.0)
    sweeping = (solution.kind == Kind.PROFILE) | (solution.kind == Kind.PRERUN)
    watts = np.where(sweeping, sweep_w[c, k], watts)
    return np.where(solution.kind == Kind.RESTART, problem.idle_w * solution.gpus, watts)


def work(problem: ElasticProblem, solution: ElasticSolution) -> Floats:
    """Return (J,) iterations done."""
    done = rates(problem, solution) * (solution.end_s - solution.start_s)
    return np.asarray(np.bincount(solution.job, done, minlength=len(problem)), dtype=np.float64)


def _work_slack(problem: ElasticProblem, solution: ElasticSolution) -> Floats:
    """Return the tolerance of each job's iterations, (J,): a share, and rounding of its times.

    However late a segment is, its rounding forgives no more than half of it.
    """
    spans = solution.end_s - solution.start_s
    off_s = np.minimum(ROUNDING * np.abs(solution.end_s), spans / 2)
    rounded = rates(problem, solution) * off_s
    of_times = np.bincount(solution.job, rounded, minlength=len(problem))
    return np.asarray(TOLERANCE * problem.jobs.iterations + of_times)


def finished(problem: ElasticProblem, solution: ElasticSolution) -> np.ndarray:
    """Return (J,) whether all iterations are done."""
    least = problem.jobs.iterations - _work_slack(problem, solution)
    return np.asarray(work(problem, solution) >= least)


def profile_of_power(problem: ElasticProblem, solution: ElasticSolution) -> tuple[Floats, Floats]:
    """Return (times, W from each on): highest power of all jobs; ends come before starts."""
    inside = solution.kind != Kind.PRERUN
    return step_function(
        solution.start_s[inside], solution.end_s[inside], highest_powers(problem, solution)[inside]
    )


def step_function(
    start: Floats, end: Floats, value: Floats, slack: float | None = None
) -> tuple[Floats, Floats]:
    """Return (times, level from each on) of a sum of intervals; those that touch do not overlap.

    Ends count as earlier by `slack`, s; unless given by as much as is the same time.
    """
    if not len(start):
        return np.zeros(1), np.zeros(1)
    times = np.concatenate([freed_s(start, end) if slack is None else end - slack, start])
    change = np.concatenate([-value, value])
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(change[order])


def within_limit(problem: ElasticProblem, solution: ElasticSolution) -> bool:
    """Tell whether the problem's own power limit is kept at all times."""
    if not math.isfinite(problem.power_limit_w):
        return True
    level = profile_of_power(problem, solution)[1]
    return float(level.max(initial=0.0)) <= problem.power_allowed_w * (1 + SUMS)


# -- constraints --------------------------------------------------------------------------


def check(problem: ElasticProblem, solution: ElasticSolution) -> list[Violation]:
    """Return every broken constraint: each segment alone, each job over time, then all together."""
    broken = list(_alone(problem, solution))
    if broken:
        return broken
    broken += _sequences(problem, solution)
    broken += _capacity(problem, solution)
    broken += _places(problem, solution)
    broken += _power(problem, solution)
    return broken


def _where(problem: ElasticProblem, solution: ElasticSolution, s: int) -> str:
    name = problem.jobs.names[int(solution.job[s])]
    return f"job {name} at {shown(solution.start_s[s])} s"


def _alone(problem: ElasticProblem, solution: ElasticSolution) -> Iterator[Violation]:
    """Yield what is wrong with a segment, whatever the others do."""
    job, n = solution.job, solution.gpus
    if len(job) and not ((job >= 0) & (job < len(problem))).all():
        yield Violation("job number", "segments", int(job.max()), len(problem) - 1)
        return
    start, end = solution.start_s, solution.end_s
    c, k = _row(problem, solution)
    known = (k >= 0) & np.isfinite(problem.time_s[c, k, 0])
    clocks = len(problem.frequencies_mhz)
    running = solution.kind == Kind.RUN
    clock = np.where(running, (solution.frequency >= 0) & (solution.frequency < clocks), True)
    timely = (np.abs(start) <= LATEST_S) & (np.abs(end) <= LATEST_S) & (end > start)
    early = timely & (start < problem.jobs.submit_s[job] - slack_s(start))
    pairs = {
        pair: _fits(problem, solution, *pair)
        for pair in set(zip(solution.place.tolist(), n.tolist(), strict=True))
    }
    fits = np.array(
        [pairs[pair] for pair in zip(solution.place.tolist(), n.tolist(), strict=True)], dtype=bool
    )
    tests = (
        ("GPU count", ~known, n, "a count of its class"),
        ("clock", ~clock, solution.frequency, "a clock of the problem"),
        ("times", ~timely, end, f"an end after the start, {LATEST_S:g} s at most"),
        ("submit_s", early, start, "not before it is submitted"),
        ("place", ~fits, solution.place, "aligned blocks of as many GPUs"),
    )
    for name, bad, values, limit in tests:
        for s in np.flatnonzero(bad)[:MOST_SHOWN]:
            found = values[s].item()
            yield Violation(name, _where(problem, solution, int(s)), found, limit)


def _fits(problem: ElasticProblem, solution: ElasticSolution, p: int, n: int) -> bool:
    """Tell whether place number p is one that n GPUs may have."""
    if p < 0:
        return True
    if p >= len(solution.places):
        return False
    per = problem.gpus_per_node
    size = min(n, per)
    blocks = solution.places[p]
    if len(set(blocks)) != len(blocks) or len(blocks) * size != n:
        return False
    return all(0 <= g <= problem.gpus - size and g % size == 0 for g in blocks)


def _sequences(problem: ElasticProblem, solution: ElasticSolution) -> Iterator[Violation]:
    """Yield violations over time: overlapping segments, unpaid restarts, too much work."""
    order = np.lexsort((solution.start_s, solution.job))
    # plain lists: a day has a hundred thousand segments
    job, kind, gpus, place = (
        column[order].tolist()
        for column in (solution.job, solution.kind, solution.gpus, solution.place)
    )
    start, end = solution.start_s[order].tolist(), solution.end_s[order].tolist()
    free = freed_s(solution.start_s[order], solution.end_s[order]).tolist()
    slack = slack_s(solution.end_s[order]).tolist()
    due_by = {
        (n, moved): problem.overhead.seconds(n, moved) for n in set(gpus) for moved in (False, True)
    }
    paid = due = 0.0
    shown = 0
    for s in range(len(order)):
        if shown >= MOST_SHOWN:
            return
        fresh = s == 0 or job[s] != job[s - 1]
        if not fresh and start[s] < free[s - 1]:
            shown += 1
            where = _where(problem, solution, int(order[s]))
            yield Violation("one segment at a time", where, "two", "one")
        if kind[s] == Kind.PRERUN:
            paid = due = 0.0
            continue
        started = fresh or kind[s - 1] == Kind.PRERUN or gpus[s] != gpus[s - 1]
        started = started or start[s] - end[s - 1] > slack[s]
        moved = not started and not _same_place(solution, place[s - 1], place[s])
        if started or moved:
            paid, due = 0.0, due_by[gpus[s], moved]
        if kind[s] == Kind.RESTART:
            paid += end[s] - start[s]
        elif paid < due - slack[s]:
            shown += 1
            where = _where(problem, solution, int(order[s]))
            yield Violation("restart", where, float(paid), f"{due:g} s")
            due = 0.0
    done = work(problem, solution)
    over = done > problem.jobs.iterations + _work_slack(problem, solution) + 1e-9
    for j in np.flatnonzero(over)[:MOST_SHOWN]:
        name = problem.jobs.names[j]
        limit = float(problem.jobs.iterations[j])
        yield Violation("iterations", f"job {name}", float(done[j]), limit)


def _same_place(solution: ElasticSolution, a: int, b: int) -> bool:
    """Tell whether two places are the same GPUs."""
    return a == b or (a >= 0 and b >= 0 and set(solution.places[a]) == set(solution.places[b]))


def _capacity(problem: ElasticProblem, solution: ElasticSolution) -> Iterator[Violation]:
    inside = solution.kind != Kind.PRERUN
    times, used = step_function(
        solution.start_s[inside], solution.end_s[inside], solution.gpus[inside].astype(float)
    )
    worst = int(np.argmax(used))
    if used[worst] > problem.gpus + 0.5:
        found = round(float(used[worst]))
        yield Violation("GPUs", f"at {shown(times[worst])} s", found, problem.gpus)


def _expanded(solution: ElasticSolution) -> tuple[Ints, Ints]:
    """Return (segment, first GPU) of every block of every segment that has a place."""
    placed = np.flatnonzero((solution.place >= 0) & (solution.kind != Kind.PRERUN))
    if not len(placed):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    lengths = np.array([len(p) for p in solution.places], dtype=np.int64)
    flat = np.array([g for p in solution.places for g in p], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    chosen = solution.place[placed]
    segment = np.repeat(placed, lengths[chosen])
    offset = np.arange(len(segment)) - np.repeat(
        np.cumsum(lengths[chosen]) - lengths[chosen], lengths[chosen]
    )
    return segment, flat[np.repeat(starts[chosen], lengths[chosen]) + offset]


def _places(problem: ElasticProblem, solution: ElasticSolution) -> Iterator[Violation]:
    """Yield two jobs on one GPU."""
    segment, first = _expanded(solution)
    if not len(segment):
        return
    size = np.minimum(solution.gpus[segment], problem.gpus_per_node)
    s = np.repeat(segment, size)
    gpu = np.repeat(first, size) + (np.arange(len(s)) - np.repeat(np.cumsum(size) - size, size))
    order = np.lexsort((solution.start_s[s], gpu))
    s, gpu = s[order], gpu[order]
    free_s = freed_s(solution.start_s[s[:-1]], solution.end_s[s[:-1]])
    same = (gpu[1:] == gpu[:-1]) & (solution.job[s[1:]] != solution.job[s[:-1]])
    clash = same & (solution.start_s[s[1:]] < free_s)
    for k in np.flatnonzero(clash)[:MOST_SHOWN]:
        held = problem.jobs.names[int(solution.job[s[k]])]
        where = _where(problem, solution, int(s[k + 1]))
        yield Violation("one job per GPU", where, f"GPU {gpu[k]} held by {held}", "a free GPU")


def _power(problem: ElasticProblem, solution: ElasticSolution) -> Iterator[Violation]:
    limit = problem.power_limit_w
    if solution.power_limit_w is not None:
        limit = max(limit, solution.power_limit_w)
    times, level = profile_of_power(problem, solution)
    worst = int(np.argmax(level))
    if level[worst] > limit * (1 + POWER_SLACK) * (1 + SUMS):
        yield Violation("power limit", f"at {shown(times[worst])} s", float(level[worst]), limit)


# -- the objective ------------------------------------------------------------------------


def evaluate(problem: ElasticProblem, solution: ElasticSolution) -> Evaluation:
    """Mean JCT of the finished jobs, energy by cause, and how the cluster was used."""
    done = finished(problem, solution)
    end = np.zeros(len(problem))
    np.maximum.at(end, solution.job, solution.end_s)
    jct = (end - problem.jobs.submit_s)[done]
    spans = solution.end_s - solution.start_s
    watts = powers(problem, solution)
    inside = solution.kind != Kind.PRERUN
    joules = {kind: math.fsum((watts * spans)[solution.kind == kind].tolist()) for kind in Kind}
    idle = idle_energy(problem, solution)
    level = profile_of_power(problem, solution)[1]
    steady = inside & (solution.kind != Kind.PROFILE)
    calm = step_function(solution.start_s[steady], solution.end_s[steady], watts[steady])[1]
    makespan = _makespan(problem, solution)
    busy = math.fsum((solution.gpus * spans)[inside].tolist())
    energy = math.fsum([*joules.values(), idle])
    limit = problem.power_limit_w
    peak = max(0.0, float(level.max(initial=0.0)))
    metrics: dict[str, float | int] = {
        "mean_jct_s": float(jct.mean()) if len(jct) else 0.0,
        "median_jct_s": float(np.median(jct)) if len(jct) else 0.0,
        "p95_jct_s": float(np.percentile(jct, 95)) if len(jct) else 0.0,
        "makespan_s": makespan,
        "energy_j": energy,
        "run_j": joules[Kind.RUN],
        "profile_j": joules[Kind.PROFILE],
        "prerun_j": joules[Kind.PRERUN],
        "restart_j": joules[Kind.RESTART],
        "idle_j": idle,
        "peak_power_w": peak,
        "power_overshoot_w": max(0.0, peak - limit) if math.isfinite(limit) else 0.0,
        "steady_overshoot_w": (
            max(0.0, float(calm.max(initial=0.0)) - limit) if math.isfinite(limit) else 0.0
        ),
        "mean_power_w": energy / makespan if makespan else 0.0,
        "gpu_utilisation": busy / (problem.gpus * makespan) if makespan else 0.0,
        "restarts": int((solution.kind == Kind.RESTART).sum()),
        "jobs_done": int(done.sum()),
    }
    return Evaluation(metrics["mean_jct_s"], metrics)


def _makespan(problem: ElasticProblem, solution: ElasticSolution) -> float:
    """Return the time from the first submission to the last end, s."""
    return float(solution.end_s.max(initial=problem.epoch_s)) - problem.epoch_s


def idle_energy(problem: ElasticProblem, solution: ElasticSolution) -> float:
    """J drawn until the last job ends by GPUs that no job holds, on nodes that are on."""
    inside = solution.kind != Kind.PRERUN
    start, end, n = solution.start_s[inside], solution.end_s[inside], solution.gpus[inside]
    makespan = _makespan(problem, solution)
    busy = math.fsum((n * (end - start)).tolist())
    if not solution.switch_off:
        return problem.idle_w * max(0.0, problem.gpus * makespan - busy)
    per = problem.gpus_per_node
    if (solution.place[inside] < 0).any():  # by counts: as few nodes as hold them
        times, used = step_function(start, end, n.astype(float))
        on = np.ceil(np.maximum(used[:-1], 0.0) / per - 1e-6)
        gpu_seconds = per * math.fsum((on * np.diff(times)).tolist())
        return problem.idle_w * max(0.0, gpu_seconds - busy)
    segment, first = _expanded(solution)
    node = first // per
    times = np.concatenate([solution.start_s[segment], solution.end_s[segment]])
    change = np.concatenate([np.ones(len(segment)), -np.ones(len(segment))])
    nodes = np.concatenate([node, node])
    order = np.lexsort((times, nodes))
    level = np.cumsum(change[order])  # back at 0 after the last end on each node
    span = np.diff(times[order])
    on = np.where(level[:-1] > 0.5, span, 0.0)
    return problem.idle_w * max(0.0, per * math.fsum(on.tolist()) - busy)
