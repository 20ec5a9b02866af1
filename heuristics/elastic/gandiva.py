"""Gandiva (Xiao et al., OSDI 2018) in its node-set form: not elastic, with time slices.

Sets hold the nodes, each set for one GPU count. If a set has more jobs than slots, the jobs take
turns of `quantum_s`; restarts that would take half of that or more come on top. GPU counts get sets
in proportion to the GPUs that their jobs request.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optgap.heuristics.elastic.parameters import GandivaParams, GandivaZeusParams
from optgap.heuristics.elastic.shared_clock import Clock
from optgap.models.elastic import ElasticProblem
from optgap.models.elastic.simulation.engine import simulate
from optgap.models.elastic.simulation.protocol import Decision, ElasticState, Settings
from optgap.models.limits import Limits
from optgap.models.result import Outcome
from optgap.models.spec import chosen
from optgap.models.times import slack_s


def gandiva(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run Gandiva; `given` is as in `GandivaParams`."""
    return _run(problem, limits, "gandiva", chosen(GandivaParams, given, "gandiva"))


def gandiva_zeus(problem: ElasticProblem, *, limits: Limits, seed: int, **given: Any) -> Outcome:
    """Run Gandiva with each job at Zeus's clock; `given` is as in `GandivaZeusParams`."""
    return _run(problem, limits, "gandiva+zeus", chosen(GandivaZeusParams, given, "gandiva+zeus"))


def _run(
    problem: ElasticProblem,
    limits: Limits,
    owner: str,
    options: GandivaParams | GandivaZeusParams,
) -> Outcome:
    clock = Clock(problem, owner, options)
    return simulate(problem, Gandiva(problem, clock, options.quantum_s), limits)


class NodeSet:
    """Set of whole nodes that runs `slots` jobs of one GPU count at a time, in order of arrival.

    Parameters
    ----------
    places: blocks of GPUs of each slot.
    jobs: assigned jobs; the first `slots` of them run.
    """

    def __init__(self, size: int, nodes: tuple[int, ...], per: int) -> None:
        self.size, self.nodes = size, nodes
        if size >= per:
            self.places = [tuple(node * per for node in nodes)]
        else:
            self.places = [(nodes[0] * per + first,) for first in range(0, per, size)]
        self.jobs: list[int] = []
        self.slot: dict[int, int] = {}
        self.shown: list[int] = []  # what `running` said last
        self.slots = len(self.places)

    def running(self) -> list[int]:
        """Return the jobs that run now; each keeps its slot meanwhile."""
        now = self.jobs[: self.slots]
        if now == self.shown:
            return now
        self.shown = now
        self.slot = {job: s for job, s in self.slot.items() if job in now}
        free = [s for s in range(self.slots) if s not in self.slot.values()]
        for job in now:
            if job not in self.slot:
                self.slot[job] = free.pop(0)
        return now

    def rotate(self) -> None:
        """Begin the next time slice."""
        if len(self.jobs) > self.slots:
            self.jobs = self.jobs[self.slots :] + self.jobs[: self.slots]


