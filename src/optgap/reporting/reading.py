"""Reader of a report's inputs: files by their schema, or objects of the API."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optgap.comparing.comparison import SCHEMA as COMPARE
from optgap.comparing.comparison import SET_SCHEMA, Comparison, ComparisonSet
from optgap.comparing.overview import SCHEMA as OVERVIEW
from optgap.contract import Problem
from optgap.documents import load_problem
from optgap.explaining import Explanation
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, load_any
from optgap.models.performance.saved import SCHEMA as FIT
from optgap.models.result import SCHEMA as RESULT
from optgap.models.result import Result
from optgap.registry import FAMILIES
from optgap.render import html_table, number

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
