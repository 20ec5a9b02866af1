"""Values as sacct prints them: host lists, TRES, time limits, dates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from optgap.models.errors import InputError
from optgap.models.queueing.arrays import FloatArray, floats

MOST_HOSTS = 100_000
"""Nodes that one host list may stand for."""
NEVER = frozenset({"", "none", "unknown", "n/a", "none assigned", "invalid"})
"""What stands where a job has not started, or has no node."""
_LIMIT = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.\d+)?")
_GPU = re.compile(r"gres/gpu(?::([^=,]+))?=(\d+)")
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@lru_cache(maxsize=65536)
def hosts(text: str) -> tuple[str, ...]:
    """The nodes of a host list: ``gpu[01-04,07]`` is gpu01 to gpu04 and gpu07.

    Raises
    ------
    ValueError: for brackets that do not close, or what is no range.
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
    head, bracket, rest = part.partition("[")
    if not bracket:
        if "]" in part:
            raise ValueError(f"{part!r} is no host list")
        return [part]
    inside, closed, tail = rest.partition("]")
    if not closed:
        raise ValueError(f"{part!r} is no host list")
    tails = _unfolded(tail) if tail else [""]
    found: list[str] = []
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
    """(GPUs, their type) of a TRES text; the total and the typed counts are the same GPUs.

    Types that stand together are joined by ``+``; "" where no type is named.
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


@lru_cache(maxsize=65536)
def limit_s(text: str) -> float:
    """A time limit in s: ``1-02:04:00``, ``00:05:00``, minutes; infinite for none."""
    if text.upper() in ("UNLIMITED", "PARTITION_LIMIT") or text.strip().lower() in NEVER:
        return math.inf
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        return math.inf
    days, a, b, c = (int(group) if group else 0 for group in found.groups())
    if found[4] is not None:
        seconds = 3600 * a + 60 * b + c
    elif found[1] is not None:  # days-hours[:minutes]
        seconds = 3600 * a + 60 * b
    elif found[3] is not None:  # minutes:seconds
        seconds = 60 * a + b
    else:
        seconds = 60 * a
    return 86_400.0 * days + seconds


def unix_s(column: Sequence[str], name: str, source: str, rows: Sequence[str]) -> FloatArray:
    """Seconds since 1970 of dates without a zone (taken for UTC) or epoch numbers; NaN for none.

    Raises
    ------
    InputError: for dates in another form than sacct's own, which SLURM_TIME_FORMAT makes: their
        days and months cannot be told apart, or they have no day.
    """
    import pandas as pd

    texts = np.array(column, dtype=object)
    known = np.array([text.strip().lower() not in NEVER for text in column])
    found = np.full(len(texts), math.nan)
    if not known.any():
        return floats(found)
    given = texts[known]
    first = str(given[0])
    if all(text.isdigit() for text in given):
        found[known] = given.astype(np.int64)
    elif _ISO.fullmatch(first):
        dates = pd.to_datetime(pd.Series(given), format="%Y-%m-%dT%H:%M:%S", errors="coerce")
        if dates.isna().any():
            k = int(np.flatnonzero(dates.isna().to_numpy())[0])
            where = rows[int(np.flatnonzero(known)[k])]
            raise InputError(source, f"{where}, column {name}", given[k], "2026-11-24T03:38:28")
        found[known] = (dates - pd.Timestamp(0)).dt.total_seconds()
    else:
        where = rows[int(np.argmax(known))]
        expected = "2026-11-24T03:38:28: run sacct without SLURM_TIME_FORMAT"
        raise InputError(source, f"{where}, column {name}", first, expected)
    found[found <= 0] = math.nan
    return floats(found)
