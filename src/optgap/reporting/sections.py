"""From results to the sections of a page, one function per schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from optgap.api import close
from optgap.comparing.comparison import (
    PART_NOTE,
    SET_SCHEMA,
    Comparison,
    ComparisonRow,
    ComparisonSet,
)
from optgap.comparing.comparison import SCHEMA as COMPARE
from optgap.comparing.overview import SCHEMA as OVERVIEW
from optgap.contract import Problem
from optgap.explaining import SCHEMA as EXPLAIN
from optgap.explaining import Explanation
from optgap.models.errors import InputError
from optgap.models.jsonio import Fields
from optgap.models.performance.saved import SCHEMA as FIT
from optgap.models.result import SCHEMA as RESULT
from optgap.models.result import Result
from optgap.registry import FAMILIES, family
from optgap.render import number, percent, result_facts
from optgap.reporting import audits, charts, findings, others, runs, section
from optgap.reporting.grid import Grid, constants, grid
from optgap.reporting.pictures import Picture, picture
from optgap.reporting.reading import ROWS, Given, Item
from optgap.reporting.section import Section
from optgap.views import VIEWS

LEFT_OUT = ("key", "problem", "solution", "code", "metrics", "instance_params", "started", "worker")
"""Columns of a sweep that are there for machines."""
MOST_PANELS = 12
"""Charts of many runs: one for each instance or size, no more than so many."""
SPREAD = ("gap_to_bound", "gap_to_best", "gap")
"""What a chart of many runs may show, the first that is there."""


def sections(item: Item, problems: Sequence[Problem], prefix: str) -> list[Section]:
    """The sections that one input makes.

    Parameters
    ----------
    problems: to draw solutions with.
    prefix: a name for what is drawn, different for every input.

    Raises
    ------
    InputError: for a document that is not what its schema says.
    """
    fields = Fields(item.document, item.source)
    make = MAKERS.get(item.schema, others.anything)
    made = make(fields, Given(item, problems, prefix))
    return [replace(part, source=item.source, schema=item.schema) for part in made]


# -- results -------------------------------------------------------------------------------


def _result(fields: Fields, given: Given) -> Iterator[Section]:
    result = Result.from_json(fields)
    facts = [("method", f"{result.method} ({result.kind})"), *result_facts(result)]
    facts += [] if result.seed is None else [("seed", str(result.seed))]
    facts += [
        (name, value if isinstance(value, str) else number(value))
        for name, value in result.metrics.items()
        if isinstance(value, (str, int, float))
    ]
    pictures, notes = _views(result, given)
    yield section.new(
        f"{result.family}: {result.method}",
        found=[findings.of_result(result)],
        facts=[fact for fact in facts if fact[1]],
        pictures=pictures,
        notes=[*filter(None, [result.message]), *notes],
    )


def _views(result: Result, given: Given) -> tuple[list[Picture], list[str]]:
    """The family's picture of the solution, or why there is none."""
    if result.solution is None or result.family not in FAMILIES:
        return [], []
    own = [given.item.problem] if given.item.problem is not None else []
    for problem in [*own, *given.problems]:
        solution = _fitting(result, problem)
        if solution is not None:
            draw = partial(VIEWS[result.family], problem, solution, result.method)
            text = f"{problem.name}: the solution of {result.method}"
            return [picture(draw, text, f"{given.prefix}-view", themed=False)], []
    return [], ["give the problem's file, too, and the solution is drawn"]


def _fitting(result: Result, problem: Problem) -> Any:
    """The result's solution as one of `problem`; None where it belongs to another."""
    if problem.family != result.family:
        return None
    try:
        fields = Fields(result.solution, "solution")  # type: ignore[arg-type]  # plain JSON here
        solution = family(problem.family).models.solution.from_json(fields, problem)
        if problem.check(solution) or result.objective is None:
            return None
        found = problem.evaluate(solution)
    except (InputError, IndexError, KeyError):
        return None
    told = {**result.metrics, "": result.objective}
    same = {**found.metrics, "": found.objective}
    return solution if all(_alike(told.get(name), value) for name, value in same.items()) else None


