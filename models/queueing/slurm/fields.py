"""Values as sacct prints them: host lists, TRES, time limits."""

from __future__ import annotations

import math
import re
from functools import lru_cache

MOST_HOSTS = 100_000
"""Nodes that one host list may stand for."""
NEVER = frozenset({"", "none", "unknown", "n/a", "none assigned", "invalid"})
"""What stands where a job has not started, or has no node."""
_LIMIT = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.\d+)?")
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


def shares(tres: str) -> str:
    """What parts of GPUs a TRES text names: ``gres/shard``, ``gres/mps`` or ""."""
    found = _SHARE.search(tres)
    return f"gres/{found[1]}" if found else ""


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
