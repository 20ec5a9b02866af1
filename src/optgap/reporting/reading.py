"""Reader of a report's inputs: files by their schema, tables of runs, or objects of the API."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optgap.comparing.comparison import SCHEMA as COMPARE
from optgap.comparing.comparison import SET_SCHEMA, Comparison, ComparisonSet
from optgap.comparing.fairness import in_common
from optgap.comparing.overview import SCHEMA as OVERVIEW
from optgap.contract import Problem
from optgap.documents import load_problem
from optgap.explaining import Explanation
from optgap.extras import require
from optgap.models.errors import InputError, NoQuote
from optgap.models.jsonio import Fields, load_any
from optgap.models.performance.saved import SCHEMA as FIT
from optgap.models.reading import read_bytes
from optgap.models.result import SCHEMA as RESULT
from optgap.models.result import Result
from optgap.registry import FAMILIES
from optgap.render import html_table, number, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_ROWS = 200_000
"""Largest number of rows of one table; nobody could use a page about more."""
SHOWN_ROWS = 1_000
LONGEST = 200
"""Largest number of characters of one cell; a longer text is cut with an ellipsis."""
ROWS = "rows"
"""Name of the schema of a table of runs, whose file has none."""
GAPS = ("gap_to_bound", "gap_to_best", "gap")
"""Columns that a chart of many runs may show; the first one in the table counts."""
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
    schema: schema of the file; `ROWS` for a table of runs.
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
    if name.endswith((".parquet", ".pq", ".csv", ".csv.gz")):
        yield Item(name, ROWS, Runs(_table(path)))
        return
    document = load_any(path, lenient=True)
    rows = document.get("rows") if isinstance(document, dict) else document
    schema = document.get("schema") if isinstance(document, dict) else None
    if isinstance(rows, list) and schema is None:
        yield Item(name, ROWS, Runs(_frame(rows, str(path))))
    elif not isinstance(document, dict) or not str(schema).startswith("optgap."):
        found = NoQuote("no schema") if schema is None else schema
        raise InputError(str(path), "field schema", found, "results of optgap, or rows")
    elif any(str(schema).startswith(f"optgap.{family}.problem/") for family in FAMILIES):
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


def _table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read the rows of a CSV or Parquet file."""
    import io

    import pandas as pd

    data, parquet = io.BytesIO(read_bytes(path)), Path(path).suffix in (".parquet", ".pq")
    if parquet:
        require("pyarrow", "sweep")
    try:
        frame = pd.read_parquet(data) if parquet else pd.read_csv(data)
    except Exception as error:  # whatever either reader makes of another file
        found = NoQuote(f"{type(error).__name__}: {error}")
        raise InputError(str(path), "", found, "a table of runs") from None
    return _counted(frame, str(path))


def _frame(rows: Sequence[Any], source: str) -> pd.DataFrame:
    import pandas as pd

    for k, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(source, f"field rows[{k}]", row, "an object")
    return _counted(pd.DataFrame(rows), source)


def _counted(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    if not 0 < len(frame) <= MOST_ROWS:
        found = NoQuote(f"{len(frame) or 'no'} rows")
        raise InputError(source, "", found, f"1 to {MOST_ROWS} rows")
    return frame


class Runs:
    """Table of runs from any source: the gaps of each method, and the rows."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.by = next((name for name in ("method", "policy") if name in frame), None)
        numeric = frame.select_dtypes("number")
        self.measure = next((name for name in GAPS if name in numeric), None)

    def _groups(self) -> tuple[dict[str, list[float]], str]:
        """Return the gaps by method over the runs that all have, and a line if some have more.

        Gaps to an accepted part are left out.
        """
        if self.by is None or self.measure is None:
            return {}, ""
        kept = self.frame
        if "bound_scope" in kept:
            kept = kept[kept["bound_scope"] != "accepted"]
        kept = kept.dropna(subset=[self.measure])
        known = [name for name in ("instance", "instance_seed", "seed") if name in kept]
        runs = kept[known].itertuples(index=False, name=None) if known else kept.index
        groups: dict[str, dict[Hashable, float]] = {}
        for name, run, value in zip(kept[self.by], runs, kept[self.measure], strict=True):
            groups.setdefault(str(name), {})[run] = value
        if known:
            return in_common(groups)
        return {name: list(own.values()) for name, own in groups.items()}, ""

    def _repr_html_(self) -> str:
        groups, note = self._groups()
        rows = [
            (name, str(len(own)), percent(sum(own) / len(own)), percent(max(own)))
            for name, own in groups.items()
            if own
        ]
        header = (self.by or "", "runs", f"mean {self.measure}", "worst")
        means = html_table(header, rows, [note] if note else (), (1, 2, 3)) if rows else ""
        frame = self.frame.dropna(axis="columns", how="all")
        lines = [f"{len(frame):,} runs"]
        if len(frame) > SHOWN_ROWS:
            lines.append(f"the first {SHOWN_ROWS:,} are shown; the file has all")
        shown = frame.head(SHOWN_ROWS)
        cells = [[_text(value) for value in row] for row in shown.itertuples(index=False)]
        right = [k for k, kind in enumerate(frame.dtypes) if kind.kind in "fiu"]
        return means + html_table(list(map(str, frame.columns)), cells, lines, right)

    def plot(self) -> Figure:
        """Draw a box of the gaps of each method."""
        from optgap.plotting.figures import new_figure, plain

        groups = {name: own for name, own in self._groups()[0].items() if own}
        figure = new_figure(8.0, 1.2 + 0.35 * max(1, len(groups)))
        ax = figure.subplots()
        if groups:
            shares = [[100 * value for value in own] for own in groups.values()]
            ax.boxplot(shares[::-1], orientation="horizontal")
            ax.set_yticks(range(1, len(groups) + 1), [*groups][::-1])
            ax.set_xlabel(f"{str(self.measure).replace('_', ' ')} (%)")
        plain(ax, "x")
        return figure


class Document:
    """Document of any other schema: values by name, and a table for each list of objects."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def _repr_html_(self) -> str:
        facts, tables, flat = [], "", dict[str, Any]()
        for name, value in self.document.items():
            if isinstance(value, Mapping):
                before = "" if name == "tables" else f"{name}: "  # of an audit: by caption
                flat |= {f"{before}{key}": inner for key, inner in value.items()}
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
