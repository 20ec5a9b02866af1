"""How the placement figures look: the same colour and dash for a policy everywhere."""

from __future__ import annotations

from collections.abc import Mapping

from optgap.reproduce.grid import Curve
from optgap.reproduce.panels import Line, LoadPanel, Mark
from optgap.reproduce.placement.claims import NAMES

# Okabe and Ito's colours; competitors are dashed, so that the two groups differ without
# colour, and α=0.1 is wide, because α=0.05 often lies on it.
STYLE: Mapping[str, tuple[str, str, float]] = {
    "fgd": ("#000000", "-", 1.6),
    "pwr": ("#D55E00", "-", 1.6),
    "pwr+fgd(alpha=0.05)": ("#56B4E9", "-", 1.2),
    "pwr+fgd(alpha=0.1)": ("#0072B2", "-", 2.8),
    "pwr+fgd(alpha=0.2)": ("#009E73", "-", 1.6),
    "pwr+fgd(alpha=0.5)": ("#CC79A7", "-", 1.6),
    "bestfit": ("#E69F00", "--", 1.6),
    "dotprod": ("#D55E00", "--", 1.6),
    "gpupacking": ("#666666", "--", 1.6),
    "gpuclustering": ("#999999", "-.", 1.6),
}
SAVING = "power saved against FGD (%)"
GRAR = "GRAR (GPU placed / arrived)"


def lines(curves: Mapping[str, Curve]) -> tuple[Line, ...]:
    """One line per policy."""
    found = []
    for policy, curve in curves.items():
        name = NAMES[policy]
        label = f"PWR+FGD {name}" if name.startswith("α") else name
        found.append(Line(label, curve.load, curve.mean, curve.std, *STYLE[policy]))
    return tuple(found)


def saving_panel(
    title: str, curves: Mapping[str, Curve], *marks: Mark, note: str = "", low: float = -8
) -> LoadPanel:
    """Power savings over the whole axis; below `low` percent the axes end."""
    high = max(float(curve.between(0.02, 1).max()) for curve in curves.values())
    return LoadPanel(title, SAVING, lines(curves), note, y_range=(low, 1.15 * high), marks=marks)


def grar_panel(title: str, curves: Mapping[str, Curve], start: float, low: float) -> LoadPanel:
    """GRAR from load `start` on."""
    return LoadPanel(title, GRAR, lines(curves), "", (start, 1.0), (low, 1.005))
