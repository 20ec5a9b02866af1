"""The rows of ``sacct -P``, whatever stands in the names of jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from optgap.models.errors import InputError, NoQuote

COMMAND = (
    "TZ=UTC sacct -a -X -P -D -S now-30days -o JobID,JobIDRaw,User,Partition,State,Submit,Eligible,"
    "Start,End,ElapsedRaw,Suspended,Timelimit,ReqTRES,AllocTRES,NodeList"
)
"""What prints all that is used, on a clock that nobody changes."""
JSON = "TZ=UTC sacct -a -D --json"
FREE_TEXT = (
    "jobname",
    "comment",
    "admincomment",
    "systemcomment",
    "submitline",
    "workdir",
    "extra",
)
"""Columns that users fill with anything, the bar and line ends among it."""
DELIMITERS = "|^;,\t!#~:"


@dataclass
class Table:
    """Columns of text, by lower-case name.

    Parameters
    ----------
    columns: one text per row each.
    rows: where each row stands in the file.
    unread: rows that could not be read, and why.
    """

    columns: dict[str, list[str]]
    rows: list[str]
    unread: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[str]:
        """A column's texts; empty ones where the file does not have it."""
        return self.columns.get(name, [""] * len(self))


def read_table(text: str, source: str) -> Table:
    """Read what ``sacct -P`` (or ``-p``, or with ``--delimiter``) prints.

    A row is read from both ends where a job's name holds the delimiter, and goes on in the next
    line where it holds a line end. Rows that stay ambiguous are counted, not guessed.

    Raises
    ------
    InputError: for what is no such table, or was cut to columns, with the command to use.
    """
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    head = next((k for k, line in enumerate(lines) if line.strip()), -1)
    if head < 0:
        raise InputError(source, "", NoQuote("nothing"), f"what `{COMMAND}` prints")
    names, delimiter = _header(lines[head], lines[head + 1 : head + 2], source)
    cut = names[-1] == ""
    names = names[:-1] if cut else names
    free = [k for k, name in enumerate(names) if name in FREE_TEXT]
    width = len(names) + cut
    cells: list[list[str]] = []
    rows: list[str] = []
    unread: list[str] = []
    k = head + 1
    while k < len(lines):
        start, row = k, lines[k].rstrip("\r")
        k += 1
        values = row.split(delimiter)
        while len(values) < width and free and k < len(lines) and not _begins(lines[k], delimiter):
            row += "\n" + lines[k]
            k += 1
            values = row.split(delimiter)
        values = values[:-1] if cut and values[-1] == "" else values
        if len(values) != len(names):
            whole = _from_both_ends(values, len(names), free, delimiter)
            if whole is None:
                unread.append(f"row {start + 1}: {len(values)} fields, not {len(names)}")
                continue
            values = whole
        cells.append(values)
        rows.append(f"row {start + 1}")
    columns = zip(*cells, strict=True) if cells else ([] for _ in names)
    return Table(dict(zip(names, map(list, columns), strict=True)), rows, unread)


def _header(line: str, following: Sequence[str], source: str) -> tuple[list[str], str]:
    """The columns' names and what stands between them."""
    text = line.rstrip("\r")
    if text == "---" or re.fullmatch(r"[\w-]+:", text):
        raise InputError(source, "", NoQuote("YAML"), f"JSON: {JSON}")
    if "NODELIST(REASON)" in text or text.startswith("JobId="):
        raise of_another(source, "squeue" if "(" in text else "scontrol")
    if following and re.fullmatch(r"[- +]+", following[0].strip() or "x"):
        found = NoQuote("columns of fixed width, with values cut (1+)")
        raise InputError(source, "", found, f"what `{COMMAND}` prints: -P keeps values whole")
    for delimiter in DELIMITERS:
        names = [name.strip().lower() for name in text.split(delimiter)]
        if len(names) > 1 and "jobid" in names:
            return names, delimiter
    raise InputError(source, "row 1", text, f"a header with JobID, as `{COMMAND}` prints")


def of_another(source: str, program: str) -> InputError:
    """The complaint about output of a program that tells of running jobs."""
    found = NoQuote(f"output of {program}, whose ends are time limits")
    return InputError(source, "", found, f"output of sacct: {COMMAND}")


def _begins(line: str, delimiter: str) -> bool:
    """Whether a line begins a job of its own: with an id."""
    first = line.partition(delimiter)[0]
    return delimiter in line and re.fullmatch(r"\d+(?:[_+.].*)?", first) is not None


def _from_both_ends(
    values: list[str], width: int, free: Sequence[int], delimiter: str
) -> list[str] | None:
    """The row when only one column can hold what is too much; None when several could."""
    if len(values) < width or len(free) != 1:
        return None
    at, more = free[0], len(values) - width
    return [*values[:at], delimiter.join(values[at : at + more + 1]), *values[at + more + 1 :]]
