"""From fractional sets to a placement with given counts: bind, fix, generate again, go on."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from optgap.models.limits import Limits
from optgap.solvers.consolidation.generation import FEW, Set
from optgap.solvers.consolidation.master import Binding, Box, Master, Relaxed
from optgap.solvers.consolidation.packing import FloatArray, IntArray, Packing
from optgap.solvers.consolidation.search import Places

WHOLE = 1e-5
CLEAR, FAINT = 0.95, 0.05
"""Shares of a task in a server from which it is bound at once, and below which it is not drawn."""
ROUGH, ROUGHER = 1e-4, 1e-3
"""How close a bound is to the value where only the shares are looked at."""
IDLE = 1e-4
"""Share of a value by which some rounds have to lower it where nothing is taken back."""
MOST_WRONG, RISE = 60, 3e-4
"""Choices that are taken back on one way down; by how much more, relatively, than is needed what
one may take rises: less takes many more linear programs, more loses more."""
AT_ONCE = 25
"""Fractional sets for each that is fixed at a time beyond the first."""
MOST_UNFIXED = 5
"""Sets that are let go again on one way down."""


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

    def bound(
        self,
        box: Box,
        binding: Binding,
        most: float,
        good: float,
        gap: float = ROUGH,
        dearest: float | None = None,
        seconds: float = math.inf,
    ) -> Binding | None:
        """All tasks of several GPUs bound so that `most` W may do; None where this way cannot.

        A choice that takes more is taken back, and its opposite holds from then on. No linear
        program is solved further than to `good` W.

        Parameters
        ----------
        dearest: W up to which `most` rises where neither a choice nor its opposite does for less:
            to a little more than what the better of the two takes. Not at all by default.
        seconds: after which it rises to that at once.
        """
        master, wide = self.master, self.master.pack.width > 1
        dearest = most if dearest is None else dearest
        master.confine(box)
        master.bind(binding)
        before: tuple[Binding, list[tuple[int, int]]] | None = None
        back: tuple[float, Binding] | None = None
        wrong, patience = 0, self.limits.within(seconds)
        while self.limits.stop is None and wrong <= MOST_WRONG:
            if patience.stop is not None:
                most = dearest
            relaxed = master.run(self.limits, dearest, good, gap, FEW)
            if relaxed.value > most and before is not None:
                wrong += 1
                back = (relaxed.value, master.binding)
                master.bind(before[0].bar(before[1]))
                before = None
                continue
            if relaxed.value > most:
                if min(relaxed.value, back[0] if back else math.inf) > dearest:
                    return None
                if back is not None and back[0] < relaxed.value:
                    master.bind(back[1])
                    relaxed = master.run(self.limits, dearest, good, gap, FEW)
                most, wrong = relaxed.value * (1 + RISE), 0
            back = None
            unbound = np.flatnonzero(wide & (master.binding.server < 0))
            if not unbound.size:
                return master.binding
            choice = self._choice(relaxed, unbound)
            if not choice:
                return None
            before = (master.binding, choice)
            master.bind(before[0].bind(choice))
        return None

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
        home = master.binding.fresh
        if home < master.box.high[-1] and not master.binding.barred[task, home]:
            return [(task, home)]
        room = master.width - used(master, relaxed)[: master.box.high[-1]]
        room[master.binding.barred[task, : len(room)]] = -np.inf
        return [(task, int(room.argmax()))] if room.max() > -np.inf else []

    def placed(
        self,
        box: Box,
        binding: Binding,
        hoped: float,
        most: float,
    ) -> Places | None:
        """A placement for `hoped` W if it can be, by sets fixed until none is fractional.

        A set that takes more is let go again; where that does not help, more is hoped for, up to
        `most`. None where even that is not enough.
        """
        master = self.master
        master.confine(box)
        master.bind(binding)
        fixed = _Fixed(master)
        last: list[int] = []
        wrong = 0
        try:
            while wrong <= MOST_UNFIXED:
                relaxed = master.run(self.limits, hoped, hoped, most_nodes=FEW)
                whole, rest = _split(relaxed.amounts)
                if relaxed.value <= most and rest.max() <= WHOLE:
                    return placed(master, whole)
                if relaxed.value > hoped:
                    if not last or self.limits.stop is not None:
                        return None
                    if len(last) > 1:  # too many at once: the first of them alone
                        for index in last[1:]:
                            fixed.less(index)
                        last = last[:1]
                        continue
                    wrong += 1
                    hoped = max(hoped, self._released(fixed, last[0], hoped, most))
                    if hoped > most:
                        return None
                    last = []
                    continue
                if self.limits.stop is not None:
                    return None
                last = self._fix(fixed, whole, rest)
        finally:
            fixed.clear()
        return None

    def down(
        self, box: Box, binding: Binding, most: float, kept: Mapping[Set, int] | None = None
    ) -> Places | None:
        """A placement for no more than `most` W by sets fixed until none is fractional.

        Each linear program is solved to its end, and no set is taken back, which is fast; tasks
        that are to be bound are bound first.

        Parameters
        ----------
        kept: sets that are fixed from the beginning, and on how many GPUs each.
        """
        master = self.master
        master.confine(box)
        master.bind(binding)
        fixed = _Fixed(master)
        if kept:
            master.add(kept)
            index = {one: j for j, one in enumerate(master.sets)}
            for one, amount in kept.items():
                fixed.at_least(index[one], amount)
        try:
            if master.servers and self.bound(box, binding, most, -math.inf, ROUGHER) is None:
                return None
            while True:
                relaxed = master.run(self.limits, most, gap=ROUGH, most_nodes=FEW, idle=IDLE)
                if relaxed.value > most or self.limits.stop is not None:
                    return None
                whole, rest = _split(relaxed.amounts)
                if rest.max() <= WHOLE:
                    return placed(master, whole)
                self._fix(fixed, whole, rest)
        finally:
            fixed.clear()

    def _fix(self, fixed: _Fixed, whole: IntArray, rest: FloatArray) -> list[int]:
        """What is whole, and one more GPU for the largest of what is not; which sets those are."""
        open_ = np.flatnonzero(rest > WHOLE)
        noisy = rest[open_] * self.rng.uniform(1 - 0.5 * self.noise, 1, len(open_))
        first = np.argsort(-noisy, kind="stable")[: 1 + len(open_) // AT_ONCE]
        for j in np.flatnonzero(whole).tolist():
            fixed.at_least(j, int(whole[j]))
        last: list[int] = open_[first].tolist()
        for j in last:
            fixed.at_least(j, int(whole[j]) + 1)
        return last

    def _released(self, fixed: _Fixed, index: int, hoped: float, most: float) -> float:
        """Let a set go, or keep it where that costs less; what that costs."""
        fixed.let_go(index)
        without = self._least(most)
        if without <= hoped:
            return without
        fixed.take(index)
        taken = self._least(most)
        if without < taken:
            fixed.let_go(index)
        return min(without, taken) * (1 + ROUGH)

    def _least(self, most: float) -> float:
        return self.master.run(self.limits, most, gap=ROUGH, most_nodes=FEW).value


class _Fixed:
    """Sets that are given GPUs, and what is taken back."""

    def __init__(self, master: Master) -> None:
        self.master = master
        self.amounts: dict[int, int] = {}

    def at_least(self, index: int, amount: int) -> None:
        if self.amounts.get(index, 0) < amount:
            self.amounts[index] = amount
            self.master.fix(index, amount)

    def less(self, index: int) -> None:
        """One less."""
        self.amounts[index] -= 1
        self.master.fix(index, self.amounts[index])

    def let_go(self, index: int) -> None:
        """One less, and no more than that."""
        self.amounts[index] -= 1
        self.master.fix(index, self.amounts[index], self.amounts[index])

    def take(self, index: int) -> None:
        """One more again."""
        self.amounts[index] += 1
        self.master.fix(index, self.amounts[index])

    def clear(self) -> None:
        for index in self.amounts:
            self.master.fix(index, 0)


@dataclass(frozen=True)
class Part:
    """What is kept of a placement.

    Parameters
    ----------
    kept: sets of tasks, and how many GPUs hold each.
    bound: tasks of several GPUs and the servers that they are in, numbered anew; none where a
        task's GPUs may be anywhere.
    awake: servers of the whole placement.
    """

    kept: Counter[Set]
    bound: list[tuple[int, int]]
    awake: int


def part_of(pack: Packing, places: Places, share: float, rng: np.random.Generator) -> Part:
    """About a share of a placement: servers where they hold a task's GPUs together, else GPUs."""
    contents, home = pack.contents(places), pack.gpu_server
    awake = sorted({int(home[g]) for g in contents})
    units = awake if pack.gang else sorted(contents)
    taken = rng.permutation(units)[: int(share * len(units))].tolist()
    number = {unit: k for k, unit in enumerate(taken)}
    inside = (g for g in contents if (int(home[g]) if pack.gang else g) in number)
    wide = np.flatnonzero(pack.width > 1).tolist() if pack.gang else []
    bound = [(ell, number.get(int(home[places[ell][0]]), -1)) for ell in wide]
    kept = Counter(tuple(contents[g]) for g in inside)
    return Part(kept, [one for one in bound if one[1] >= 0], len(awake))


