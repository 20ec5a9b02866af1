"""Figures 7 to 10: the GPU resource allocation ratio."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from optgap.models.placement.arrays import FloatArray
from optgap.reproduce.grid import Curve
from optgap.reproduce.placement.claims import (
    NAMES,
    RATIO,
    first_failure,
    runs_of,
    span,
    statement,
    told,
    until,
    with_spread,
)
from optgap.reproduce.placement.look import grar_panel
from optgap.reproduce.placement.runs import COMBINATIONS, COMPETITORS, FGD, TESTED
from optgap.reproduce.placement.savings import FILES, UNEXPLAINED
from optgap.reproduce.report import Item, Report, Row, Study, holds

LOW, MIDDLE, HIGH = COMBINATIONS
ALL = (FGD, *TESTED)
AHEAD = 0.002
"""A GRAR that much higher is no tie."""
END = "GRAR at 100 %, mean ± std over seeds"

Curves = dict[str, Curve]


def grar_on(item: Item, study: Study, trace: str = "default") -> tuple[Curves, str]:
    """GRAR of all policies on one trace, and what it was run from."""
    runs, source = runs_of(item, study, trace)
    runs.make(ALL)
    return {policy: runs.grar(policy) for policy in ALL}, source


def ends(curves: Mapping[str, Curve], policies: tuple[str, ...]) -> list[float]:
    """GRAR at a load of 100 %."""
    return [curves[policy].at(1.0) for policy in policies]


def best_row(prefix: str, curves: Curves) -> Row:
    """FGD has the best GRAR at 100 %."""
    own, others = ends(curves, (FGD,))[0], ends(curves, TESTED)
    best = max(TESTED, key=lambda policy: curves[policy].at(1.0))
    return statement(
        f"{prefix}best GRAR at 100 %",
        "FGD",
        f"FGD {own:.3f}; next {NAMES[best]}, {max(others):.3f}",
        own > max(others),
    )


def gap_row(
    claim: str,
    paper: str,
    gap: float,
    curves: Curves,
    upper: tuple[str, ...],
    lower: tuple[str, ...],
    slack: float = RATIO / 2,
) -> Row:
    """How far below the worst of one group the next group ends."""
    base = min(ends(curves, upper))
    gaps = [base - end for end in ends(curves, lower)]
    off = max(abs(value - gap) for value in gaps)
    further = [NAMES[p] for p, value in zip(lower, gaps, strict=True) if value > gap + RATIO]
    names = ", ".join(NAMES[policy] for policy in lower)
    verdict = holds(off <= slack, off <= RATIO)
    why = f"{' and '.join(further)} further away: {UNEXPLAINED}" if further else ""
    return statement(claim, paper, f"{span(gaps, 3)} ({names})", verdict, why=why)


def worsens_row(prefix: str, paper: str, load: float, curves: Curves) -> Row:
    """From where on tasks fail."""
    first = min(until(curve, 0.995, 0.5) for curve in curves.values())
    name, failed = first_failure(curves)
    return statement(
        f"{prefix}GRAR worsens only beyond",
        paper,
        f"at least 0.995 until {100 * first:.1f} %; first failed task in any run at "
        f"{100 * failed:.1f} % ({NAMES[name]})",
        first >= load - 0.005,
    )


def end_rows(traces: Mapping[str, Curves]) -> list[Row]:
    """Where every policy ends on each trace."""
    return [Row(f"{of}: {END}", "", with_spread(own, 1.0, 3)) for of, own in traces.items()]


def _around_peak(values: FloatArray, level: float) -> tuple[int, int]:
    """First and last index of the stretch above `level` that holds the largest value."""
    peak = int(np.argmax(values))
    low = np.flatnonzero(values[:peak] <= level)
    high = np.flatnonzero(values[peak:] <= level)
    return (
        int(low[-1]) + 1 if low.size else 0,
        peak + int(high[0]) - 1 if high.size else len(values) - 1,
    )


def fig7(item: Item, study: Study) -> Report:
    """Default."""
    curves, source = grar_on(item, study)
    group = ("bestfit", *COMBINATIONS)
    rest = ("gpuclustering", "gpupacking", "dotprod")
    rows = (
        best_row("", curves),
        gap_row(
            "BestFit and PWR+FGD below FGD, at 100 %", "around 2 %", 0.02, curves, (FGD,), group
        ),
        gap_row(
            "the remaining competitors below that group", "around 0.01", 0.01, curves, group, rest
        ),
        worsens_row("", "85 % (text), 90 % (text)", 0.85, curves),
        Row(END, "", with_spread(curves, 1.0, 3)),
    )
    panel = grar_panel("Default trace: GPU resource allocation ratio", curves, 0.9, 0.9)
    return Report(item, source, told(rows, study), study.seeds, (panel,))


def fig8(item: Item, study: Study) -> Report:
    """Sharing tasks take 40 and 100 % of the GPU demand."""
    some, _ = grar_on(item, study, "gpushare40")
    full, _ = grar_on(item, study, "gpushare100")
    rest = ("gpupacking", "gpuclustering", "dotprod")
    group = ("bestfit", *COMBINATIONS)
    rows = (
        best_row("40 %: ", some),
        gap_row("40 %: BestFit and PWR+FGD below FGD", "around 0.02", 0.02, some, (FGD,), group),
        gap_row(
            "40 %: the remaining competitors below that group", "0.02", 0.02, some, group, rest
        ),
        best_row("100 %: ", full),
        gap_row("100 %: BestFit below FGD", "around 0.02", 0.02, full, (FGD,), ("bestfit",)),
        gap_row(
            "100 %: PWR+FGD below BestFit", "around 0.01", 0.01, full, ("bestfit",), COMBINATIONS
        ),
        gap_row(
            "100 %: the remaining competitors below that",
            "around 0.01",
            0.01,
            full,
            COMBINATIONS,
            rest,
        ),
        worsens_row("40 %: ", "80 %", 0.8, some),
        worsens_row("100 %: ", "80 %", 0.8, full),
        *end_rows({"40 %": some, "100 %": full}),
    )
    panels = (
        grar_panel("Sharing-GPU trace, 40 %: GRAR", some, 0.8, 0.88),
        grar_panel("Sharing-GPU trace, 100 %: GRAR", full, 0.8, 0.8),
    )
    return Report(item, FILES, told(rows, study), study.seeds, panels)


def fig9(item: Item, study: Study) -> Report:
    """Tasks with several GPUs take 20 and 50 % of the demand."""
    some, _ = grar_on(item, study, "multigpu20")
    half, _ = grar_on(item, study, "multigpu50")
    rest = ("bestfit", "gpupacking", "gpuclustering")
    last = min(ALL, key=lambda policy: some[policy].at(1.0))
    spreads = [some[FGD].at(1) - min(ends(some, TESTED)), half[FGD].at(1) - min(ends(half, TESTED))]
    order = [COMBINATIONS, rest, ("dotprod",)]
    means = [float(np.mean(ends(half, group))) for group in order]
    rows = (
        best_row("20 %: ", some),
        gap_row("20 %: PWR+FGD below FGD", "less than 0.01", 0.005, some, (FGD,), COMBINATIONS),
        gap_row(
            "20 %: BestFit and two more below that", "around 0.01", 0.01, some, COMBINATIONS, rest
        ),
        statement("20 %: last", "DotProd", NAMES[last], last == "dotprod"),
        statement(
            "50 %: gap from first to last against the 20 % case",
            "narrower",
            f"{spreads[1]:.3f}, {spreads[0]:.3f}",
            spreads[1] < spreads[0],
        ),
        statement(
            "50 %: ranking",
            "the same",
            f"FGD {half[FGD].at(1):.3f}; means of the groups {means[0]:.3f}, {means[1]:.3f}, "
            f"{means[2]:.3f}",
            half[FGD].at(1) > means[0] > means[1] > means[2],
            note="groups in the order of the 20 % case",
        ),
        worsens_row("20 %: ", "85 %, noticeably", 0.85, some),
        worsens_row("50 %: ", "85 %, noticeably", 0.85, half),
        *end_rows({"20 %": some, "50 %": half}),
    )
    panels = (
        grar_panel("Multi-GPU trace, 20 %: GRAR", some, 0.9, 0.91),
        grar_panel("Multi-GPU trace, 50 %: GRAR", half, 0.9, 0.935),
    )
    return Report(item, FILES, told(rows, study), study.seeds, panels)


def fig10(item: Item, study: Study) -> Report:
    """10 and 33 % of the GPU tasks name the GPU models they accept."""
    few, _ = grar_on(item, study, "gpuspec10")
    many, _ = grar_on(item, study, "gpuspec33")
    load = few[FGD].load
    ahead = {p: few[FGD].mean - few[p].mean for p in COMBINATIONS}
    most = max(float(values.max()) for values in ahead.values())
    stretches = [_around_peak(values, AHEAD) for values in ahead.values()]
    low, high = min(float(load[a]) for a, _ in stretches), max(float(load[b]) for _, b in stretches)
    gains = {p: many[p].mean - many[FGD].mean for p in COMBINATIONS}
    rows = (
        statement(
            "GRAR at 80 %",
            "all struggle already before",
            f"{span((c.at(0.8) for c in few.values()), 3)} (10 %), "
            f"{span((c.at(0.8) for c in many.values()), 3)} (33 %)",
            max(c.at(0.8) for c in (*few.values(), *many.values())) < 0.98,
        ),
        *(
            statement(
                f"{share} %: FGD and PWR+FGD have the best GRAR at 100 %",
                "yes",
                f"{span(ends(curves, (FGD, *COMBINATIONS)), 3)}; competitors "
                f"{span(ends(curves, COMPETITORS), 3)}",
                min(ends(curves, (FGD, *COMBINATIONS))) > max(ends(curves, COMPETITORS)),
            )
            for share, curves in ((10, few), (33, many))
        ),
        statement(
            "10 %: FGD's largest advantage over PWR+FGD",
            "~0.025, in 21 to 73 %",
            f"{most:.3f}; ahead by {AHEAD} or more from {100 * low:.1f} to {100 * high:.1f} %",
            abs(most - 0.025) <= RATIO / 2,
        ),
        statement(
            "33 %: α=0.05 over FGD, at most",
            "~0.04, consistently",
            f"{gains[LOW].max():.3f}; never below FGD by more than "
            f"{max(0.0, -float(gains[LOW].min())):.3f}",
            abs(float(gains[LOW].max()) - 0.04) <= RATIO and float(gains[LOW].min()) > -RATIO / 10,
        ),
        *(
            statement(
                f"33 %: {NAMES[p]} below FGD, at most",
                f"~{loss}",
                f"{-gains[p].min():.3f}",
                bool(abs(-gains[p].min() - loss) <= RATIO),
            )
            for p, loss in ((MIDDLE, 0.05), (HIGH, 0.08))
        ),
        *end_rows({"10 %": few, "33 %": many}),
    )
    panels = (
        grar_panel("Constrained-GPU trace, 10 %: GRAR, from 5 % load", few, 0.05, 0.89),
        grar_panel("Constrained-GPU trace, 33 %: GRAR, from 5 % load", many, 0.05, 0.78),
    )
    return Report(item, FILES, told(rows, study), study.seeds, panels)
