"""The policies as functions: the static four, the adaptive rule, HPS, PBS, SBS, and EASY."""

from __future__ import annotations

import math
from typing import Literal, get_args

from optgap.heuristics.queueing.engine import simulate
from optgap.heuristics.queueing.tables import (
    ADAPTIVE,
    EASY,
    FIFO,
    HPS,
    PBS,
    SBS,
    SHORTEST,
    SHORTEST_GPU,
    SJF,
    Rule,
)
from optgap.models.errors import InputError, one_of
from optgap.models.limits import Limits
from optgap.models.queueing import QueueingProblem
from optgap.models.result import Outcome

PairStage = Literal["after_rule1", "first", "off"]
SjfKey = Literal["gpus", "time"]
BatchStart = Literal["all", "first"]


def fifo(
    problem: QueueingProblem, *, limits: Limits, seed: int, fit_first: bool = False
) -> Outcome:
    """Jobs in order of arrival; the first blocks the queue while it does not fit.

    Parameters
    ----------
    fit_first: skip jobs that do not fit.
    """
    return simulate(problem, Rule(FIFO, strict=not fit_first), limits=limits, label="fifo")


def sjf(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    strict: bool = False,
    sjf_key: SjfKey = "gpus",
) -> Outcome:
    """The fewest GPUs first, as the paper's text has it; then by arrival.

    Parameters
    ----------
    strict: the first job of the order blocks the queue while it does not fit.
    sjf_key: ``time`` for the shortest job first, as the paper's Table I has it.

    Raises
    ------
    InputError: for an unknown key.
    """
    options = get_args(SjfKey)
    _require("sjf", "sjf_key", sjf_key, sjf_key in options, one_of(options))
    kind = SJF if sjf_key == "gpus" else SHORTEST
    return simulate(problem, Rule(kind, strict=strict), limits=limits, label="sjf")


def shortest(
    problem: QueueingProblem, *, limits: Limits, seed: int, strict: bool = False
) -> Outcome:
    """The least run time first; `strict` as for `sjf`."""
    return simulate(problem, Rule(SHORTEST, strict=strict), limits=limits, label="shortest")


def shortest_gpu(
    problem: QueueingProblem, *, limits: Limits, seed: int, strict: bool = False
) -> Outcome:
    """The least run time × GPUs first; `strict` as for `sjf`."""
    return simulate(problem, Rule(SHORTEST_GPU, strict=strict), limits=limits, label="shortest-gpu")


def adaptive(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    short_queue: str = "0.5-0.2-0.3",
    middle_queue: str = "0.3-0.4-0.3",
    long_queue: str = "0.2-0.6-0.2",
) -> Outcome:
    """A reconstruction of the multi-factor scheduler that the paper reports as unstable.

    The paper names its ingredients and gives no formula. Here, over the jobs that fit,
    S = w_E·(1 − minmax(t·n)) + w_F·min(wait/1800 s, 1) + w_R·(1 − minmax(n)).

    Parameters
    ----------
    short_queue, middle_queue, long_queue: w_E-w_F-w_R with up to 10, up to 50, more jobs
        waiting.

    Raises
    ------
    InputError: for weights that are not three numbers of at least 0.
    """
    weights = (
        *_weights("short_queue", short_queue),
        *_weights("middle_queue", middle_queue),
        *_weights("long_queue", long_queue),
    )
    return simulate(problem, Rule(ADAPTIVE, weights=weights), limits=limits, label="adaptive")


def _weights(name: str, text: str) -> tuple[float, float, float]:
    try:
        first, second, third = (float(part) for part in text.split("-"))
    except ValueError:
        raise InputError("adaptive", name, text, "three numbers, as 0.5-0.2-0.3") from None
    if not all(0 <= weight < math.inf for weight in (first, second, third)):
        raise InputError("adaptive", name, text, "three numbers of at least 0")
    return first, second, third


