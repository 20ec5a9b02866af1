"""Reader of the rows of ``sacct -P`` and their values: host lists, TRES, time limits."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from operator import mul

from optgap.models.errors import InputError, NoQuote

COMMAND = (
    "TZ=UTC sacct -a -X -P -D -S now-30days -o JobID,JobIDRaw,Partition,State,Submit,Eligible,"
    "Start,End,ElapsedRaw,Suspended,Timelimit,ReqTRES,AllocTRES,NodeList"
)
"""Command that prints all necessary columns, on a clock without changes."""
OTHERS = (
    (r"[{\[].*\"job_state\"|.*NODELIST\(REASON\)", "output of squeue, whose ends are time limits"),
    (r"JobId=", "output of scontrol, whose ends are time limits"),
    (r"[{\[]", "JSON"),
    (r"---\n|[\w-]+:\n", "YAML"),
    (r"[^\n]*\n[- +]+\n", "columns of fixed width, with values cut (1+); -P keeps values whole"),
)
"""Lines that Slurm prints beside such a table."""
JOB = re.compile(r"\d+([_+.].*)?")
NEEDED = ("submit", "start", "end")
MOST_HOSTS = 100_000
"""Largest number of nodes in one host list."""
NEVER = frozenset({"", "none", "unknown", "n/a", "none assigned", "invalid"})
"""Texts of a missing start or node."""
_HOSTS = re.compile(r"([^\[\]]*)(?:\[([^\[\]]+)\](.*))?")
_LIMIT = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){0,2})(?:\.\d+)?")
_GPU = re.compile(r"gres/gpu(?::([^=,]+))?=(\d+)")
_SHARE = re.compile(r"gres/(shard|mps)(?::[^=,]+)?=0*[1-9]")
_SHARES = {"shard": "shards of GPUs", "mps": "percentages of GPUs"}


@dataclass
class Table:
    """Columns of text, by lower-case name.

    Parameters
    ----------
    columns: texts of each column, one per row.
    rows: place of each row in the file.
    unread: rows that could not be read, with reasons.
    """

    columns: dict[str, list[str]]
    rows: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def column(self, name: str) -> list[str]:
        """Return the texts of a column, which are empty if the file lacks it."""
        return self.columns.get(name, [""] * len(self.rows))


def read_table(text: str, source: str) -> Table:
    """Read the output of ``sacct -P`` (or ``-p``).

    Rows that a bar or a line end in a job's name has broken are counted, not guessed.

    Raises
    ------
    InputError: for text that is no such table, was cut to a width, or lacks a necessary column,
        with the command to use.
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
    missing = [name for name in NEEDED if name not in names]
    missing += [] if {"alloctres", "reqtres"} & {*names} else ["AllocTRES"]
    if missing:
        there = NoQuote(f"no column {missing[0]}")
        raise InputError(source, "row 1", there, f"what `{COMMAND}` prints")
    table, cells = Table({name: [] for name in names}), []
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


@lru_cache(maxsize=65536)
def hosts(text: str) -> tuple[str, ...]:
    """Return the nodes of a host list: ``gpu[01-04,07]`` is gpu01 to gpu04 and gpu07.

    Raises
    ------
    ValueError: for brackets that do not close, or a text that is no range.
    """
    if text.strip().lower() in NEVER:
        return ()
    found: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text.strip()):
        found += _unfolded(part)
        if len(found) > MOST_HOSTS:
            raise ValueError(f"{text[:40]!r} is more than {MOST_HOSTS} nodes")
    return tuple(found)


def _unfolded(part: str) -> list[str]:
    match = _HOSTS.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is no host list")
    head, inside, tail = match.groups()
    if inside is None:
        return [head]
    tails, found = _unfolded(tail), list[str]()
    for item in inside.split(","):
        first, dash, last = item.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"{item!r} is no range of nodes")
        stop = int(last) if dash else int(first)
        if stop - int(first) >= MOST_HOSTS:
            raise ValueError(f"{item!r} is more than {MOST_HOSTS} nodes")
        for number in range(int(first), stop + 1):
            found += [f"{head}{number:0{len(first)}d}{end}" for end in tails]
    return found


@lru_cache(maxsize=65536)
def gpus(tres: str) -> tuple[int, str]:
    """Return GPUs and their type from a TRES text; the total and typed counts are the same GPUs.

    Several types are joined by ``+``; "" stands for no type.
    """
    total, typed = 0, 0
    kinds: list[str] = []
    for kind, count in _GPU.findall(tres):
        if kind:
            typed += int(count)
            kinds.append(kind)
        else:
            total = int(count)
    return (total or typed), "+".join(sorted(set(kinds)))


def shares(tres: str) -> str:
    """Return in words the parts of GPUs that a TRES text names; "" for none."""
    found = _SHARE.search(tres)
    return f"{_SHARES[found[1]]} (gres/{found[1]})" if found else ""


@lru_cache(maxsize=65536)
def limit_s(text: str) -> float:
    """Return a time limit, s, from ``1-02:04:00``, ``00:05:00`` or minutes; infinite for none."""
    found = _LIMIT.fullmatch(text.strip())
    if found is None:  # UNLIMITED, Partition_Limit, nothing
        return math.inf
    parts = [int(part) for part in found[2].split(":")]
    # days-hours[:minutes[:seconds]], hours:minutes:seconds, or minutes[:seconds]
    units = (3600, 60, 1) if found[1] or len(parts) == 3 else (60, 1)
    return float(86_400 * int(found[1] or 0) + sum(map(mul, parts, units)))
