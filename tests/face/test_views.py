"""A picture of a solution says what it shows, and its legend stands beside what is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import TWO_NODES, two_nodes_problem

import optgap
from optgap.models.placement import PlacementSolution
from optgap.registry import FAMILIES
from optgap.views import coscheduling, placement, plot_result, plot_solution


@pytest.mark.parametrize("family", FAMILIES)
def test_the_title_says_family_policy_and_sizes_and_no_legend_stands_on_what_is_drawn(
    family: str,
) -> None:
    spec = FAMILIES[family]
    policy = next(iter(spec.policies))
    figure = plot_solution(optgap.run(optgap.generate(family, **spec.tiny), policy))
    shown = figure.axes[0].get_title(loc="left") or figure.get_suptitle()
    assert shown.startswith(f"{family}, {policy}: ")
    assert "GPU" in shown.splitlines()[0]
    figure.draw_without_rendering()
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    assert legends or family in ("consolidation", "coscheduling")
    for legend in legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(ax.get_window_extent()) for ax in figure.axes)


def test_a_small_cluster_shows_every_task() -> None:
    solution = PlacementSolution.of([(0, [0]), (0, [1]), (0, [1]), (0, [])])
    ax = placement.draw(TWO_NODES, solution).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a (G2)", "b (G2)"]
    widths = sorted(round(patch.get_width() / 0.92, 6) for patch in ax.patches)
    # four GPUs and two CPUs, the tasks on GPUs, and what they use of the CPUs
    assert widths.count(0.5) == 2
    assert widths.count(1.0) == 4 + 2 + 1


def test_tasks_that_were_not_placed_are_told() -> None:
    problem = two_nodes_problem(extra=2)
    figure = placement.draw(problem, optgap.run(problem, "fgd").solution)
    assert "not placed" in " ".join(figure.get_suptitle().split())


def test_a_large_cluster_is_a_map_of_how_full_each_gpu_is() -> None:
    problem = optgap.generate("placement", "alibaba", size=placement.DETAILED + 20, load=0.5)
    result = optgap.run(problem, "pwr")
    (image,) = placement.draw(problem, result.solution).axes[0].images
    *gpus, cpus = image.get_array().filled(np.nan)
    assert np.isfinite(gpus).sum() == problem.cluster.gpus.sum()
    assert np.nansum(gpus) == pytest.approx(result.metrics["used_gpu_milli"] / 1000)
    assert np.isfinite(cpus).sum() == len(problem.cluster)


def test_odd_names_are_no_mathematics(tmp_path: Path) -> None:
    odd, problem = "$\\frac{$ <b>", two_nodes_problem()
    problem = replace(problem, cluster=replace(problem.cluster, names=(odd, "b")))
    figure = plot_result(optgap.run(problem, "fgd"), tmp_path / "drawn.png")
    assert figure.axes[0].get_yticklabels()[0].get_text() == f"{odd} (G2)"
    assert (tmp_path / "drawn.png").stat().st_size


def test_a_result_draws_itself_as_its_family_does() -> None:
    result = optgap.run(TWO_NODES, "fgd")
    assert optgap.plot_solution(result).axes
    bare = replace(result, problem=None)
    assert optgap.plot_solution(bare, TWO_NODES).axes
    with pytest.raises(optgap.InputError, match="no problem"):
        optgap.plot_solution(bare)
    with pytest.raises(optgap.InputError, match="no solution"):
        optgap.plot_solution(replace(result, solution=None))


def test_a_schedule_is_drawn_gpu_by_gpu() -> None:
    problem = optgap.generate("coscheduling", seed=0)
    solution = optgap.run(problem, "ecosched").solution
    assert solution is not None
    (ax,) = coscheduling.draw(problem, solution).axes
    boxes = sum(run.gpu_count for run in solution.runs) + problem.gpus  # and the idle background
    assert len(ax.patches) == boxes
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"GPU {g}" for g in range(4)]
    assert ax.get_xlabel().startswith("time (s)")
