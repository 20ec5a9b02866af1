from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import two_nodes_problem

import optgap
from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.spec import imported
from optgap.registry import FAMILIES
from optgap.views.placement import DETAILED, draw


def test_every_view_that_a_family_names_exists() -> None:
    for spec in FAMILIES.values():
        if spec.view:
            assert callable(imported(spec.view))


def test_a_small_cluster_shows_every_task(two_nodes: PlacementProblem) -> None:
    solution = PlacementSolution.of([(0, [0]), (0, [1]), (0, [1]), (0, [])])
    ax = draw(two_nodes, solution).axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a (G2)", "b (G2)"]
    widths = sorted(round(patch.get_width() / 0.92, 6) for patch in ax.patches)
    # four GPUs and two CPUs, the tasks on GPUs, and what they use of the CPUs
    assert widths.count(0.5) == 2
    assert widths.count(1.0) == 4 + 2 + 1


def test_tasks_that_were_not_placed_are_told() -> None:
    problem = two_nodes_problem(extra=2)
    figure = draw(problem, optgap.run(problem, "fgd").solution)
    assert "not placed" in " ".join(figure.get_suptitle().split())


def test_a_large_cluster_is_a_map_of_how_full_each_gpu_is() -> None:
    problem = optgap.generate("placement", "alibaba", size=DETAILED + 20, load=0.5)
    result = optgap.run(problem, "pwr")
    gpus, cpus = (image.get_array() for image in draw(problem, result.solution).axes[0].images)
    assert np.isfinite(gpus.filled(np.nan)).sum() == problem.cluster.gpus.sum()
    assert np.nansum(gpus.filled(np.nan)) == pytest.approx(result.metrics["used_gpu_milli"] / 1000)
    assert np.isfinite(cpus.filled(np.nan)).sum() == len(problem.cluster)


def test_odd_names_are_no_mathematics() -> None:
    problem = replace(two_nodes_problem(), name="$\\frac{ <b>")
    import matplotlib as mpl

    with mpl.rc_context({"text.parse_math": False}):
        figure = draw(problem, optgap.run(problem, "fgd").solution)
        figure.canvas.draw()


def test_a_result_draws_itself_as_its_family_does(two_nodes: PlacementProblem) -> None:
    result = optgap.run(two_nodes, "fgd")
    assert optgap.plot_solution(result).axes
    bare = replace(result, problem=None)
    assert optgap.plot_solution(bare, two_nodes).axes
    with pytest.raises(optgap.InputError, match="no problem"):
        optgap.plot_solution(bare)
    with pytest.raises(optgap.InputError, match="no solution"):
        optgap.plot_solution(replace(result, solution=None))
