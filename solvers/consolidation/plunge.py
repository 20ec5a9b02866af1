"""From fractional sets to a placement with given counts: bind, fix, generate again, go on."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import FEW, Set
from optgap.solvers.consolidation.master import Binding, Box, Master, Relaxed
from optgap.solvers.consolidation.packing import FloatArray, Packing
from optgap.solvers.consolidation.search import Places

WHOLE = 1e-5
CLEAR, FAINT = 0.95, 0.05
"""Shares of a task in a server from which it is bound at once, and below which it is not drawn."""
ROUGH = 1e-4
"""How close a bound is to the value where only the shares are looked at."""
MOST_WRONG = 60
"""Choices that are taken back on one way down."""
MOST_UNFIXED = 12
"""Sets that are let go again on one way down."""
SLACK_W = 1e-4
"""What the value of a linear program may be above the counts' own cost."""


class Plunge:
    """Ways down from a box of counts, one task and one set at a time.

    Parameters
    ----------
    noise: 0 to take the largest share each time; 1 to take it within a factor of two.
    """

    def __init__(
        self, master: Master, limits: Limits, rng: np.random.Generator, noise: float
    ) -> None:
        self.master, self.limits, self.rng, self.noise = master, limits, rng, noise

    def bound(self, box: Box, binding: Binding, enough: float) -> Binding | None:
        """All tasks of several GPUs bound so that less than `enough` W may do; None if not."""
        master, pack = self.master, self.master.pack
        master.confine(box)
        master.bind(binding)
        wide = pack.width > 1
        hopeless = master.watts(box.low) + SLACK_W if box.single else -math.inf
        last: tuple[Binding, list[tuple[int, int]]] = (binding, [])
        wrong = 0
        while self.limits.stop is None:
            relaxed = master.run(self.limits, enough, hopeless, ROUGH, 10 * FEW)
            if relaxed.value > enough:
                wrong += 1
                back = self._without(*last) if wrong <= MOST_WRONG else None
                if back is None:
                    return None
                last = (back, [])
                master.bind(back)
                continue
            unbound = np.flatnonzero(wide & (master.binding.server < 0))
            if not unbound.size:
                return master.binding
            choice = self._choice(relaxed, unbound)
            if not choice:
                return None
            last = (master.binding, choice)
            server = master.binding.server.copy()
            for task, home in choice:
                server[task] = home
            master.bind(Binding(server, master.binding.barred))
        return None

    def _without(self, before: Binding, choice: list[tuple[int, int]]) -> Binding | None:
        """What was before a choice, without its servers; None where there was none."""
        if not choice:
            return None
        barred = before.barred.copy()
        for task, home in choice:
            barred[task, home] = True
        return Binding(before.server, barred)

    def _choice(self, relaxed: Relaxed, unbound: np.ndarray) -> list[tuple[int, int]]:
        """Tasks and the servers they are bound to next."""
        master, pack = self.master, self.master.pack
        share = shares(master, relaxed)[unbound]
        share[master.binding.barred[unbound]] = 0.0
        clear = np.flatnonzero(share.max(axis=1, initial=0.0) >= CLEAR)
        if clear.size:
            return [(int(unbound[k]), int(share[k].argmax())) for k in clear.tolist()]
        if share.size and share.max() >= FAINT:
            noisy = share * self.rng.uniform(1 - 0.5 * self.noise, 1, share.shape)
            k, home = divmod(int(noisy.argmax()), share.shape[1])
            return [(int(unbound[k]), home)]
        weight = pack.width[unbound] * self.rng.uniform(1 - 0.5 * self.noise, 1, len(unbound))
        task = int(unbound[int(np.argmax(weight))])
        home = fresh_server(master)
        if home < master.box.high[-1] and not master.binding.barred[task, home]:
            return [(task, home)]
        room = master.width - used(master, relaxed)[: master.box.high[-1]]
        room[master.binding.barred[task, : len(room)]] = -np.inf
        return [(task, int(room.argmax()))] if room.max() > -np.inf else []

    def placed(self, vector: tuple[int, ...], binding: Binding) -> Places | None:
        """A placement with these counts, by sets fixed until none is fractional; None if stuck."""
        master = self.master
        master.confine(Box(vector, vector))
        master.bind(binding)
        enough = master.watts(vector) + SLACK_W
        touched: dict[int, int] = {}
        last, wrong = -1, 0
        try:
            while True:
                relaxed = master.run(self.limits, enough, enough, most_nodes=FEW)
                if relaxed.value > enough:
                    wrong += 1
                    if last < 0 or wrong > MOST_UNFIXED or self.limits.stop is not None:
                        return None
                    touched[last] -= 1
                    master.fix(last, touched[last], touched[last])
                    last = -1
                    continue
                amounts = relaxed.amounts
                whole = np.floor(amounts + WHOLE).astype(np.int64)
                rest = amounts - whole
                if rest.max() <= WHOLE:
                    counted = [(int(j), int(whole[j])) for j in np.flatnonzero(whole)]
                    return placed(master, counted)
                if self.limits.stop is not None:
                    return None
                open_ = np.flatnonzero(rest > WHOLE)
                noisy = rest[open_] * self.rng.uniform(1 - 0.5 * self.noise, 1, len(open_))
                last = int(open_[int(noisy.argmax())])
                whole[last] += 1
                for j in np.flatnonzero(whole).tolist():
                    if touched.get(j, 0) < whole[j]:
                        touched[j] = int(whole[j])
                        master.fix(j, touched[j])
        finally:
            for index in touched:
                master.fix(index, 0)


