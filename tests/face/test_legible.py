"""Pictures of whatever a file may hold: drawn, and without a word from matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from trust.answers import SMALL

import optgap
from optgap.comparing.comparison import Comparison, ComparisonRow, ComparisonSet
from optgap.models.consolidation import ConsolidationSolution
from optgap.models.coscheduling import CoschedulingSolution
from optgap.models.elastic.solution import ElasticSolution
from optgap.models.figures import LONGEST, LONGEST_TICK, MISSING, drawable, image
from optgap.models.placement import PlacementSolution
from optgap.models.queueing import QueueingSolution
from optgap.models.result import Result, Status, Termination
from optgap.plotting.gaps import gaps_figure
from optgap.registry import FAMILIES
from optgap.views import VIEWS

DRAWN: list[tuple[str, tuple[float, ...]]] = [
    ("m", ()), ("_x", (0, 0)), ("🚀", (1e-300, 0.1)), ("日本語", (1.7e306, 1)), ("", (0.1,) * 30),
    ("x" * 400, (0, 0.1)), ("$a_b$", (0, 0.1)), ("a\nb", (0, 0.1)),
]  # fmt: skip
"""Names, and gaps of rows with names that begin so."""


@pytest.fixture(autouse=True)
def _loud() -> Iterator[None]:
    """What matplotlib warns of fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def drawn(figure: Figure) -> bool:
    return image(figure, "png", dpi=30).startswith(b"\x89PNG")


def compared(name: str, gaps: tuple[float, ...]) -> Comparison:
    rows = [
        ComparisonRow(
            Result(
                "placement", name + str(k), "policy", Status.FEASIBLE, Termination.COMPLETED,
                1.0, "W", "min", 1.0, "proof", 0.1, 0, {},
            ),
            ("all", "accepted")[k % 2],
            gap,
        )
        for k, gap in enumerate(gaps)
    ]  # fmt: skip
    return Comparison("placement", name * 3, name, "W", "min", 1.0, "proof", 1.0, name, tuple(rows))


@pytest.mark.parametrize(("name", "gaps"), DRAWN)
def test_gaps_are_drawn_whatever_they_and_their_names_are(
    name: str, gaps: tuple[float, ...]
) -> None:
    one = compared(name, gaps)
    assert drawn(gaps_figure(one))
    several = ComparisonSet(name, (name, 2), (one, replace(one, rows=one.rows[::-1])))
    assert drawn(gaps_figure(several))


def nothing(family: str, problem: Any) -> Any:
    """A solution that serves nothing at all."""
    n, none = np.zeros(0, dtype=np.int64), np.zeros(0)
    if family == "queueing":
        never, held = np.full(len(problem), np.nan), np.zeros(len(problem) + 1, dtype=np.int64)
        return QueueingSolution(never, never, held, n, n)
    made: dict[str, Callable[[], Any]] = {
        "placement": lambda: PlacementSolution.of([None] * len(problem.tasks)),
        "consolidation": lambda: ConsolidationSolution((), ()),
        "coscheduling": lambda: CoschedulingSolution(()),
        "elastic": lambda: ElasticSolution(n, none, none, n, n, n, n),
    }
    return made[family]()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_solution_that_serves_nothing_has_a_picture(family: str) -> None:
    problem = optgap.generate(family, **SMALL.get(family, {}))
    solution = nothing(family, problem)
    assert problem.check(solution) == []
    draw = VIEWS[family]
    assert drawn(draw(problem, solution))
    if family == "consolidation":
        energy = replace(problem, objective=replace(problem.objective, goal="energy"))
        assert drawn(draw(energy, solution))


def test_text_is_cut_and_what_no_font_has_is_a_box() -> None:
    assert drawable("α ≤ β") == "α ≤ β"
    assert drawable("a🚀") == "a" + MISSING
    assert drawable("x" * 400) == "x" * (LONGEST - 1) + "…"
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks([0], ["🚀" + "x" * 400])
    assert drawn(figure)
    assert axes.get_yticklabels()[0].get_text() == MISSING + "x" * (LONGEST_TICK - 2) + "…"
    assert not any(text.get_parse_math() for text in figure.findobj(Text) if text.get_text())