def _alike(told: Any, found: float) -> bool:
    """Whether a number in a file is the referee's; one that the file has not is no reason."""
    return told is None or (section.is_number(told) and close(float(told), float(found)))


# -- comparisons ---------------------------------------------------------------------------


def _comparison(fields: Fields, given: Given) -> Iterator[Section]:
    yield _compared(Comparison.from_json(fields), given.prefix)


def _compared(comparison: Comparison, prefix: str) -> Section:
    unit = comparison.unit

    def record(row: ComparisonRow) -> dict[str, Any]:
        return {
            "method": row.label,
            "kind": row.result.kind,
            "status": _status(row.result),
            f"objective ({unit})": row.result.objective,
            f"bound ({unit})": row.result.bound,
            "gap to bound": row.gap_to_bound,
            "gap to best": row.gap_to_best,
            "time (s)": row.result.seconds,
        }

    pairs = [(row, record(row)) for row in comparison.blocks]
    pictures = []
    if any(row.gap_to_bound is not None for row in comparison.rows):
        pictures.append(_gaps(comparison, prefix))
    return section.new(
        f"{comparison.family}: {comparison.problem_name}",
        found=[findings.of_comparison(comparison)],
        lines=[comparison.problem_summary, *comparison.head()[1:]],
        pictures=pictures,
        grids=_apart_parts("Every method and policy, and its gaps", pairs),
        notes=comparison.notes(),
    )


def _apart_parts(
    caption: str, pairs: Sequence[tuple[ComparisonRow, Mapping[str, Any]]]
) -> list[Grid]:
    """Tables that can be sorted without ranking gaps of accepted parts with the others."""
    whole = [record for row, record in pairs if not row.partial]
    part = [record for row, record in pairs if row.partial]
    grids = [grid(caption, whole)] if whole else []
    return [*grids, grid(f"The same, {PART_NOTE}", part)] if part else grids


def _status(result: Result) -> str:
    stopped = result.termination in ("time_limit", "interrupted")
    return f"{result.status} ({result.termination})" if stopped else str(result.status)


def _gaps(shown: Comparison | ComparisonSet, prefix: str) -> Picture:
    from optgap.plotting.gaps import gaps_figure

    if isinstance(shown, ComparisonSet):
        text = f"Gap to the best proven bound over {shown.parameter}"
    else:
        rows = [row for row in shown.rows if row.gap_to_bound is not None]
        said = (f"{row.result.method} {percent(row.gap_to_bound)}" for row in rows)
        text = "Gap to the best proven bound: " + ", ".join(said)
    return picture(partial(gaps_figure, shown), text, f"{prefix}-gaps")


def _comparison_set(fields: Fields, given: Given) -> Iterator[Section]:
    found = ComparisonSet.from_json(fields)
    names = sorted({comparison.family for comparison in found.comparisons})
    pairs = [
        (
            row,
            {
                found.parameter: value,
                "method": row.label,
                "kind": row.result.kind,
                "objective": row.result.objective,
                "unit": row.result.unit,
                "gap to bound": row.gap_to_bound,
                "gap to best": row.gap_to_best,
                "time (s)": row.result.seconds,
            },
        )
        for value, comparison in zip(found.values, found.comparisons, strict=True)
        for row in comparison.blocks
    ]
    yield section.new(
        f"{', '.join(names)}: over {found.parameter}",
        found=[findings.of_set(found)],
        lines=[comparison.problem_summary for comparison in found.comparisons[:1]],
        pictures=[_gaps(found, given.prefix)] if found.measured else [],
        grids=_apart_parts(f"Every row, for each value of {found.parameter}", pairs),
        notes=found.notes(),
    )


def _overview(fields: Fields, given: Given) -> Iterator[Section]:
    for k, part in enumerate(fields.objects("families")):
        yield _compared(Comparison.from_json(part), f"{given.prefix}-{k}")
    failures = fields.object("failures").document if "failures" in fields.document else {}
    if failures:
        yield section.new("Families that failed", facts=[(k, str(v)) for k, v in failures.items()])


