from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies_consolidation import consolidation_problems, micro
from trust.agreement import examples

from optgap.heuristics.consolidation import CUSTOM, POLICIES
from optgap.heuristics.consolidation.cats import correlate
from optgap.heuristics.consolidation.fgd import fragmentation, typical
from optgap.heuristics.consolidation.frequency_adaptation import stepped
from optgap.heuristics.consolidation.regret import regrets
from optgap.heuristics.consolidation.state import State
from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import cats_testbed, pai
from optgap.models.consolidation.problem import Rules
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.registry import family


def ran(problem: ConsolidationProblem, policy: str, **params: Any) -> Outcome:
    entry = family("consolidation").policies[policy]
    outcome: Outcome = entry.load()(problem, limits=Limits(20), seed=0, **params)
    return outcome


def places(problem: ConsolidationProblem, policy: str, **params: Any) -> list[tuple[int, ...]]:
    outcome = ran(problem, policy, **params)
    assert problem.check(outcome.solution) == []
    return [a.gpus for a in sorted(outcome.solution.assignments, key=lambda a: a.task)]


def watts(problem: ConsolidationProblem, policy: str, **params: Any) -> float:
    return problem.evaluate(ran(problem, policy, **params).solution).objective


def test_cats_puts_the_anticorrelated_pair_on_one_gpu() -> None:
    problem = micro()
    assert places(problem, "cats") == [(0,), (0,), (1,)]
    assert watts(problem, "cats") == pytest.approx(354.5)
    assert watts(problem, "cats", dfs=False) == pytest.approx(389.6)


def test_hotcloud_and_first_are_as_worked_out_by_hand() -> None:
    problem = micro()
    assert places(problem, "hotcloud") == [(0,), (0,), (1,)]
    assert watts(problem, "hotcloud") == pytest.approx(389.6)
    assert places(problem, "first") == [(0,), (1,), (1,)]
    assert places(problem, "default") == [(0,), (1,), (2,)]


def test_correlations_are_pearsons() -> None:
    problem = micro()
    state = State(problem)
    state.put(0, [0])
    state.put(2, [1])
    means, rhos = np.zeros(2), np.zeros(2)
    correlate(
        state.tables,
        np.array([0, 1]),
        problem.tasks[1].util_percent,
        0.0,
        100.0,
        means,
        rhos,
    )
    assert rhos.tolist() == pytest.approx([-1, 0])
    assert means.tolist() == pytest.approx([50, 35])


def test_the_literal_options_do_what_the_listing_says() -> None:
    series = ([80, 20, 40, 60], [45, 44, 46, 45])
    tasks = [Task(f"t{k}", 4.0, util_percent=np.array(u, float)) for k, u in enumerate(series)]
    problem = ConsolidationProblem.of([GpuKind()], [Server((0, 0))], tasks)
    assert places(problem, "cats", rho_max=1.0) == [(0,), (0,)]
    assert places(problem, "cats", rho_max=1.0, literal_empty=True) == [(0,), (1,)]
    crowd = [Task(f"t{k}", 4.0, util_percent=np.array([90.0, 80.0])) for k in range(3)]
    full = ConsolidationProblem.of([GpuKind()], [Server((0,) * 3)], crowd)
    assert len(set(places(full, "cats"))) == 3
    assert len(set(places(full, "cats", literal_thresholds=True))) == 1


@pytest.mark.parametrize(
    ("kappas", "delta", "rest", "steps"),
    [([1.2], 15.0, 1155.0, 13), ([1.2, 1.5], 15.0, 1155.0, 13), ([1.0], 15.0, 1350.0, 0)],
)
def test_algorithm_4_comes_to_rest(
    kappas: list[float], delta: float, rest: float, steps: int
) -> None:
    path = stepped(GpuKind(), 1350.0, [(kappa, 0.91) for kappa in kappas], delta)
    assert path[-1] == rest
    assert len(path) - 1 == steps


@pytest.mark.parametrize(("delta", "rest"), [(150.0, 1200.0), (250.0, 1350.0), (200.0, 1150.0)])
def test_steps_that_are_too_large_end_on_the_safe_side(delta: float, rest: float) -> None:
    assert stepped(GpuKind(), 1350.0, [(1.2, 0.91)], delta)[-1] == rest


def test_a_gpu_with_few_clocks_takes_the_next_one() -> None:
    kind = GpuKind(frequencies_mhz=(135.0, 900.0, 1150.0, 1350.0))
    assert stepped(kind, 1350.0, [(1.2, 0.91)], 15.0) == [1350.0, 1150.0]


def test_contention_slows_by_what_was_worked_out_by_hand() -> None:
    problem = micro(goal="energy")
    outcome = CUSTOM.load()(problem, limits=Limits(), seed=0, policy=lambda task, state: 0)
    found = problem.evaluate(outcome.solution).metrics
    # U = 160, 150, 110, 100 %: 1.6 + 1.5 + 1.1 + 1.0 s
    assert found["makespan_s"] == pytest.approx(5.2)
    assert found["mean_stretch"] == pytest.approx(1.3)
    pair = CUSTOM.load()(
        problem, limits=Limits(), seed=0, policy=lambda task, state: 0 if task == 0 else 1
    )
    ends = problem.evaluate(pair.solution).metrics
    assert ends["mean_stretch"] == pytest.approx((1 + 1.075 + 1.075) / 3)


