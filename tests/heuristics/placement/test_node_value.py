"""Node value: PWR without a future, tables and scores that a slow transcription confirms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from small_time import small_time
from strategies import placement_problems
from transcriptions.node_value import SlowNodeValue, SlowValues, least_gpus
from trust.agreement import examples

from optgap.heuristics.placement import POLICIES
from optgap.heuristics.placement.parameters import NodeValueParams
from optgap.heuristics.placement.values import (
    Grid,
    NodeWorth,
    offers_of,
    shares_worth,
    worth_of_nodes,
)
from optgap.models.limits import Limits
from optgap.models.placement import PlacementProblem
from optgap.models.placement.making import cluster_of, target_of_classes, that_fit, trace_of_classes
from optgap.models.placement.presets import alibaba
from optgap.models.result import Outcome

NOTHING = {"q": 1.0, "rent_w": 0.0, "fragment_w": 0.0}
problems = placement_problems(max_nodes=4, max_tasks=15)


def run(problem: PlacementProblem, name: str = "node-value", **params: Any) -> Outcome:
    outcome: Outcome = POLICIES[name].load()(problem, limits=Limits(), seed=0, **params)
    return outcome


def tables(problem: PlacementProblem, options: NodeValueParams) -> tuple[NodeWorth, list[float]]:
    """W, and β by class of the target workload."""
    values = NodeWorth.empty(problem, Grid())
    worth_of_nodes(problem, options, values)
    return values, offers_of(problem, values)[0]["gpus"].tolist()


@given(problem=problems)
@examples(7)
def test_without_a_future_it_is_pwr(problem: PlacementProblem) -> None:
    ours = run(problem, **NOTHING).solution
    assert ours == run(problem, "pwr", score="exact").solution


@pytest.mark.parametrize("share", [[160, 320, 460, 550, 810], [500], [300, 350, 400]])
def test_the_worth_of_shares_packs_them_into_fewest_gpus(share: list[int]) -> None:
    popularity = [(k + 1) / 20 for k in range(len(share))]
    worth = shares_worth(np.array(share), np.array(popularity))
    assert worth @ popularity == pytest.approx(least_gpus(share, popularity))


@pytest.mark.parametrize("seed", range(2))
def test_values_are_those_of_the_plain_recursion(seed: int) -> None:
    problem = alibaba(seed=seed, size=20, load=0.2)
    values, beta = tables(problem, NodeValueParams())
    slow = SlowNodeValue(problem, beta, (0.003, 0.01), 60.0, 1.0)
    rng = np.random.default_rng(seed)
    order = np.argsort(problem.ranks)
    for place, n in enumerate(order.tolist()):
        node = slow.nodes[n]
        if node.cpu_capacity > 32_000:  # the recursion visits every state
            continue
        plain: SlowValues = slow.values[slow.kind(node)]
        for _ in range(5):
            cpu = int(rng.integers(node.cpu_capacity + 1))
            gpus = [int(1000 - 10 * rng.integers(101) * rng.integers(2)) for _ in node.gpus]
            partly = max((free for free in gpus if free < 1000), default=0)
            kept = values.table[values.type_of[place], cpu // 500, gpus.count(1000), partly // 20]
            assert kept == pytest.approx(plain.worth(cpu, gpus), abs=1e-6)


def test_placements_are_those_of_the_plain_scores() -> None:
    types = (("P100", 2, 16_000, 122_880, 3), ("V100M16", 2, 24_000, 131_072, 2))
    cluster, trace = cluster_of(types), trace_of_classes()
    drawn = np.random.default_rng(1).integers(len(trace), size=40)
    tasks = that_fit(trace.take(drawn.tolist()), cluster)
    problem = PlacementProblem.of(cluster, tasks, target_of_classes())
    _, beta = tables(problem, NodeValueParams(q=0.02))
    slow = SlowNodeValue(problem, beta, (0.02, 0.01), 60.0, 1.0)
    solution = run(problem, q=0.02).solution
    for k in range(len(problem.tasks)):
        task, n = problem.tasks.task_class(k), int(solution.node[k])
        gains = {
            (m, option): slow.gain(task, node, option)
            for m, node in enumerate(slow.nodes)
            if slow.fits(task, node)
            for option in slow.options(task, node)
        }
        if n < 0:
            assert not gains
            continue
        chosen = solution.gpus(k)
        assert gains[n, chosen] == pytest.approx(max(gains.values()), abs=1e-6)
        slow.commit(task, slow.nodes[n], chosen)


def test_it_spends_less_than_pwr_and_pwr_fgd_on_the_alibaba_mix() -> None:
    problem = alibaba(seed=7, size=100, load=0.6)
    spent = {
        name: problem.evaluate(run(problem, name).solution)
        for name in ("node-value", "pwr", "pwr+fgd")
    }
    assert spent["node-value"].objective < min(spent["pwr"].objective, spent["pwr+fgd"].objective)


def test_tasks_that_leave_give_back_what_their_node_was_worth() -> None:
    problem = small_time(seed=3)
    outcome = run(problem)
    assert problem.check(outcome.solution) == []
