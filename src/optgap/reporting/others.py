"""Sections of fits, reproductions, verdicts, and of whatever has none of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from optgap.models.errors import InputError
from optgap.models.jsonio import Fields
from optgap.render import duration, percent
from optgap.reporting import charts, findings, section
from optgap.reporting.grid import grid, worded
from optgap.reporting.pictures import Picture, picture
from optgap.reporting.reading import Given
from optgap.reporting.section import Section


def fit(fields: Fields, given: Given) -> Iterator[Section]:
    groups = fields.objects("groups")
    overall = fields.object("overall").document
    said = {"n": "rows", "r2": "R²", "mape": "mean error", "cv_mape": "mean error, held out"}
    facts = [("model", fields.text("model")), ("fitted to", fields.text("source"))]
    facts += [
        (said[key], percent(value) if key.endswith("mape") else f"{value:.6g}")
        for key, value in overall.items()
        if key in said and section.is_number(value)
    ]
    params = [
        {
            "group": group.text("group") or "all rows",
            "parameter": name,
            "value": parameter.get("value"),
            "± stderr": parameter.get("stderr"),
            "unit": parameter.get("unit"),
            "lowest": parameter.get("lower"),
            "highest": parameter.get("upper"),
            "at a bound": parameter.get("at_bound"),
        }
        for group in groups
        for name, parameter in _parameters(group)
    ]
    quality = [
        {
            "group": group.text("group") or "all rows",
            "rows": group.document.get("n"),
            "R²": group.document.get("r2"),
            "mape": group.document.get("mape"),
            "cv_mape": group.document.get("cv_mape"),
        }
        for group in groups
    ]
    warnings = [
        f"{group.text('group') or 'all rows'}: {text}"
        for group in groups
        for text in (group.texts("warnings") if "warnings" in group.document else [])
    ]
    pictures = [*_curves(fields, given.prefix)]
    errors = [(str(q["group"]), _known(q["mape"]), _known(q["cv_mape"])) for q in quality]
    text = "Mean error of the prediction by group, in sample and held out"
    pictures.append(picture(partial(charts.errors, errors), text, f"{given.prefix}-errors"))
    yield section.new(
        f"fit: {fields.text('model')}",
        found=[_precision(overall, len(groups), len(warnings))],
        facts=facts,
        pictures=pictures,
        grids=[grid("Quality of each group's fit", quality), grid("Parameters", params)],
        notes=warnings,
    )


def _precision(overall: Mapping[str, Any], groups: int, warnings: int) -> str:
    inside, outside = overall.get("mape"), overall.get("cv_mape")
    words = f"its mean error is {findings.share(inside)} where it was fitted"
    if section.is_number(outside):
        words += f" and {findings.share(outside)} on rows held out"
    words += f", in {groups} groups" if groups > 1 else ""
    return words + (f"; {warnings} warnings." if warnings else ".")


def _parameters(group: Fields) -> Iterator[tuple[str, Mapping[str, Any]]]:
    params = group.object("params")
    for name in params.document:
        yield name, params.object(name).document


def _known(value: Any) -> float | None:
    return float(value) if section.is_number(value) else None


def _curves(fields: Fields, prefix: str) -> Iterator[Picture]:
    """Fitted curves over what was measured, for models of one input."""
    import numpy as np

    from optgap.fitting.profile import QUANTITIES, Profile
    from optgap.fitting.saved import from_document

    try:
        fit = from_document(fields.document, fields.source)
    except InputError:  # saved without what prediction needs
        return
    found = []
    for name, estimator in fit.fits.items():
        needs = estimator.needs
        if len(needs) != 1 or needs[0] not in estimator.validity_:
            return
        low, high = estimator.validity_[needs[0]]
        xs = np.linspace(low, high, 100)
        try:
            ys = estimator.predict(Profile({needs[0]: xs}, fields.source))
        except (InputError, KeyError, ValueError):
            return
        found.append((name, xs, ys))
    labels = [
        f"{n} ({QUANTITIES[n].unit})" if n in QUANTITIES else n
        for n in (fit.estimator.needs[0], fit.estimator.response)
    ]
    text = f"Fitted {labels[1]} over {labels[0]}"
    if len(found) > charts.MOST_LINES:
        text += f", the first {charts.MOST_LINES} groups"
    yield picture(partial(charts.fitted, found, *labels), text, f"{prefix}-fit")


def _panel_chart(panel: Fields) -> Callable[[Mapping[str, Any]], Any]:
    """What draws a panel: curves over load or over something else, or a schedule."""
    if "schedule" in panel.document:
        for run in panel.objects("schedule"):
            run.text("app"), run.number("start_s"), run.number("end_s"), run.integers("gpu_index")
        return charts.schedule
    for curve in panel.objects("curves"):
        x, y = ("x", "y") if "x" in curve.document else ("load", "mean")
        curve.text("label"), curve.array(x), curve.array(y)
    return charts.curves


def reproduced(fields: Fields, given: Given) -> Iterator[Section]:
    for k, part in enumerate(fields.objects("items")):
        rows = [
            tuple(row.text(key, "") for key in ("claim", "paper", "ours", "agrees", "note"))
            for row in (part.objects("rows") if "rows" in part.document else [])
        ]
        panels = part.objects("panels") if "panels" in part.document else []
        pictures = []
        for j, panel in enumerate(panels):
            text = panel.text("title", "") or part.text("title")
            draw = partial(_panel_chart(panel), panel.document)
            pictures.append(picture(draw, text, f"{given.prefix}-{k}-{j}"))
        header = ("statement", "paper", "ours", "agrees", "note")
        yield section.new(
            f"{part.text('name')}: {part.text('title')}",
            found=[_held([row[3] for row in rows])] if rows else [],
            lines=[part.text("paper", "")],
            facts=_run_from(part),
            pictures=pictures,
            grids=[worded("The paper's statements beside ours", header, rows)] if rows else [],
        )


def _held(agrees: Sequence[str]) -> str:
    """How many of the paper's statements hold."""
    counts = {word: agrees.count(word) for word in ("yes", "nearly", "no")}
    judged = sum(counts.values())
    return (
        f"of {judged} statements of the paper {counts['yes']} hold, {counts['nearly']} nearly, "
        f"and {counts['no']} do not."
    )


def _run_from(part: Fields) -> list[tuple[str, str]]:
    facts = [("run from", part.text("source"))] if "source" in part.document else []
    if part.known("cached"):
        cached = part.object("cached")
        took = duration(cached.number("seconds"))
        facts.append(("computed", f"{cached.text('computed')}, in {took}; kept since"))
    return facts


def verdict(fields: Fields, given: Given) -> Iterator[Section]:
    violations = [dict(v.document) for v in fields.objects("violations")]
    facts = [
        (name, section.words(value))
        for name, value in fields.document.items()
        if name not in ("schema", "violations", "metrics") and value is not None
    ]
    facts += [(k, section.words(v)) for k, v in fields.object("metrics").document.items()]
    grids = [grid("Broken constraints", violations)] if violations else []
    broken = len(violations)
    yield section.new(
        f"{fields.text('family')}: the referee's verdict",
        found=[f"the solution breaks {broken or 'no'} constraints."],
        facts=facts,
        grids=grids,
    )


def anything(fields: Fields, given: Given) -> Iterator[Section]:
    """Values as facts, lists of objects as tables: for what has no section of its own."""
    facts, grids = [], []
    for name, value in fields.document.items():
        if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            grids.append(grid(name, value))
        elif name not in ("schema", "versions"):
            facts.append((name, section.words(value)))
    yield section.new(given.item.schema, facts=facts, grids=grids)
