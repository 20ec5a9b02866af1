"""From a problem and a rule to an outcome: sets the compiled event loop up and drives it."""

from __future__ import annotations

import math

import numpy as np

from optgap.heuristics.placement.loop import place_arrivals, refresh_all
from optgap.heuristics.placement.rule import NONE, Renew, Rule
from optgap.heuristics.placement.tables import ARRIVAL, CANDIDATE, REQUEST, SCORES, STATE, Run
from optgap.models.clock import working_time
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

LOOK_EVERY = 0.05
"""Seconds between two looks at the limits, about."""

CACHE_CELLS = 8_000_000
"""Most cached scores, 20 bytes each; requests beyond it are scored anew at every arrival."""


def simulate(
    problem: PlacementProblem,
    rule: Rule,
    *,
    limits: Limits,
    seed: int,
    label: str,
    renew: Renew | None = None,
) -> Outcome:
    """Run a policy over all arrivals, or until `limits` say stop.

    A run that was stopped returns the placements so far, with the other tasks not placed.
    """
    with interpreted(len(problem.cluster) * len(problem.tasks) <= UP_TO.placement_cells):
        return _simulate(problem, rule, limits, seed, label, renew)


def _simulate(
    problem: PlacementProblem,
    rule: Rule,
    limits: Limits,
    seed: int,
    label: str,
    renew: Renew | None,
) -> Outcome:
    order = np.argsort(problem.ranks)
    run = set_up(problem, rule, order, seed)
    total = len(problem.tasks)
    rank = np.full(total, -1, dtype=np.int64)
    mask = np.zeros(total, dtype=np.int64)
    termination, done, step = Termination.COMPLETED, 0, 1
    renewal = total if renew is None else renew(0)
    while done < total:
        stopped = limits.stop
        if stopped is not None:
            termination = stopped
            break
        limits.progress(f"{label}: arrival {done} of {total}", None, None)
        if renew is not None and done == renewal:
            renewal = renew(done)
            run.cache["stamp"] = -1
        started, start = working_time(), done
        done = min(total, start + step, renewal)
        place_arrivals(run, start, done, rank, mask)
        # How long an arrival takes hangs on nodes, target workload and policy: feel for it.
        brief = working_time() - started < LOOK_EVERY
        step = 2 * step if brief else max(1, step // 2)
    node = np.where(rank >= 0, order[rank], -1)
    return Outcome(
        PlacementSolution.of_arrays(node, mask),
        Status.FEASIBLE,
        termination,
        claimed=_claim(problem, run.state, rank),
        info={"arrivals": done},
        message="" if done == total else f"stopped after {done} of {total} arrivals",
    )


def set_up(problem: PlacementProblem, rule: Rule, order: IntArray, seed: int) -> Run:
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
    run = Run(
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
    refresh_all(run)
    return run


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
    requests["kind"] = [
        0 if count == 0 else 1 if milli < 1000 else 1 << count for _, count, milli, _ in place
    ]
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


def _claim(problem: PlacementProblem, state: Table, rank: IntArray) -> float:
    goal = problem.objective
    if goal.goal == "accepted_gpu":
        return float(problem.tasks.demand_milli[rank >= 0].sum())
    per_watt, per_milli = goal.weights
    return per_watt * math.fsum(state["power"]) + per_milli * math.fsum(state["fragment"])
