"""From a problem and a rule to an outcome: sets the compiled event loop up and drives it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optgap.heuristics.placement.leaving import (
    ARRIVED,
    BACKFILL,
    FIFO,
    REJECT,
    Flow,
    follow,
)
from optgap.heuristics.placement.loop import place_arrivals, refresh
from optgap.heuristics.placement.rule import NONE, Rule
from optgap.heuristics.placement.tables import (
    ARRIVAL,
    CANDIDATE,
    REQUEST,
    SCORES,
    STATE,
    PlacementRun,
)
from optgap.models.compiled import UP_TO, interpreted
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import IntArray
from optgap.models.placement.kernels import (
    PROFILE,
    Table,
    accepts,
    idle_gpus,
    model_names,
    node_table,
    workload_table,
)
from optgap.models.result import Outcome, Status, Termination

LOOK_CELLS = 5_000_000
"""Nodes times classes of the target workload times events between two looks at the limits."""

QUEUES = {"reject": REJECT, "fifo": FIFO, "backfill": BACKFILL}

CACHE_CELLS = 8_000_000
"""Most cached scores, 20 bytes each; requests beyond it are scored anew at every arrival."""


def simulate(
    problem: PlacementProblem, rule: Rule, *, limits: Limits, seed: int, label: str
) -> Outcome:
    """Run a policy over all arrivals, or until `limits` say stop.

    A run that was stopped returns the placements so far, with the other tasks not placed.
    """
    with interpreted(len(problem.cluster) * len(problem.tasks) <= UP_TO.placement_cells):
        simulated = _simulate if problem.over_time is None else _simulate_over_time
        return simulated(problem, rule, limits, seed, label)


def _simulate(
    problem: PlacementProblem,
    rule: Rule,
    limits: Limits,
    seed: int,
    label: str,
) -> Outcome:
    order = np.argsort(problem.ranks)
    run = set_up(problem, rule, order, seed)
    total = len(problem.tasks)
    rank = np.full(total, -1, dtype=np.int64)
    mask = np.zeros(total, dtype=np.int64)
    done = 0

    def advance(step: int) -> bool:
        nonlocal done
        start, done = done, min(total, done + step)
        place_arrivals(run, start, done, rank, mask)
        return done < total

    termination = _driven(problem, advance, lambda: done, label, limits)
    solution = PlacementSolution.of_arrays(np.where(rank >= 0, order[rank], -1), mask)
    return _outcome(problem, solution, termination, _claim(problem, run.state, rank), done)


def _simulate_over_time(
    problem: PlacementProblem,
    rule: Rule,
    limits: Limits,
    seed: int,
    label: str,
) -> Outcome:
    order = np.argsort(problem.ranks)
    run = set_up(problem, rule, order, seed)
    flow = set_up_flow(problem, run)
    termination = _driven(
        problem,
        lambda step: follow(run, flow, step),
        lambda: int(flow.counts[ARRIVED]),
        label,
        limits,
    )
    node = np.where(flow.node >= 0, order[flow.node], -1)
    solution = PlacementSolution.of_arrays(node, flow.mask, flow.start_s)
    claim = None  # what still runs when a run is stopped has not been counted
    if termination is Termination.COMPLETED:
        claim = _claim_over_time(problem, flow)
    return _outcome(problem, solution, termination, claim, int(flow.counts[ARRIVED]))


def _driven(
    problem: PlacementProblem,
    advance: Callable[[int], bool],
    come: Callable[[], int],
    label: str,
    limits: Limits,
) -> Termination:
    """Advance until no event is left, and look at the limits often, from the first event on."""
    most = max(1, LOOK_CELLS // (len(problem.cluster) * len(problem.workload)))
    step = 1
    while True:
        stopped = limits.stop
        if stopped is not None:
            return stopped
        limits.progress(f"{label}: arrival {come()} of {len(problem.tasks)}", None, None)
        if not advance(step):
            return Termination.COMPLETED
        step = min(most, 2 * step)


def _outcome(
    problem: PlacementProblem,
    solution: PlacementSolution,
    termination: Termination,
    claimed: float | None,
    done: int,
) -> Outcome:
    whole = termination is Termination.COMPLETED
    return Outcome(
        solution,
        Status.FEASIBLE,
        termination,
        claimed=claimed,
        info={"arrivals": done},
        message="" if whole else f"stopped after {done} of {len(problem.tasks)} arrivals",
    )


def set_up(problem: PlacementProblem, rule: Rule, order: IntArray, seed: int) -> PlacementRun:
    """An idle cluster, nodes in the given order, and the arrivals as tables."""
    nodes = node_table(problem, order)
    workload = workload_table(problem)
    arrivals, requests, specs = _arrivals(problem, rule, seed)
    state = np.zeros(len(nodes), dtype=STATE)
    state["free_cpu"] = nodes["cpu_milli"]
    state["free_memory"] = nodes["memory_mib"]
    state["model"] = nodes["model"]
    cache = np.zeros((int(requests["cached"].max()) + 1, len(nodes)), dtype=SCORES)
    cache["stamp"] = -1
    run = PlacementRun(
        rule,
        arrivals,
        requests,
        accepts(specs, model_names(problem)),
        workload,
        nodes,
        state,
        idle_gpus(nodes["gpus"]),
        cache,
        np.zeros(len(problem.workload), dtype=PROFILE),
        np.zeros(len(nodes), dtype=CANDIDATE),
    )
    refresh(run, 0, len(nodes))
    return run


def set_up_flow(problem: PlacementProblem, run: PlacementRun) -> Flow:
    """No task has come yet; nodes stand as in `run`."""
    rules, tasks = problem.over_time, problem.tasks
    assert rules is not None
    total, nodes = len(tasks), len(run.nodes)
    never = np.zeros(total, dtype=np.bool_)
    never[list(problem.never_fits)] = True
    alike = np.stack([run.arrivals["request"], run.arrivals["memory_mib"], tasks.parts])
    lines, line = np.unique(alike, axis=1, return_inverse=True)
    bits = max(1, int(problem.cluster.gpus.max()) + 1)
    whole, real = np.zeros(total, dtype=np.int64), np.zeros(total)
    return Flow(
        queue=QUEUES[rules.queue],
        submit_s=np.array(tasks.submit_s),
        lasting_s=np.array(problem.lasting_s),
        never=never,
        parts=np.array(tasks.parts),
        line=line.reshape(-1).astype(np.int64),
        node=whole - 1,
        mask=whole,
        start_s=real,
        freed_s=real.copy(),
        leaving=whole.copy(),
        waiting=whole.copy(),
        blocked=np.zeros(lines.shape[1], dtype=np.bool_),
        kinds=np.zeros((nodes, bits), dtype=np.int64),
        changed=np.zeros(nodes, dtype=np.int64),
        since_s=np.full(nodes, rules.begin_s),
        rest=run.state.copy(),
        totals=np.zeros(2),
        counts=np.zeros(3, dtype=np.int64),
    )


def _arrivals(
    problem: PlacementProblem, rule: Rule, seed: int
) -> tuple[Table, Table, tuple[str, ...]]:
    """The arrivals, the distinct requests among them, and each one's GPU constraint.

    A CPU-only task may use any node, whatever its constraint says.
    """
    tasks = problem.tasks
    columns = (tasks.cpu_milli.tolist(), tasks.num_gpu.tolist(), tasks.gpu_milli.tolist())
    place: dict[tuple[int, int, int, str], int] = {}
    arrivals = np.zeros(len(tasks), dtype=ARRIVAL)
    arrivals["request"] = [
        place.setdefault(key, len(place)) for key in zip(*columns, tasks.gpu_specs, strict=True)
    ]
    arrivals["memory_mib"] = tasks.memory_mib
    if rule.random_node:
        rng = np.random.default_rng(seed)
        arrivals["node_draw"] = rng.random(len(tasks))
        arrivals["gpu_draw"] = rng.random(len(tasks))
    requests = np.zeros(len(place), dtype=REQUEST)
    requests["cpu_milli"] = [key[0] for key in place]
    requests["num_gpu"] = [key[1] for key in place]
    requests["gpu_milli"] = [key[2] for key in place]
    bits = [-1 if count == 0 else 0 if milli < 1000 else count for _, count, milli, _ in place]
    requests["bit"] = bits
    requests["kind"] = [0 if bit < 0 else 1 << bit for bit in bits]
    requests["cached"] = _cache_rows(arrivals["request"], len(problem.cluster), rule)
    return arrivals, requests, tuple(key[3] if key[1] else "" for key in place)


def _cache_rows(request: IntArray, size: int, rule: Rule) -> IntArray:
    """Cache rows, from 1, of the requests that come most often; 0 for all others.

    A request that comes once needs none, nor does a policy without scores.
    """
    counts = np.bincount(request)
    rows = np.zeros(len(counts), dtype=np.int64)
    if rule.first != NONE:
        kept = np.argsort(-counts, kind="stable")[: CACHE_CELLS // size]
        kept = kept[counts[kept] > 1]
        rows[kept] = np.arange(1, len(kept) + 1)
    return rows


def _claim_over_time(problem: PlacementProblem, flow: Flow) -> float:
    goal = problem.objective
    assert problem.over_time is not None
    if goal.goal == "mean_accepted_gpu":
        held = (problem.tasks.demand_milli * problem.lasting_s)[flow.node >= 0]
        return math.fsum(held) / problem.over_time.horizon_s
    per_watt, per_milli = goal.weights
    horizon, rest = problem.over_time.horizon_s, flow.rest
    watts = math.fsum(rest["power"]) * horizon + flow.totals[0]
    fragments = math.fsum(rest["fragment"]) * horizon + flow.totals[1]
    return float(problem.per_second * (per_watt * watts + per_milli * fragments))


def _claim(problem: PlacementProblem, state: Table, rank: IntArray) -> float:
    goal = problem.objective
    if goal.goal == "accepted_gpu":
        return float(problem.tasks.demand_milli[rank >= 0].sum())
    per_watt, per_milli = goal.weights
    return per_watt * math.fsum(state["power"]) + per_milli * math.fsum(state["fragment"])
