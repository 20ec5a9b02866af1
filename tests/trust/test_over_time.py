"""Over time: bounds and schedules of consolidation and placement against programs that try all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from slow_placement import optimum
from strategies import timed_placement_problems
from trust.agreement import many

import optgap
from optgap.heuristics.placement import POLICIES
from optgap.models.consolidation import ConsolidationProblem, GpuKind, PowerLine, Server, Task
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
        wake_s=float(rng.choice([0.0, 0.0, 4.0])),
        migration=False,
    )
    return ConsolidationProblem.of(
        kinds, servers, tasks, goal="energy", rules=rules, period_s=period, name=f"seed {seed}"
    )


def placements(tasks: int, gpus: int) -> Iterator[tuple[int, ...]]:
    """Every way to give each task a GPU."""
    for code in range(gpus**tasks):
        yield tuple(code // gpus**k % gpus for k in range(tasks))


def used(task: Task, at: int) -> float:
    return float(task.util_percent[min(at, task.util_percent.size - 1)])


def joules(
    problem: ConsolidationProblem, gpu: int, residents: list[int], mhz: Sequence[float] = ()
) -> float:
    """Energy of one GPU for life, second by second of what happens; infinite where it overflows.

    Parameters
    ----------
    mhz: the clock from the arrival of each resident on, in order of submission; none for f_max.
    """
    kind, rules = problem.kinds[int(problem.gpu_kind[gpu])], problem.rules
    server = problem.servers[int(problem.gpu_server[gpu])]
    done = dict.fromkeys(residents, 0.0)
    left = sorted(residents, key=lambda k: problem.tasks[k].submit_s)
    here: list[int] = []
    clocks, clock = list(mhz) or [kind.f_max_mhz] * len(left), 0.0
    now, ready, emptied, total = 0.0, 0.0, -math.inf, 0.0
    while left or here:
        while left and problem.tasks[left[0]].submit_s <= now + 1e-9:
            if not here and now - emptied > 1e-6:
                ready = now + rules.wake_s
            here.append(left.pop(0))
            clock = clocks.pop(0)
        own = [problem.tasks[k] for k in here]
        if sum(t.memory_gb for t in own) > kind.memory_gb + 1e-9:
            return math.inf
        if rules.capacity != "none":
            pick = np.max if rules.capacity == "peak" else np.mean
            if sum(float(pick(t.util_percent)) for t in own) > 100 + 1e-6:
                return math.inf
        asked = sum(
            used(t, int(done[k] / problem.period_s + 1e-9)) for k, t in zip(here, own, strict=True)
        )
        slow = max(1.0, (asked / 100) ** rules.contention)
        rate = 0.0 if now < ready - 1e-9 else (clock / kind.f_max_mhz) ** kind.beta / slow
        steps = [problem.tasks[left[0]].submit_s - now] if left else []
        if rate == 0.0 and here:
            steps.append(ready - now)
        for k, t in zip(here, own, strict=True):
            at = int(done[k] / problem.period_s + 1e-9)
            edge = min(t.duration_s, (at + 1) * problem.period_s)
            if at >= t.util_percent.size - 1:
                edge = t.duration_s
            if rate:
                steps.append((edge - done[k]) / rate)
        step = min(steps)
        if here:
            total += (kind.power.watts(clock) + server.static_w) * step
        now += step
        for k in here:
            done[k] += rate * step
        ends = [k for k in here if done[k] >= problem.tasks[k].duration_s - 1e-9]
        here = [k for k in here if k not in ends]
        if ends and not here:
            emptied = now
    return total


def least(problem: ConsolidationProblem, levels: Sequence[float] = ()) -> float:
    """The least energy of all placements, with a share of f_max from each arrival on, or f_max."""
    gpus, known = len(problem.places), {}
    best = math.inf
    for placement in placements(len(problem), gpus):
        total = 0.0
        for g in set(placement):
            own = tuple(k for k, other in enumerate(placement) if other == g)
            twin = (int(problem.gpu_kind[g]), problem.servers[int(problem.gpu_server[g])].static_w)
            if (twin, own) not in known:
                clocks = [x * problem.kinds[twin[0]].f_max_mhz for x in levels]
                known[twin, own] = min(
                    joules(problem, g, list(own), mhz)
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
    wakes = float(rng.choice([0.0, 0.0, 4.0]))
    tasks, at = [], 0.0
    for k in range(2 + seed % 2):
        length = float(rng.uniform(20.0, 60.0))
        series = rng.choice([20.0, 45.0, 60.0, 80.0, 95.0], int(rng.integers(1, 4)))
        tasks.append(Task(f"t{k}", 1.0, 1, 1.2, at, length, series))
        late = length * float(rng.uniform(0.9, 1.25))
        at += late if rng.random() < 0.7 else length + (wakes if k == 0 else 0.0)
    rules = Rules(contention=1.0, waiting=False, wake_s=wakes, migration=False)
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
        truth = min(joules(problem, 0, list(range(count)), m) for m in product(grid, repeat=count))
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