def test_several_gpus_are_taken_in_the_server_that_opens_fewest() -> None:
    wide = Task("wide", 4.0, gpus=2, util_percent=np.array([10.0, 20.0]))
    tasks = [
        Task("a", 4.0, util_percent=np.array([50.0, 20.0])),
        Task("b", 30.0, util_percent=np.array([60.0, 80.0])),
        wide,
    ]
    problem = ConsolidationProblem.of([GpuKind()], [Server((0, 0))] * 2, tasks)
    for name in ("cats", "hotcloud", "bestfit", "dotprod", "fgd", "opt_nomig"):
        found = places(problem, name)
        assert {problem.places[g][0] for g in found[2]} <= {0, 1}
        assert len(found[2]) == 2


def test_waiting_is_first_come_first_served() -> None:
    tasks = [
        Task("long", 32.0, duration_s=100.0),
        Task("big", 32.0, submit_s=1.0, duration_s=10.0),
        Task("small", 4.0, submit_s=2.0, duration_s=10.0, util_percent=np.array([5.0])),
    ]
    problem = ConsolidationProblem.of([GpuKind()], [Server((0,))], tasks, goal="energy")
    found = problem.evaluate(ran(problem, "hotcloud").solution)
    assert found.metrics["mean_wait_s"] > 0
    narrow = ConsolidationProblem.of(
        [GpuKind()], [Server((0,))], tasks, goal="energy", rules=Rules(waiting=False)
    )
    outcome = ran(narrow, "hotcloud")
    assert outcome.info["turned_down"] == 2
    assert narrow.check(outcome.solution) == []


def test_fragmentation_counts_what_typical_tasks_cannot_use() -> None:
    classes, popularity = np.array([[500, 1], [1000, 2]]), np.array([0.5, 0.5])
    free = np.array([1000, 400, 700])
    # class 1 loses the 400; class 2 finds one whole GPU of two and loses all 2100
    assert fragmentation(free, classes, popularity) == pytest.approx(0.5 * 400 + 0.5 * 2100)
    found, share = typical(micro())
    assert found[:, 0].tolist() == [500, 450, 350]
    assert share.sum() == pytest.approx(1)


def test_clocks_that_count_contention_keep_every_rule() -> None:
    problem = pai(seed=2, size=40, present=10)
    aware = ran(problem, "cats", contention_aware=True)
    assert problem.check(aware.solution) == []


def test_a_newcomer_takes_the_least_added_power() -> None:
    problem = micro(capacity="mean")
    outcome = ran(problem, "opt_nomig")
    assert problem.evaluate(outcome.solution).objective == pytest.approx(345.481, abs=1e-3)
    found = regrets(problem, ran(problem, "default").solution)
    assert [regret.subject for regret in found] == ["t1", "t2", "t3"]
    assert [regret.cost > 0 for regret in found] == [False, True, True]
    assert all(r.cost == 0 for r in regrets(problem, outcome.solution))


@examples(5)
@given(problem=consolidation_problems(goal="energy", capacities=("none", "mean")))
def test_no_regret_is_negative(problem: ConsolidationProblem) -> None:
    for name in POLICIES.keys() - {"opt_repack"}:  # solves every event: see below
        outcome = ran(problem, name)
        if outcome.solution is not None:
            assert all(regret.cost >= 0 for regret in regrets(problem, outcome.solution))


@pytest.mark.parametrize(
    ("policy", "params", "said"),
    [
        ("cats", {"delta_mhz": 0.0}, "a step in MHz"),
        ("hotcloud", {"fit": "worst"}, "one of first, best"),
        ("opt_repack", {"capacity": "all"}, "none, mean, slot, peak"),
    ],
)
def test_parameters_out_of_range_are_refused(
    policy: str, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        ran(micro(), policy, **params)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (99, "GPU numbers"),
        ([0, 1], "1 different GPUs"),
        ("x", "GPU numbers"),
        (True, "GPU numbers"),
    ],
)
def test_a_policy_of_ones_own_that_errs_is_told_in_one_line(answer: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        CUSTOM.load()(micro(), limits=Limits(), seed=0, policy=lambda task, state: answer)
    assert "\n" not in str(caught.value)


def test_a_policy_of_ones_own_may_use_the_lowest_clocks() -> None:
    class Lowest:
        clocks = "lowest"

        def __init__(self, gpu: int = 0) -> None:
            self.gpu = gpu

        def place(self, task: int, state: State) -> int:
            return self.gpu

    problem = micro()
    outcome = CUSTOM.load()(
        problem, limits=Limits(), seed=0, policy=Lowest, policy_params={"gpu": 3}
    )
    assert problem.evaluate(outcome.solution).objective == pytest.approx(222.741, abs=1e-3)


def test_repacking_the_testbed_moves_tasks_and_never_needs_more_power() -> None:
    problem = cats_testbed(seed=1, stage=1, goal="energy", capacity="none")
    moved = ran(problem, "opt_repack", capacity="mean")
    assert problem.check(moved.solution) == []
    assert problem.serves_all(moved.solution)
    assert moved.info["events_unproven"] == 0
    least = problem.evaluate(moved.solution).metrics
    assert least["average_gpus"] <= 4.5
    within = cats_testbed(seed=1, stage=1, goal="energy", capacity="mean")
    stay = within.evaluate(ran(within, "opt_nomig").solution).metrics
    assert least["average_power_w"] <= stay["average_power_w"] * 1.05


def test_repacking_without_time_stays_feasible_and_says_how_little_is_proven() -> None:
    problem = pai(seed=1, size=60, present=12)
    hasty = ran(problem, "opt_repack", capacity="mean", units=1e-4)
    assert problem.check(hasty.solution) == []
    assert problem.serves_all(hasty.solution)
    proven, unproven = hasty.info["events_proven"], hasty.info["events_unproven"]
    assert unproven > 0
    assert f"least power proven at {proven} of {proven + unproven} events" in hasty.message


def test_repacking_refuses_negative_work() -> None:
    with pytest.raises(InputError, match="units"):
        ran(micro(), "opt_repack", units=-1.0)
