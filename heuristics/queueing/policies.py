"""Entry points of the policies by rules, which have files of their own, and by plans."""

from __future__ import annotations

from typing import Any

from optgap.heuristics.queueing.engine import drive, simulate
from optgap.heuristics.queueing.parameters import (
    HpsParams,
    PbsParams,
    ReplanParams,
    SbsParams,
    ShortestReserveParams,
)
from optgap.heuristics.queueing.pbs import STAGES
from optgap.heuristics.queueing.rule import (
    ADAPTIVE,
    EASY,
    HPS,
    PBS,
    SBS,
    Rule,
)
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.solvers.queueing.online import INF
from optgap.solvers.queueing.replanning import Effort, planner_of, serve

WEIGHT = 100
"""Work of a job relative to a fixed rule, which decides when streams are interpreted."""


def adaptive(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run the adaptive rule; see `adaptive`."""
    return simulate(problem, Rule(ADAPTIVE), limits=limits, label="adaptive")


def easy(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """Run EASY backfilling; see `easy`."""
    return simulate(problem, Rule(EASY), limits=limits, label="easy")


def hps(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run HPS as printed; see `hps`. `given` is as in `HpsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    rule = _hps("hps", chosen(HpsParams, given, "hps"), False)
    return simulate(problem, rule, limits=limits, label="hps")


def hps_fixed(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run HPS with an aging factor that never falls; otherwise it is as `hps`."""
    rule = _hps("hps_fixed", chosen(HpsParams, given, "hps_fixed"), True)
    return simulate(problem, rule, limits=limits, label="hps_fixed")


def _hps(who: str, options: HpsParams, fixed: bool) -> Rule:
    threshold, full = options.aging_threshold, options.max_wait_time
    if not threshold < full < 1e12:
        raise InputError(who, "max_wait_time", full, "more than the threshold")
    return Rule(
        HPS,
        threshold=float(threshold),
        boost=float(options.aging_boost),
        full=float(full),
        fixed=fixed,
        reserve=float(options.reserve_after_s) or INF,
    )


def pbs(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run PBS; see `pbs`. `given` is as in `PbsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(PbsParams, given, "pbs")
    tau, delta = float(options.tau), float(options.delta)
    rule = Rule(PBS, tau=tau, spread=delta, pairs=STAGES[options.pair_stage])
    return simulate(problem, rule, limits=limits, label="pbs")


def sbs(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run SBS; see `sbs`. `given` is as in `SbsParams`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(SbsParams, given, "sbs")
    theta, unit_s = float(options.theta), float(options.time_unit_s)
    rule = Rule(SBS, similar=theta, unit=unit_s, every=options.every)
    return simulate(problem, rule, limits=limits, lookahead=options.lookahead, label="sbs")


def replan(problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Plan the waiting jobs anew at every event; `given` is as in `ReplanParams`.

    A plan is a list schedule of the waiting jobs beside the running ones, by estimates, which
    annealing improves for the problem's objective. Jobs that the plan starts now start on its
    nodes. The compiled part is `solvers.queueing.replanning`, as for `offline`.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = chosen(ReplanParams, given, "replan")
    effort = Effort(jobs=options.jobs, moves=options.moves)
    planner = planner_of(problem, seed)
    return drive(
        problem,
        planner.online,
        lambda events: serve(planner, effort, 0.0, events),
        limits,
        label="replan",
        weight=WEIGHT,
        rounds="plans",
    )


def shortest_reserve(
    problem: QueueingProblem, *, limits: Limits, seed: int, **given: Any
) -> Outcome:
    """Run the shortest job first, with reservations; `given` is as in `ShortestReserveParams`.

    Jobs go to nodes that run as long anyway, so that nodes become free as a whole; the first wide
    job that has waited ``reserve_after_s`` and fits nowhere books the nodes with the earliest last
    ends. The rules, and the compiled part, are `solvers.queueing.replanning`, as for `offline`.

    Raises
    ------
    InputError: for a negative time.
    """
    after_s = float(chosen(ShortestReserveParams, given, "shortest-reserve").reserve_after_s)
    planner = planner_of(problem, seed)
    return drive(
        problem,
        planner.online,
        lambda events: serve(planner, None, after_s, events),
        limits,
        label="shortest-reserve",
        rounds="",
    )
