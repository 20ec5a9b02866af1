from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import two_nodes_problem
from matplotlib.axes import Axes

from optgap.comparing.comparison import Comparison, ComparisonSet
from optgap.comparing.gaps import compare
from optgap.plotting.figures import COLOURS
from optgap.plotting.gaps import gaps_figure

pytestmark = pytest.mark.usefixtures("enumerated")


def axes_of(item: Comparison | ComparisonSet) -> Axes:
    return gaps_figure(item).axes[0]


def table(extra: int = 0, policies: str = "pwr,fgd,bestfit,firstfit") -> Comparison:
    return compare(two_nodes_problem(extra), policies)


def half(task: Any, state: Any) -> int | None:
    return None if task.gpu_milli == 500 else 0


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_every_row_with_a_gap_has_a_dot_and_its_value_beside_it() -> None:
    item = table()
    axes = axes_of(item)
    assert len(texts(axes)) == len(item.rows) == len(axes.get_yticks())
    exact = next(text for text in texts(axes) if "optimal" in text)
    assert exact == "0.00 %, proven optimal"
    assert "%" in axes.get_xlabel()


@pytest.mark.parametrize(
    ("policies", "names"),
    [
        ("pwr+fgd(alpha=0.2),fgd", {"pwr+fgd", "fgd"}),
        ("pwr+fgd(alpha=0.2),pwr+fgd", {"pwr+fgd(alpha=0.2)", "pwr+fgd"}),
    ],
)
def test_parameters_are_shown_only_where_they_tell_names_apart(
    policies: str, names: set[str]
) -> None:
    axes = axes_of(compare(two_nodes_problem(), policies))
    assert names < {label.get_text() for label in axes.get_yticklabels()}


def test_gaps_for_the_accepted_part_are_hollow() -> None:
    item = compare(two_nodes_problem(), [half, "pwr", "random"])
    gaps = {row.result.method: row.gap_to_bound for row in item.rows}
    assert gaps["half"] == 0
    assert gaps["random"] > 0
    axes = axes_of(item)
    assert axes.get_yticklabels()[0].get_text() == "half"  # below one with a larger gap
    (part,) = (line for line in axes.lines if str(line.get_label()).startswith("accepted part"))
    assert part.get_markerfacecolor() == "white"
    assert sum("accepted part" in text for text in texts(axes)) == 1


def test_the_title_says_family_sizes_and_unit_and_no_files_name() -> None:
    item = replace(table(), problem_name="a-files-name")
    title = axes_of(item).get_title(loc="left")
    assert title.startswith("placement: 2 nodes, 4 GPUs, 4 tasks")
    assert title.endswith("minimise power (W)")
    swept = axes_of(ComparisonSet("load", (0.3, 0.9), (item, table(1)))).get_title(loc="left")
    assert "over load; minimise power (W)" in swept
    assert "a-files-name" not in title + swept


def test_the_best_known_is_marked_beside_the_bound() -> None:
    proven = table()
    assert "proven optimum" in axes_of(proven).get_xlabel()
    item = replace(proven, best_bound=0.8 * proven.best_known)
    axes = axes_of(item)
    (mark,) = (line for line in axes.lines if line.get_label() == "best known")
    assert list(mark.get_xdata()) == pytest.approx([25.0, 25.0])
    assert "best known" in axes.get_xlabel()
    assert item.head()[2].endswith("; 25.00 % from the bound, unproven and part of every gap")
    assert not any("unproven" in line for line in proven.head())
    figure = gaps_figure(item)
    (legend,) = figure.legends
    assert "best known" in [text.get_text() for text in legend.get_texts()]
    figure.draw_without_rendering()  # type: ignore[no-untyped-call]
    below = legend.get_window_extent().y1
    assert below < figure.axes[0].get_window_extent().y0


def test_a_gap_of_rounding_stretches_no_axis() -> None:
    item = table(policies="firstfit")
    rows = tuple(replace(row, gap_to_bound=1e-9) for row in item.rows)
    axes = axes_of(replace(item, rows=rows))
    assert axes.get_xlim() == (0.0, 1.0)


def test_every_line_is_named_in_a_legend_below() -> None:
    policies = "pwr,fgd,bestfit,firstfit,dotprod,gpupacking,gpuclustering,pwr+fgd,random"
    item = ComparisonSet("load", (0.3, 0.9), (table(0, policies), table(1, policies)))
    drawn = [name for name in item.methods if any(g is not None for g in item.gaps(name))]
    figure = gaps_figure(item)
    (legend,) = figure.legends
    assert sorted(text.get_text() for text in legend.get_texts()) == sorted(drawn)
    figure.draw_without_rendering()  # type: ignore[no-untyped-call]
    assert legend.get_window_extent().y1 < figure.axes[0].get_window_extent().y0


def test_values_that_are_no_numbers_get_their_names() -> None:
    item = ComparisonSet("goal", ("power", "other"), (table(), table()))
    axes = axes_of(item)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["power", "other"]


def test_a_file_needs_no_display_and_no_pyplot_state(tmp_path: Path) -> None:
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    table().plot(tmp_path / "gaps.png")
    assert (tmp_path / "gaps.png").read_bytes().startswith(b"\x89PNG")
    assert pyplot.get_fignums() == before


def test_colours_differ_in_lightness_or_hue_for_every_eye() -> None:
    assert len(set(COLOURS)) == len(COLOURS)
    assert "#F0E442" not in COLOURS  # Okabe and Ito's yellow, unreadable on white