def _explanation(fields: Fields, given: Given) -> Iterator[Section]:
    from optgap.plotting.waterfall import explanation_figure

    found = Explanation.from_json(fields)
    parts = [
        {
            "part": row[0],
            f"from ({found.unit})": part.start,
            f"to ({found.unit})": part.end,
            f"lost ({found.unit})": part.amount(found.sense),
            "gap": found.of_bound(part) if part.name else found.gap,
            "because": part.because,
        }
        for row, part in zip(found.table()[1], [*found.parts, found.whole], strict=True)
    ]
    grids = [grid("From the proven bound to the policy", parts)]
    if found.costly:
        decisions = [
            {
                "when": int(regret.time) if regret.time.is_integer() else regret.time,
                "about": regret.subject,
                "chosen": regret.chosen,
                "better": regret.better,
                f"cost ({found.unit})": regret.cost,
            }
            for regret in found.costly
        ]
        grids.append(grid("The decisions that cost most, in time order", decisions))
    yield section.new(
        f"{found.family}: why {found.policy} is where it is",
        found=[findings.of_explanation(found)],
        lines=found.head(),
        pictures=[
            picture(
                partial(explanation_figure, found),
                "From the proven bound to the policy: "
                + ", ".join(f"{row[0]} {row[3]} {found.unit}" for row in found.table()[1]),
                f"{given.prefix}-explain",
            )
        ],
        grids=grids,
        notes=found.notes,
    )


# -- many runs -----------------------------------------------------------------------------


def _runs(fields: Fields, given: Given) -> Iterator[Section]:
    rows = [dict(row.document) for row in fields.objects("rows")]
    shown = [{k: v for k, v in row.items() if k not in LEFT_OUT} for row in rows]
    varying, same = constants(shown, keep=("method", "policy", "objective"))
    pictures, grids, notes = [], [], []
    measure = next(
        (name for name in SPREAD if any(section.is_number(r.get(name)) for r in rows)), None
    )
    by = [name for name in ("method", "policy") if name in varying]
    apart = runs.kept_apart(rows, varying)
    if measure and (by or apart):
        panels = runs.panels(rows, apart, by, measure)
        title = measure.replace("_", " ")
        for k, (panel, groups) in enumerate(panels.items()):
            text = ": ".join(filter(None, [f"{title} by {' and '.join(by)}", panel]))
            values = {name: list(found.values()) for name, found in groups.items()}
            if k < MOST_PANELS:
                draw = partial(charts.spread, values, title, panel)
                pictures.append(picture(draw, text, f"{given.prefix}-spread-{k}"))
        if len(panels) > MOST_PANELS:
            notes.append(f"the first {MOST_PANELS} of {len(panels)} are drawn; the table has all")
        summary, more = runs.summary(panels, title)
        grids.append(summary)
        notes += more
    grids.append(grid(f"All {len(rows):,} runs", shown, varying))
    failed = sum(bool(row.get("error")) for row in rows)
    yield section.new(
        f"{len(rows):,} runs",
        found=findings.of_runs(rows),
        lines=[f"{failed:,} of them failed"] if failed else [],
        facts=[(name, section.words(value)) for name, value in same.items()],
        pictures=pictures,
        grids=grids,
        notes=notes,
    )


def _audit(fields: Fields, given: Given) -> Iterator[Section]:
    """An audit's own section, and the gaps of policies beside what happened."""
    yield from audits.audit(fields, given)
    if "comparison" in fields.document:
        inside = replace(given, prefix=f"{given.prefix}-c")
        yield from _comparison(fields.object("comparison"), inside)


Maker = Callable[[Fields, Given], Iterator[Section]]

MAKERS: Mapping[str, Maker] = {
    RESULT: _result,
    COMPARE: _comparison,
    SET_SCHEMA: _comparison_set,
    OVERVIEW: _overview,
    EXPLAIN: _explanation,
    FIT: others.fit,
    ROWS: _runs,
    "optgap.reproduce/1": others.reproduced,
    "optgap.check/1": others.verdict,
    "optgap.audit/1": _audit,
}
