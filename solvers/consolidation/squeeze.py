"""Counts of GPUs by level in order of cost, and a search for a placement that keeps them.

With equal GPUs and servers the power of a placement is fixed by how many GPUs cost each level or
more. So the cheapest counts that a bound allows are tried first: where tasks fit, the placement is
proven; where none is found, the next counts are tried.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.dealing_kernels import deal
from optgap.solvers.consolidation.exchange_kernels import exchange
from optgap.solvers.consolidation.frames import Frames
from optgap.solvers.consolidation.levels import Levels, closed_bound
from optgap.solvers.consolidation.packing import IntArray, Packing
from optgap.solvers.consolidation.search import Search
from optgap.solvers.consolidation.squeeze_kernels import spread, squeeze

STEPS = 800
"""Of one attempt, per GPU share; attempts that find nothing are followed by longer ones."""
ATTEMPTS = 2
MOST_VECTORS = 4000
MOST_STEPS, LONGEST = 4_000_000, 256.0
CLOSE = 1e-7
"""Relative: what rounding costs to a quantum may leave between equal numbers."""
HEATS, FRAMED, WARM = (0.005, 0.06), (0.003, 0.02), (0.001, 0.006)
"""Excess in GPUs that annealing begins to allow; where it begins with a frame; and with the nearest
of earlier attempts at the same counts."""
WARMED, IN_FRAMES = 0.3, 0.45
"""How often it does either."""
COLD = 2e-4
NEARLY, HOPEFUL, NOISE = 1.0, 5e-4, (0.01, 0.02)
"""Excess in GPUs below which tasks are dealt anew between two of them; the same per GPU below which
that goes on longer and is tried more often; and by which it may rise on the way, with several rows
and with one."""
NEAR, LATER = 2e-3, 0.3
"""Excess per GPU below which the cheapest counts are tried again, until that share of the time."""
LARGE, LARGE_LONGER = 256, 4.0
"""Tasks beyond which a linear program takes so long that first attempts are longer."""
BY_SERVER = 0.5
"""How often an attempt begins with servers of one level, where a task's GPUs are in one."""
MIXED = (0.5, 1.0)
"""Factors by which the order of tasks of several GPUs is mixed."""
PAIRS, MOST_PAIRS, MORE_ATTEMPTS = 120, 40_000, 4
"""Pairs of GPUs that are looked at, per GPU at first, and at most; how much more often."""


def applies(pack: Packing, own: Levels) -> bool:
    """Whether counts by level fix the power, and every task fits a server."""
    narrow = not pack.gang or int(pack.width.max()) <= int(pack.server_gpus[0])
    return pack.uniform and pack.nested and own.exact and narrow


def squeeze_to(
    pack: Packing,
    own: Levels,
    counts: tuple[int, ...],
    search: Search,
    limits: Limits,
    seed: int,
) -> None:
    """Offer to `search` what is found, from the cheapest counts on, until it is no better."""
    rng = np.random.default_rng(seed)
    attempt = Attempts(pack, own, search, rng, limits)
    attempt.longer = LARGE_LONGER if pack.tasks > LARGE else 1.0
    floor = closed_bound(pack, own, counts)
    most = limits.remaining
    found = attempt(counts)
    while found is None and attempt.left < NEAR * counts[0] and limits.remaining > LATER * most:
        found = attempt(counts)
    rest = len(counts)
    for more in range(1, pack.gpus):
        if found is not None or limits.stop is not None:
            break
        trial = tuple(min(pack.gpus, count + more) for count in counts)
        if closed_bound(pack, own, trial) >= search.watts * (1 - CLOSE):
            break
        found = attempt(trial)
    while found is not None and rest and limits.stop is None:
        # one GPU less of one level, the dearest saving first, until none can be spared
        rest = 0
        for trial in _fewer(pack, own, found, counts):
            if attempt(trial) is not None:
                found, rest = trial, 1
                break
    while limits.stop is None and search.watts > floor * (1 + CLOSE) and attempt.longer < LONGEST:
        for watts, vector in _vectors(pack, own, counts):
            if watts >= search.watts * (1 - CLOSE) or limits.stop is not None:
                break
            if attempt(vector) is not None:
                break
        attempt.longer *= 2.0


