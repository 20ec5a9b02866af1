"""Self-contained page of HTML from any result files: the objects' own forms, one below the other.

>>> import optgap
>>> optgap.report(["gaps.json", "runs.csv"], "report.html")  # doctest: +SKIP
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.comparing.comparison import SCHEMA as COMPARE
from optgap.comparing.comparison import SET_SCHEMA, Comparison, ComparisonSet
from optgap.comparing.overview import SCHEMA as OVERVIEW
from optgap.contract import Problem
from optgap.documents import load_problem
from optgap.explaining import Explanation
from optgap.models.errors import InputError, NoQuote
from optgap.models.figures import image
from optgap.models.jsonio import Fields, load_any, write_text
from optgap.models.performance.saved import SCHEMA as FIT
from optgap.models.result import SCHEMA as RESULT
from optgap.models.result import Result
from optgap.registry import FAMILIES
from optgap.render import html_table, number
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


LONGEST = 200
"""Largest number of characters of one cell; a longer text is cut with an ellipsis."""
KNOWN: Mapping[str, Any] = {
    RESULT: Result,
    COMPARE: Comparison,
    SET_SCHEMA: ComparisonSet,
}
"""Classes that read their own JSON form, by schema."""


@dataclass(frozen=True)
class Item:
    """Input of a page.

    Parameters
    ----------
    source: the file's name; "" for an object.
    schema: schema of the file.
    shown: object with `_repr_html_`, and perhaps `plot`.
    """

    source: str
    schema: str
    shown: Any

    @property
    def title(self) -> str:
        """Title of the section, which names the family and the method, policy or problem."""
        if isinstance(self.shown, ComparisonSet) and self.shown.comparisons:
            return f"{self.shown.comparisons[0].family}: gaps over {self.shown.parameter}"
        family = getattr(self.shown, "family", "")
        about = (getattr(self.shown, name, "") for name in ("method", "policy", "problem_name"))
        told = next((str(text) for text in about if isinstance(text, str) and text), "")
        told += "'s gap in parts" * isinstance(self.shown, Explanation)
        if self.schema == FIT:
            found = getattr(self.shown, "document", None) or self.shown.to_json()
            told = f"{found.get('model')} fitted to {found.get('source')}"
        return ": ".join(filter(None, (family, told))) or f"{self.source} ({self.schema})".strip()


def read(inputs: Iterable[Any]) -> tuple[list[Item], list[Problem]]:
    """Read files and objects, and return results and problems separately.

    Raises
    ------
    InputError: for a file that cannot be read or is no result, and for no results at all.
    """
    if isinstance(inputs, (str, os.PathLike)) or not isinstance(inputs, Iterable):
        inputs = [inputs]
    items: list[Item] = []
    problems: list[Problem] = []
    for given in inputs:
        if isinstance(given, (str, os.PathLike)):
            for found in _file(given):
                (items if isinstance(found, Item) else problems).append(found)  # type: ignore
        elif hasattr(given, "serves_all"):
            problems.append(given)
        elif hasattr(given, "_repr_html_") and hasattr(given, "to_json"):
            items.append(Item("", str(given.to_json().get("schema", "")), given))
        else:
            raise InputError("report", "", given, "a file, or a result, comparison, fit, …")
    if not items:
        found_text = NoQuote("problems only" if problems else "nothing")
        raise InputError("report", "", found_text, "a file with results")
    return items, problems


def _file(path: str | os.PathLike[str]) -> Iterator[Item | Problem]:
    name = Path(path).name
    if name.endswith((".parquet", ".csv", ".csv.gz")):
        expected = "JSON files of optgap; pandas reads tables of runs"
        raise InputError(str(path), "", NoQuote("a table"), expected)
    document = load_any(path, lenient=True)
    schema = document.get("schema") if isinstance(document, dict) else None
    if not str(schema).startswith("optgap."):
        found = NoQuote("no schema") if schema is None else schema
        raise InputError(str(path), "field schema", found, "results of optgap")
    if any(str(schema).startswith(f"optgap.{family}.problem/") for family in FAMILIES):
        yield load_problem(path)
    elif schema == OVERVIEW:
        fields = Fields(document, str(path))
        for part in fields.objects("families"):
            yield Item(name, OVERVIEW, Comparison.from_json(part))
        failures = fields.object("failures").document if "failures" in document else {}
        if failures:
            yield Item(name, OVERVIEW, Document({"families that failed": dict(failures)}))
    elif str(schema) in KNOWN:
        yield Item(name, str(schema), KNOWN[str(schema)].from_json(Fields(document, str(path))))
    else:
        yield Item(name, str(schema), Document(document))
        if isinstance(document.get("comparison"), dict):  # of an audit's log
            fields = Fields(document, str(path)).object("comparison")
            yield Item(name, str(schema), Comparison.from_json(fields))


class Document:
    """Document of any other schema: values by name, and a table for each list of objects."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def _repr_html_(self) -> str:
        facts, tables, flat = [], "", dict[str, Any]()
        for name, value in self.document.items():
            if isinstance(value, Mapping):
                flat |= {f"{name}: {key}": inner for key, inner in value.items()}
            else:
                flat[name] = value
        for name, value in flat.items():
            if isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
                names = list(dict.fromkeys(key for row in value for key in row))
                rows = [[_text(row.get(key)) for key in names] for row in value]
                tables += html_table(names, rows, [name])
            elif name != "schema" and not name.startswith("versions: "):
                facts.append((name, _text(value)))
        return (html_table(("", ""), facts) if facts else "") + tables


def _text(value: Any) -> str:
    """Write a value of a file for a reader."""
    if value is None or value != value:  # what pandas has for nothing
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return number(value)
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
