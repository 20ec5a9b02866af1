"""Which task runs on which node and GPU, where starts are given: a program over intervals.

Every task k that runs occupies its node from its submission for `lasting_s`. Between two events
(starts and ends) nothing changes, so that a schedule draws what its nodes draw in each of these
*moments*, times how long each lasts.

    Σ_n x_kn = 1                                          task k is on one node
    Σ_{k in g} x_kn ≤ 1                                   and a gang g on as many as it has rows
    Σ_h y_knh = x_kn                                      one that shares, in one slot
    Σ_{k in t} g_k y_knh ≤ 1000 on_nht,  y_knh ≤ on_nht    slot h is in use at moment t
    Σ_{k in t} G_k x_kn + Σ_h on_nht ≤ GPUs of n           G_k: GPUs it has to itself
    Σ_{k in t} cpu_k x_kn ≤ last_0 + Σ_i (last_i − last_{i−1}) z_nti,  z_nt1 ≥ z_nt2 ≥ …
    Σ_{k in t} memory_k x_kn ≤ memory of n
    x_kn ≤ awake_ni                                       where nodes are switched off
    x_kjn ≤ x_jjn,  x_kn ≤ Σ_{i on} x_in,  x_jjn + x_in ≤ 1   and take time to boot

*awake* stands for the times i at which any task of one set keeps the node on: from its submission
until it has ended and the node was empty for as long as it then stays on. Where nodes take time to
boot, k counts the *stays* of tasks, of which each task has one (`stays.py`).

A *slot* is a set of tasks that are on one GPU whenever two of them run at once. Slots and tasks
with whole GPUs are intervals, and intervals of which no more than G overlap at any moment can be
given G GPUs: which GPU a slot is on need not be decided. See ``docs/placement-bounds.md``.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from optgap.models.placement import PlacementProblem, PlacementSolution
from optgap.models.placement.arrays import FloatArray
from optgap.solvers.backends.linear import LinearBuilder
from optgap.solvers.placement.exact.code import claim
from optgap.solvers.placement.exact.tables import Counted, cpu_steps, is_share
from optgap.solvers.placement.over_time.demand import at_a_moment
from optgap.solvers.placement.over_time.stays import Moments, Stays, Tasks


@dataclass(slots=True)
class NodeColumns:
    """The columns of one node: x by stay, y by stay and slot, on by slot and set of stays."""

    x: dict[int, int] = field(default_factory=dict)
    y: dict[tuple[int, int], int] = field(default_factory=dict)
    on: dict[tuple[int, Tasks], int] = field(default_factory=dict)


class Assigning:
    """Builds the program; `model` is ready to be solved.

    Attributes
    ----------
    accepting: whether tasks may be left out, for the demand of the others.
    per_watt: what a W costs that is drawn for a second. base: what the empty cluster costs.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        assert problem.over_time is not None
        self.problem, self.stays = problem, Stays.of(problem)
        self.moments = Moments.of(self.stays)
        self.tasks = problem.tasks.take(self.stays.task.tolist())
        self.accepting = problem.objective.goal == "mean_accepted_gpu"
        self.per_watt = problem.per_second * problem.objective.weights[0]
        cluster, rules = problem.cluster, problem.over_time
        self.idle_w = [problem.power.idle_w(cluster.types[t]) for t in cluster.type_of.tolist()]
        unused_w = [rules.off_w] * len(cluster) if rules.sleeps else self.idle_w
        self.switch_w = [idle - unused for idle, unused in zip(self.idle_w, unused_w, strict=True)]
        self.base = self.per_watt * rules.horizon_s * sum(unused_w)
        self.builder = LinearBuilder("max" if self.accepting else "min", self.base)
        self.classes = [self.tasks.task_class(k) for k in range(len(self.tasks))]
        self.columns = [NodeColumns() for _ in range(len(problem.cluster))]
        self.most_w = 0.0
        for n in range(len(self.columns)):
            self._tasks(n)
            self._memory(n)
            self._gpus(n)
            self._cpu(n)
            if rules.sleeps:
                self._switching(n)
                self._boots(n)
        self._each_once()
        self._gangs()
        self._order_nodes()
        self.model = self.builder.build()

    @property
    def overlap(self) -> float:
        """How much less than the program a schedule may cost, as some times count as the same."""
        return self.per_watt * self.moments.overlap_s * self.most_w

    def _tasks(self, n: int) -> None:
        problem = self.problem
        node = problem.cluster.types[int(problem.cluster.type_of[n])]
        lasting = problem.lasting_s[self.stays.task]
        demand = self.tasks.demand_milli * lasting * problem.per_second
        fits = [problem.fits_empty(task, node) for task in self.classes]
        for k, j in enumerate(self.stays.boot.tolist()):
            if fits[k] and (j < 0 or fits[self.stays.own[j]]):
                gain = float(demand[k]) if self.accepting else 0.0
                self.columns[n].x[k] = self.builder.variable(0, 1, gain, integer=True)

    def _memory(self, n: int) -> None:
        x, needs = self.columns[n].x, self.tasks.memory_mib
        capacity = int(self.problem.cluster.memory_mib[n])
        for here, (_, full) in self.moments.among(k for k in x if needs[k]).items():
            if full and sum(int(needs[k]) for k in here) > capacity:
                self.builder.row([(x[k], float(needs[k])) for k in here], upper=capacity)

    def _gpus(self, n: int) -> None:
        """Slots for the tasks that share, and the GPUs that slots and whole tasks take."""
        cluster, power = self.problem.cluster, self.problem.power
        columns, builder, gpus = self.columns[n], self.builder, int(cluster.gpus[n])
        if not gpus:
            return
        model = cluster.models[n]
        watts = power.gpu_full_w[model] - power.gpu_idle_w[model]
        self.most_w += watts * gpus
        for k, x in columns.x.items():
            if not is_share(self.classes[k]):
                cost = watts * self.classes[k].num_gpu * float(self._lasts_s[k])
                builder.add_cost(x, self.per_watt * cost)
        sharing = [k for k in columns.x if is_share(self.classes[k])]
        together = self.moments.among(sharing)
        slots = min(gpus, max((len(here) for here in together), default=0))
        for place, k in enumerate(sharing):
            own = range(min(slots, place + 1))
            for h in own:
                columns.y[k, h] = builder.variable(0, 1, integer=True)
            builder.row([*((columns.y[k, h], 1.0) for h in own), (columns.x[k], -1.0)], 0, 0)
        self._order_slots(n, sharing)
        for here, (lasts, _) in together.items():
            for h in range(slots):
                self._slot(n, h, here, self.per_watt * watts * lasts)
        self._gpu_rows(n, gpus, slots)

    def _slot(self, n: int, h: int, here: Tasks, cost: float) -> None:
        """Whether a slot is in use while these tasks run, and that they fit it."""
        columns, builder = self.columns[n], self.builder
        inside = [k for k in sorted(here) if (k, h) in columns.y]
        if not inside:
            return
        on = columns.on[h, here] = builder.variable(0, 1, cost, integer=True)
        loads = [(columns.y[k, h], float(self.classes[k].gpu_milli)) for k in inside]
        for of_one in self.stays.by_task(inside):
            builder.row([*((columns.y[k, h], 1.0) for k in of_one), (on, -1.0)], upper=0)
        if sum(milli for _, milli in loads) > 1000:
            builder.row([*loads, (on, -1000.0)], upper=0)
            large = [(y, 1.0) for y, milli in loads if milli > 500]
            if len(large) > 1:
                builder.row([*large, (on, -1.0)], upper=0)

    def _gpu_rows(self, n: int, gpus: int, slots: int) -> None:
        columns = self.columns[n]
        users = [k for k in columns.x if self.classes[k].num_gpu]
        sharing = frozenset(k for k in users if is_share(self.classes[k]))
        for here, (_, full) in self.moments.among(users).items():
            if not full or sum(self.classes[k].num_gpu for k in here) <= gpus:
                continue
            terms = [(columns.x[k], float(self.classes[k].num_gpu)) for k in here - sharing]
            for h in range(slots):
                if (h, here & sharing) in columns.on:
                    terms.append((columns.on[h, here & sharing], 1.0))
            self.builder.row(terms, upper=gpus)

    def _cpu(self, n: int) -> None:
        """The staircase of CPU power at every moment; its last step is the capacity."""
        columns, builder = self.columns[n], self.builder
        needs = self.tasks.cpu_milli
        steps = cpu_steps(self.problem.power, int(self.problem.cluster.cpu_milli[n]))
        self.most_w += max(step.watts for step in steps) - steps[0].watts
        falls = any(b.watts < a.watts for a, b in itertools.pairwise(steps))
        for here, (lasts, _) in self.moments.among(k for k in columns.x if needs[k]).items():
            used = [(columns.x[k], float(needs[k])) for k in sorted(here)]
            most = sum(int(needs[k]) for k in here)
            up: list[tuple[int, float]] = []
            down: list[tuple[int, float]] = []
            for before, step in itertools.pairwise(steps):
                if before.last >= most:
                    break
                cost = self.per_watt * lasts * (step.watts - before.watts)
                z = builder.variable(0, 1, cost, integer=True)
                if up:
                    builder.row([(up[-1][0], 1.0), (z, -1.0)], lower=0)
                up.append((z, float(before.last - step.last)))
                down.append((z, float(before.first - step.first)))
                for of_one in self.stays.by_task(here):
                    if needs[of_one[0]] > before.last:
                        alone = ((columns.x[k], 1.0) for k in of_one)
                        builder.row([*alone, (z, -1.0)], upper=0)
            if most > steps[0].last:
                builder.row([*used, *up], upper=steps[0].last)
            if falls and down:
                builder.row([*used, *down], lower=0)

    def _switching(self, n: int) -> None:
        """What it costs that the node is on."""
        columns, builder = self.columns[n], self.builder
        self.most_w += self.switch_w[n]
        for here, lasts in self._awake_s(columns.x).items():
            awake = builder.variable(0, 1, self.per_watt * lasts * self.switch_w[n])
            for of_one in self.stays.by_task(here):
                builder.row([*((columns.x[k], 1.0) for k in of_one), (awake, -1.0)], upper=0)

    def _boots(self, n: int) -> None:
        """Which stays go together: a node boots for a task that finds it off, and only then."""
        x, builder, stays = self.columns[n].x, self.builder, self.stays
        mine = list(x)
        for v in mine:
            k, on = int(stays.task[v]), stays.keeping_on(v, mine)
            j = int(stays.boot[v])
            if j < 0:
                if stays.own[k] >= 0:  # it does not boot, so something keeps the node on
                    builder.row([(x[v], 1.0), *((x[u], -1.0) for u in on)], upper=0)
                continue
            if j != k:
                builder.row([(x[v], 1.0), (x[stays.own[j]], -1.0)], upper=0)
                others = ((x[u], 1.0) for u in mine if stays.task[u] == k and u != v)
                builder.row([*others, (x[stays.own[j]], 1.0)], upper=1)
                continue
            for of_one in stays.by_task(on):
                builder.row([(x[v], 1.0), *((x[u], 1.0) for u in of_one)], upper=1)

    def _awake_s(self, tasks: Iterable[int]) -> dict[Tasks, float]:
        """For how long each set of these stays would keep a node on, s, were all on it."""
        rules, chosen = self.problem.over_time, sorted(tasks)
        assert rules is not None
        begin, end = self.stays.from_s[chosen], self.stays.end_s[chosen]
        end = np.maximum(end, np.minimum(end + rules.sleep_after_s, rules.end_s))
        found: dict[Tasks, float] = defaultdict(float)
        for now, then in itertools.pairwise(np.unique(np.concatenate([begin, end])).tolist()):
            here = np.flatnonzero((begin <= now) & (then <= end))
            if here.size:
                found[frozenset(chosen[i] for i in here.tolist())] += then - now
        return found

    @cached_property
    def _lasts_s(self) -> FloatArray:
        """(T,) how long each task runs by the moments."""
        total = np.concatenate([[0.0], np.cumsum(self.moments.lasts_s)])
        lasts: FloatArray = total[self.moments.end] - total[self.moments.begin]
        return lasts

    def _each_once(self) -> None:
        for of_one in self.stays.by_task(range(len(self.classes))):
            terms = [(c.x[k], 1.0) for k in of_one for c in self.columns if k in c.x]
            self.builder.row(terms, 0.0 if self.accepting else 1.0, 1.0)

    def _gangs(self) -> None:
        """The rows of a task: on different nodes, and all or none."""
        for rows in self.problem.tasks.gangs:
            for columns in self.columns:
                terms = [(columns.x[k], 1.0) for k in rows if k in columns.x]
                if len(terms) > 1:
                    self.builder.row(terms, upper=1)
            for k, j in itertools.pairwise(rows) if self.accepting else ():
                here, there = (
                    [(columns.x[i], sign) for columns in self.columns if i in columns.x]
                    for i, sign in ((k, 1.0), (j, -1.0))
                )
                self.builder.row([*here, *there], 0.0, 0.0)

    def _order_slots(self, n: int, sharing: Sequence[int]) -> None:
        """Of slots that can be renamed: each begins after the one before it."""
        y = self.columns[n].y
        for place, k in enumerate(sharing):
            for h in range(1, place + 1):
                if (k, h) in y:
                    before = [(y[j, h - 1], -1.0) for j in sharing[:place] if (j, h - 1) in y]
                    self.builder.row([(y[k, h], 1.0), *before], upper=0)

    def _order_nodes(self) -> None:
        """Of nodes that are alike: each is begun after the one before it."""
        alike: dict[int, list[int]] = defaultdict(list)
        for n, t in enumerate(self.problem.cluster.type_of.tolist()):
            alike[t].append(n)
        for nodes in alike.values():
            for first, second in itertools.pairwise(nodes):
                before: list[tuple[int, float]] = []
                for k, x in sorted(self.columns[second].x.items()):
                    self.builder.row([(x, 1.0), *before], upper=0)
                    before.append((self.columns[first].x[k], -1.0))

    # -- what values of the columns mean ---------------------------------------------------

    def claim(self, solution: PlacementSolution) -> float:
        """The objective of a schedule by the tables of the static formulations."""
        problem, stays = self.problem, self.stays
        placed = frozenset(stays.taken(problem, solution))
        if self.accepting:
            demand = problem.tasks.demand_milli * problem.lasting_s
            return math.fsum(demand[solution.node >= 0].tolist()) * problem.per_second
        assert problem.over_time is not None
        weight = problem.objective.weights[0]
        idle_w, rules = sum(self.idle_w), problem.over_time
        joules = []
        for n in range(len(problem.cluster) if rules.sleeps else 0):
            mine = [k for k in placed if solution.node[stays.task[k]] == n]
            joules.append(weight * self.switch_w[n] * sum(self._awake_s(mine).values()))
        for here, (lasts, _) in self.moments.among(placed).items():
            tasks = stays.task[sorted(here)]
            part = PlacementSolution.of_arrays(solution.node[tasks], solution.gpu_mask[tasks])
            cost = claim(Counted(at_a_moment(problem, tasks)), part)
            joules.append(lasts * (cost - weight * idle_w))
        return self.base + problem.per_second * math.fsum(joules)

    def solution(self, values: FloatArray) -> PlacementSolution:
        """The schedule behind whole values."""
        placed: list[tuple[int, Sequence[int]] | None] = [None] * len(self.problem.tasks)
        for n, columns in enumerate(self.columns):
            mine = [k for k, x in columns.x.items() if values[x] > 0.5]
            slot = {k: h for (k, h), y in columns.y.items() if values[y] > 0.5}
            for k, gpus in self._gpus_of(mine, slot).items():
                placed[int(self.stays.task[k])] = (n, gpus)
        made = PlacementSolution.of(placed)
        return PlacementSolution.of_arrays(made.node, made.gpu_mask, self.problem.tasks.submit_s)

    def _gpus_of(self, mine: Iterable[int], slot: dict[int, int]) -> dict[int, Sequence[int]]:
        """GPUs for the tasks of one node, in order of start: the lowest that are free."""
        begin, end = self.moments.begin, self.moments.end
        until: list[int] = []  # of each GPU, the event with which it is free
        taken: dict[int, tuple[int, int]] = {}  # of each slot, its GPU and when that is free
        found: dict[int, Sequence[int]] = {}
        for k in sorted(mine, key=lambda k: int(begin[k])):
            now, leaves = int(begin[k]), int(end[k])
            h = slot.get(k)
            if h is not None and h in taken and taken[h][1] > now:
                g, last = taken[h]
                taken[h] = g, max(last, leaves)
                until[g] = taken[h][1]
                found[k] = (g,)
                continue
            free = [g for g, event in enumerate(until) if event < now]
            more = self.classes[k].num_gpu - len(free)
            free += range(len(until), len(until) + more)
            until += [0] * max(0, more)
            found[k] = free[: self.classes[k].num_gpu]
            for g in found[k]:
                until[g] = leaves
            if h is not None:
                taken[h] = found[k][0], leaves
        return found
