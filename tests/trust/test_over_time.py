"""Over time: bounds and schedules of consolidation and placement against programs that try all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from slow_consolidation_time import stepwise
from slow_placement import optimum
from strategies import timed_placement_problems
from trust.agreement import many

import optgap
from optgap.heuristics.placement import POLICIES
from optgap.models.consolidation import (
    Assignment,
    Clock,
    ConsolidationProblem,
    ConsolidationSolution,
    GpuKind,
    PowerLine,
    Server,
    Task,
)
from optgap.models.consolidation.problem import Rules
from optgap.models.placement import PlacementProblem

MANY = many(20, long=400)

PRESENT = (51, 137, 234, 313)
"""Here presence in the bucket of its end is what a task pays most for."""


def drawn(seed: int) -> ConsolidationProblem:
    """Two to six tasks that come and go; one clock; GPUs scarce or not, of one kind or two."""
    rng = np.random.default_rng(seed)
    count, period = int(rng.integers(2, 7)), 10.0
    tasks = []
    for k in range(count):
        length = float(rng.choice([7.0, 10.0, 25.0, 40.0, 63.0]))
        series = rng.choice([0.0, 20.0, 35.0, 60.0, 100.0], int(rng.integers(1, 5)))
        tasks.append(
            Task(f"t{k}", float(rng.choice([0.0, 2.0, 5.0, 9.0, 16.0])), 1, 1.0,
                 float(rng.choice([0.0, 0.0, 10.0, 13.0, 30.0])), length, series)
        )  # fmt: skip
    kinds = [GpuKind(memory_gb=16.0, power=PowerLine(20.0, 0.1))]
    static = float(rng.choice([0.0, 30.0]))
    servers = [Server((0,), static)] * int(rng.choice([1, 2, 3, 6]))
    if rng.random() < 0.4:
        kinds.append(GpuKind("other", 24.0, PowerLine(60.0, 0.05), f_max_mhz=1000.0))
        servers.append(Server((1,), float(rng.choice([0.0, 50.0]))))
    rules = Rules(
        str(rng.choice(["none", "mean", "peak"])),  # type: ignore[arg-type]
        contention=float(rng.choice([1.0, 0.6])),
        waiting=False,
        migration=False,
    )
    return ConsolidationProblem.of(
        kinds, servers, tasks, goal="energy", rules=rules, period_s=period, name=f"seed {seed}"
    )


def joules(
    problem: ConsolidationProblem, gpu: int, residents: Sequence[int], mhz: Sequence[float] = ()
) -> float:
    """Energy of one GPU for life; infinite where it overflows.

    Parameters
    ----------
    mhz: the clock from the arrival of each resident on, in order of submission; none for f_max.
    """
    order = sorted(residents, key=lambda k: problem.tasks[k].submit_s)
    clocks = mhz or [problem.kinds[int(problem.gpu_kind[gpu])].f_max_mhz] * len(order)
    times = [problem.tasks[k].submit_s for k in order]
    there = tuple(Assignment(k, (gpu,), at) for k, at in zip(order, times, strict=True))
    set_ = tuple(Clock(gpu, clock, at) for clock, at in zip(clocks, times, strict=True))
    return stepwise(problem, ConsolidationSolution(there, set_))[0]


def least(problem: ConsolidationProblem, levels: Sequence[float] = ()) -> float:
    """The least energy of all placements, with a share of f_max from each arrival on, or f_max."""
    gpus, known = len(problem.places), {}
    best = math.inf
    for placement in product(range(gpus), repeat=len(problem)):
        total = 0.0
        for g in set(placement):
            own = tuple(k for k, other in enumerate(placement) if other == g)
            twin = (int(problem.gpu_kind[g]), problem.servers[int(problem.gpu_server[g])].static_w)
            if (twin, own) not in known:
                clocks = [x * problem.kinds[twin[0]].f_max_mhz for x in levels]
                known[twin, own] = min(
                    joules(problem, g, own, mhz)
                    for mhz in product(clocks, repeat=len(own) if levels else 0)
                )
            total += known[twin, own]
        best = min(best, total)
    return best


@pytest.mark.parametrize("part", range(5))
def test_no_bound_exceeds_the_optimum_and_no_schedule_is_below(part: int) -> None:
    for seed in (*range(part, MANY, 5), *PRESENT[part : part + 1]):
        problem = drawn(seed)
        truth = least(problem)
        searched = optgap.solve(problem, "hindsight", schedules=50)
        if math.isinf(truth):
            assert searched.solution is None, seed
            continue
        assert searched.bound <= truth * (1 + 1e-9), seed
        bound = optgap.bound(problem, "bound-over-time").bound
        assert bound <= truth * (1 + 1e-9), seed
        if searched.objective is not None:
            assert searched.objective >= truth * (1 - 1e-9), seed


@pytest.mark.parametrize("part", range(3))
def test_no_clocks_of_a_grid_reach_below_the_bound(part: int) -> None:
    for seed in range(part, MANY, 3):
        problem = drawn(seed)
        tasks = tuple(replace(t, kappa=1.2, memory_gb=t.memory_gb / 2) for t in problem.tasks[:4])
        rules = replace(problem.rules, contention=1.0, capacity="none")
        problem = replace(problem, tasks=tasks, rules=rules)
        low = [max(problem.floors_mhz[k]) / kind.f_max_mhz for k, kind in enumerate(problem.kinds)]
        assert max(low) == pytest.approx(min(low))
        truth = least(problem, [max(low), (1 + max(low)) / 2, 1.0])
        found = optgap.bound(problem, "bound-over-time").bound
        assert found <= truth * (1 + 1e-9), seed


def following(seed: int) -> ConsolidationProblem:
    """Two or three tasks of one GPU, each of which arrives around the end of the one before."""
    rng = np.random.default_rng(seed)
    tasks, at = [], 0.0
    for k in range(2 + seed % 2):
        length = float(rng.uniform(20.0, 60.0))
        series = rng.choice([20.0, 45.0, 60.0, 80.0, 95.0], int(rng.integers(1, 4)))
        tasks.append(Task(f"t{k}", 1.0, 1, 1.2, at, length, series))
        late = length * float(rng.uniform(0.9, 1.25))
        at += late if rng.random() < 0.7 else length
    rules = Rules(contention=1.0, waiting=False, migration=False)
    return ConsolidationProblem.of(
        [GpuKind(power=PowerLine(40.0, 0.1))], [Server((0,), float(rng.choice([0.0, 30.0])))],
        tasks, goal="energy", rules=rules, period_s=20.0, name=f"seed {seed}",
    )  # fmt: skip


def test_no_clocks_of_tasks_that_follow_each_other_reach_below_the_bound() -> None:
    for seed in range(many(15, long=200)):
        problem = following(seed)
        low, most = max(problem.floors_mhz[0]), problem.kinds[0].f_max_mhz
        count = len(problem)
        grid = np.linspace(low, most, 60 if count == 2 else 9)
        truth = min(joules(problem, 0, range(count), m) for m in product(grid, repeat=count))
        found = optgap.solve(problem, "hindsight", schedules=50)
        assert found.objective is not None
        assert found.bound <= truth * (1 + 1e-9), seed


# -- placement -----------------------------------------------------------------------------


PROBLEMS = timed_placement_problems(goals=("energy", "mean_accepted_gpu"), max_tasks=5, max_gpus=3)


@given(problem=PROBLEMS)
def test_the_optimum_lies_between_the_bound_and_every_policy(problem: PlacementProblem) -> None:
    # of policies that turn tasks away, those count that they run
    reached: dict[tuple[int, ...], list[float]] = {}
    for policy in POLICIES:
        ran = optgap.run(problem, policy)
        tasks = np.flatnonzero(ran.solution.node >= 0).tolist()
        if problem.objective.goal == "mean_accepted_gpu":
            tasks = list(range(len(problem.tasks)))
        assert ran.objective is not None
        reached.setdefault(tuple(tasks), []).append(ran.objective)
    for served, objectives in reached.items():
        if served:
            check_order(problem.subset(served), objectives)


def check_order(problem: PlacementProblem, reached: Sequence[float]) -> None:
    """Bound ≤ optimum ≤ each of these objectives, or ≥ where the goal is to be maximised."""
    sign = 1.0 if problem.objective.described.sense == "min" else -1.0
    best = optimum(problem)
    bound = optgap.solve(problem, "bound-over-time").bound
    assert best is not None
    assert bound is not None
    close = 1e-6 * max(1.0, abs(best))
    assert sign * bound <= sign * best + close
    assert sign * best <= min(sign * objective for objective in reached) + close