def fresh_server(master: Master) -> int:
    """The first server that no task is bound to."""
    return int(master.binding.server.max()) + 1


def used(master: Master, relaxed: Relaxed) -> FloatArray:
    """(N,) GPUs of each server that hold a task bound to it."""
    of = master.homes
    inside = of >= 0
    return np.bincount(of[inside], relaxed.amounts[inside], minlength=master.servers)


def shares(master: Master, relaxed: Relaxed) -> FloatArray:
    """(L, N) how much of a task lies beside tasks that are bound to a server."""
    of, amounts = master.homes, relaxed.amounts
    found = np.zeros((master.pack.tasks, max(1, master.servers)))
    for j in np.flatnonzero((of >= 0) & (amounts > 1e-7)).tolist():
        found[list(master.sets[j]), of[j]] += amounts[j]
    return found / master.pack.width[:, None]


def placed(master: Master, counted: list[tuple[int, int]]) -> Places | None:
    """GPUs for sets and their numbers; servers' own first, the dearest first."""
    pack = master.pack
    sets: list[tuple[Set, int]] = []
    for index, amount in counted:
        sets += [(master.sets[index], int(master.homes[index]))] * amount
    sets.sort(key=lambda one: -max(int(master.own.of[ell]) for ell in one[0]))
    taken: dict[int, int] = defaultdict(int)
    left = pack.width.copy()
    places: list[list[int]] = [[] for _ in range(pack.tasks)]
    gpus = []
    for _, home in sets:
        if home >= 0:
            gpus.append(home * master.width + taken[home])
            taken[home] += 1
    if any(number > master.width for number in taken.values()):
        return None
    free = (
        i * master.width + k
        for i in range(len(pack.server_w))
        for k in range(taken[i], master.width)
    )
    own = iter(gpus)
    for inside, home in sets:
        gpu = next(own) if home >= 0 else next(free, None)
        if gpu is None:
            return None
        for ell in inside:
            if left[ell]:
                left[ell] -= 1
                places[ell].append(gpu)
    return None if left.any() else [tuple(sorted(one)) for one in places]


def servers_needed(pack: Packing, gpus: int) -> int:
    """Servers that so many GPUs take."""
    return -(-gpus // int(pack.server_gpus[0]))
