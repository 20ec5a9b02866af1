"""The compiled arithmetic of a node against the plain one, to the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import placement_problems, tasks_of

from optgap.models.placement import Cluster, PlacementProblem, TargetWorkload
from optgap.models.placement.fragmentation import Buckets, node_fragmentation
from optgap.models.placement.kernels import (
    PROFILE,
    buckets,
    cpu_w,
    fragment,
    fragment_increase,
    gpu_profile,
    gpu_w,
    model_names,
    node_table,
    workload_table,
)


@st.composite
def node_states(draw: st.DrawFn) -> tuple[PlacementProblem, int, int, list[int]]:
    """A problem, one of its nodes, and some free CPU and GPU there."""
    problem = draw(placement_problems(max_gpus=8))
    n = draw(st.integers(0, len(problem.cluster) - 1))
    cpu = draw(st.integers(0, int(problem.cluster.cpu_milli[n])))
    free = st.sampled_from((0, 1, 100, 190, 500, 501, 667, 999, 1000, 1000))
    gpus = draw(st.lists(free, min_size=(g := int(problem.cluster.gpus[n])), max_size=g))
    return problem, n, cpu, gpus


class Compiled:
    """The kernels applied to one node of a problem."""

    def __init__(self, problem: PlacementProblem, n: int) -> None:
        self.node = node_table(problem, np.arange(len(problem.cluster)))[n]
        model = model_names(problem).index(problem.cluster.models[n])
        self.workload = workload_table(problem)[model]
        self.profile = np.zeros(len(problem.workload), dtype=PROFILE)

    def free(self, gpus: list[int]) -> int:
        """Fill the profile; the node's free milli-GPU."""
        padded = np.array([*gpus, -1], dtype=np.int64)
        return int(gpu_profile(self.workload, padded, len(gpus), self.profile))

    def buckets(self, cpu: int, gpus: list[int]) -> Buckets:
        return Buckets(*buckets(self.workload, cpu, self.free(gpus), self.profile, 0, 0, 0))


@given(node_states())
def test_buckets_and_fragment_agree_to_the_last_bit(
    state: tuple[PlacementProblem, int, int, list[int]],
) -> None:
    problem, n, cpu, gpus = state
    plain = node_fragmentation(problem.workload, problem.cluster.models[n], cpu, gpus)
    values = Compiled(problem, n).buckets(cpu, gpus)
    assert values == plain
    assert fragment(values) == plain.fragment
    assert abs(sum(plain) - sum(gpus)) <= 1e-9 * max(1, sum(gpus))


def test_the_order_of_summation_is_the_simulators() -> None:
    # Many classes, so that every bucket fills and every other order would round differently.
    rng = np.random.default_rng(2)
    cluster = Cluster.of(["a"], [96_000], [0], [8], ["G2"])
    milli = np.where(rng.random(40) < 0.2, 0, rng.integers(1, 1001, 40))
    weights = rng.random(40)
    m = TargetWorkload.of(
        rng.integers(0, 96_000, 40),
        milli,
        np.where(milli == 0, 0, 1),
        ["T4" if odd else "" for odd in rng.random(40) < 0.2],
        weights / weights.sum(),
    )
    compiled = Compiled(PlacementProblem.of(cluster, tasks_of([(0, 0, 0, 0, "")]), m), 0)
    for _ in range(300):
        cpu, gpus = int(rng.integers(96_001)), rng.integers(0, 1001, 8).tolist()
        plain = node_fragmentation(m, "G2", cpu, gpus)
        values = compiled.buckets(cpu, gpus)
        assert values == plain
        assert fragment(values) == plain.fragment


@given(node_states(), st.data())
def test_a_move_is_the_state_it_leads_to(
    state: tuple[PlacementProblem, int, int, list[int]], data: st.DataObject
) -> None:
    problem, n, cpu, gpus = state
    assume(gpus)
    g = data.draw(st.integers(0, len(gpus) - 1))
    old = gpus[g]
    alike = [k for k, free in enumerate(gpus) if free == old]
    moved = data.draw(st.integers(1, len(alike)))
    new = data.draw(st.integers(0, old))
    after_cpu = data.draw(st.integers(0, cpu))
    left = [new if k in alike[:moved] else free for k, free in enumerate(gpus)]
    compiled = Compiled(problem, n)
    wanted = compiled.buckets(after_cpu, left)
    before = compiled.buckets(cpu, gpus).fragment
    free = compiled.free(gpus)
    move = (free, compiled.profile, moved, old, new)
    assert Buckets(*buckets(compiled.workload, after_cpu, *move)) == wanted
    increase = fragment_increase(compiled.workload, cpu, after_cpu, *move)
    assert abs(increase - (wanted.fragment - before)) <= 1e-9 * max(1, sum(gpus))


def test_taking_two_of_four_gpus_leaves_too_few_for_three() -> None:
    cluster = Cluster.of(["a"], [1000], [0], [4], ["G2"])
    m = TargetWorkload.of([0] * 3, [1000] * 3, [3, 2, 1], [""] * 3, [0.25, 0.25, 0.5])
    compiled = Compiled(PlacementProblem.of(cluster, tasks_of([(0, 0, 2, 1000, "")]), m), 0)
    move = (compiled.free([1000] * 4), compiled.profile, 2, 1000, 0)
    wanted = Buckets(0.0, 0.25 * 2000, 0.75 * 2000, 0.0, 0.0, 0.0, 0.0)
    assert Buckets(*buckets(compiled.workload, 0, *move)) == wanted
    assert fragment_increase(compiled.workload, 0, 0, *move) == 500.0


@given(node_states())
def test_no_change_of_fragment_is_exactly_zero(
    state: tuple[PlacementProblem, int, int, list[int]],
) -> None:
    problem, n, cpu, gpus = state
    compiled = Compiled(problem, n)
    free = compiled.free(gpus)
    assert fragment_increase(compiled.workload, cpu, cpu, free, compiled.profile, 0, 0, 0) == 0.0


@given(node_states())
def test_power_agrees_to_the_last_bit(state: tuple[PlacementProblem, int, int, list[int]]) -> None:
    problem, n, cpu, gpus = state
    node = Compiled(problem, n).node
    capacity = int(problem.cluster.cpu_milli[n])
    assert cpu_w(node, cpu) == problem.power.cpu_w(capacity, cpu)
    busy = sum(1 for free in gpus if free < 1000)
    assert gpu_w(node, busy) == problem.power.gpu_w(problem.cluster.models[n], gpus)
