"""From a problem and a rule to an outcome: sets the compiled event loop up and drives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optgap.heuristics.queueing.loop import advance
from optgap.heuristics.queueing.rule import INF, SBS, Rule
from optgap.heuristics.queueing.tables import (
    CLASS,
    COUNTS,
    FAMILY,
    JOB,
    Run,
    Table,
)
from optgap.models.compiled import UP_TO, interpreted
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.queueing.arrays import FloatArray, IntArray
from optgap.models.result import Outcome, Status, Termination
from optgap.models.work import WORK
from optgap.solvers.queueing.list_schedule import held_gpus
from optgap.solvers.queueing.online import EVENTS, LONGEST, Online

EVENTS_A_LOOK = 512
"""Events of a fixed rule between two looks at the limits."""


def simulate(
    problem: QueueingProblem, rule: Rule, *, limits: Limits, lookahead: int = 0, label: str
) -> Outcome:
    """Run a policy to the end of the stream, or until `limits` say stop.

    A run that was stopped returns the schedule so far; the other jobs never start.
    """
    run: Any = set_up(problem, rule, lookahead)
    stopped = drive(problem, run.tally, lambda events: advance(run, events), limits, label)
    return outcome_of(problem, run, stopped)


def drive(
    problem: QueueingProblem,
    tally: IntArray,
    step: Callable[[int], bool],
    limits: Limits,
    label: str,
    weight: int = 1,
) -> Termination:
    """Call `step` with a number of events until it says that there are no more.

    Parameters
    ----------
    tally: how many jobs have arrived stands first.
    weight: how much work a job is, beside one of a fixed rule.
    """
    events, more = max(1, EVENTS_A_LOOK // weight), True
    while more:
        stopped = limits.stop
        if stopped is not None:
            return stopped
        limits.progress(f"{label}: {tally[0]} of {len(problem)} jobs", None, None)
        with interpreted(weight * len(problem) <= UP_TO.queueing_jobs):
            more = step(events)
        limits.spend(WORK.queueing_event * events * weight)
    return Termination.COMPLETED


def outcome_of(problem: QueueingProblem, run: Any, termination: Termination) -> Outcome:
    """The schedule that has been written down."""
    info = {name: int(run.tally[COUNTS.index(name)]) for name in ("rounds", "events")}
    info["longest_queue"] = int(run.tally[COUNTS.index("longest_queue")])
    start, nodes = run.jobs["start"], run.jobs["nodes"]
    return _written(problem, start, nodes, (run.held[0], run.held[1]), termination, info)


def served(
    problem: QueueingProblem, online: Online, termination: Termination, info: dict[str, int]
) -> Outcome:
    """The schedule of a stream that was served online."""
    tally = online.tally
    info = {"events": int(tally[EVENTS]), **info, "longest_queue": int(tally[LONGEST])}
    sizes = np.diff(online.truth.at)
    return _written(
        problem, online.start, sizes, (online.node, held_gpus(online.truth)), termination, info
    )


def _written(
    problem: QueueingProblem,
    start: FloatArray,
    nodes: IntArray,
    held: tuple[IntArray, IntArray],
    termination: Termination,
    info: dict[str, int],
) -> Outcome:
    """A schedule of start times, numbers of nodes, and the nodes and GPUs held, job by job."""
    started = np.isfinite(start)
    if not started.any():
        return Outcome(None, Status.NO_SOLUTION, termination, info=info)
    missing = int((~started).sum())
    why = "left" if termination is Termination.COMPLETED else "not started when stopped"
    kept = np.repeat(started, nodes)
    at = np.concatenate([[0], np.cumsum(np.where(started, nodes, 0))])
    return Outcome(
        QueueingSolution.of(problem, start.copy(), at, held[0][kept], held[1][kept]),
        Status.FEASIBLE,
        termination,
        claimed=problem.value(start, started),
        info=info,
        message=f"{missing} jobs {why}" if missing else "",
    )


def set_up(problem: QueueingProblem, rule: Rule, lookahead: int = 0) -> Run:
    """An idle cluster and an empty queue.

    Parameters
    ----------
    lookahead: how many waiting jobs of each family SBS looks at; 0 for all.
    """
    nodes, g = problem.shape
    jobs, classes = tables_of(problem)
    count, size = len(problem), len(classes)
    number = np.arange(count)
    orders = [
        np.lexsort(keys)
        for keys in (
            (number, jobs["cls"]),
            (number, jobs["estimate"], jobs["cls"]),
            (number, -jobs["efficiency"], jobs["cls"]),
        )
    ]
    place = np.empty((len(orders), count), dtype=np.int64)
    for row, order in zip(place, orders, strict=True):
        row[order] = number - classes["first"][jobs["cls"][order]]
    families, member, room = _families(jobs, lookahead, rule.kind == SBS)
    leavers = np.argsort(jobs["leaves"], kind="stable")
    level = np.zeros((2, g + 1), dtype=np.int64)
    level[0, g] = nodes
    held, most = int(jobs["nodes"].sum()), min(count, nodes * g) + 1
    return Run(
        rule=rule,
        jobs=jobs,
        classes=classes,
        families=families,
        leavers=leavers[np.isfinite(jobs["leaves"][leavers])].astype(np.int64),
        order=np.stack(orders).astype(np.int64),
        place=place,
        tree=np.full((len(orders), int(2 * classes["width"].sum())), INF),
        tally=np.zeros(len(COUNTS), dtype=np.int64),
        free=np.full((2, nodes), g, dtype=np.int64),
        level=level,
        ends=np.zeros((2, most)),
        running=np.zeros((2, most), dtype=np.int64),
        held=np.zeros((2, held), dtype=np.int64),
        picks=np.zeros(max(4, size), dtype=np.int64),
        spare=np.zeros((2, nodes + 1), dtype=np.int64),
        lists=np.zeros((2, len(families), room), dtype=np.int64),
        member=member,
        g=g,
    )


def tables_of(problem: QueueingProblem) -> tuple[Table, Table]:
    """The jobs and the GPU counts as rows of `JOB` and `CLASS`."""
    stream, (_, g) = problem.jobs, problem.shape
    jobs = np.zeros(len(problem), dtype=JOB)
    jobs["arrival"], jobs["duration"] = stream.arrival_s, stream.duration_s
    jobs["estimate"], jobs["leaves"] = stream.estimate_s, stream.arrival_s + stream.patience_s
    jobs["start"] = np.nan
    jobs["iterations"], jobs["gpus"] = stream.iterations, stream.gpus
    jobs["efficiency"] = np.round(stream.iterations / (stream.gpus * stream.estimate_s), 9)
    sizes, jobs["cls"] = np.unique(stream.gpus, return_inverse=True)
    _, jobs["family"] = np.unique(np.array(stream.families, dtype=object), return_inverse=True)
    jobs["nodes"] = -(-stream.gpus // g)
    jobs["held_at"] = np.concatenate([[0], np.cumsum(jobs["nodes"])[:-1]])
    number = np.arange(len(problem))
    for name, keys in (
        ("time_rank", (number, stream.gpus, stream.estimate_s)),
        ("size_rank", (number, stream.estimate_s, stream.gpus)),
    ):
        jobs[name] = np.argsort(np.lexsort(keys))
    classes = np.zeros(len(sizes), dtype=CLASS)
    classes["gpus"], classes["size"] = sizes, np.bincount(jobs["cls"])
    classes["first"] = np.concatenate([[0], np.cumsum(classes["size"])[:-1]])
    classes["width"] = [1 << (int(size) - 1).bit_length() for size in classes["size"]]
    classes["root"] = np.concatenate([[0], np.cumsum(2 * classes["width"])[:-1]])
    return jobs, classes


def _families(jobs: Table, lookahead: int, wanted: bool) -> tuple[Table, Any, int]:
    """Rows of `FAMILY`, the jobs by family, and room for those looked at; none if not wanted."""
    sizes = np.bincount(jobs["family"]) if wanted else np.zeros(0, dtype=np.int64)
    families = np.zeros(len(sizes), dtype=FAMILY)
    families["end"] = np.cumsum(sizes)
    families["next"] = families["end"] - sizes
    member = np.argsort(jobs["family"], kind="stable").astype(np.int64)
    room = int(sizes.max()) if wanted else 1
    return families, member, min(lookahead, room) if lookahead else room