def _fewer(
    pack: Packing, own: Levels, vector: tuple[int, ...], counts: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """One GPU less of a level each, cheapest first."""
    found = []
    for q, count in enumerate(vector):
        above = vector[q + 1] if q + 1 < len(vector) else 0
        if count > max(counts[q], above):
            found.append((*vector[:q], count - 1, *vector[q + 1 :]))
    return sorted(found, key=lambda one: closed_bound(pack, own, one))


def _caps(vector: tuple[int, ...], width: int, whole: bool) -> IntArray:
    """The highest level of each GPU, -1 where it sleeps: the dearest first.

    Parameters
    ----------
    whole: begin with servers of one level, as many as there are.
    """
    levels = np.full(-(-vector[0] // width) * width, -1, dtype=np.int64)
    for q, count in enumerate(vector):
        levels[:count] = q
    if not whole:
        return levels
    numbers = np.bincount(levels + 1, minlength=len(vector) + 1)
    falling = np.arange(len(vector) - 1, -2, -1)
    servers = numbers // width * width
    return np.concatenate(
        [np.repeat(falling, part[falling + 1]) for part in (servers, numbers - servers)]
    )


def _order(pack: Packing, own: Levels, rng: np.random.Generator) -> IntArray:
    """Dearest first, wide before narrow, large before small.

    Where tasks of several GPUs stay in one server they all come first, about large before small.
    """
    sizes = (pack.rows / np.maximum(pack.limits[0], 1)[:, None]).sum(axis=0)
    order = np.lexsort((-sizes, -pack.width, -own.of)).astype(np.int64)
    if pack.gang:
        wide = order[pack.width[order] > 1]
        whole = pack.width[wide] * np.sqrt(sizes[wide]) * rng.uniform(*MIXED, len(wide))
        wide = wide[np.argsort(-whole, kind="stable")]
        order = np.concatenate([wide, order[pack.width[order] == 1]])
    return order


def _vectors(
    pack: Packing, own: Levels, counts: tuple[int, ...]
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Counts no smaller than `counts` that fall with the level, cheapest first."""
    heap = [(closed_bound(pack, own, counts), counts)]
    seen = {counts}
    for _ in range(MOST_VECTORS):
        if not heap:
            return
        watts, vector = heapq.heappop(heap)
        yield watts, vector
        for q in range(len(vector)):
            if vector[q] >= (pack.gpus if q == 0 else vector[q - 1]):
                continue
            more = (*vector[:q], vector[q] + 1, *vector[q + 1 :])
            if more not in seen:
                seen.add(more)
                heapq.heappush(heap, (closed_bound(pack, own, more), more))


Begun = tuple[IntArray, IntArray, tuple[float, float]]
"""The GPU of each task's each share, the highest level of each GPU, and between what heats."""


class Attempts:
    """Looks for placements with given counts, and offers what it finds."""

    def __init__(
        self, pack: Packing, own: Levels, search: Search, rng: np.random.Generator, limits: Limits
    ) -> None:
        self.pack, self.own, self.search, self.rng, self.limits = pack, own, search, rng, limits
        # with more rows than memory GPUs hold few tasks: those are no fluid
        frames = Frames(pack, own, rng) if pack.gang and len(pack.rows) == 1 else None
        self.frames = frames if frames is not None and frames.useful else None
        self.owner: IntArray = np.repeat(np.arange(pack.tasks), pack.width).astype(np.int64)
        self.level: IntArray = own.of.astype(np.int64)
        self.single = len(pack.rows) - bool(pack.anchors) == 1
        """Whether memory is all that limits GPUs, but for anchors, which stay where they are."""
        self.longer = 1.0
        self.left = np.inf
        self.aim: tuple[int, ...] = ()
        self.nearest: tuple[IntArray, IntArray] | None = None
        self.nearest_left = NEARLY

    def _begun(self, vector: tuple[int, ...]) -> Begun | None:
        """Near an earlier attempt, or with a frame; None to begin with tasks one by one."""
        draw = self.rng.random()
        if self.nearest is not None and draw < WARMED:
            place, cap = self.nearest
            return place.copy(), cap.copy(), WARM
        if self.frames is None or draw > WARMED + IN_FRAMES:
            return None
        framed = self.frames.begun(vector, self.search.start)
        return None if framed is None else (*framed, FRAMED)

    def _dealt(self, place: IntArray, cap: IntArray) -> float:
        """What is left in excess, in GPUs, once two GPUs at a time have dealt what they hold."""
        pack, left = self.pack, np.inf
        start, limit, level = self.search.start, pack.limits[0], self.level
        width = int(pack.server_gpus[0])
        for pairs in (min(MOST_PAIRS, PAIRS * len(cap)), MOST_PAIRS):
            if self.single:
                left = deal(
                    start, self.owner, pack.rows[0], int(limit[0]), pack.anchors, level, cap,
                    width, pack.gang, place, pairs, NOISE[1], self.rng,
                )  # fmt: skip
            else:
                left = exchange(
                    start, self.owner, pack.rows, limit, level, cap, width, pack.gang, place,
                    pairs, NOISE[0], self.rng,
                )  # fmt: skip
            if not 0 < left < HOPEFUL * len(cap):
                break
        return left

    def __call__(self, vector: tuple[int, ...]) -> tuple[int, ...] | None:
        """The counts where a placement was found, dear GPUs on the first servers; else None."""
        pack, start = self.pack, self.search.start
        width, limit = int(pack.server_gpus[0]), pack.limits[0]
        if vector != self.aim:
            self.aim, self.nearest, self.nearest_left = vector, None, NEARLY
        cap = _caps(vector, width, False)
        place = np.zeros(len(self.owner), dtype=np.int64)
        level = self.level
        order = _order(pack, self.own, self.rng)
        if not spread(order, start, pack.rows, limit, level, cap, width, pack.gang, place):
            return None
        steps = min(MOST_STEPS, int(STEPS * self.longer * len(self.owner)))
        tries, self.left = float(ATTEMPTS), np.inf
        while tries > 0:
            heats = HEATS
            if pack.gang:
                framed = self._begun(vector)
                if framed is not None:
                    place, cap, heats = framed
                else:
                    caps, other = _caps(vector, width, self.rng.random() < BY_SERVER), place.copy()
                    again = _order(pack, self.own, self.rng)
                    if spread(again, start, pack.rows, limit, level, caps, width, True, other):
                        cap, place = caps, other
            trial, own = place.copy(), cap.copy()
            left = self._dealt(trial, own) if self.single and not pack.gang else np.inf
            if left > 0:
                hot = float(np.exp(self.rng.uniform(*np.log(heats))))
                left = squeeze(
                    start, self.owner, pack.rows, limit, level, own, width, pack.gang, trial,
                    steps, hot, COLD, self.rng,
                )  # fmt: skip
                if 0 < left < NEARLY:
                    left = self._dealt(trial, own)
            self.left = min(self.left, left)
            if left < self.nearest_left:
                self.nearest, self.nearest_left = (trial, own), left
            if left == 0.0:
                flat, ends = trial.tolist(), start.tolist()
                self.search.offer([tuple(flat[a:b]) for a, b in itertools.pairwise(ends)])
                return vector
            if self.limits.stop is not None:
                break
            tries -= 1 if left >= HOPEFUL * len(cap) else 1 / MORE_ATTEMPTS
        return None
