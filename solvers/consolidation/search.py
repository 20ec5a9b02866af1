"""Placements without proof: built in several orders, then annealed."""

from __future__ import annotations

import numpy as np

from optgap.models.clock import working_time
from optgap.models.limits import Limits
from optgap.solvers.consolidation.packing import FloatArray, IntArray, Packing
from optgap.solvers.consolidation.search_kernels import MOST_RESIDENTS, anneal, construct

Places = list[tuple[int, ...]]
STEPS = 4000
"""Annealing steps per GPU share in a first run; later runs are longer."""
MOST_STEPS = 8_000_000
"""Between two looks at the clock; fewer where the limit is nearer than they take."""
LEAST_S = 0.05


class Search:
    """The best placement found so far, and ways to a better one."""

    def __init__(self, pack: Packing, seed: int) -> None:
        self.pack = pack
        self.rng = np.random.default_rng(seed)
        self.start: IntArray = np.concatenate([[0], np.cumsum(pack.width)]).astype(np.int64)
        bounds = np.searchsorted(pack.gpu_server, np.arange(len(pack.server_w) + 1))
        self.server_start: IntArray = bounds.astype(np.int64)
        demand = (pack.rows * pack.width).sum(axis=1) / np.maximum(pack.most, 1)
        # what is scarce counts most
        self.shares: FloatArray = np.asarray(demand**3 / max(1e-300, float((demand**3).sum())))
        self.best: IntArray | None = None
        self.watts = float("inf")

    @property
    def places(self) -> Places | None:
        """The best placement, as GPUs by task."""
        if self.best is None:
            return None
        flat, start = self.best.tolist(), self.start.tolist()
        return [tuple(flat[start[ell] : start[ell + 1]]) for ell in range(self.pack.tasks)]

    def offer(self, places: Places) -> None:
        """Take a placement from elsewhere when it is better."""
        watts = self.pack.total(places)
        if watts < self.watts - 1e-9:
            self.watts = watts
            self.best = np.array([g for gpus in places for g in gpus], dtype=np.int64)

    def build(self, limits: Limits, tries: int = 8) -> None:
        """Construct in orders by power and size, the later ones disturbed."""
        pack = self.pack
        scale = np.maximum(pack.most[:, None], 1)
        sizes = (pack.rows / scale * self.shares[:, None]).sum(axis=0)
        tallest = pack.tallest
        for k in range(tries):
            if self.best is not None and limits.stop is not None:
                return
            noise = 1.0 if k < 3 else self.rng.uniform(0.7, 1.0, pack.tasks)
            keys = [
                (-sizes * noise, -pack.least_watts),
                (-tallest * noise, -pack.least_watts),
                (-pack.least_watts, -sizes * noise),
            ][k % 3]
            order = np.lexsort((*keys, -pack.width if k % 2 == 0 else np.zeros(pack.tasks)))
            place = np.zeros(int(self.start[-1]), dtype=np.int64)
            if construct(
                order, pack.width, pack.rows, pack.limits, pack.gpu_kind, pack.gpu_server,
                self.server_start, pack.server_w, pack.clock_mhz, pack.static_w, pack.slope,
                self.shares, pack.gang, pack.uniform, place, self.start,
            ):  # fmt: skip
                self._take(place)

    def _take(self, place: IntArray) -> None:
        flat, start = place.tolist(), self.start.tolist()
        self.offer([tuple(flat[start[ell] : start[ell + 1]]) for ell in range(self.pack.tasks)])

    def improve(self, limits: Limits, seconds: float, target: float) -> None:
        """Anneal the best placement until `target`, the limits or so many seconds."""
        if self.best is None or self.pack.tasks < 2:
            return
        pack, own = self.pack, limits.within(seconds)
        if int(np.bincount(self.best).max()) >= MOST_RESIDENTS - 1:
            return
        watts = float(pack.watts.max())
        length = STEPS * int(self.start[-1])
        most: float = MOST_STEPS
        while own.stop is None and self.watts > target + 1e-9:
            began, steps = working_time(), max(1, int(min(length, most)))
            place = self.best.copy()
            usable = self._usable(place)
            hot = watts * float(np.exp(self.rng.uniform(np.log(0.01), np.log(0.6))))
            fill = watts * float(np.exp(self.rng.uniform(np.log(0.03), np.log(1.0))))
            anneal(
                place, self.start, pack.width, pack.rows, pack.limits, pack.gpu_kind,
                pack.gpu_server, self.server_start, pack.server_w, pack.clock_mhz, pack.static_w,
                pack.slope, self.shares, pack.gang, usable, steps, hot,
                watts * 1e-4, fill,
                target, self.rng,
            )  # fmt: skip
            self._take(place)
            length = int(1.3 * length)
            rate = steps / max(1e-6, working_time() - began)
            most = min(MOST_STEPS, rate * max(LEAST_S, own.remaining))

    def _usable(self, place: IntArray) -> int:
        """GPUs up to the last in use; all of them where they differ."""
        if not self.pack.uniform:
            return self.pack.gpus
        last = int(self.pack.gpu_server[int(place.max())])
        return int(self.server_start[last + 1])