def hps(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    aging_threshold: float = 300.0,
    aging_boost: float = 2.0,
    max_wait_time: float = 1800.0,
    reserve_after_s: float = 0.0,
) -> Outcome:
    """Hybrid Priority as printed: Score = Base × Aging × Penalty, the highest first.

    Base = 1/(1 + t/3600), Penalty = 1/(1 + n/4), and Aging is 1 up to the threshold and
    boost·min(wait/max_wait, 1) after it: which drops to a third at 300 s and is 1 again at 900 s.

    Parameters
    ----------
    aging_threshold, max_wait_time: s.
    aging_boost: the factor that long waits end up with.
    reserve_after_s: once the oldest job has waited longer than this, only jobs start that end
        before it could start at the earliest; 0 for never.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    rule = _aged("hps", False, aging_threshold, aging_boost, max_wait_time, reserve_after_s)
    return simulate(problem, rule, limits=limits, label="hps")


def hps_fixed(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    aging_threshold: float = 300.0,
    aging_boost: float = 2.0,
    max_wait_time: float = 1800.0,
    reserve_after_s: float = 0.0,
) -> Outcome:
    """HPS with an aging factor that rises steadily from 1 to the boost; otherwise as `hps`."""
    rule = _aged("hps_fixed", True, aging_threshold, aging_boost, max_wait_time, reserve_after_s)
    return simulate(problem, rule, limits=limits, label="hps_fixed")


def _aged(
    who: str, fixed: bool, threshold: float, boost: float, full: float, reserve: float
) -> Rule:
    _require(who, "aging_threshold", threshold, 0 <= threshold < 1e12, "seconds, at least 0")
    _require(who, "aging_boost", boost, 0 < boost < 1e6, "a positive factor")
    _require(who, "max_wait_time", full, threshold < full < 1e12, "more than the threshold")
    _require(who, "reserve_after_s", reserve, 0 <= reserve < 1e12, "seconds, or 0 for never")
    return Rule(
        HPS,
        threshold=float(threshold),
        boost=float(boost),
        full=float(full),
        fixed=fixed,
        reserve=float(reserve) or math.inf,
    )


def pbs(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    tau: float = 0.1,
    gamma: int = 4,
    medium_s: float = 7200.0,
    delta: float = 0.25,
    node_cap: int = 8,
    pair_stage: PairStage = "after_rule1",
) -> Outcome:
    """Predictive Backfill: efficiency, pairs, gap filling, blocking avoidance, fallback.

    Efficiency is iterations per GPU-second.

    Parameters
    ----------
    tau: τ, how much more efficient the best job must be than the next to be started for it.
    gamma: γ; jobs of fewer GPUs fill gaps.
    medium_s: T, s; jobs below it are taken to avoid blocking.
    delta: Δ, by which the run times of a pair may differ, relative to the longer.
    node_cap: most GPUs of a pair together; they share a node.
    pair_stage: where pairs are looked for: ``after_rule1``, ``first`` or ``off``.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    stages = {"off": 0, "after_rule1": 1, "first": 2}
    known = pair_stage in stages
    _require("pbs", "pair_stage", pair_stage, known, one_of(stages))
    _require("pbs", "tau", tau, 0 <= tau < 1e6, "at least 0")
    _require("pbs", "gamma", gamma, gamma >= 1, "GPUs, at least 1")
    _require("pbs", "medium_s", medium_s, 0 <= medium_s < 1e12, "seconds, at least 0")
    _require("pbs", "delta", delta, 0 <= delta <= 1, "from 0 to 1")
    _require("pbs", "node_cap", node_cap, node_cap >= 1, "GPUs, at least 1")
    rule = Rule(
        PBS,
        tau=float(tau),
        small=gamma,
        medium=float(medium_s),
        spread=float(delta),
        cap=node_cap,
        pairs=stages[pair_stage],
    )
    return simulate(problem, rule, limits=limits, label="pbs")


def sbs(
    problem: QueueingProblem,
    *,
    limits: Limits,
    seed: int,
    theta: float = 0.5,
    batch_gpus: int = 8,
    batch_jobs: int = 4,
    time_unit_s: float = 3600.0,
    start: BatchStart = "all",
    lookahead: int = 256,
) -> Outcome:
    """Smart Batch: the batch of two to four like jobs of one family with the best Eff × Sim.

    Without one, the job of best efficiency/(1 + n/4).

    Parameters
    ----------
    theta: θ, least similarity of a batch.
    batch_gpus: G_max, most GPUs of a batch, and never more than are free.
    batch_jobs: most jobs of a batch, up to 4.
    time_unit_s: run times are compared in this unit, s; 1 as printed, where only equal ones are
        alike.
    start: ``all`` of the batch, or its ``first`` job only.
    lookahead: how many waiting jobs of each family are looked at, by arrival; 0 for all.

    Raises
    ------
    InputError: for a parameter out of range.
    """
    options = get_args(BatchStart)
    _require("sbs", "start", start, start in options, one_of(options))
    _require("sbs", "theta", theta, 0 <= theta <= 1, "from 0 to 1")
    _require("sbs", "batch_gpus", batch_gpus, batch_gpus >= 1, "GPUs, at least 1")
    _require("sbs", "batch_jobs", batch_jobs, 2 <= batch_jobs <= 4, "from 2 to 4")
    _require("sbs", "time_unit_s", time_unit_s, 0 < time_unit_s < 1e12, "positive seconds")
    _require("sbs", "lookahead", lookahead, lookahead >= 0, "a number of jobs, or 0 for all")
    rule = Rule(
        SBS,
        similar=float(theta),
        batch_gpus=batch_gpus,
        batch_jobs=batch_jobs,
        unit=float(time_unit_s),
        whole=start == "all",
    )
    return simulate(problem, rule, limits=limits, lookahead=lookahead, label="sbs")


def easy(problem: QueueingProblem, *, limits: Limits, seed: int) -> Outcome:
    """EASY backfilling: by arrival, and past a job that does not fit whatever does not delay it.

    A job does not delay the oldest if it ends by the time that one can start, or if that one can
    still be placed then; both by estimates.
    """
    return simulate(problem, Rule(EASY), limits=limits, label="easy")


def _require(who: str, name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise InputError(who, name, value, expected)
