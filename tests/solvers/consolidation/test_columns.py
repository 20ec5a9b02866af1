from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies_consolidation import consolidation_problems

from optgap.models.consolidation import ConsolidationProblem, GpuKind, Server, Task
from optgap.models.consolidation.presets import mixed
from optgap.models.consolidation.problem import Capacity, Gang, Rules
from optgap.models.errors import InputError
from optgap.models.limits import Limits
from optgap.models.result import Status, Termination
from optgap.solvers.consolidation import METHODS
from optgap.solvers.consolidation.exhaustive import exhaustive
from optgap.solvers.consolidation.generation import Generation
from optgap.solvers.consolidation.levels import closed_bound, counted, levels
from optgap.solvers.consolidation.packing import packing
from optgap.solvers.consolidation.partition import Partition
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.seating import seated


def branched(problem: ConsolidationProblem, floor: float = 0.0) -> tuple[float, float]:
    """Bound and best placement of branch-and-price that starts from next to nothing.

    Parameters
    ----------
    floor: a bound that is known, W, better than what the counts cost.
    """
    pack = packing(problem)
    search = Search(pack, 0)
    search.build(Limits(), tries=1)
    search.watts = 1.5 * search.watts + 1  # as if none had been found: the tree has to
    own = levels(pack)
    counts = (1,) * len(own.quanta)
    floor = max(floor, closed_bound(pack, own, counts))
    tree = Partition(pack, own, counts, floor, search, Limits(20))
    return min(tree.run(100_000), search.watts), search.watts


@pytest.mark.parametrize("capacity", ["none", "mean", "slot", "peak"])
@settings(max_examples=12)
@given(
    data=consolidation_problems(even=True, lines=False, max_tasks=5),
    share=st.sampled_from((0.0, 0.9, 1.0)),
)
def test_branch_and_price_finds_and_proves_the_optimum(
    capacity: Capacity, data: ConsolidationProblem, share: float
) -> None:
    try:
        problem = ConsolidationProblem.of(
            data.kinds, data.servers, data.tasks, rules=Rules(capacity, gang=data.rules.gang)
        )
    except ValueError:  # a peak that no GPU can take, say
        return
    truth = exhaustive(problem, limits=Limits(), seed=0)
    if truth.claimed is None:
        return
    bound, found = branched(problem, share * truth.claimed)
    assert bound == pytest.approx(truth.claimed, rel=1e-6)
    assert found == pytest.approx(truth.claimed, rel=1e-6)


def test_three_pairs_that_exclude_one_another_need_a_whole_number_of_gpus() -> None:
    # any two of three fit one GPU: half of each pair is a cover, 1.5 GPUs of power
    tasks = [Task(f"t{k}", 8.0, kappa=1.0) for k in range(3)]
    problem = ConsolidationProblem.of(
        [GpuKind(memory_gb=16.0)], [Server((0,))] * 3, tasks, rules=Rules(gang="free")
    )
    bound, found = branched(problem)
    assert bound == pytest.approx(2 * 144.8, rel=1e-6)
    assert found == pytest.approx(2 * 144.8)


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


def test_a_better_bound_does_not_mean_that_counts_cost_more() -> None:
    """More GPUs than needed are paid for beyond what the needed cost, not beyond the bound."""
    problem = mixed(
        seed=672941, size=13, capacity="none", kappas=0, gpus_per_server=2, gpu_memory_gb=16.0
    )
    pack = packing(problem)
    own, search = levels(pack), Search(pack, 0)
    search.build(Limits())
    known = METHODS["exact"].load()(problem, limits=Limits(60), seed=0)
    assert known.status is Status.OPTIMAL
    inside = pack.contents([one.gpus for one in known.solution.assignments])
    tops = np.array([own.of[tasks].max() for tasks in inside.values()])
    best = [int((tops >= q).sum()) for q in range(len(own.quanta))]
    counts = counted(pack, own, Limits())
    search.watts = known.claimed + 20.0
    floor = 0.995 * known.claimed
    assert floor > closed_bound(pack, own, counts) + 50.0
    root = Partition(pack, own, counts, floor, search, Limits()).heap[0]
    ends = zip(root.low[:-1], best, root.high[:-1], strict=True)
    assert all(low <= count <= high for low, count, high in ends)
    assert root.bound == floor


def test_a_search_for_sets_that_time_ended_still_proves_a_lower_bound() -> None:
    pack = packing(mixed(seed=1, size=40, capacity="mean"))
    cost = pack.least_watts
    whole = Generation(pack, np.arange(pack.tasks), cost).run(Limits()).bound
    cut = Generation(pack, np.arange(pack.tasks), cost).run(Limits(0.0)).bound
    assert 0 < cut <= whole * (1 + 1e-9)


def test_a_model_that_time_left_half_written_is_no_answer() -> None:
    outcome = METHODS["printed"].load()(mixed(seed=0, size=30), limits=Limits(0.0), seed=0)
    assert outcome.status is Status.NO_SOLUTION
    assert outcome.termination is Termination.TIME_LIMIT


def test_gpus_that_a_task_holds_together_are_seated_together() -> None:
    tasks = [Task("a", 20.0, gpus=2), Task("b", 20.0, gpus=2), Task("c", 10.0), Task("d", 20.0)]
    problem = ConsolidationProblem.of([GpuKind()], [Server((0, 0, 0))] * 2, tasks)
    pack = packing(problem)
    found = seated(pack, [{0, 2}, {1}, {3}, {0}, {1}], 2)
    assert found.places is not None
    assert found.fits
    assert problem.check(pack.solution(found.places)) == []
    chained = [{0}, {0, 1}, {1}]  # three GPUs held together, servers of two
    for gang, places in (("free", True), ("server", False)):
        small = ConsolidationProblem.of(
            [GpuKind()], [Server((0, 0))] * 2, tasks[:2], rules=Rules(gang=gang)
        )
        seats = seated(packing(small), chained, 2)
        assert (seats.places is not None, seats.sure) == (places, True)


@pytest.mark.parametrize("name", ["dives", "nodes"])
def test_fewer_than_none_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"columns: {name}: found -1"):
        METHODS["columns"].load()(mixed(seed=0, size=4), limits=Limits(), seed=0, **{name: -1})
