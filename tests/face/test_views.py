"""A picture of a solution says what it shows, and its legend stands beside what is drawn."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import optgap
from optgap.registry import FAMILIES
from optgap.views import plot_solution


def drawn(family: str) -> tuple[str, Figure]:
    """A tiny solution's picture, and the policy that made it."""
    spec = FAMILIES[family]
    policy = next(iter(spec.policies))
    problem = optgap.generate(family, **spec.tiny)
    return policy, plot_solution(optgap.run(problem, policy))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_title_says_family_policy_and_sizes(family: str) -> None:
    policy, figure = drawn(family)
    shown = figure.axes[0].get_title(loc="left") or figure.get_suptitle()
    assert shown.startswith(f"{family}, {policy}: ")
    assert "GPU" in shown.splitlines()[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_legend_stands_on_what_is_drawn(family: str) -> None:
    _, figure = drawn(family)
    figure.draw_without_rendering()
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    assert legends or family in ("consolidation", "coscheduling")
    for legend in legends:
        box = legend.get_window_extent()
        assert not any(box.overlaps(ax.get_window_extent()) for ax in figure.axes)
