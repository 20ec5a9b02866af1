"""The method `columns`, and what a model that was not written is worth."""

from __future__ import annotations

import pytest

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, Gang, Rules
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.consolidation import METHODS


def test_three_pairs_that_exclude_one_another_need_a_whole_number_of_gpus() -> None:
    # any two of three fit one GPU: half of each pair is a cover, 1.5 GPUs of power
    tasks = [Task(f"t{k}", 8.0, kappa=1.0) for k in range(3)]
    problem = ConsolidationProblem.of(
        [GpuKind(memory_gb=16.0)], [Server((0,))] * 3, tasks, rules=Rules(gang="free")
    )
    outcome = METHODS["columns"].load()(problem, limits=Limits(60), seed=0)
    assert outcome.bound == pytest.approx(2 * 144.8, rel=1e-6)
    assert outcome.claimed == pytest.approx(2 * 144.8)


@pytest.mark.parametrize(
    ("capacity", "gang", "seed"),
    [("none", "free", 0), ("mean", "free", 1), ("slot", "free", 1), ("peak", "server", 1)],
)
def test_columns_prove_twenty_tasks(capacity: Capacity, gang: Gang, seed: int) -> None:
    problem = mixed(seed=seed, size=20, capacity=capacity, gang=gang)
    outcome = METHODS["columns"].load()(problem, limits=Limits(60), seed=0)
    assert outcome.status is Status.OPTIMAL
    assert problem.check(outcome.solution) == []
    assert problem.evaluate(outcome.solution).objective == pytest.approx(outcome.bound, rel=1e-6)


def test_a_model_that_time_left_half_written_is_no_answer() -> None:
    outcome = METHODS["printed"].load()(mixed(seed=0, size=30), limits=Limits(0.0), seed=0)
    assert outcome.status is Status.NO_SOLUTION
    assert outcome.termination is Termination.TIME_LIMIT


@pytest.mark.parametrize("name", ["dives", "nodes"])
def test_fewer_than_none_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"columns: {name}: found -1"):
        METHODS["columns"].load()(mixed(seed=0, size=4), limits=Limits(), seed=0, **{name: -1})
