"""The compiled arithmetic of a node against the plain one, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import first_500, openb_s42
from strategies import placement_problems, placements_that_fit, tasks_of

from optgap.models.errors import InputError
from optgap.models.placement import Cluster, PlacementProblem, PlacementSolution, TargetWorkload
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
from optgap.models.placement.series import replay


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
def test_fragment_and_power_agree_to_the_last_bit(
    state: tuple[PlacementProblem, int, int, list[int]],
) -> None:
    problem, n, cpu, gpus = state
    compiled, model = Compiled(problem, n), problem.cluster.models[n]
    plain = node_fragmentation(problem.workload, model, cpu, gpus)
    values = compiled.buckets(cpu, gpus)
    assert values == plain
    assert fragment(values) == plain.fragment
    assert abs(sum(plain) - sum(gpus)) <= 1e-9 * max(1, sum(gpus))
    unmoved = (compiled.free(gpus), compiled.profile, 0, 0, 0)
    assert fragment_increase(compiled.workload, cpu, cpu, *unmoved) == 0.0
    capacity = int(problem.cluster.cpu_milli[n])
    assert cpu_w(compiled.node, cpu) == problem.power.cpu_w(capacity, cpu)
    busy = sum(1 for free in gpus if free < 1000)
    assert gpu_w(compiled.node, busy) == problem.power.gpu_w(model, gpus)


def test_the_order_of_summation_is_the_simulators() -> None:
    # Many classes, so that every bucket fills and every other order would round differently.
    rng = np.random.default_rng(2)
    cluster = Cluster.of(["a"], [96_000], [0], [8], ["G2"])
    milli = np.where(rng.random(40) < 0.2, 0, rng.integers(1, 1001, 40))
    weights = rng.random(40)
    number, specs = np.where(milli == 0, 0, 1), np.where(rng.random(40) < 0.2, "T4", "").tolist()
    share = weights / weights.sum()
    m = TargetWorkload.of(rng.integers(0, 96_000, 40), milli, number, specs, share)
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


# -- the series of a run, recomputed from its placements alone -----------------------------


@given(placements_that_fit(max_nodes=4, max_tasks=12))
def test_every_row_is_what_the_referee_finds_for_the_arrivals_so_far(
    drawn: tuple[PlacementProblem, PlacementSolution],
) -> None:
    problem, solution = drawn
    series = replay(problem, solution)
    assert len(series) == len(problem.tasks)
    for k in range(len(series)):
        so_far = replace(problem, tasks=problem.tasks.take(range(k + 1)))
        placed = PlacementSolution.of_arrays(
            solution.node[: k + 1].copy(), solution.gpu_mask[: k + 1].copy()
        )
        metrics = so_far.evaluate(placed).metrics
        for name in (
            "arrived_gpu_milli",
            "used_gpu_milli",
            "used_cpu_milli",
            "failed_tasks",
            "grar",
        ):
            assert getattr(series, name)[k] == metrics[name], name
        for name in ("frag_gpu_milli", "power_cpu_w", "power_gpu_w", "power_w"):
            near = pytest.approx(metrics[name], rel=1e-12, abs=1e-9)
            assert getattr(series, name)[k] == near, name


@pytest.mark.parametrize("policy", ["fgd", "pwr"])
def test_a_reference_run_has_the_simulators_series(data_dir: Path, policy: str) -> None:
    rows = first_500(data_dir, policy)
    problem = openb_s42(data_dir)
    problem = replace(problem, tasks=problem.tasks.take(range(len(rows))))
    node = [problem.cluster.index[row["node"]] for row in rows]
    gpus = [[int(g) for g in row["gpu_index"].split("-") if g] for row in rows]
    series = replay(problem, PlacementSolution.of(list(zip(node, gpus, strict=True))))
    for name in ("arrived_gpu_milli", "used_gpu_milli", "used_cpu_milli"):
        assert getattr(series, name).tolist() == [int(row[name]) for row in rows], name
    for name in ("power_cpu_w", "power_gpu_w"):
        assert getattr(series, name).tolist() == [float(row[name]) for row in rows], name
    # the simulator's fragment is the sum of its rounded buckets
    fragment = np.array([float(row["frag_gpu_milli"]) for row in rows])
    assert np.abs(series.frag_gpu_milli - fragment).max() <= 6 * 0.5e-4 + 1e-6
    assert (series.failed_tasks == 0).all()


@pytest.mark.parametrize(
    ("node", "mask", "message"),
    [
        ([0], [0], "solution: found one placement per task: 1, expected 2"),
        ([0, 1], [1, 1], "task 1: found a node of the cluster: 1, expected 0"),
        ([-2, 0], [0, 1], "task 0: found a node of the cluster: -2, expected 0"),
        ([0, 0], [1, 4], "task 1 on a: found GPUs of the node: 2, expected 1"),
        ([-1, 0], [1, 1], "task 0: found no GPUs for an unplaced task: some, expected none"),
    ],
)
def test_what_does_not_exist_is_named(node: list[int], mask: list[int], message: str) -> None:
    cluster = Cluster.of(["a"], [1000], [1024], [2], ["G2"])
    problem = PlacementProblem.of(cluster, tasks_of([(0, 0, 1, 500, "")] * 2))
    solution = PlacementSolution.of_arrays(np.array(node), np.array(mask))
    with pytest.raises(InputError) as caught:
        replay(problem, solution)
    assert message in str(caught.value)
