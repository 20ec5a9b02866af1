"""Frames: where tasks of several GPUs go, so that the others find room beside them.

Tasks of one GPU are taken as a fluid, or as what room is worth to them at prices: then what is left
to anneal are few tasks, a hundred thousand moves of which take a tenth of a second.
"""

from __future__ import annotations

import numpy as np

from optgap.solvers.consolidation.layout_kernels import lay, room_worth
from optgap.solvers.consolidation.levels import Levels
from optgap.solvers.consolidation.packing import QUANTUM_W, FloatArray, IntArray, Packing

MOST_LEVELS = 16
"""Levels that a frame tells apart; more are taken together."""
CELLS, CELLS_ALONE = 100, 400
"""Of each line of room: with memory and other rows, and with memory alone."""
MOVES, MOST_WORK = 1500, 50_000_000
"""Of one frame, per task of several GPUs, and rows of GPUs that they may touch in all."""
HOT_W, COLD_W = 30.0, 0.03
AGAIN, WARM_W = 0.3, (1.0, 15.0)
"""How often the best frame is begun with, and then the heat."""
BEYOND = 3.0
"""Times what a GPU costs beyond those wanted, at the level where it is."""


class Frames:
    """Runs of GPUs for the tasks of several.

    Parameters
    ----------
    own: all levels, of which neighbours are taken together where there are many.

    Attributes
    ----------
    learned: how many times prices were averaged.
    """

    def __init__(self, pack: Packing, own: Levels, rng: np.random.Generator) -> None:
        self.pack, self.own, self.rng = pack, own, rng
        self.wide = np.flatnonzero(pack.width > 1)
        narrow = np.flatnonzero(pack.width == 1)
        self.narrow: IntArray = narrow[np.argsort(own.of[narrow], kind="stable")]
        self.span = int(pack.server_gpus[0])
        groups = np.array_split(np.arange(len(own.quanta)), min(MOST_LEVELS, len(own.quanta)))
        self.heads = np.array([int(group[0]) for group in groups])
        """The first level of each group of levels."""
        self.group: IntArray = np.searchsorted(self.heads, own.of, side="right") - 1
        quanta = np.array(own.quanta)[self.heads]
        self.steps: FloatArray = np.diff(np.concatenate([[0], quanta])) * QUANTUM_W
        work = 4.0 * float(pack.width[self.wide].mean()) * len(pack.rows) if self.wide.size else 1.0
        self.moves = min(MOVES * len(self.wide), int(MOST_WORK / work))
        self._lines()
        self.prices: FloatArray = np.zeros(pack.tasks)
        self.rents: FloatArray = np.cumsum(self.steps)
        self.learned = 0
        self.best: IntArray | None = None

    @property
    def useful(self) -> bool:
        """Whether there are tasks of both kinds, and none is wider than a server."""
        wide = bool(self.wide.size) and int(self.pack.width.max()) <= self.span
        return wide and bool(self.narrow.size)

    def _lines(self) -> None:
        pack = self.pack
        self.share: FloatArray = 1 / np.maximum(pack.most, 1)
        cells = (CELLS_ALONE, 0) if len(pack.rows) == 1 else (CELLS, CELLS)
        self.cells: IntArray = np.array(cells, dtype=np.int64)
        sizes = pack.rows[:, self.narrow] * self.share[:, None]
        two = np.array([sizes[0], sizes[1:].max(axis=0, initial=0.0)])
        self.sizes: IntArray = np.rint(two * self.cells[:, None]).astype(np.int64)
        over = self.group[self.narrow][None, :] >= np.arange(len(self.heads))[:, None]
        self.others: IntArray = np.ascontiguousarray(over @ pack.rows[:, self.narrow].T)

    def learn(self, prices: FloatArray, rents: FloatArray) -> None:
        """Average the prices of tasks of one GPU, in the order of `narrow`, and of levels."""
        self.learned += 1
        share = 1 / self.learned
        self.prices[self.narrow] += share * (prices - self.prices[self.narrow])
        self.rents += share * (rents[self.heads] - self.rents)

    def laid(self, wanted: tuple[int, ...], priced: bool = True) -> IntArray:
        """(wide,) first GPUs for counts by level and servers: from scratch, or near the best.

        Parameters
        ----------
        priced: room is worth what it is at the prices that were learned; else only the fluid
            counts.
        """
        pack, wide, servers = self.pack, self.wide, wanted[-1]
        worth = np.zeros((len(self.heads), 2, 1))
        if priced:
            profit, level = self.prices[self.narrow], self.group[self.narrow]
            worth = room_worth(self.sizes, profit, level, self.rents, self.cells)
        first, hot = self.span * (np.arange(len(wide), dtype=np.int64) % servers), HOT_W
        best = self.best
        if best is not None and best.max() < self.span * servers and self.rng.random() < AGAIN:
            first, hot = best.copy(), float(np.exp(self.rng.uniform(*np.log(WARM_W))))
        lay(
            worth, np.ascontiguousarray(pack.rows[:, wide]), pack.most, pack.width[wide],
            self.group[wide], self.share, self.others,
            np.array(wanted[:-1], dtype=np.int64)[self.heads], self.steps, BEYOND, self.span,
            servers, first, self.moves, hot, COLD_W, self.rng,
        )  # fmt: skip
        return first

    def used(self, first: IntArray, servers: int) -> IntArray:
        """(R, GPUs) what the tasks of several GPUs take."""
        used = np.zeros((len(self.pack.rows), self.span * servers), dtype=np.int64)
        for ell, begin in zip(self.wide.tolist(), first.tolist(), strict=True):
            used[:, begin : begin + int(self.pack.width[ell])] += self.pack.rows[:, ell, None]
        return used

    def holds(self, first: IntArray, servers: int) -> bool:
        """Whether no GPU holds more than it can."""
        return self._fits(self.used(first, servers))

    def _fits(self, used: IntArray) -> bool:
        return bool(np.all(used <= self.pack.most[:, None]))

    def begun(self, vector: tuple[int, ...], start: IntArray) -> tuple[IntArray, IntArray] | None:
        """A frame for counts by level, and each other task where least is left: place and levels.

        None where the frame holds too much, or has GPUs of too many levels.

        Parameters
        ----------
        start: (tasks + 1,) the first entry of each task among those of `place`.
        """
        servers = self.pack.servers_for(vector[0])
        first = self.laid((*vector, servers), priced=False)
        used = self.used(first, servers)
        if not self._fits(used):
            return None
        place = np.zeros(int(start[-1]), dtype=np.int64)
        cap = np.full(self.span * servers, -1, dtype=np.int64)
        for ell, begin in zip(self.wide.tolist(), first.tolist(), strict=True):
            width = int(self.pack.width[ell])
            place[start[ell] : start[ell + 1]] = np.arange(begin, begin + width)
            cap[begin : begin + width] = np.maximum(cap[begin : begin + width], self.own.of[ell])
        if not self._raised(cap, vector, used):
            return None
        self._poured(cap, used, place, start)
        return place, cap

    def _raised(self, cap: IntArray, vector: tuple[int, ...], used: IntArray) -> bool:
        """Give the emptiest GPUs the levels that are missing; whether none has too many."""
        fill = (used * self.share[:, None]).max(axis=0)
        order = np.lexsort((self.rng.random(len(cap)), fill))
        for q, count in enumerate(vector):
            missing = count - int((cap >= q).sum())
            if missing < 0:
                return False
            cap[order[cap[order] == q - 1][:missing]] = q
        return True

    def _poured(self, cap: IntArray, used: IntArray, place: IntArray, start: IntArray) -> None:
        """Tasks of one GPU, dearest and largest first, where least is left, or missing."""
        pack = self.pack
        load, most = used.astype(np.float64) * self.share[:, None], pack.rows * self.share[:, None]
        size = most.max(axis=0)
        narrow = self.narrow
        for ell in narrow[np.lexsort((-size[narrow], -self.own.of[narrow]))].tolist():
            left = (1 - load - most[:, ell, None]).min(axis=0)
            worth = np.where(left >= 0, 1 - left, left)
            worth[cap < self.own.of[ell]] = -np.inf
            gpu = int(worth.argmax())
            place[start[ell]] = gpu
            load[:, gpu] += most[:, ell]