def used(master: Master, relaxed: Relaxed) -> FloatArray:
    """(N,) GPUs of each server that hold a task bound to it."""
    of = master.homes
    inside = of >= 0
    found = np.bincount(of[inside], relaxed.amounts[inside], minlength=master.servers)
    return found.astype(np.float64)


def shares(master: Master, relaxed: Relaxed) -> FloatArray:
    """(L, N) how much of a task lies beside tasks that are bound to a server."""
    of, amounts = master.homes, relaxed.amounts
    found = np.zeros((master.pack.tasks, max(1, master.servers)))
    for j in np.flatnonzero((of >= 0) & (amounts > 1e-7)).tolist():
        found[list(master.sets[j]), of[j]] += amounts[j]
    return found / master.pack.width[:, None]


def _split(amounts: FloatArray) -> tuple[IntArray, FloatArray]:
    """GPUs that hold each set for certain, and what is fractional."""
    whole = np.floor(amounts + WHOLE).astype(np.int64)
    return whole, amounts - whole


def placed(master: Master, amounts: IntArray) -> Places | None:
    """GPUs for so many of each set; servers' own first, the dearest first."""
    sets: list[tuple[Set, int]] = []
    for index in np.flatnonzero(amounts).tolist():
        sets += [(master.sets[index], int(master.homes[index]))] * int(amounts[index])
    return seated(master, sets)


def seated(master: Master, sets: list[tuple[Set, int]]) -> Places | None:
    """GPUs for sets, each in its server, or in any where that is -1; None where that cannot be."""
    pack = master.pack
    sets = sorted(sets, key=lambda one: -max(int(master.own.of[ell]) for ell in one[0]))
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
