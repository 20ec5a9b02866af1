"""Values as sacct prints them: host lists, TRES, time limits."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from operator import mul

MOST_HOSTS = 100_000
"""Nodes that one host list may stand for."""
NEVER = frozenset({"", "none", "unknown", "n/a", "none assigned", "invalid"})
"""What stands where a job has not started, or has no node."""
_HOSTS = re.compile(r"([^\[\]]*)(?:\[([^\[\]]+)\](.*))?")
_LIMIT = re.compile(r"(?:(\d+)-)?(\d+(?::\d+){0,2})(?:\.\d+)?")
_GPU = re.compile(r"gres/gpu(?::([^=,]+))?=(\d+)")
_SHARE = re.compile(r"gres/(shard|mps)(?::[^=,]+)?=0*[1-9]")


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


def shares(tres: str) -> str:
    """What parts of GPUs a TRES text names: ``gres/shard``, ``gres/mps`` or ""."""
    found = _SHARE.search(tres)
    return f"gres/{found[1]}" if found else ""


@lru_cache(maxsize=65536)
def limit_s(text: str) -> float:
    """A time limit in s: ``1-02:04:00``, ``00:05:00``, minutes; infinite for none."""
    found = _LIMIT.fullmatch(text.strip())
    if found is None:  # UNLIMITED, Partition_Limit, nothing
        return math.inf
    parts = [int(part) for part in found[2].split(":")]
    # days-hours[:minutes[:seconds]], hours:minutes:seconds, or minutes[:seconds]
    units = (3600, 60, 1) if found[1] or len(parts) == 3 else (60, 1)
    return float(86_400 * int(found[1] or 0) + sum(map(mul, parts, units)))
