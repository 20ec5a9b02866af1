"""Driver of the compiled event loop, from a problem and a rule to an outcome."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optgap.heuristics.queueing.loop import advance
from optgap.heuristics.queueing.rule import SBS, QueueRun, Rule
from optgap.models.compiled import UP_TO, interpreted
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem, QueueingSolution
from optgap.models.result import Outcome, Status, Termination
from optgap.models.work import WORK
from optgap.solvers.queueing.list_schedule import held_gpus
from optgap.solvers.queueing.online import EVENTS, LONGEST, ROUNDS, Online, online_of

EVENTS_A_LOOK = 512
"""Events of a fixed rule between two checks of the limits."""


def simulate(
    problem: QueueingProblem, rule: Rule, *, limits: Limits, lookahead: int = 0, label: str
) -> Outcome:
    """Run a policy to the end of the stream, or until `limits` stop the run.

    A stopped run returns the schedule so far; the other jobs never start.

    Parameters
    ----------
    lookahead: number of waiting jobs of each family that SBS considers; 0 for all.
    """
    run = run_of(problem, rule, lookahead)
    return drive(problem, run.online, lambda events: advance(run, events), limits, label=label)


def drive(
    problem: QueueingProblem,
    online: Online,
    step: Callable[[int], bool],
    limits: Limits,
    *,
    label: str,
    weight: int = 1,
    rounds: str = "rounds",
) -> Outcome:
    """Call `step` with numbers of events until it returns False; return the schedule.

    Parameters
    ----------
    weight: work of a job, relative to a job of a fixed rule.
    rounds: name of the rounds of decisions in the outcome; "" to leave them out.
    """
    events, more = max(1, EVENTS_A_LOOK // weight), True
    while more and limits.stop is None:
        limits.progress(f"{label}: {online.tally[0]} of {len(problem)} jobs", None, None)
        with interpreted(weight * len(problem) <= UP_TO.queueing_jobs):
            more = step(events)
        limits.spend(WORK.queueing_event * events * weight)
    stopped = (limits.stop if more else None) or Termination.COMPLETED
    return served(problem, online, stopped, {rounds: int(online.tally[ROUNDS])} if rounds else {})


def served(
    problem: QueueingProblem,
    online: Online,
    termination: Termination,
    info: dict[str, int],
    *,
    why: str = "left",
) -> Outcome:
    """Return the schedule of a served stream; `why` says why other jobs did not start."""
    tally, truth, start = online.tally, online.truth, online.start
    info = {**info, "events": int(tally[EVENTS]), "longest_queue": int(tally[LONGEST])}
    started = np.isfinite(start)
    if not started.any():
        return Outcome(None, Status.NO_SOLUTION, termination, info=info)
    missing, sizes = int((~started).sum()), np.diff(truth.at)
    why = why if termination is Termination.COMPLETED else "not started when stopped"
    kept = np.repeat(started, sizes)
    at = np.concatenate([[0], np.cumsum(np.where(started, sizes, 0))])
    return Outcome(
        QueueingSolution.of(problem, start.copy(), at, online.node[kept], held_gpus(truth)[kept]),
        Status.FEASIBLE,
        termination,
        claimed=problem.value(start, started),
        info=info,
        message=f"{missing} jobs {why}" if missing else "",
    )


def run_of(problem: QueueingProblem, rule: Rule, lookahead: int) -> QueueRun:
    """Return a run with an idle cluster and an empty queue."""
    jobs, online = problem.jobs, online_of(problem)
    _, family = np.unique(np.array(jobs.families, dtype=object), return_inverse=True)
    number, keys = np.arange(len(problem)), (jobs.gpus, jobs.estimate_s)
    ranks = [np.argsort(np.lexsort((number, *order))) for order in (keys, keys[::-1])]
    room = int(np.bincount(family).max()) if rule.kind == SBS else 1
    return QueueRun(
        rule=rule,
        online=online,
        iterations=jobs.iterations.copy(),
        efficiency=np.round(jobs.iterations / (jobs.gpus * jobs.estimate_s), 9),
        family=family.astype(np.int64),
        families=int(family.max()) + 1,
        rank=np.stack(ranks).astype(np.int64),
        picks=np.zeros(4, dtype=np.int64),
        free=online.free.copy(),
        level=online.level.copy(),
        ends=online.ends.copy(),
        ending=online.running.copy(),
        spare=np.zeros(len(online.free) + 1, dtype=np.int64),
        lists=np.zeros((2, min(lookahead, room) if lookahead else room), dtype=np.int64),
    )
