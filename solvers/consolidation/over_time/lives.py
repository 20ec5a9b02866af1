"""A bound on schedules that move no task: whose GPU each task lives on, as an integer program.

The tasks of a GPU from when it wakes until it sleeps are a *life*, led by the one whose submission
and duration add up to the most. Where a task lives fixes from below when its work is asked for,
counted from the beginning of the leader, see the page of bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optgap.models.compiled import floats
from optgap.models.consolidation import ConsolidationProblem
from optgap.models.limits import Limits
from optgap.solvers.backends import solve
from optgap.solvers.backends.linear import LinearBuilder, LinearModel
from optgap.solvers.backends.safe import safe_bound, solver_slack
from optgap.solvers.consolidation.numerics import BOUND_SAFETY, FloatArray, IntArray
from optgap.solvers.consolidation.over_time.envelope import envelope
from optgap.solvers.consolidation.over_time.parameters import TUNING, BoundParams
from optgap.solvers.consolidation.over_time.relaxation import utilisations
from optgap.solvers.consolidation.over_time.shares import closed_forms, sizes

SOLVER_TOLERANCE = 1e-7
"""What HiGHS holds reduced costs to: its own bounds are off by that for each variable's range."""


@dataclass(frozen=True, eq=False)
class Lives:
    """The integer program, and what its numbers mean.

    Parameters
    ----------
    model: of lives. unit: J of 1 in its objective. most: (n,) ranges that some optimum keeps.
    """

    model: LinearModel
    unit: float
    most: FloatArray


def bound_by_lives(
    problem: ConsolidationProblem, limits: Limits, params: BoundParams
) -> tuple[float, IntArray | None]:
    """The energy of every schedule without moves and waiting is no less, J; and who lives where.

    First by the prices of the linear relaxation, then by branch and bound for what is left of the
    time. The second is the program's best assignment if it found one: GPUs, shape (L, widest), −1
    beyond a task's own. It may break rules that the program knows only in part.
    """
    builder = Builder(problem, params)
    lives, place = builder.build(), None
    besides = float(builder.curve.work_j.sum())
    if lives is None or limits.stop is not None:
        return besides * (1 - BOUND_SAFETY), None
    relaxed = replace(lives.model, integer=np.zeros(lives.model.variables, dtype=np.bool_))
    solved = solve(relaxed, backend="highs", limits=limits.within(limits.remaining), seed=0)
    best = 0.0
    if solved.duals is not None:
        best = max(0.0, safe_bound(lives.model, solved.duals, lives.most))
    limits.progress("lives", None, (best * lives.unit + besides) * (1 - BOUND_SAFETY))
    if limits.stop is None and params.branching > 0:
        within = limits.within(min(params.branching, limits.remaining))
        whole = solve(
            lives.model, backend="highs", limits=within, seed=0, gap=TUNING.lives_gap,
            tolerance=SOLVER_TOLERANCE,
        )  # fmt: skip
        if whole.bound is not None:
            slack = solver_slack(lives.model, SOLVER_TOLERANCE, lives.most)
            best = max(best, whole.bound - slack)
        if whole.values is not None:
            place = builder.placed(whole.values)
    return (best * lives.unit + besides) * (1 - BOUND_SAFETY), place


