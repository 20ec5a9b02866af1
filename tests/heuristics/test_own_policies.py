"""A policy written as a user would write it gives what the built-in one gives, to the digit."""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import placement_problems, timed_placement_problems
from strategies_consolidation import consolidation_problems
from strategies_coscheduling import coscheduling_problems
from strategies_elastic import elastic_problems
from strategies_queueing import stream
from trust.agreement import examples

import optgap


def firstfit(task: Any, state: Any) -> tuple[int, list[int]] | None:
    nodes = state.feasible(task)
    if not nodes.size:
        return None
    fitting = np.flatnonzero(state.gpu_free_milli[nodes[0]] >= max(task.gpu_milli, 1))
    return int(nodes[0]), fitting[: task.num_gpu].tolist()


def bestfit(task: int, state: Any, u_max: float = 100.0) -> list[int] | None:
    problem = state.problem
    own = problem.tasks[task]
    asked = np.array([problem.mean_micro[task] / 1e6, problem.memory[task] / 1e9])
    left = np.stack([u_max - state.mean_micro / 1e6, state.free_bytes / 1e9], axis=1)
    most = np.array([u_max, problem.gpu_memory.max() / 1e9])
    room = state.fits(task) & (state.mean_micro + problem.mean_micro[task] <= round(u_max * 1e6))
    rest = 0.5 * ((left - asked) / most).sum(axis=1)
    servers = [np.flatnonzero(problem.gpu_server == i) for i in range(len(problem.servers))]
    if problem.rules.gang == "free" and own.gpus > 1:
        able = [np.flatnonzero(room)]
    else:
        most = most * max(map(len, servers))
        able = [gpus for gpus in servers if room[gpus].sum() >= own.gpus]
        able.sort(key=lambda gpus: 0.5 * ((left[gpus].sum(0) - asked * own.gpus) / most).sum())
    if not able or room[able[0]].sum() < own.gpus:
        return None
    gpus = able[0][room[able[0]]]
    return gpus[np.argsort(rest[gpus], kind="stable")[: own.gpus]].tolist()


def marble(state: Any) -> list[tuple[int, int]]:
    free, places, chosen = state.free_gpus, state.free_domains, []
    for job in state.waiting:
        count = state.problem.application(job).fastest.gpu_count
        if count <= free and places:
            chosen.append((job, count))
            free, places = free - count, places - 1
    return chosen


def fifo(state: Any) -> list[int]:
    return [state.waiting[0]] if state.fits(state.waiting[0]) else []


def shortest(state: Any) -> list[int]:
    able = [job for job in state.waiting if state.fits(job)]
    return sorted(able, key=lambda job: (state.problem.jobs.estimate_s[job], job))[:1]


def elastic_fifo(view: Any) -> dict[int, tuple[int, float]]:
    clock, free, counts = float(view.problem.frequencies_mhz[-1]), view.problem.gpus, {}
    for job in view.jobs:
        least = view.job_class(job).counts[0]
        if least <= free:
            counts[job], free = least, free - least
    growing = list(counts)
    while growing and free > 0:
        grown = []
        for job in growing:
            more = [n for n in view.job_class(job).counts if n > counts[job]]
            if not more or more[0] - counts[job] > free:
                continue
            now = view.time_per_iteration(job, counts[job], clock)
            if view.time_per_iteration(job, more[0], clock) < now:
                free -= more[0] - counts[job]
                counts[job] = more[0]
                grown.append(job)
        growing = grown
    return {job: (count, clock) for job, count in counts.items()}


PLACED = st.one_of(
    placement_problems(max_nodes=4, max_tasks=10, goals=("power",)),
    timed_placement_problems(max_nodes=4, max_tasks=14),
)
UNCAPPED = elastic_problems(max_jobs=6).map(lambda problem: replace(problem, p_max_w=inf))


@pytest.mark.parametrize(
    ("problems", "name", "own"),
    [
        (PLACED, "firstfit", firstfit),
        (consolidation_problems(), "bestfit", bestfit),
        (coscheduling_problems(), "marble", marble),
        (st.builds(stream, st.integers(0, 10_000)), "fifo", fifo),
        (st.builds(stream, st.integers(0, 10_000)), "shortest", shortest),
        (UNCAPPED, "elastic-fifo", elastic_fifo),
    ],
)
def test_a_users_own_repeats_the_built_in_one(problems: Any, name: str, own: Any) -> None:
    @examples(20)
    @given(problem=problems)
    def check(problem: Any) -> None:
        ours, mine = (optgap.run(problem, policy) for policy in (name, own))
        if problem.family != "elastic":  # there a user's policy lets idle nodes be switched off
            assert mine.objective == ours.objective
        for field in fields(ours.solution) if ours.solution is not None else ():
            a, b = getattr(ours.solution, field.name), getattr(mine.solution, field.name)
            if isinstance(a, np.ndarray):
                assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), field.name
            elif field.name != "switch_off":
                assert a == b, field.name

    check()
