"""GPUs with known contents into servers: GPUs that a task holds together stay together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optgap.solvers.consolidation.packing import Packing
from optgap.solvers.consolidation.search import Places

MOST_TRIED = 20_000
"""Groups put into a server and taken out again before the fewest servers are given up."""


@dataclass(frozen=True)
class Seats:
    """Where GPU contents go.

    Parameters
    ----------
    places: in as few servers as were found.
    fits: in no more servers than asked.
    sure: or else, that there is no such way.
    """

    places: Places | None
    fits: bool
    sure: bool


def seated(pack: Packing, gpus: Sequence[set[int]], servers: int) -> Seats:
    """These contents in equal servers, in `servers` of them if that can be."""
    seats = int(pack.server_gpus[0])
    groups = _groups(pack, gpus)
    if max(len(group) for group in groups) > seats:
        return Seats(None, False, True)
    filled, sure = _within(groups, seats, servers)
    fits = filled is not None
    filled = filled or _first_fit(groups, seats)
    if len(filled) > len(pack.server_w):
        return Seats(None, False, sure)
    places: list[list[int]] = [[] for _ in range(pack.tasks)]
    for server, inside in enumerate(filled):
        for seat, k in enumerate(inside):
            for ell in gpus[k]:
                places[ell].append(server * seats + seat)
    return Seats([tuple(sorted(own)) for own in places], fits, sure)


def _groups(pack: Packing, gpus: Sequence[set[int]]) -> list[list[int]]:
    """GPUs that have to be in one server, the largest groups first."""
    if not pack.gang:
        return [[k] for k in range(len(gpus))]
    group = list(range(len(gpus)))
    home: dict[int, int] = {}
    for k, tasks in enumerate(gpus):
        for ell in tasks:
            if pack.width[ell] > 1:
                old, new = group[k], group[home.setdefault(ell, k)]
                group = [new if g == old else g for g in group]
    found: dict[int, list[int]] = {}
    for k, g in enumerate(group):
        found.setdefault(g, []).append(k)
    return sorted(found.values(), key=lambda one: -len(one))


def _first_fit(groups: list[list[int]], seats: int) -> list[list[int]]:
    filled: list[list[int]] = []
    for group in groups:
        room = next((one for one in filled if len(one) + len(group) <= seats), None)
        if room is None:
            filled.append(list(group))
        else:
            room += group
    return filled


def _within(
    groups: list[list[int]], seats: int, servers: int
) -> tuple[list[list[int]] | None, bool]:
    """The groups in so many servers, None for none found, and whether all ways were tried."""
    filled: list[list[int]] = [[] for _ in range(servers)]
    tried = 0

    def put(at: int) -> bool:
        nonlocal tried
        if at == len(groups):
            return True
        seen = set()
        for one in filled:
            if len(one) in seen or len(one) + len(groups[at]) > seats or tried > MOST_TRIED:
                continue
            seen.add(len(one))
            tried += 1
            one += groups[at]
            if put(at + 1):
                return True
            del one[len(one) - len(groups[at]) :]
        return False

    found = put(0)
    return (filled if found else None), found or tried <= MOST_TRIED
