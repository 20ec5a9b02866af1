"""Driver of the compiled event loop, from a problem and a rule to an outcome."""

from __future__ import annotations

import math

import numpy as np

from optgap.heuristics.placement.events import ARRIVED, Flow, follow
from optgap.heuristics.placement.loop import renew
from optgap.heuristics.placement.rule import NONE, Rule
from optgap.heuristics.placement.tables import (
    ARRIVAL,
    CANDIDATE,
    REQUEST,
    SCORES,
    STATE,
    PlacementRun,
)
from optgap.models.compiled import UP_TO, interpreted, python_of
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
"""Nodes × classes of the target workload × events between two checks of the limits."""

CACHE_CELLS = 8_000_000
"""Largest number of cached scores (20 bytes each); other requests are scored at each arrival."""

RENEW = python_of(renew)
"""For the few kinds of idle nodes, which is no reason to compile it."""


def simulate(
    problem: PlacementProblem, rule: Rule, *, limits: Limits, seed: int, label: str
) -> Outcome:
    """Run a policy over all arrivals, or until `limits` stop the run.

    A stopped run returns the placements so far; the remaining tasks are not placed.
    """
    with interpreted(len(problem.cluster) * len(problem.tasks) <= UP_TO.placement_cells):
        order = np.argsort(problem.ranks)
        run = set_up(problem, rule, order, seed)
        flow = set_up_flow(problem)
        # a look at the limits from the first task on, and soon after few only
        most = max(1, LOOK_CELLS // (len(problem.cluster) * len(problem.workload)))
        tasks, ended = 1, limits.stop
        while ended is None:
            limits.progress(arrived(label, flow), None, None)
            left = follow(run, flow, tasks)
            tasks, ended = min(most, 2 * tasks), limits.stop if left else Termination.COMPLETED
    claim = _claim(problem, run, flow) if problem.over_time is None else None
    return outcome_of(problem, flow, order, ended, claimed=claim)


def arrived(label: str, flow: Flow) -> str:
    """Return the label of a run with its number of arrivals so far."""
    return f"{label}: arrival {flow.counts[ARRIVED]} of {len(flow.node)}"


def outcome_of(
    problem: PlacementProblem,
    flow: Flow,
    order: IntArray,
    ended: Termination,
    *,
    claimed: float | None = None,
) -> Outcome:
    """Return the decisions of a run so far, with nodes in the given order."""
    node = np.where(flow.node >= 0, order[flow.node], -1)
    start_s = None if problem.over_time is None else flow.submit_s
    done = int(flow.counts[ARRIVED])
    whole = ended is Termination.COMPLETED
    return Outcome(
        PlacementSolution.of_arrays(node, flow.mask, start_s),
        Status.FEASIBLE,
        ended,
        claimed=claimed,
        info={"arrivals": done},
        message="" if whole else f"stopped after {done} of {len(problem.tasks)} arrivals",
    )


def set_up(
    problem: PlacementProblem, rule: Rule, order: IntArray, seed: int, *, scored: bool = True
) -> PlacementRun:
    """Return a run with an idle cluster, nodes in the given order, and the arrivals as tables.

    Fragmentation is computed only if the run is `scored`.
    """
    nodes = node_table(problem, order)
    workload = workload_table(problem)[:, : len(problem.workload) if scored else 0]
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
        np.zeros(workload.shape[1], dtype=PROFILE),
        np.zeros(len(nodes), dtype=CANDIDATE),
        np.zeros((len(nodes), max(1, int(nodes["gpus"].max()) + 1)), dtype=np.int64),
    )
    _, some, alike = np.unique(nodes, return_index=True, return_inverse=True)
    for n in some:
        RENEW(nodes[n], state[n], run.gpu_free[n], workload[state[n]["model"]], run.profile)
    state[:] = state[some][alike]
    return run


def set_up_flow(problem: PlacementProblem) -> Flow:
    """Return the state before the first arrival."""
    rules, tasks = problem.over_time, problem.tasks
    total = len(tasks)
    never = np.zeros(total, dtype=np.bool_)
    submit, lasting = np.zeros(total), np.full(total, math.inf)
    if rules is not None:
        never[list(problem.never_fits)] = True
        submit, lasting = np.array(tasks.submit_s), np.array(problem.lasting_s)
    whole = np.zeros(total, dtype=np.int64)
    return Flow(
        submit_s=submit,
        lasting_s=lasting,
        never=never,
        node=whole - 1,
        mask=whole,
        freed_s=np.zeros(total),
        leaving=whole.copy(),
        counts=np.zeros(2, dtype=np.int64),
    )


def _arrivals(
    problem: PlacementProblem, rule: Rule, seed: int
) -> tuple[Table, Table, tuple[str, ...]]:
    """Return the arrivals, their distinct requests, and the GPU constraint of each request.

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
    """Return the cache rows, from 1, of the most frequent requests; 0 for all others.

    A request that occurs once needs no row, nor does a policy without scores.
    """
    counts = np.bincount(request)
    rows = np.zeros(len(counts), dtype=np.int64)
    if rule.first != NONE:
        kept = np.argsort(-counts, kind="stable")[: CACHE_CELLS // size]
        kept = kept[counts[kept] > 1]
        rows[kept] = np.arange(1, len(kept) + 1)
    return rows


def _claim(problem: PlacementProblem, run: PlacementRun, flow: Flow) -> float:
    goal = problem.objective
    if goal.goal == "accepted_gpu":
        return float(problem.tasks.demand_milli[flow.node >= 0].sum())
    per_watt, per_milli = goal.weights
    watts, fragments = math.fsum(run.state["power"]), math.fsum(run.state["fragment"])
    return per_watt * watts + per_milli * fragments
