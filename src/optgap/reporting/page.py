"""The page itself: sections, versions and seeds in one file of HTML."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from optgap.models.jsonio import write_text
from optgap.reporting.grid import Grid, grid
from optgap.reporting.reading import Item, read
from optgap.reporting.section import Section
from optgap.reporting.sections import sections
from optgap.versions import versions

SCHEMA = "optgap.report/1"
TITLE = "optgap report"
FIRST_ROWS = 100
"""Rows of a table that are shown at first, as in the script."""

TEMPLATE, STYLE, SCRIPT = "page.html.j2", "page.css", "page.js"


@dataclass(frozen=True)
class Page:
    """A page, ready to be written.

    Parameters
    ----------
    html: all of it.
    sections: what it shows.
    """

    title: str
    html: str
    sections: tuple[Section, ...]

    @property
    def found(self) -> list[tuple[str, str]]:
        """What results come to: a section's title and a sentence, each."""
        return [(section.title, text) for section in self.sections for text in section.found]

    def to_json(self) -> dict[str, Any]:
        """What is on the page, ``optgap.report/1``."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "bytes": len(self.html.encode()),
            "found": [{"section": title, "sentence": text} for title, text in self.found],
            "sections": [
                {
                    "title": section.title,
                    "source": section.source,
                    "schema": section.schema,
                    "pictures": len(section.pictures),
                    "rows": [len(table.rows) for table in section.grids],
                }
                for section in self.sections
            ],
        }


def report(inputs: Iterable[Any], path: str | os.PathLike[str], *, title: str = TITLE) -> Page:
    """Write a page about results; parameters and errors as for `make`.

    Raises
    ------
    InputError: when the place cannot be written to, besides.
    """
    page = make(inputs, title=title)
    write_text(path, page.html)
    return page


def make(inputs: Iterable[Any], *, title: str = TITLE) -> Page:
    """A page about results.

    Parameters
    ----------
    inputs: files, or objects: results, comparisons, explanations, fits, overviews, and the
        runs of sweeps (Parquet, or JSON with ``rows``). With a problem among them the
        solutions of its results are drawn.

    Raises
    ------
    InputError: for an input that is none of these, naming file and field.
    """
    given = read(inputs)
    made: list[Section] = []
    for k, item in enumerate(given.items):
        made += sections(item, given.problems, f"s{k}")
    html = (
        _environment()
        .get_template(TEMPLATE)
        .render(
            title=title,
            sections=made,
            about=_about(given.items),
            first_rows=FIRST_ROWS,
            made_with=versions(),
            style=_text(STYLE),
            script=_text(SCRIPT),
            script_hash=_digest(_text(SCRIPT)),
        )
    )
    return Page(title, html, tuple(made))


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("optgap.reporting"),
        autoescape=True,  # every value of a result file is text, never markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _text(name: str) -> str:
    return files("optgap.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """What the page's own policy lets run: this script and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _about(items: Sequence[Item]) -> list[Grid]:
    """Where everything is from: files, seeds, and versions where they are known."""
    records = []
    builds: dict[str, dict[str, Any]] = {}
    for item in items:
        for part in _parts(item.document):
            found = part.get("versions")
            record: dict[str, Any] = {"file": item.source, "schema": item.schema}
            record |= {k: part.get(k) for k in ("family", "method", "policy", "seed")}
            if isinstance(found, Mapping):
                record["optgap"] = found.get("optgap")
                record["python"] = found.get("python")
                for name, value in found.items():
                    builds.setdefault(str(name), {})[str(value)] = None
            if record not in records:
                records.append(record)
    versions_of = [
        {"package": name, "version": ", ".join(values)} for name, values in builds.items()
    ]
    tables = [grid("Files, seeds and versions", records)]
    if versions_of:
        tables.append(grid("Versions that results were made with", versions_of))
    return tables


def _parts(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The document itself, or what it holds several of, where seeds and versions may stand."""
    for name in ("families", "comparisons", "rows"):
        inner = document.get(name)
        if isinstance(inner, list) and inner and all(isinstance(v, Mapping) for v in inner):
            if name == "rows" and not any("versions" in row for row in inner):
                break
            return [part for row in inner for part in _parts(row)]
    return [document]
