"""Figures as files: whatever names hold is shown as it stands, in glyphs that there are."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.models.errors import InputError
from optgap.models.jsonio import write_bytes
from optgap.models.reading import as_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 80
LONGEST_TICK = 48
"""Characters of a line, and of a name at an axis: longer ones would leave no room for the data."""
MOST_LINES = 8
"""Largest number of lines of one text."""
NOTEBOOK_DPI = 100
"""Resolution of a figure in a notebook."""
MISSING = "□"
"""Stands for a character that no installed font has."""
FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans KR",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
)
"""Asked for a glyph in this order, as far as they are installed; the first is matplotlib's own."""


def image(figure: Figure, kind: str, *, dpi: int = 150) -> bytes:
    """Return a figure as a PNG, SVG or PDF file; the same figure makes the same file."""
    import matplotlib as mpl

    make_legible(figure)
    buffer = io.BytesIO()
    dated: Any = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with mpl.rc_context({"svg.hashsalt": "optgap"}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=dated)
    return buffer.getvalue()


ENDINGS = (".png", ".svg", ".pdf")


def is_picture(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file's ending is one of `ENDINGS`."""
    return Path(as_path(path)).suffix.lower() in ENDINGS


def require_ending(path: str | os.PathLike[str] | None) -> None:
    """Refuse a picture that cannot be drawn, before any work goes into it.

    Raises
    ------
    InputError: for a name with another ending than `ENDINGS`.
    """
    if path is not None and not is_picture(path):
        expected = "a file that ends in " + ", ".join(ENDINGS[:-1]) + f" or {ENDINGS[-1]}"
        raise InputError("--plot", "", str(path), expected)


def save_figure(path: str | os.PathLike[str], figure: Figure) -> None:
    """Write a figure as PNG, SVG or PDF, by the file's ending, in one step.

    Raises
    ------
    InputError: for another ending, or a place that cannot be written to.
    """
    require_ending(path)
    write_bytes(path, image(figure, Path(path).suffix.lower().removeprefix(".")))


def delivered(figure: Figure, path: str | os.PathLike[str] | None = None) -> Figure:
    """Return the figure in a form that a notebook shows, and write it to `path` if given.

    Raises
    ------
    InputError: for an ending that cannot be drawn, or a place that cannot be written to.
    """
    if path is not None:
        save_figure(path, figure)
    anything: Any = figure
    anything._repr_png_ = partial(image, figure, "png", dpi=NOTEBOOK_DPI)
    return figure


def make_legible(figure: Figure) -> None:
    """Make the texts of a figure ones that can be drawn.

    ``$`` is a letter and no mathematics, what is too long is cut, and a character that no
    installed font has is a box.
    """
    from matplotlib.text import Text
    from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter

    for ax in figure.get_axes():
        for axis in (ax.xaxis, ax.yaxis):
            formatter = axis.get_major_formatter()
            if isinstance(formatter, LogFormatter):  # powers of ten are written as mathematics
                axis.set_major_formatter(FuncFormatter(lambda value, _=None: f"{value:g}"))
                axis.set_minor_formatter(NullFormatter())
            elif isinstance(formatter, FuncFormatter):  # names at ticks come from it once more
                axis.set_major_formatter(FuncFormatter(_drawable_ticks(formatter)))
    for text in figure.findobj(Text):
        text.set_parse_math(False)
        lines = text.get_text().split("\n")[:MOST_LINES]
        text.set_text("\n".join(drawable(line) for line in lines))
        if not text.get_text().isascii():
            text.set_fontfamily(_installed())


def labelled(name: str) -> str:
    """Return `name` for a legend; matplotlib drops empty names and those that begin with ``_``."""
    return f" {name}" if not name or name.startswith("_") else name


def _drawable_ticks(formatter: Callable[[float, int | None], str]) -> Callable[..., str]:
    return lambda value, place=None: drawable(formatter(value, place), LONGEST_TICK)


def drawable(text: str, longest: int = LONGEST) -> str:
    """Cut `text` to `longest`, with boxes for characters that no installed font has."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isascii():
        return text
    return "".join(c if c.isspace() or ord(c) in _glyphs() else MISSING for c in text)


@cache
def _installed() -> list[str]:
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    return [name for name in FONTS if name in there]


@cache
def _glyphs() -> frozenset[int]:
    """Return the characters that the installed fonts have together."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    def of(name: str) -> Iterable[int]:
        return get_font(findfont(FontProperties(family=name))).get_charmap()

    return frozenset(code for name in _installed() for code in of(name))
