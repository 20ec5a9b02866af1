"""Matplotlib figures as parts of a page: inline SVG that follows its colours, or a PNG."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optgap.models.figures import make_legible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAVIEST = 400_000
"""Characters of SVG; a figure with more becomes a PNG."""
DPI = 130

THEMED = {
    "#000000": "currentColor",
    "#ffffff": "var(--paper)",
    "#0072b2": "var(--blue)",
    "#666666": "var(--soft)",
}
"""Colours that would not be told from a dark page, and what the page calls them."""

PREFIXED = re.compile(r'(\bid="|href="#|url\(#)')
UNUSED = re.compile(r"<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)
SIZE = re.compile(r'\s(?:width|height)="[0-9.]+pt"')


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure on the page.

    Parameters
    ----------
    caption: what it shows, for those who do not see it, too.
    svg: the drawing, or "".
    png: base64 of a PNG where the drawing would be too heavy, or "".
    themed: whether the drawing takes the page's colours; else it stands on white.
    wide: CSS pixels below which it is not made narrower.
    """

    caption: str
    svg: str
    png: str
    themed: bool
    wide: int


def picture(draw: Callable[[], Figure], caption: str, name: str, themed: bool = True) -> Picture:
    """Draw a figure for the page.

    Names with ``$`` in them are names, not mathematics. Parts of the SVG are named after
    `name`, so that several drawings get along on one page.

    Parameters
    ----------
    themed: black and white become the page's ink and paper.
    """
    import matplotlib as mpl

    settings: Any = {
        "text.parse_math": False, "svg.hashsalt": name, "svg.fonttype": "path",
    }  # fmt: skip
    with mpl.rc_context(settings):
        figure = draw()
        make_legible(figure)
        wide = round(72 * float(figure.get_figwidth()))
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=themed, metadata={"Date": None})
        svg = _cleaned(buffer.getvalue(), name, themed)
        if len(svg) <= HEAVIEST:
            return Picture(caption, svg, "", themed, wide)
        raster = io.BytesIO()
        figure.savefig(raster, format="png", dpi=DPI, facecolor="white")
    return Picture(caption, "", base64.b64encode(raster.getvalue()).decode(), False, wide)


def _cleaned(svg: str, name: str, themed: bool) -> str:
    svg = svg[svg.index("<svg") :]
    svg = UNUSED.sub("", svg)
    svg = PREFIXED.sub(rf"\g<1>{name}-", svg)
    head, _, rest = svg.partition(">")
    svg = SIZE.sub("", head) + ' aria-hidden="true" focusable="false">' + rest
    if themed:
        for colour, name_of in THEMED.items():
            svg = svg.replace(colour, name_of)
    return re.sub(r"\s*\n\s*", "\n", svg)