class Builder:
    """One program. L tasks.

    Attributes
    ----------
    curve: the power curve. weight: (L,) the task's factor of it. width: (L,) its GPUs.
    submit, effort, work, last: (L,) s, s of progress, s of ∫u/100, and submit + effort.
    floor: what a GPU draws at the least pace, over what a second of its progress costs at least.
    demand, limits: (R, L) and (R,) what fits a GPU.
    shared: whether a task makes progress as its GPU does: one GPU, and the same exponent as all.
    asking: whether utilisation above 100 % slows in proportion or more.
    """

    def __init__(self, problem: ConsolidationProblem, params: BoundParams) -> None:
        self.curve = curve = envelope(problem, params.tangents)
        self.price = float((curve.watts / curve.pace).min())
        self.floor = float(curve.watts.min()) / self.price if self.price > 0 else 0.0
        self.problem, self.weight, self.width = problem, curve.factor, problem.width
        self.submit = floats([t.submit_s for t in problem.tasks])
        self.effort = floats([t.duration_s for t in problem.tasks])
        self.last = self.submit + self.effort
        self.span = float(max(self.effort.mean(), 1e-6))
        _, _, self.work = utilisations(problem)
        self.demand, self.limits = sizes(problem)
        self.forms = closed_forms(self.demand, self.limits)
        betas = {
            problem.kinds[k].beta if t.beta is None else t.beta
            for k in set(problem.gpu_kind.tolist())
            for t in problem.tasks
        }
        self.shared = (self.width == 1) & (len(betas) == 1)
        self.asking = problem.rules.contention >= 1
        self.rank = np.empty(len(problem), dtype=np.int64)
        self.rank[np.argsort(self.last, kind="stable")] = np.arange(len(problem))

    def build(self) -> Lives | None:
        """The program; None where power costs nothing."""
        if self.price <= 0:
            return None
        tasks = range(len(self.problem))
        self.program = program = LinearBuilder()
        self.lives: dict[tuple[int, int], int] = {}
        top = float((self.width * self.weight * (2 * self.effort + self.work)).sum())
        top += float(self.width.sum() * self.weight.max()) * float(np.ptp(self.submit))
        top += float(self.width.sum() * self.weight.max()) * self.problem.rules.wake_s
        most = []
        for leader in tasks:
            for rider in tasks:
                if self._together(rider, leader):
                    many = float(min(self.width[rider], self.width[leader]))
                    self.lives[rider, leader] = program.variable(upper=many, integer=True)
                    most.append(many)
        for rider in tasks:
            own = [(self.lives[rider, k], 1.0) for k in tasks if (rider, k) in self.lives]
            program.row(own, float(self.width[rider]), float(self.width[rider]))
        for leader in tasks:
            cost = program.variable(cost=1.0)
            before = program.variable()
            most += [top / self.span] * 2
            self._energy(leader, cost, before)
            self._capacity(leader)
        return Lives(program.build(), self.price * self.span, np.array(most))

    def _together(self, rider: int, leader: int) -> bool:
        """Whether one may live with the other leading."""
        if rider == leader:
            return True
        if self.rank[rider] > self.rank[leader]:
            return False
        apart = max(self.submit[[rider, leader]]) >= min(self.last[[rider, leader]])
        return apart or bool((self.demand[:, rider] + self.demand[:, leader] <= self.limits).all())

    def _energy(self, leader: int, cost: int, before: int) -> None:
        """What a life of this leader takes at least, seconds of progress at the least price."""
        riders = [r for r in range(len(self.problem)) if (r, leader) in self.lives]
        lead, effort = self.lives[leader, leader], float(self.effort[leader])
        own = float(self.weight[leader])
        row = self.program.row
        wake = self.floor * self.problem.rules.wake_s * float(self.weight.min())
        early = False
        for r in riders:
            if r != leader:
                row([(lead, 1.0), (self.lives[r, leader], -1.0)], lower=0.0)
            # its GPU is awake from its submission on, whatever it gets done
            there = min(self.submit[leader], self.last[r]) - self.submit[r]
            if there > 0:
                early = True
                share = self.floor * float(self.weight[r]) * there / self.span
                row([(before, 1.0), (self.lives[r, leader], -share)], lower=0.0)
            longer = float(self.weight[r] * self.effort[r])
            if longer > own * effort:
                row([(cost, 1.0), (self.lives[r, leader], -longer / self.span)], lower=0.0)
        row([(cost, 1.0), (before, -1.0), (lead, -own * effort / self.span)], lower=0.0)
        if not self.asking:
            return
        later = self.submit[riders] - self.submit[leader]
        for at in self._moments(leader, riders):
            left = own * max(0.0, effort - at) + wake
            done = [self._by(r, d, at) for r, d in zip(riders, later.tolist(), strict=True)]
            self._asked(riders, leader, done, [(cost, 1.0), (lead, -left / self.span)])
            if early and np.isfinite(at):
                since = [self._since(r, d, at) for r, d in zip(riders, later.tolist(), strict=True)]
                left = own * (effort - at)
                self._asked(
                    riders, leader, since, [(cost, 1.0), (before, -1.0), (lead, -left / self.span)]
                )

    def _asked(
        self, riders: list[int], leader: int, work: list[float], terms: list[tuple[int, float]]
    ) -> None:
        """A row: the terms are no less than the work of who lives there."""
        weighted = [
            float(self.weight[r]) * w / self.span for r, w in zip(riders, work, strict=True)
        ]
        more = [(self.lives[r, leader], -w) for r, w in zip(riders, weighted, strict=True) if w]
        self.program.row([*terms, *more], lower=0.0)

    def _moments(self, leader: int, riders: list[int]) -> list[float]:
        """Of the leader's progress: where others end at the latest, and for ever."""
        effort = float(self.effort[leader])
        ends = np.unique(np.append(self.last[riders] - self.submit[leader], effort))
        ends = ends[(ends > 0) & (ends <= effort)]
        if len(ends) > TUNING.moments:
            ends = ends[
                np.unique(np.linspace(0, len(ends) - 1, TUNING.moments).round().astype(int))
            ]
        return [*ends.tolist(), np.inf]

    def _made(self, task: int, progress: FloatArray) -> FloatArray:
        """∫u/100 up to some progress, s."""
        series, period = self.problem.tasks[task].util_percent / 100, self.problem.period_s
        made = np.clip(progress, 0.0, self.effort[task])
        sample: IntArray = np.minimum(series.size - 1, (made / period).astype(np.int64))
        whole = np.concatenate([[0.0], np.cumsum(series) * period])
        return np.asarray(whole[sample] + series[sample] * (made - sample * period))

    def _by(self, task: int, later: float, at: float) -> float:
        """The least work done when the leader could have made so much progress, s."""
        if not np.isfinite(at):
            return float(self.work[task])
        if not self.shared[task]:
            return 0.0
        return float(self._made(task, np.array(at - max(0.0, later))))

    def _since(self, task: int, later: float, at: float) -> float:
        """The same of what it does after the leader began."""
        if later >= 0 or not self.shared[task]:
            return self._by(task, later, at)
        begun = self._edges(task, -later, at)
        return max(0.0, float((self._made(task, begun + at) - self._made(task, begun)).min()))

    def _edges(self, task: int, most: float, at: float) -> FloatArray:
        """Progress up to `most` at which a window of length `at` begins or ends with a sample."""
        period, effort = self.problem.period_s, float(self.effort[task])
        samples = np.arange(self.problem.tasks[task].util_percent.size) * period
        edges = np.concatenate([samples, samples - at, [0.0, most, effort - at, effort]])
        return np.asarray(edges[(edges >= 0) & (edges <= most)])

    def _capacity(self, leader: int) -> None:
        """Shares of those that are there for certain, whenever one has come."""
        riders = np.array([r for r in range(len(self.problem)) if (r, leader) in self.lives])
        known: set[bytes] = set()
        for moment in np.unique(self.submit[riders])[::-1].tolist():
            there = riders[(self.submit[riders] <= moment) & (self.last[riders] > moment)]
            for share in self.forms[:, there]:
                key = there.tobytes() + share.tobytes()
                if share.sum() <= 1 or key in known:
                    continue
                known.add(key)
                terms = [
                    (self.lives[int(r), leader], -float(g))
                    for r, g in zip(there, share, strict=True)
                ]
                self.program.row([*terms, (self.lives[leader, leader], 1.0)], lower=0.0)

    def placed(self, values: FloatArray) -> IntArray | None:
        """GPUs of every task in a solution, each leader's its own; None where they are too few.

        And where a task that has to be in one server is in several.
        """
        problem, tasks = self.problem, range(len(self.problem))
        many = {pair: round(float(values[variable])) for pair, variable in self.lives.items()}
        servers = range(len(problem.servers))
        left = [np.flatnonzero(problem.gpu_server == i).tolist() for i in servers]
        own: dict[int, list[int]] = {}
        for leader in sorted(tasks, key=lambda k: -many[k, k]):
            count = many[leader, leader]
            home = next((gpus for gpus in left if len(gpus) >= count), None)
            if home is None:
                return None
            own[leader], home[:count] = home[:count], []
        place = np.full((len(problem), int(self.width.max())), -1, dtype=np.int64)
        taken = np.zeros(len(problem.gpu_kind), dtype=np.int64)
        for rider in tasks:
            gpus: list[int] = []
            for leader in tasks:
                least = sorted(own[leader], key=lambda g: int(taken[g]))
                gpus += least[: many.get((rider, leader), 0)]
            if problem.rules.gang == "server" and len(set(problem.gpu_server[gpus])) > 1:
                return None
            place[rider, : len(gpus)] = gpus
            taken[gpus] += 1
        return place
