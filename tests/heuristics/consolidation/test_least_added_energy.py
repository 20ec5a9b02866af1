from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies_consolidation import consolidation_problems, micro
from trust.agreement import examples

import optgap
from optgap.heuristics.consolidation import least_added_energy as policy
from optgap.heuristics.consolidation.clocks import highest
from optgap.heuristics.consolidation.engine import Engine
from optgap.heuristics.consolidation.state import Choice, State
from optgap.models.compiled import interpreted
from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import pai
from optgap.models.consolidation.problem import Capacity, Rules
from optgap.models.errors import InputError
from optgap.models.limits import Limits

NAME = "least_added_energy"
WATTS = 23.3 + 0.09 * 1350


def three(capacity: Capacity) -> ConsolidationProblem:
    """1,000 s at 20 %, 100 s at 85 % and 1,000 s at 10 %, on two GPUs."""
    tasks = [
        Task(name, 4.0, duration_s=lasts, util_percent=np.array([util]))
        for name, lasts, util in (("a", 1000.0, 20.0), ("b", 100.0, 85.0), ("c", 1000.0, 10.0))
    ]
    rules = Rules(capacity)
    return ConsolidationProblem.of([GpuKind()], [Server((0, 0))], tasks, goal="energy", rules=rules)


def test_the_long_share_a_gpu_where_best_fit_has_one_stay_awake_for_each() -> None:
    """By hand: best fit has c join b, the fuller GPU; both are awake for 1,000 s."""
    problem = three("mean")
    assert optgap.run(problem, "bestfit").objective == pytest.approx(2000 * WATTS)
    assert optgap.run(problem, NAME).objective == pytest.approx(1100 * WATTS)
    # with memory alone all share one: 115 % for b's 100 s
    assert optgap.run(three("none"), NAME).objective == pytest.approx(1015 * WATTS)
    assert optgap.run(three("none"), f"{NAME}(u_max=100)").objective == pytest.approx(1100 * WATTS)


def played(
    problem: ConsolidationProblem, kind: int, progress: dict[int, float], wait: float
) -> tuple[float, float]:
    """J and s until the last has ended, in plain Python."""
    f_max, joules, clock = problem.kinds[kind].f_max_mhz, 0.0, 0.0
    left = dict(progress)

    def next_change(task: int) -> float:
        series, whole = problem.tasks[task].util_percent, problem.tasks[task].duration_s
        k = int(left[task] / problem.period_s + 1e-7)
        later = (k + 1) * problem.period_s
        return min(later, whole) if k < len(series) - 1 else whole

    def watts() -> float:
        return max(problem.line(task, kind).watts(f_max) for task in left)

    if left:
        joules, clock = wait * watts(), wait
    while left:
        now = {
            task: float(problem.tasks[task].util_percent[
                min(int(p / problem.period_s + 1e-7), len(problem.tasks[task].util_percent) - 1)
            ])
            for task, p in left.items()
        }  # fmt: skip
        total = sum(now.values())
        slow = max(1.0, (total / 100) ** problem.rules.contention)
        step = max(0.0, min(next_change(task) - p for task, p in left.items()))
        joules += step * slow * watts()
        clock += step * slow
        left = {task: p + step for task, p in left.items()}
        left = {t: p for t, p in left.items() if p < problem.tasks[t].duration_s - 1e-6}
    return joules, clock


@examples(15)
@given(problem=consolidation_problems(goal="energy", capacities=("none", "mean")))
def test_every_score_is_that_of_a_plain_transcription(problem: ConsolidationProblem) -> None:
    lasting = np.array([task.duration_s for task in problem.tasks])
    decide = policy.least_added(problem, lasting, 0.0)
    told: list[tuple[np.ndarray, ...]] = []
    least = policy.least

    def overheard(state: State, task: int, *found: Any) -> Choice:
        told.append(found[:3])
        return least(state, task, *found)

    def looked_at(state: State, task: int) -> Choice:
        chosen = decide(state, task)
        added, longer = [], []
        rests = np.zeros(len(problem.places))
        ends = rests.copy()
        for g, kind in enumerate(problem.gpu_kind.tolist()):
            own = {ell: state.progress_of(ell) for ell in state.residents(g)}
            wait = max(0.0, float(state.ready[g]) - state.time_s)
            if not own:
                wait = problem.rules.wake_s * (state.time_s - state.emptied[g] > 1e-6)
            before, rests[g] = played(problem, kind, own, wait)
            after, ends[g] = played(problem, kind, {**own, task: 0.0}, wait)
            added.append(after - before)
        for g, i in enumerate(problem.gpu_server.tolist()):
            awake = max(rests[problem.gpu_server == i])
            longer.append(problem.servers[i].static_w * max(0.0, ends[g] - awake))
        room = state.fits(task)
        for name, theirs, ours in zip(
            ("J", "rest", "end"), told[-1], (added, rests, ends), strict=True
        ):
            where = slice(None) if name == "rest" else room
            assert theirs[where] == pytest.approx(np.array(ours)[where], rel=1e-6, abs=1e-3), name
        cost = np.where(room, np.array(added) + longer, np.inf)
        if chosen is not None and len(chosen) == 1:
            own_j = played(problem, 0, {task: 0.0}, 0.0)[0]
            assert cost[chosen[0]] <= cost.min() + 2e-5 * max(own_j, 1.0)
        elif chosen is None:
            assert np.isfinite(cost).sum() < len(cost)
        return chosen

    with interpreted(True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "least", overheard)
        patch.setattr("optgap.models.compiled.loaded", lambda *_: False)
        outcome = Engine(problem, looked_at, highest, Limits()).run()
    if outcome.solution is not None:
        assert problem.check(outcome.solution) == []


def test_wrong_durations_are_drawn_by_the_seed_and_keep_every_rule() -> None:
    problem = pai(seed=3, size=30, capacity="none")
    spec = f"{NAME}(duration_error=1.5)"
    first, again, other = (optgap.run(problem, spec, seed=s) for s in (1, 1, 2))
    assert first.solution == again.solution
    assert first.solution != other.solution
    assert problem.check(first.solution) == []
    with pytest.raises(InputError, match="duration_error"):
        optgap.run(problem, f"{NAME}(duration_error=-1)")


def test_at_one_instant_it_is_the_least_added_power() -> None:
    assert optgap.run(micro(), NAME).solution == optgap.run(micro(), "opt_nomig").solution
