"""The rows of ``sacct -P``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from optgap.models.errors import InputError, NoQuote

COMMAND = (
    "TZ=UTC sacct -a -X -P -D -S now-30days -o JobID,JobIDRaw,User,Partition,State,Submit,Eligible,"
    "Start,End,ElapsedRaw,Suspended,Timelimit,ReqTRES,AllocTRES,NodeList"
)
"""What prints all that is used, on a clock that nobody changes."""
OTHERS = (
    (r"[{\[].*\"job_state\"|.*NODELIST\(REASON\)", "output of squeue, whose ends are time limits"),
    (r"JobId=", "output of scontrol, whose ends are time limits"),
    (r"[{\[]", "JSON"),
    (r"---\n|[\w-]+:\n", "YAML"),
    (r"[^\n]*\n[- +]+\n", "columns of fixed width, with values cut (1+); -P keeps values whole"),
)
"""What Slurm prints beside such a table."""
JOB = re.compile(r"\d+([_+.].*)?")


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
    """Read what ``sacct -P`` (or ``-p``) prints.

    Rows that a bar or a line end in a job's name has broken are counted, not guessed.

    Raises
    ------
    InputError: for what is no such table, or was cut to columns, with the command to use.
    """
    text = text.replace("\r\n", "\n").lstrip()
    for like, name in OTHERS:
        if re.match(like, text, re.DOTALL if "job_state" in like else 0):
            raise InputError(source, "", NoQuote(name), f"output of sacct: {COMMAND}")
    head, *lines = text.rstrip("\n").split("\n")
    names = [name.strip().lower() for name in head.split("|")]
    if "jobid" not in names:
        found = head or NoQuote("nothing")
        raise InputError(source, "row 1", found, f"a header with JobID, as `{COMMAND}` prints")
    table, cells = Table({name: [] for name in names}, []), []
    for row, line in enumerate(lines, 2):
        values = line.split("|")
        if len(values) != len(names) or not JOB.fullmatch(values[names.index("jobid")]):
            table.unread.append(f"row {row}: {len(values)} fields, not {len(names)}")
            continue
        cells.append(values)
        table.rows.append(f"row {row}")
    if cells:  # of a column that was asked for twice both are the same
        table.columns.update(zip(names, map(list, zip(*cells, strict=True)), strict=True))
    return table
