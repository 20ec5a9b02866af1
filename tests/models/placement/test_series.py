"""The series of a run, recomputed from its placements alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from reference import first_500, openb_s42
from strategies import placements_that_fit, tasks_of

from optgap.models.errors import InputError
from optgap.models.placement import Cluster, PlacementProblem, PlacementSolution
from optgap.models.placement.series import replay


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
        assert series.arrived_gpu_milli[k] == metrics["arrived_gpu_milli"]
        assert series.used_gpu_milli[k] == metrics["used_gpu_milli"]
        assert series.used_cpu_milli[k] == metrics["used_cpu_milli"]
        assert series.failed_tasks[k] == metrics["failed_tasks"]
        assert series.grar[k] == metrics["grar"]
        near = {"rel": 1e-12, "abs": 1e-9}
        assert series.frag_gpu_milli[k] == pytest.approx(metrics["frag_gpu_milli"], **near)
        assert series.power_cpu_w[k] == pytest.approx(metrics["power_cpu_w"], **near)
        assert series.power_gpu_w[k] == pytest.approx(metrics["power_gpu_w"], **near)
        assert series.power_w[k] == pytest.approx(metrics["power_w"], **near)


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
        ([0], [0], "found 1 placements, expected 2, one per task"),
        ([0, 1], [1, 1], "task 1: found 1, expected a node below 1, or -1"),
        ([-2, 0], [0, 1], "task 0: found -2, expected a node below 1, or -1"),
        ([0, 0], [1, 4], "task 1: found GPUs 2, expected GPUs below 2"),
        ([-1, 0], [1, 1], "task 0: found GPUs 0, expected GPUs below 0"),
    ],
)
def test_what_does_not_exist_is_named(node: list[int], mask: list[int], message: str) -> None:
    cluster = Cluster.of(["a"], [1000], [1024], [2], ["G2"])
    problem = PlacementProblem.of(cluster, tasks_of([(0, 0, 1, 500, "")] * 2))
    solution = PlacementSolution.of_arrays(np.array(node), np.array(mask))
    with pytest.raises(InputError) as caught:
        replay(problem, solution)
    assert message in str(caught.value)