class Gandiva:
    """Node sets as a policy of the engine."""

    def __init__(self, problem: ElasticProblem, clock: Clock, quantum_s: float) -> None:
        self.problem, self.clock = problem, clock
        self.settings = Settings(making="none")
        self.wanted = clock.requested().tolist()
        restart = max(problem.overhead.seconds(self._size(job)) for job in range(len(problem)))
        self.quantum_s = quantum_s if quantum_s > 2 * restart else restart + quantum_s
        self.per = problem.gpus_per_node
        self.free = list(range(problem.nodes))
        self.sets: dict[int, list[NodeSet]] = {}
        self.home: dict[int, NodeSet] = {}
        self.pending: list[int] = []
        self.turn = 0

    def decide(self, state: ElasticState) -> Decision:
        """Process ends, then slices, then arrivals, then the shares of the classes."""
        jobs = state.jobs.tolist()
        present = set(jobs)
        changed = self._ends(present)
        turn = math.floor((state.time_s + slack_s(state.time_s)) / self.quantum_s)
        sliced = turn > self.turn
        if sliced:
            self.turn = turn
            for group in self.sets.values():
                for item in group:
                    item.rotate()
        known = self.home.keys() | set(self.pending)
        new = [job for job in jobs if job not in known]
        queue, self.pending = self.pending + new, []
        for job in queue:
            self._arrive(job)
        if changed or new or sliced:
            self._rebalance()
        return self._decision(state, jobs)

    def _decision(self, state: ElasticState, jobs: list[int]) -> Decision:
        counts = [-1] * len(jobs)
        places: list[tuple[int, ...]] = [()] * len(jobs)
        position = {job: a for a, job in enumerate(jobs)}
        order: list[int] = []
        crowded = False
        for size in sorted(self.sets):
            for item in self.sets[size]:
                crowded = crowded or len(item.jobs) > item.slots
                for job in item.running():
                    a = position[job]
                    counts[a], places[a] = self.wanted[job], item.places[item.slot[job]]
                    order.append(a)
        rest = [a for a, k in enumerate(counts) if k < 0]
        count = np.array(counts, dtype=np.int64)
        ranked = np.array(sorted(order) + rest, dtype=np.int64)
        clock = self.clock.settle(state, count, ranked)
        # jobs that the limit holds back take their turn with the next slice, too
        held_back = bool((count[order] < 0).any())
        wake = (self.turn + 1) * self.quantum_s if crowded or held_back else math.inf
        return Decision(count, clock, ranked, wake, places)

    def _size(self, job: int) -> int:
        return int(self.problem.counts[self.wanted[job]])

    def _nodes(self, size: int) -> int:
        return -(-size // self.per)

    def _ends(self, present: set[int]) -> bool:
        """Remove completed jobs, and sets without jobs; return whether there were any."""
        gone = [job for job in self.home if job not in present]
        for job in gone:
            self.home.pop(job).jobs.remove(job)
        for size, group in self.sets.items():
            for item in [item for item in group if not item.jobs]:
                self._release(size, item)
        return bool(gone)

    def _release(self, size: int, item: NodeSet) -> None:
        self.sets[size].remove(item)
        self.free = sorted([*self.free, *item.nodes])

    def _create(self, size: int) -> NodeSet:
        k = self._nodes(size)
        item = NodeSet(size, tuple(self.free[:k]), self.per)
        self.free = self.free[k:]
        self.sets.setdefault(size, []).append(item)
        return item

    def _arrive(self, job: int) -> None:
        size = self._size(job)
        group = self.sets.get(size, [])
        item = min(group, key=lambda s: len(s.jobs), default=None)
        if item is None or len(item.jobs) + 1 > item.slots:
            if len(self.free) >= self._nodes(size):
                item = self._create(size)
            elif item is None:
                self._make_space(size)
                if len(self.free) < self._nodes(size):
                    self.pending.append(job)
                    return
                item = self._create(size)
        item.jobs.append(job)
        self.home[job] = item

    def _make_space(self, size: int) -> None:
        """Give a class without a set one from a class with several.

        Otherwise a class that arrives late would wait until others end, however long these run.
        No class gives up a set if all spare sets together are not enough.
        """
        spare = sum((len(group) - 1) * self._nodes(s) for s, group in self.sets.items() if group)
        if len(self.free) + spare < self._nodes(size):
            return
        while len(self.free) < self._nodes(size):
            rich = [s for s, group in self.sets.items() if len(group) > 1]
            if not rich:
                return
            group = self.sets[max(rich, key=lambda s: len(self.sets[s]) * self._nodes(s))]
            self._dissolve(min(group, key=lambda s: len(s.jobs)))

    def _dissolve(self, item: NodeSet) -> None:
        """Release a set; its jobs join the least loaded one of the class."""
        self._release(item.size, item)
        for job in item.jobs:
            target = min(self.sets[item.size], key=lambda s: len(s.jobs))
            target.jobs.append(job)
            self.home[job] = target

    def _rebalance(self) -> None:
        """Give GPUs to classes in proportion to their requests; shrink classes first, then grow.

        A class gives up a set only if this brings it closer to its share, and gets a set only if
        this takes it no farther. Otherwise sets would go back and forth with every slice, because
        whole nodes seldom make a share exactly.
        """
        demand = {
            size: size * sum(len(item.jobs) for item in group)
            for size, group in self.sets.items()
            if group
        }
        total = sum(demand.values())
        if not total:
            return
        target = {s: min(d, d * self.problem.gpus // total) for s, d in demand.items()}
        for size in sorted(demand):
            group, unit = self.sets[size], self._nodes(size) * self.per
            while len(group) > 1 and abs(target[size] - (len(group) - 1) * unit) < abs(
                target[size] - len(group) * unit
            ):
                self._dissolve(min(group, key=lambda s: len(s.jobs)))
        for size in sorted(demand):
            group, unit = self.sets[size], self._nodes(size) * self.per
            made = False
            while len(self.free) >= self._nodes(size) and abs(
                target[size] - (len(group) + 1) * unit
            ) <= abs(target[size] - len(group) * unit):
                self._create(size)
                made = True
            if made:
                self._deal(size)

    def _deal(self, size: int) -> None:
        """Assign all jobs of a class anew, one by one, to the least loaded set."""
        group = self.sets[size]
        jobs = [job for item in group for job in item.jobs]
        for item in group:
            item.jobs = []
        for job in jobs:
            target = min(group, key=lambda s: len(s.jobs))
            target.jobs.append(job)
            self.home[job] = target
        for item in list(group):
            if not item.jobs:
                self._release(size, item)
