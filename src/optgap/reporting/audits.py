"""The section of an audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from optgap.models.jsonio import Fields
from optgap.render import percent
from optgap.reporting import charts, section
from optgap.reporting.grid import grid
from optgap.reporting.pictures import picture
from optgap.reporting.reading import Given
from optgap.reporting.section import Section


def audit(fields: Fields, given: Given) -> Iterator[Section]:
    """What could be saved, the curve of moves, what is violated and what was left out."""
    now, covered = fields.object("now"), fields.object("covered")
    unit = fields.text("unit", "")
    curve = _curve(fields)
    pictures = []
    if curve:
        text = "Power saved by the number of migrations, and what no plan can pass"
        columns = tuple(
            [point[name] for point in curve] for name in ("moves", "power_w", "bound_w")
        )
        pictures.append(picture(partial(charts.savings, *columns), text, f"{given.prefix}-curve"))
    grids = [grid("By number of migrations", _saved(curve))] if curve else []
    violations = [dict(v.document) for v in now.objects("violations")]
    if violations:
        grids.append(grid("Constraints that are violated now", violations))
    if "moves" in fields.document:
        moves = fields.object("moves").objects("moves")
        rows = [{"step": step, **move.document} for step, move in enumerate(moves, 1)]
        if rows:
            grids.append(grid("Moves, in an order in which each fits", rows))
    tables = fields.object("tables") if "tables" in fields.document else None
    for caption in tables.document if tables else ():
        rows = [dict(row.document) for row in tables.objects(caption)] if tables else []
        if rows:
            grids.append(grid(caption, rows))
    reasons = covered.object("reasons").document
    if reasons:
        left = [{"why": why, "how many": count} for why, count in reasons.items()]
        grids.append(grid("What was left out", left))
    facts = [(f.text("name"), f.text("value")) for f in fields.objects("facts")]
    facts += [
        ("records", f"{covered.integer('records'):,}, of them used {covered.integer('used'):,}"),
        ("gap now", percent(fields.document.get("gap_to_bound"))),
    ]
    yield section.new(
        f"{fields.text('kind', fields.text('family'))}: {fields.text('source')}",
        found=[fields.text("sentence", "") + "."],
        lines=[fields.object("problem").text("summary"), f"Objective in {unit}."],
        facts=facts,
        pictures=pictures,
        grids=grids,
        notes=fields.texts("warnings") if "warnings" in fields.document else [],
    )


def _curve(fields: Fields) -> list[dict[str, float]]:
    return [
        {
            "moves": float(point.integer("moves")),
            "power_w": point.number("power_w"),
            "bound_w": point.number("bound_w"),
        }
        for point in fields.objects("moves_curve")
    ]


def _saved(curve: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    now = curve[0]["power_w"] or 1.0
    return [
        {
            "migrations": int(point["moves"]),
            "power (W)": point["power_w"],
            "saved (%)": round(100 * (now - point["power_w"]) / now, 3),
            "at most (%)": round(100 * (now - point["bound_w"]) / now, 3),
            "bound (W)": point["bound_w"],
        }
        for point in curve
    ]
