"""Writer of the page: the HTML forms of objects, one below the other, in one file."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from optgap.contract import Problem
from optgap.models.errors import InputError, NoQuote
from optgap.models.figures import image
from optgap.models.jsonio import write_text
from optgap.render import html_table
from optgap.reporting.reading import Item, read
from optgap.versions import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "optgap.report/1"
TITLE = "optgap report"
DPI = 130


@dataclass(frozen=True)
class Section:
    """Part of a page.

    Parameters
    ----------
    title: heading of the section.
    source, schema: the file that the section is made from, and its schema.
    html: HTML form of the object, with every text of the file escaped.
    pictures: PNG files in base64.
    """

    title: str
    source: str
    schema: str
    html: str
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """Page that is ready to be written.

    Parameters
    ----------
    html: text of the whole page.
    sections: parts of the page.
    """

    title: str
    html: str = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)

    def _repr_html_(self) -> str:
        rows = [(one.title, one.source, str(len(one.pictures))) for one in self.sections]
        return html_table(("section", "source", "pictures"), rows, [self.title], (2,))

    def to_json(self) -> dict[str, Any]:
        """Return a list of the sections, ``optgap.report/1``."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "bytes": len(self.html.encode()),
            "sections": [
                {
                    "title": section.title,
                    "source": section.source,
                    "schema": section.schema,
                    "pictures": len(section.pictures),
                }
                for section in self.sections
            ],
        }


def report(inputs: Iterable[Any], path: str | os.PathLike[str], *, title: str = TITLE) -> Page:
    """Write one self-contained page of HTML about results.

    Parameters
    ----------
    inputs
        Files, or objects: results, comparisons, explanations, fits, overviews and audits. With a
        problem among them the solutions of its results are drawn.
    path
        File for the page.
    title
        Title of the page.

    Returns
    -------
    Page
        The page, with its `html` and `sections`.

    Raises
    ------
    InputError
        For an input that is none of these, naming file and field, or a place that cannot be written
        to.

    Examples
    --------
    >>> import optgap, tempfile, pathlib
    >>> gaps = optgap.compare(optgap.generate("coscheduling", size=4), "marble")
    >>> page = optgap.report([gaps], pathlib.Path(tempfile.mkdtemp()) / "report.html")
    >>> len(page.sections)
    1
    """
    page = make(inputs, title=title)
    write_text(path, page.html)
    return page


def make(inputs: Iterable[Any], *, title: str = TITLE) -> Page:
    """Make a page about results; parameters and errors are as for `report`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    items, problems = read(inputs)
    sections = tuple(_section(item, problems) for item in items)
    environment = Environment(
        loader=PackageLoader("optgap.reporting"),
        autoescape=True,  # every value of a result file is text, never markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = files("optgap.reporting").joinpath("templates", "page.css").read_text(encoding="utf-8")
    template = environment.get_template("page.html.j2")
    html = template.render(title=title, sections=sections, versions=versions(), style=style)
    try:
        html.encode()
    except UnicodeEncodeError as error:
        found = NoQuote(f"half of a character, {html[error.start]!a}")
        raise InputError("report", "", found, "text in what it is made from") from None
    return Page(title, html, sections)


def _section(item: Item, problems: Sequence[Problem]) -> Section:
    pictures = tuple(_png(figure) for figure in _figures(item.shown, problems))
    return Section(item.title, item.source, item.schema, item.shown._repr_html_(), pictures)


def _png(figure: Figure) -> str:
    return base64.b64encode(image(figure, "png", dpi=DPI)).decode()


def _figures(shown: Any, problems: Sequence[Problem]) -> Iterator[Figure]:
    """Yield the object's own picture; for a result, its solution if the problem is known."""
    from optgap.models.result import Result
    from optgap.views import plot_solution

    if isinstance(shown, Result):
        for problem in [shown.problem] if shown.problem is not None else problems:
            if _is_of(shown, problem):
                yield plot_solution(shown, problem)
                return
    elif hasattr(shown, "plot"):
        yield shown.plot()


def _is_of(result: Any, problem: Any) -> bool:
    """Tell whether a result's solution solves the problem with the numbers in the result."""
    from optgap.api import check, close

    if result.solution is None or result.family != problem.family:
        return False
    try:
        verdict = check(problem, result)
    except (InputError, IndexError, KeyError):
        return False
    told = {**result.metrics, "": result.objective}
    found = {**verdict.metrics, "": verdict.objective}
    pairs = [(told.get(name), value) for name, value in found.items()]
    return verdict.feasible and all(
        a is None or (isinstance(a, (int, float)) and b is not None and close(float(a), float(b)))
        for a, b in pairs
    )
